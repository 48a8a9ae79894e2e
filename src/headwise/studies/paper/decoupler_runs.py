"""The decoupler studies: what a store holds of each, by preset, critic and estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from headwise.report.claims.measurement import Evidence
from headwise.report.names import PRESETS, in_order
from headwise.report.statistics import Sample, sample
from headwise.report.statistics.aggregates import Array
from headwise.report.sweep import IncompleteError, NotMeasuredError
from headwise.study.measures import smoothed
from headwise.study.records import Record

ENV = "ContextualDecoupler"
_ESTIMATORS = {"range_slope": "range"}
"""Estimators that go under the name of another one in the paper."""
_AUTOMATIC = {"vdn": "range", "qplex": "grad"}
"""What `importance="auto"` meant in a run with a branching critic. The classes say it too, as their
`default_importance`, but a report reads no torch; and it is of runs as they were made."""
Kind: TypeAlias = Literal["factorial", "cross_family", "importance", "lambda"]
Config: TypeAlias = tuple[str, str]
"""A factorization and an estimator."""
METRICS = {"final": "Final return", "auc": "AUC", "steps": "Steps to 50", "ratio": "inact/act"}
REACH = 50.0


@dataclass(frozen=True)
class Decoupler:
    """The runs of one decoupler study under one preset."""

    study: str
    kind: Kind
    preset: str
    runs: tuple[Record, ...]
    failed: tuple[Record, ...] = ()
    """Runs that raised."""

    @property
    def title(self) -> str:
        """What it is called."""
        return f"{PRESETS[self.preset]} settings" if self.preset in PRESETS else self.preset

    def find(self, **traits: object) -> list[Record]:
        """The runs with these traits, by seed; raises if there are none, or two with one seed.

        Runs that depart from the paper are found only if `change` asks for them.
        """
        found = _with(self.runs, traits)
        if not found:
            raise NotMeasuredError(f"no run with {self._words(traits)}")
        made = sorted({run.made for run in found})
        if len(made) > 1:
            raise NotMeasuredError(
                f"not one sample: made on {' and '.join(made)}: {self._words(traits)}"
            )
        if len({run.seed for run in found}) < len(found):
            raise NotMeasuredError(f"several configurations of {self._words(traits)}")
        return sorted(found, key=lambda run: run.seed)

    def whole(self, **traits: object) -> list[Record]:
        """The same, where none failed: what is left of others may be the lucky ones."""
        found, failed = self.find(**traits), _with(self.failed, traits)
        if failed:
            total = len(found) + len(failed)
            raise IncompleteError(
                f"of {total} runs with {self._words(traits)} {len(failed)} failed"
            )
        return found

    def _words(self, traits: Mapping[str, object]) -> str:
        words = " ".join(str(value) for value in traits.values() if value)
        return f"{words} ({self.title or self.study})"

    def configs(self) -> list[Config]:
        """The factorizations and estimators that PPO ran with, in the order of the paper."""
        ppo = [run for run in self.runs if run.algorithm == "ppo"]
        pairs = {(run.factorization, trait(run, "estimator")) for run in ppo}
        factors = in_order((first for first, _ in pairs), ("shared", "vdn", "qplex"))
        estimators = in_order((second for _, second in pairs), ("", "uniform", "grad", "range"))
        return [(f, e) for f in factors for e in estimators if (f, e) in pairs]

    def ppo(self, config: Config) -> list[Record]:
        """The runs of a PPO configuration, none of which failed."""
        factorization, estimator = config
        return self.whole(
            algorithm="ppo", factorization=factorization, estimator=estimator, critic="online"
        )

    def metric(self, config: Config, name: str) -> Sample:
        """A metric of every seed of a PPO configuration: final, auc, steps or ratio."""
        words = f"{METRICS[name]} of {' '.join(config)}"
        return all_of(self.ppo(config), lambda run: measure(run, name), words)


def all_of(runs: Sequence[Record], number: Callable[[Record], float], what: str) -> Sample:
    """A number of runs, all of which must have it: what some lack is not missing by chance."""
    found = sample([number(run) for run in runs], [run.seed for run in runs])
    if not found.values.size:
        raise NotMeasuredError(f"{what} was not logged")
    if found.values.size < len(runs):
        missing = len(runs) - found.values.size
        raise IncompleteError(f"{what}: {missing} of {len(runs)} runs have none")
    return found


def trait(run: Record, name: str) -> Any:
    """What these studies tell runs apart by, or any other attribute of a run.

    Among them `preset` (`sound` or `as_published`), `change` (how a cell departs from the paper's,
    in a word), `critic` (whether it learns from the rollout or from a buffer of the past) and
    `estimator` (how a branching critic of PPO shares out credit).
    """
    if name in ("preset", "change"):
        return str(run.labels.get(name, ""))
    if name == "critic":
        return "offline" if run.settings.get("offline_rows") else "online"
    if name != "estimator":
        return getattr(run, name)
    if run.algorithm != "ppo" or run.factorization not in _AUTOMATIC:
        return ""
    asked = str(run.settings.get("importance", "auto"))
    asked = _AUTOMATIC[run.factorization] if asked == "auto" else asked
    return _ESTIMATORS.get(asked, asked)


def _with(runs: Iterable[Record], traits: Mapping[str, object]) -> list[Record]:
    wanted = {"change": "", **traits}
    return [run for run in runs if all(trait(run, k) == value for k, value in wanted.items())]


def decouplers_of(
    study: str, runs: Sequence[Record], failed: Sequence[Record] = ()
) -> list[Decoupler]:
    """The decoupler studies among the runs of one store."""
    mine = [run for run in runs if run.env == ENV]
    if not mine:
        return []
    kind = _kind(mine)
    presets = in_order(filter(None, (trait(run, "preset") for run in mine)), PRESETS) or [""]
    # Presets differ in PPO alone; a run without one belongs to all of them.
    return [
        Decoupler(
            study,
            kind,
            preset,
            *(
                tuple(r for r in some if trait(r, "preset") in (preset, ""))
                for some in (mine, failed)
            ),
        )
        for preset in presets
    ]


def measure(run: Record, name: str) -> float:
    """A metric of the factorial table for one run."""
    if name == "final":
        return run.number("final_smoothed")
    if name == "auc":
        return run.number("auc")
    if name == "steps":
        return steps_to(run, REACH)
    if name == "ratio":
        return last_third(run, "credit/variance_ratio")
    raise AssertionError(name)


def steps_to(run: Record, level: float) -> float:
    """The step at which the smoothed return first reaches a level; all steps if it never does."""
    known = f"steps_to_{level:g}"
    if known in run.result:
        found = run.number(known)
        return found if np.isfinite(found) else float(run.steps)
    step, returns = run.episodes()
    reached = np.nonzero(smoothed(returns) >= level)[0]
    return float(step[reached[0]]) if reached.size else float(run.steps)


def last_third(run: Record, metric: str) -> float:
    """The mean of a metric over the last third of the run; NaN if it was not logged."""
    step, values = run.metric(metric)
    late = values[step > run.steps * 2 / 3]
    return float(late.mean()) if late.size else float("nan")


def over_the_law(run: Record) -> float:
    """The variance ratio of a run over what the squares of its weights predict; NaN if unknown."""
    return last_third(run, "credit/variance_ratio") / last_third(run, "credit/weight_ratio")


def smoothed_curve(run: Record, points: Array) -> Array:
    """The paper's smoothed return at given steps."""
    step, returns = run.episodes()
    if not returns.size:
        return np.full(points.shape, np.nan)
    last = np.searchsorted(step, points, side="right") - 1  # many episodes end at the same step
    return np.asarray(smoothed(returns)[np.maximum(last, 0)])


def _kind(runs: Iterable[Record]) -> Kind:
    """What is asked is plain from what varies, whatever the study is called."""
    lambdas: dict[tuple[str, str, str], set[float]] = {}
    algorithms, critics = set(), set()
    for run in runs:
        algorithms.add(run.algorithm)
        critics.add(trait(run, "critic"))
        if run.algorithm == "ppo":
            key = (trait(run, "preset"), run.factorization, trait(run, "estimator"))
            lambdas.setdefault(key, set()).add(float(run.settings.get("gae_lambda", 0.95)))
    if "offline" in critics:
        return "importance"
    if any(len(values) > 1 for values in lambdas.values()):
        return "lambda"
    return "factorial" if algorithms == {"ppo"} else "cross_family"


def decoupler_of(evidence: Evidence, preset: str, *kinds: Kind) -> Decoupler:
    """The decoupler study of the first of these kinds that there is."""
    for kind in kinds:
        for study in decouplers(evidence):
            if study.kind == kind and study.preset == preset:
                return study
    raise NotMeasuredError("no such study of the decoupler")


def decouplers(evidence: Evidence) -> list[Decoupler]:
    """All of them."""
    return [study for study in evidence.special if isinstance(study, Decoupler)]
