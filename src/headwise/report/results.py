"""The results of studies, or of anybody's table, to be chosen from, summed up and compared."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from headwise.errors import ConfigError
from headwise.registry import unknown
from headwise.report.compared import Difference, Estimates, GroupEstimate
from headwise.report.frames import arrow_table, pandas_frame
from headwise.report.names import generator_for
from headwise.report.rows import NAMED, NoRunsError, Result, constant, of_record, rows_of
from headwise.report.runs import StudyRuns, pooled, read_store
from headwise.report.statistics import (
    Estimate,
    by_reference,
    by_seed,
    estimate,
    iqm,
    mean,
    min_max,
    sample,
)
from headwise.report.statistics.aggregates import Array, Statistic
from headwise.report.tables.table import text_of
from headwise.study.html import html_table

TASK = ("environment", "view")


class Results:
    """Runs with their scores and learning curves; choosing from them gives others.

    Scores of runs that are all of one task are returns as they are. Over several tasks they are on
    a common scale: 0 is random play and 1 the best policy known where that is known of the task, or
    else 0 and 1 are the lowest and the highest point of any run on it.

    `Results.read` reads studies, `Results.of` any table.
    """

    def __init__(
        self,
        runs: Sequence[Result],
        task: Sequence[str] = TASK,
        *,
        every: Results | None = None,
        paths: Sequence[Path] = (),
    ) -> None:
        self.runs, self.task = tuple(runs), tuple(task)
        self._every = every or self
        self._paths = tuple(paths)

    # --- where they come from -------------------------------------------------------------------

    @classmethod
    def read(cls, *paths: str | Path, all_runs: bool = False) -> Results:
        """The runs of studies.

        Args:
            *paths: Folders, or files of `headwise study archive`.
            all_runs: Whether runs count that are not in a study's plan as it is now.
        """
        if not paths:
            raise ConfigError("no study to read", got="nothing", allowed="folders or archives")
        stores = pooled(read_store(path, all_runs=all_runs) for path in paths)
        return cls.of_stores(stores, [Path(path) for path in paths])

    @classmethod
    def of_stores(cls, stores: Sequence[StudyRuns], paths: Sequence[Path] = ()) -> Results:
        """The runs of stores that are read already."""
        found = []
        for store in stores:
            for record in (*store.runs, *store.failed):
                named = {"study": store.name} if len(stores) > 1 else {}
                found.append(of_record(record, named))
        return cls(found, paths=paths)

    @classmethod
    def of(
        cls,
        table: Any,
        *,
        score: str = "score",
        seed: str = "seed",
        task: str | Sequence[str] = "environment",
        step: str | None = None,
        last: float = 0.1,
    ) -> Results:
        """The runs of any tidy table: all other columns say what a run is.

        Args:
            table: A data frame of pandas or polars, a table of pyarrow, columns by name, or the
                path of a CSV.
            score: The column of returns.
            seed: The column of seeds.
            task: The columns that say what is to be learned.
            step: The column of steps, where a run has a row for each point of its curve.
            last: With steps, the share of them at the end whose mean is the score.
        """
        tasks = (task,) if isinstance(task, str) else tuple(task)
        return cls(rows_of(table, score, seed, tasks, step, last), tasks)

    # --- choosing -------------------------------------------------------------------------------

    def where(self, **conditions: Any) -> Results:
        """The runs that meet all conditions, each one value or a list of them."""
        for name in conditions:
            if name not in self._known:
                raise unknown("trait of a run", name, self._known)

        def meets(run: Result) -> bool:
            return all(
                run.traits.get(name) in (value if isinstance(value, list | tuple) else [value])
                for name, value in conditions.items()
            )

        return self._with([run for run in self.runs if meets(run)])

    def values(self, name: str) -> list[Any]:
        """The values of a trait, in the order of the runs."""
        if name not in self._known:
            raise unknown("trait of a run", name, self._known)
        return list(dict.fromkeys(run.traits[name] for run in self.runs if name in run.traits))

    def metric(self, name: str) -> Results:
        """The same runs with a metric as their curves, and its last value as the score."""
        runs = []
        for run in self.runs:
            curve = (np.empty(0), np.empty(0))
            if run.record is not None and run.record.error is None:
                steps, values = run.record.metric(name)
                curve = steps.astype(np.float64), values
            last = float(curve[1][-1]) if curve[1].size else float("nan")
            runs.append(replace(run, score=last, curve=constant(*curve), record=None))
        if not any(np.isfinite(run.score) for run in runs):
            raise NoRunsError("no run has this metric", got=repr(name))
        return Results(runs, self.task)

    def _with(self, runs: Sequence[Result]) -> Results:
        return Results(runs, self.task, every=self._every, paths=self._paths)

    @cached_property
    def _known(self) -> list[str]:
        return list(dict.fromkeys(name for run in self._every.runs for name in run.traits))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The traits that tell runs apart: those of every run, and settings that are tried."""
        if self._every is not self:
            return self._every.names
        always = [n for n in self._known if all(n in run.traits for run in self.runs)]
        of_study = any(run.record is not None for run in self.runs)
        labels = {n for run in self.runs if run.record for n in run.record.labels}
        plain = [n for n in always if not of_study or n in (*NAMED, "study") or n in labels]
        groups: dict[Hashable, list[Result]] = {}
        for run in self.runs:
            groups.setdefault((*self._key(run, plain), run.seed), []).append(run)
        apart = {
            name
            for group in groups.values()
            if len(group) > 1
            for name in self._known
            if len({_hashable(run.traits.get(name)) for run in group}) > 1
        }
        return (*plain, *sorted(apart.difference(plain)))

    def _key(self, run: Result, names: Sequence[str]) -> tuple[Hashable, ...]:
        return tuple(_hashable(run.traits.get(name)) for name in names)

    def _strata(self, names: Sequence[str]) -> dict[tuple[Hashable, ...], list[Result]]:
        """Runs that are alike in these traits, in the order of their seeds."""
        found: dict[tuple[Hashable, ...], list[Result]] = {}
        for run in sorted(self.runs, key=lambda run: run.seed):
            found.setdefault(self._key(run, names), []).append(run)
        return found

    # --- summing up -----------------------------------------------------------------------------

    def iqm(self, by: str | Sequence[str] = ()) -> Estimates:
        """The interquartile mean of each group, over the seeds of all its tasks.

        Args:
            by: The traits whose values are groups; without any all runs are one.
        """
        return self._estimates("IQM", iqm, by)

    def mean(self, by: str | Sequence[str] = ()) -> Estimates:
        """The mean of each group, over the seeds of all its tasks; arguments are those of `iqm`."""
        return self._estimates("mean", mean, by)

    def _estimates(self, what: str, statistic: Statistic, by: str | Sequence[str]) -> Estimates:
        names = (by,) if isinstance(by, str) else tuple(by)
        groups = []
        for values in dict.fromkeys(self._key(run, names) for run in self._some()):
            mine = self.where(**dict(zip(names, self._told(names, values), strict=True)))
            strata = mine._strata([name for name in self.names if name not in names])
            scores = [self._scaled(runs) for runs in strata.values()]
            good = [part[np.isfinite(part)] for part in scores]
            good = [part for part in good if part.size]
            words = (what, *map(str, values))
            nothing = Estimate(*[float("nan")] * 3)
            found = estimate(good, statistic, generator_for(*words)) if good else nothing
            runs = sum(part.size for part in good)
            without = len(mine.runs) - runs
            told = self._told(names, values)
            groups.append(GroupEstimate(told, found, runs, len(good), without))
        return Estimates(what, names, self.scale, tuple(groups))

    def _told(self, names: Sequence[str], key: tuple[Hashable, ...]) -> tuple[Any, ...]:
        """The values of traits as they are, from those by which runs were grouped."""
        first = next(run for run in self.runs if self._key(run, names) == key)
        return tuple(first.traits.get(name) for name in names)

    def __sub__(self, other: Results) -> Difference:
        """How much more these earn than those, over what both have."""
        for side in (self, other):
            side._some()
        names = [n for n in self.names if not _tells_apart(n, self.runs, other.runs)]
        ours, theirs = self._strata(names), other._strata(names)
        common = [key for key in ours if key in theirs]
        if not common:
            raise NoRunsError("no task has runs of both sides", got=f"{self} and {other}")
        pairs = [(ours[key], theirs[key]) for key in common]
        share, groups, unscored = 1.0 / len(pairs), [], 0
        for sides in pairs:
            samples = []
            for weight, runs in zip((share, -share), sides, strict=True):
                scores = self._scaled(runs)
                unscored += int((~np.isfinite(scores)).sum())
                samples.append((weight, sample(scores, [run.seed for run in runs])))
            groups.append(samples)
        seeds = min(runs.values.size for group in groups for _, runs in group)
        if not seeds:
            raise NoRunsError("no run of one side has a score", got=f"{self} and {other}")
        records = [[[run.record for run in runs if run.record] for runs in pair] for pair in pairs]
        return Difference(
            by_seed(groups),
            len(pairs),
            seeds,
            self.scale,
            f"{unscored} runs have no score" if unscored else "",
            any(len({one.steps for side in pair for one in side}) > 1 for pair in records),
            any(len({one.made for side in pair for one in side}) > 1 for pair in records),
        )

    def _some(self) -> tuple[Result, ...]:
        if not self.runs:
            raise NoRunsError(
                "there are no such runs",
                allowed="; ".join(f"{n}: {self._every.values(n)[:6]}" for n in self.names),
            )
        return self.runs

    # --- the scale ------------------------------------------------------------------------------

    @property
    def scale(self) -> str:
        """What the numbers are, in a sentence."""
        if self._one_task:
            return "returns as they are"
        return (
            "0 is random play and 1 the best policy known where that is known of a task, or else 0 "
            "and 1 are the lowest and the highest point of any run on it"
        )

    @cached_property
    def _one_task(self) -> bool:
        return len({self._key(run, self.task) for run in self._every.runs}) < 2

    def _scaled(self, runs: Sequence[Result]) -> Array:
        scores = np.array([run.score for run in runs], dtype=np.float64)
        if self._one_task or not runs:
            return scores
        record = runs[0].record
        if record is not None:
            settings: dict[str, Any] = {**(record.config.get("env_settings") or {})}
            known = by_reference(scores, record.env, **{**settings, "view": record.view})
            if known is not None:
                return known
        low, high = self._every._limits[self._key(runs[0], self.task)]
        return min_max(scores, low, high)

    @cached_property
    def _limits(self) -> dict[tuple[Hashable, ...], tuple[float, float]]:
        found: dict[tuple[Hashable, ...], list[Array]] = {}
        for run in self.runs:
            points = np.append(run.curve()[1], run.score)
            found.setdefault(self._key(run, self.task), []).append(points[np.isfinite(points)])
        every = {key: np.concatenate(parts) for key, parts in found.items()}
        return {k: (float(x.min()), float(x.max())) if x.size else (0, 1) for k, x in every.items()}

    # --- as tables ------------------------------------------------------------------------------

    def table(self) -> Any:
        """A row for each run, as a table of pyarrow: what it is, its seed and its score."""
        return arrow_table(
            [{**run.traits, "seed": run.seed, "score": run.score} for run in self.runs]
        )

    def curve_table(self) -> Any:
        """A row for each point of each curve, as a table of pyarrow."""
        rows = []
        for run in self.runs:
            named = {n: run.traits.get(n) for n in self.names}
            for step, value in zip(*run.curve(), strict=True):
                rows.append({**named, "seed": run.seed, "step": float(step), "value": float(value)})
        return arrow_table(rows)

    def frame(self) -> Any:
        """`table` as a data frame of pandas."""
        return pandas_frame(self.table())

    def curves(self) -> Any:
        """`curve_table` as a data frame of pandas."""
        return pandas_frame(self.curve_table())

    def report(self, out: str | Path | None = None, **options: Any) -> Path:
        """Writes the report of the studies that were read; the rest is as in `write_report`."""
        from headwise.report.write import write_report

        if not self._paths:
            raise ConfigError("a report is of studies", got="a table", allowed="Results.read(...)")
        return write_report(self._paths, out, **options)

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.runs)

    def __repr__(self) -> str:
        told = ", ".join(
            f"{name}={v[0] if len(v) == 1 else v[:6]}"
            for name in self.names
            if (v := self.values(name))
        )
        return f"Results of {len(self.runs)} runs ({told})"

    def _repr_html_(self) -> str:
        rows = []
        for runs in self._strata(self.names).values():
            scores = np.array([run.score for run in runs])
            good = scores[np.isfinite(scores)]
            average = float(good.mean()) if good.size else float("nan")
            said = [text_of(runs[0].traits.get(name)) for name in self.names]
            rows.append((*said, len(runs), text_of(average)))
        title = f"Results of {len(self.runs)} runs"
        return html_table(title, (*self.names, "runs", "mean score"), rows)


def _tells_apart(name: str, ours: Sequence[Result], theirs: Sequence[Result]) -> bool:
    """Whether each side has one value of a trait, and not the same."""
    sides = [{_hashable(run.traits.get(name)) for run in runs} for runs in (ours, theirs)]
    return all(len(side) == 1 for side in sides) and sides[0] != sides[1]


def _hashable(value: Any) -> Hashable:
    return cast("Hashable", repr(value) if isinstance(value, list | dict) else value)
