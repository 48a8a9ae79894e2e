"""Claims of the paper about the Contextual-Decoupler, under the published and the sound settings.

Both presets are asked the same, one line after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import inf

from headwise.report.claims.ledger import Claim
from headwise.report.claims.measurement import (
    Evidence,
    Measurement,
    of_difference,
    of_estimates,
    of_sample,
    of_sums,
    share_of,
)
from headwise.report.names import FACTORIZATIONS, PRESETS
from headwise.report.statistics import (
    Estimate,
    Sample,
    effect_size,
    share_estimate,
    spread_ratio,
)
from headwise.report.sweep import NotMeasuredError
from headwise.studies.paper.decoupler_runs import (
    METRICS,
    REACH,
    Config,
    Decoupler,
    Kind,
    all_of,
    decoupler_of,
    last_third,
    over_the_law,
    steps_to,
)
from headwise.studies.paper.published import FACTORIAL, SIGNIFICANCE
from headwise.study.records import Record

NOMIX: Config = ("shared", "")
_FACTORIAL = "Decoupler: factorial"
_CREDIT = "Decoupler: credit"
_CROSS = "Decoupler: families"
LAW = (0.8, 1.25)
"""Within what factor of its prediction a law is called exact: generous."""
ALIKE = 2.0
"""The smallest effect of interest, in points of return: within it two things are alike. The least
that the paper counts as an effect of weighting is 2.08 (QPLEX, range against uniform)."""


def decoupler_claims(presets: Sequence[str] = tuple(PRESETS)) -> Iterator[Claim]:
    """All of them, for each preset."""
    if not presets:
        return
    for claims in (_critic_claims, _weighting_claims, _credit_claims, _family_claims):
        for of_all_presets in zip(*map(claims, presets), strict=True):
            yield from of_all_presets


# --- replacing the scalar baseline by a factored critic ---------------------------------------


def _critic_claims(preset: str) -> Iterator[Claim]:
    def gain(evidence: Evidence) -> Measurement:
        study = _factorial(evidence, preset)
        mixers = [(0.5, study.metric((f, "uniform"), "final")) for f in ("vdn", "qplex")]
        return of_sums([*mixers, (-1.0, study.metric(NOMIX, "final"))], share_of(list(study.runs)))

    def reached(evidence: Evidence) -> Measurement:
        study = _factorial(evidence, preset)
        runs = study.ppo(NOMIX)
        count = sum(steps_to(run, REACH) < run.steps for run in runs)
        return of_estimates(
            partial(share_estimate, count, len(runs)), len(runs), share_of(list(study.runs))
        )

    yield Claim(
        "critic-gain", _FACTORIAL, preset,
        "Replacing the scalar baseline by a factored critic is the headline effect.",
        "+77", "final return, uniform mixers minus no mixing", 62, 92, gain,
    )  # fmt: skip
    yield Claim(
        "nomix-final", _FACTORIAL, preset, "PPO without mixing ends at 6.7.", "6.7 ± 8.9",
        "final return", 6.7 - 2 * 8.9, 6.7 + 2 * 8.9, _mean(preset, NOMIX, "final"),
    )  # fmt: skip
    yield Claim(
        "nomix-never", _FACTORIAL, preset, "Without mixing a return of 50 is never reached.",
        "0 of 16", "share of seeds that reach 50", 0, 0.35, reached,
    )  # fmt: skip
    for f in ("vdn", "qplex"):
        yield Claim(
            f"critic-size-{f}", _FACTORIAL, preset,
            f"The effect of the {FACTORIZATIONS[f]} critic is huge.", "d 11 to 14",
            "Cohen's d, uniform mixer against no mixing", 8, inf,
            _size(preset, (f, "uniform"), NOMIX, effect_size),
        )  # fmt: skip
    for config, row in FACTORIAL.items():
        if config == NOMIX:
            continue
        mean, spread = row.final
        yield Claim(
            f"final-{'-'.join(config)}", _FACTORIAL, preset,
            f"{_name(config)} ends at {mean:g}.", f"{mean:g} ± {spread:g}", "final return",
            mean - 5, mean + 5, _mean(preset, config, "final"),
        )  # fmt: skip


# --- importance weighting ---------------------------------------------------------------------


def _weighting_claims(preset: str) -> Iterator[Claim]:
    for (f, estimator, metric), row in SIGNIFICANCE.items():
        better = "needs fewer steps" if metric == "steps" else f"improves {METRICS[metric].lower()}"
        better = better.replace("auc", "AUC")
        low, high = (-inf, 0.0) if metric == "steps" else (0.0, inf)
        yield Claim(
            f"weighting-{f}-{estimator}-{metric}", _FACTORIAL, preset,
            f"{FACTORIZATIONS[f]}: weighting by {estimator} {better}.",
            f"{row.difference:+g} (d {row.d:g})",
            f"{METRICS[metric]}, {estimator} minus uniform", low, high,
            _difference(preset, (f, estimator), (f, "uniform"), metric),
            alike=0.0 if metric == "steps" else ALIKE,
        )  # fmt: skip
    for f, estimator, text in (("vdn", "range", "4.5 to 2.5"), ("qplex", "grad", "2.4 to 1.5")):
        yield Claim(
            f"spread-{f}", _FACTORIAL, preset,
            f"{FACTORIZATIONS[f]}: weighting tightens the spread between seeds.", text,
            f"standard deviation of the final return, {estimator} over uniform", 0, 1,
            _size(preset, (f, estimator), (f, "uniform"), spread_ratio),
        )  # fmt: skip
        yield Claim(
            f"equivalent-{f}", _FACTORIAL, preset,
            f"{FACTORIZATIONS[f]}: grad and range are alike for learning.", "|t| < 2.5",
            f"final return, range minus grad; alike means less than {ALIKE:g} points apart",
            -ALIKE, ALIKE, _difference(preset, (f, "range"), (f, "grad"), "final"), alike=ALIKE,
        )  # fmt: skip


# --- what the weights find out ----------------------------------------------------------------


def _credit_claims(preset: str) -> Iterator[Claim]:
    for config, row in FACTORIAL.items():
        if row.ratio is None:
            continue
        f, estimator = config
        uniform = estimator == "uniform"
        text = "is as large as" if uniform else "is suppressed below"
        yield Claim(
            f"ratio-{f}-{estimator}", _CREDIT, preset,
            f"{_name(config)}: the inactive head's variance {text} the active head's.",
            f"{row.ratio[0]:g} ± {row.ratio[1]:g}", "variance ratio over the last third",
            0.999 if uniform else -inf, 1.001 if uniform else 1.0, _mean(preset, config, "ratio"),
        )  # fmt: skip
        if not uniform:
            yield Claim(
                f"law-{f}-{estimator}", _CREDIT, preset,
                f"{_name(config)}: the variance scales with the square of the weights.",
                "exactly as predicted",
                "variance ratio over that of the squared weights, over the last third",
                *LAW, _law(preset, config),
            )  # fmt: skip
    for f in ("vdn", "qplex"):
        name = FACTORIZATIONS[f]
        yield Claim(
            f"recovery-{f}", _CREDIT, preset,
            f"{name}: range weights track the head that is active.", "r ≈ 0.97",
            "correlation over the last third", 0.9, 1.0, _correlation(preset, f, "range"),
        )  # fmt: skip
        yield Claim(
            f"grad-unreliable-{f}", _CREDIT, preset,
            f"{name}: grad weights are no reliable estimate of who is responsible.",
            "range only", "correlation, range minus grad", 0, inf,
            _credit_gap(preset, f, ("range", "online"), ("grad", "online"), "credit/correlation"),
        )  # fmt: skip
        yield Claim(
            f"offline-correlation-{f}", _CREDIT, preset,
            f"{name}: a critic with an offline buffer finds importance better.", "improves",
            "correlation, offline minus online", 0, inf,
            _credit_gap(
                preset, f, ("range", "offline"), ("range", "online"), "credit/correlation"
            ),
        )  # fmt: skip
        yield Claim(
            f"offline-return-{f}", _CREDIT, preset,
            f"{name}: a critic with an offline buffer costs return.", "degraded",
            "final return, offline minus online", -inf, 0,
            _credit_gap(preset, f, ("range", "offline"), ("range", "online"), ""), alike=ALIKE,
        )  # fmt: skip


def _law(preset: str, config: Config) -> Callable[[Evidence], Measurement]:
    """The variance ratio seen over the one predicted, with an interval and without a test."""

    def measure(evidence: Evidence) -> Measurement:
        study = _factorial(evidence, preset)
        found = all_of(study.ppo(config), over_the_law, "the ratio of squared weights")
        return replace(of_sample(found, share_of(list(study.runs))), at=None)

    return measure


def _correlation(preset: str, f: str, estimator: str) -> Callable[[Evidence], Measurement]:
    def measure(evidence: Evidence) -> Measurement:
        study = decoupler_of(evidence, preset, "importance", "factorial")
        runs = study.whole(algorithm="ppo", factorization=f, estimator=estimator, critic="online")
        found = all_of(runs, lambda run: last_third(run, "credit/correlation"), "the correlation")
        return of_sample(found, share_of(runs))

    return measure


def _credit_gap(
    preset: str, f: str, ours: tuple[str, str], theirs: tuple[str, str], metric: str
) -> Callable[[Evidence], Measurement]:
    """The difference of a credit metric, or of the final return, of two estimators or critics."""

    def number(run: Record) -> float:
        return last_third(run, metric) if metric else run.number("final_smoothed")

    def values(evidence: Evidence, side: tuple[str, str]) -> Sample:
        first: tuple[Kind, Kind] = ("factorial", "importance")
        offline = "offline" in (ours[1], theirs[1])
        study = decoupler_of(evidence, preset, *(reversed(first) if offline else first))
        estimator, critic = side
        runs = study.whole(algorithm="ppo", factorization=f, estimator=estimator, critic=critic)
        return all_of(runs, number, metric or "the final return")

    def measure(evidence: Evidence) -> Measurement:
        study = decoupler_of(evidence, preset, "importance", "factorial")
        share = share_of(list(study.runs))
        return of_difference(values(evidence, ours), values(evidence, theirs), share)

    return measure


# --- every family -----------------------------------------------------------------------------


def _family_claims(preset: str) -> Iterator[Claim]:
    ends: tuple[tuple[str, str, str, str, float, float], ...] = (
        ("sac", "vdn", "SAC-BDQ solves the task.", "near-perfect", 90, inf),
        ("dqn", "shared", "DQN, shared, levels off at 75.", "≈ 75", 67, 83),
        ("dqn", "vdn", "DQN, VDN, levels off at 75.", "≈ 75", 67, 83),
        ("dqn", "qplex", "DQN, QPLEX, levels off at 75.", "≈ 75", 67, 83),
        ("ppo", "vdn", "VDN-PPO reaches 80.", "≈ 80", 72, 92),
        ("ppo", "qplex", "PPO-MIX reaches 80.", "≈ 80", 72, 92),
        ("ppo", "shared", "PPO without mixing crawls to 15.", "≈ 15", 5, 25),
        ("sac", "shared", "SAC-Concat reaches only 50.", "≈ 50", 40, 60),
    )
    for algorithm, f, text, published, low, high in ends:
        yield Claim(
            f"end-{algorithm}-{f}", _CROSS, preset, text, published, "final return", low, high,
            _family_mean(preset, algorithm, f, lambda run: run.number("final_smoothed")),
        )  # fmt: skip
    yield Claim(
        "sac-bdq-fast", _CROSS, preset, "SAC-BDQ is near-perfect within a few thousand steps.",
        "a few thousand", "steps to a smoothed return of 90", 0, 10_000,
        _family_mean(preset, "sac", "vdn", lambda run: steps_to(run, 90.0)),
    )  # fmt: skip
    for algorithm in ("ppo", "sac", "dqn"):
        yield Claim(
            f"helps-{algorithm}", _CROSS, preset,
            f"A factored critic helps {algorithm.upper()}.", "visible in every family",
            "final return, VDN minus shared", 0, inf, _family_gain(preset, algorithm),
            alike=ALIKE,
        )  # fmt: skip


def _family_mean(preset: str, algorithm: str, f: str, number: Callable[..., float]) -> (
    Callable[[Evidence], Measurement]
):  # fmt: skip
    def measure(evidence: Evidence) -> Measurement:
        study = decoupler_of(evidence, preset, "cross_family")
        runs = study.whole(algorithm=algorithm, factorization=f)
        return of_sample(all_of(runs, number, "the number"), share_of(runs))

    return measure


def _family_gain(preset: str, algorithm: str) -> Callable[[Evidence], Measurement]:
    def measure(evidence: Evidence) -> Measurement:
        study = decoupler_of(evidence, preset, "cross_family")
        sides = [study.whole(algorithm=algorithm, factorization=f) for f in ("vdn", "shared")]
        ours, theirs = (
            all_of(side, lambda run: run.number("final_smoothed"), "the final return")
            for side in sides
        )
        return of_difference(ours, theirs, share_of([*sides[0], *sides[1]]))

    return measure


# --- the common ways to measure ---------------------------------------------------------------


def _factorial(evidence: Evidence, preset: str) -> Decoupler:
    return decoupler_of(evidence, preset, "factorial")


def _mean(preset: str, config: Config, metric: str) -> Callable[[Evidence], Measurement]:
    def measure(evidence: Evidence) -> Measurement:
        study = _factorial(evidence, preset)
        return of_sample(study.metric(config, metric), share_of(list(study.runs)))

    return measure


def _difference(
    preset: str, ours: Config, theirs: Config, metric: str
) -> Callable[[Evidence], Measurement]:
    def measure(evidence: Evidence) -> Measurement:
        study = _factorial(evidence, preset)
        first, second = study.metric(ours, metric), study.metric(theirs, metric)
        return of_difference(first, second, share_of(list(study.runs)))

    return measure


def _size(
    preset: str, ours: Config, theirs: Config, size: Callable[..., Estimate]
) -> Callable[[Evidence], Measurement]:
    def measure(evidence: Evidence) -> Measurement:
        study = _factorial(evidence, preset)
        first, second = study.metric(ours, "final"), study.metric(theirs, "final")
        seeds = min(first.values.size, second.values.size)
        if seeds < 2:
            raise NotMeasuredError("needs two seeds of each")
        return of_estimates(
            lambda level: size(first, second, confidence=level),
            seeds,
            share_of(list(study.runs)),
        )

    return measure


def _name(config: Config) -> str:
    f, estimator = config
    return f"{FACTORIZATIONS[f]} ({estimator})"
