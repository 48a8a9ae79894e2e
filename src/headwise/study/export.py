"""A study for other people's tools: marl-eval's JSON, and a table for everything else."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np

from headwise.study.result import EpisodeTable
from headwise.study.run import Run
from headwise.study.store import Store

POINTS = 50
"""Evaluations that marl-eval is given of each run; it wants equally many of all."""
RETURN = "mean_episode_return"


def marl_eval_json(store: Store, points: int = POINTS) -> str:
    """Finished runs in the form of marl-eval (Gorsane et al. 2022).

    environment, task (label and view), algorithm (with factorization and labels), seed, step.
    A step holds the mean return of the episodes that ended since the one before it; where none did,
    that of the last one known.
    """
    data: dict[str, Any] = {}
    for run in store.plan():
        if not store.is_finished(run.id):
            continue
        episodes = store.episodes(run.id)
        if not len(episodes.step):
            continue
        algorithm = (
            data.setdefault(run.env, {}).setdefault(_task(run), {}).setdefault(_algorithm(run), {})
        )
        entry: dict[str, Any] = {
            f"step_{k}": {"step_count": step, RETURN: [value]}
            for k, (step, value) in enumerate(_curve(episodes, run.steps, points), 1)
        }
        entry["absolute_metrics"] = {RETURN: [store.result(run.id)["final_return"]]}
        algorithm[f"seed_{run.seed}"] = entry
    return json.dumps(data, indent=1) + "\n"


def results_csv(store: Store) -> str:
    """A row for each run of the plan: what it is, how it ended, and its scalars."""
    rows = []
    for run in store.plan():
        finished = store.is_finished(run.id)
        state = "finished" if finished else "failed" if store.is_failed(run.id) else "left"
        what = ("env", "view", "algorithm", "factorization", "seed", "steps", "num_envs")
        rows.append(
            {
                "id": run.id,
                **{name: getattr(run, name) for name in what},
                **{f"label_{name}": value for name, value in sorted(run.labels.items())},
                "state": state,
                **(store.result(run.id) if finished else {}),
            }
        )
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _task(run: Run) -> str:
    return "/".join(filter(None, (run.labels.get("environment", run.env), run.view)))


def _algorithm(run: Run) -> str:
    further = [value for name, value in sorted(run.labels.items()) if name != "environment"]
    return "/".join((run.algorithm, run.factorization, *further))


def _curve(episodes: EpisodeTable, steps: int, points: int) -> list[tuple[int, float]]:
    """(step, mean return) at equal distances; before the first episode ended, its own return."""
    ends = [round(steps * k / points) for k in range(1, points + 1)]
    places = np.searchsorted(episodes.step, ends, side="right")
    places[-1] = len(episodes.step)  # the last tick may go a little beyond the budget
    value, at, curve = float(episodes.returns[0]), 0, []
    for step, place in zip(ends, places.tolist(), strict=True):
        if place > at:
            value, at = float(episodes.returns[at:place].mean()), place
        curve.append((step, value))
    return curve
