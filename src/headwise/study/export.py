"""A study for other people's tools: marl-eval's JSON, and a table for everything else."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from headwise.csv_cells import csv_text
from headwise.study.run import Run
from headwise.study.store import Store

RETURN = "mean_episode_return"


def marl_eval_json(store: Store) -> str:
    """Finished runs in the form of marl-eval (Gorsane et al. 2022).

    environment, task (label and view), algorithm (with factorization and labels), seed, step. The
    steps are the points of the learning curve: marl-eval wants equally many of all runs. A run
    without a curve is left out. Returns are those of greedy evaluations where there are such.
    """
    data: dict[str, Any] = {}
    for run in store.plan():
        if not store.is_finished(run.id):
            continue
        record = store.record(run.id)
        curve = record.evaluation_curve() if record.is_evaluated else record.curve()
        if np.isnan(curve).any():
            continue
        algorithm = (
            data.setdefault(run.env, {}).setdefault(_task(run), {}).setdefault(_algorithm(run), {})
        )
        entry: dict[str, Any] = {
            f"step_{k}": {
                "step_count": round(run.total_timesteps * k / len(curve)),
                RETURN: [value],
            }
            for k, value in enumerate(curve.tolist(), 1)
        }
        entry["absolute_metrics"] = {RETURN: [record.score]}
        algorithm[f"seed_{run.seed}"] = entry
    return json.dumps(data, indent=1) + "\n"


def results_csv(store: Store) -> str:
    """A row for each run of the plan: what it is, how it ended, and its scalars."""
    rows = []
    for run in store.plan():
        finished = store.is_finished(run.id)
        state = "finished" if finished else "failed" if store.is_failed(run.id) else "left"
        what = ("env", "view", "algorithm", "factorization", "seed", "total_timesteps", "num_envs")
        rows.append(
            {
                "id": run.id,
                **{name: getattr(run, name) for name in what},
                **{f"label_{name}": value for name, value in sorted(run.labels.items())},
                "state": state,
                **({"engine": store.engine(run.id), **_numbers(store, run)} if finished else {}),
            }
        )
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return csv_text([columns, *([row.get(name) for name in columns] for row in rows)])


def _numbers(store: Store, run: Run) -> dict[str, Any]:
    """Its scalars, without lists of them."""
    found = store.result(run.id).items()
    return {name: value for name, value in found if not isinstance(value, list | dict)}


def _task(run: Run) -> str:
    return "/".join(filter(None, (run.labels.get("environment", run.env), run.view)))


def _algorithm(run: Run) -> str:
    further = [str(value) for name, value in sorted(run.labels.items()) if name != "environment"]
    return "/".join((run.algorithm, run.factorization, *further))
