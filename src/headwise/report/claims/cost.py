"""Claims of the paper about what factorizations cost, and what they give for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import inf

import numpy as np

from headwise.report.claims.ledger import Claim
from headwise.report.claims.measurement import Evidence, Measurement, of_ratios
from headwise.report.names import ALGORITHMS
from headwise.report.statistics.aggregates import Array
from headwise.report.sweep import NotMeasuredError, Sweep, Where

_GROUP = "Compute"


def cost_claims(sweep: Sweep | None) -> Iterator[Claim]:
    """All of them for one sweep; intervals are the range over tasks, views and families."""
    comparisons: tuple[tuple[str, str, str, str, str, str, float, float], ...] = (
        ("joint-size", "num_parameters", "joint", "shared",
         "Joint output layers grow with the product of the options.", "exponential", 1, inf),
        ("independent-size", "num_parameters", "independent", "shared",
         "Independent networks cost an encoder for every head.", "H times", 1, inf),
        ("ar-size", "num_parameters", "ar", "shared",
         "Auto-regressive networks cost an encoder for every head.", "H times", 1, inf),
        ("ar-latency", "act_ms", "ar", "shared",
         "Auto-regressive actions take longer, one head after the other.", "O(H)", 1, inf),
        ("joint-latency", "act_ms", "joint", "vdn",
         "Joint actions are faster to infer than branching ones.", "frequently", 0, 1),
        ("joint-ar-latency", "act_ms", "joint", "ar",
         "Joint actions are faster to infer than auto-regressive ones.", "frequently", 0, 1),
        ("independent-latency", "act_ms", "independent", "shared",
         "Independent networks run side by side at the speed of the slowest.", "≈ 1", 0.5, 1.5),
    )  # fmt: skip
    labels = {"num_parameters": "parameters", "act_ms": "time per action"}
    settings = "" if sweep is None else sweep.variant or sweep.study
    for key, number, ours, theirs, text, published, low, high in comparisons:
        yield Claim(
            f"cost-{key}", _GROUP, settings, text, published,
            f"{labels[number]}, {ours} over {theirs}", low, high,
            _measure(sweep, partial(_ratios, number=number, ours=ours, theirs=theirs)),
        )  # fmt: skip
    yield Claim(
        "cost-ppo-critic", _GROUP, settings,
        "PPO with a factored critic costs less than auto-regressive PPO.", "significantly less",
        "time per update, VDN-PPO over AR-PPO", 0, 1,
        _measure(sweep, lambda s: s.ratio("update_ms", _ppo("vdn"), _ppo("ar"))),
    )  # fmt: skip
    yield Claim(
        "cost-trade-off", _GROUP, settings,
        "Shared encoders give the best score for the compute.", "best trade-off",
        "score per time per update, best of shared and VDN over best of the others", 1, inf,
        _measure(sweep, _trade_offs),
    )  # fmt: skip


def _measure(
    sweep: Sweep | None, ratios: Callable[[Sweep], Array]
) -> Callable[[Evidence], Measurement]:
    def measure(_: Evidence) -> Measurement:
        if sweep is None:
            raise NotMeasuredError("no sweep in the store")
        # Runs cut short may have small networks too: their costs are not those of the paper.
        found = ratios(sweep)
        return of_ratios(found, sweep.support()[1])

    return measure


def _ppo(factorization: str) -> Where:
    return {"algorithm": "ppo", "factorization": factorization}


def _ratios(sweep: Sweep, number: str, ours: str, theirs: str) -> Array:
    found = []
    for algorithm in ALGORITHMS:
        first, second = ({"algorithm": algorithm, "factorization": f} for f in (ours, theirs))
        try:
            found.append(sweep.ratio(number, first, second))
        except NotMeasuredError:
            continue
    if not found:
        raise NotMeasuredError(f"no task has both {ours} and {theirs}")
    return np.concatenate(found)


def _trade_offs(sweep: Sweep) -> Array:
    """One ratio for each family: the best score per millisecond of one camp over the other's."""
    ratios = []
    for algorithm in ALGORITHMS:
        best = {True: 0.0, False: 0.0}
        for factorization in {c.factorization for c in sweep.where(algorithm=algorithm)}:
            cells = sweep.where(algorithm=algorithm, factorization=factorization)
            score = float(np.mean([sweep.min_max(c, c.scores).mean() for c in cells]))
            time = float(np.mean([c.number("update_ms") for c in cells]))
            camp = factorization in ("shared", "vdn")
            if np.isfinite(time) and time > 0:
                best[camp] = max(best[camp], score / time)
        if min(best.values()) > 0:
            ratios.append(best[True] / best[False])
    if not ratios:
        raise NotMeasuredError("no family has both kinds with times")
    return np.array(ratios)
