"""Runs as `Results` has them, from records of a study or from the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from headwise.errors import ConfigError
from headwise.registry import unknown
from headwise.report.frames import columns_of
from headwise.report.statistics.aggregates import Array
from headwise.study.records import Record

NAMED = ("environment", "view", "algorithm", "factorization")
"""What every run of a study has."""
Curve: TypeAlias = tuple[Array, Array]
"""Steps and values."""


class NoRunsError(ConfigError):
    """There are no such runs, or not of both sides."""


@dataclass(frozen=True)
class Result:
    """One run."""

    traits: Mapping[str, Any]
    """What it is: environment, view, algorithm, factorization, labels, settings; by name."""
    seed: int
    score: float
    """NaN if it failed, or no episode ended."""
    curve: Callable[[], Curve]
    record: Record | None = None
    """What a study keeps of it."""


def of_record(record: Record, more: Mapping[str, Any]) -> Result:
    """A run of a study, with more traits."""
    parts = (record.config.get(p) or {} for p in ("factorization_settings", "settings"))
    flat = {name: value for part in parts for name, value in part.items()}
    named = {name: getattr(record, "task" if name == "environment" else name) for name in NAMED}
    labels = {n: v for n, v in record.labels.items() if n != "environment"}
    size = {"steps": record.steps, "num_envs": record.config.get("num_envs")}
    made = {"made": record.made} if record.made else {}
    traits = {**flat, **made, **size, **named, **labels, **more}
    ordered = {name: traits[name] for name in (*more, *NAMED, *labels)} | traits

    def curve() -> Curve:
        if record.error is not None:
            return np.empty(0), np.empty(0)
        values = record.evaluation_curve() if record.is_evaluated else record.curve()
        return np.linspace(record.steps / len(values), record.steps, len(values)), values

    score = float("nan") if record.error is not None else record.score
    return Result(ordered, record.seed, score, curve, record)


def rows_of(
    table: Any, score: str, seed: str, tasks: Sequence[str], step: str | None, last: float
) -> list[Result]:
    """The runs of a table; arguments are those of `Results.of`."""
    columns = columns_of(table)
    for name in (score, seed, *tasks, *([step] if step else [])):
        if name not in columns:
            raise unknown("column", name, columns)
    traits = [name for name in columns if name not in (score, seed, step)]
    rows: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    for place in range(len(columns[score])):
        key = (*(columns[name][place] for name in traits), columns[seed][place])
        at = float(columns[step][place]) if step else 0.0
        value = columns[score][place]
        found = rows.setdefault(key, [])
        if found and not step:
            raise ConfigError(
                "two rows are the same run",
                got=dict(zip((*traits, seed), key, strict=True)),
                fix="Name the column of steps if they are points of a curve: step='step'.",
            )
        found.append((at, float("nan") if value is None else float(value)))
    runs = []
    for key, points in rows.items():
        curve = np.array(sorted(points), dtype=np.float64).T
        late = curve[0] > curve[0, -1] * (1.0 - last) if step else np.ones(1, np.bool_)
        good = curve[1][late & np.isfinite(curve[1])]
        score_of = float(good.mean()) if good.size else float("nan")
        said = dict(zip(traits, key[:-1], strict=True))
        runs.append(Result(said, int(key[-1]), score_of, constant(curve[0], curve[1])))
    return runs


def constant(steps: Array, values: Array) -> Callable[[], Curve]:
    """A curve that is at hand."""
    return lambda: (steps, values)
