"""Claims of the paper about what factorizations cost, and what they give for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import inf

import numpy as np

from headwise.report.claims.ledger import Claim
from headwise.report.claims.measurement import Evidence, Measurement, of_ratios
from headwise.report.names import ALGORITHMS
from headwise.report.sweep import (
    IncompleteError,
    NotMeasuredError,
    Ratios,
    SeveralConfigurationsError,
    Sweep,
    Where,
)

_GROUP = "Compute"


def cost_claims(sweep: Sweep) -> Iterator[Claim]:
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
    settings = sweep.variant or sweep.study
    for key, number, ours, theirs, text, published, low, high in comparisons:
        yield Claim(
            f"cost-{key}", _GROUP, settings, text, published,
            f"{labels[number]}, {ours} over {theirs}", low, high,
            _measure(sweep, partial(_of_all_families, number=number, ours=ours, theirs=theirs)),
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


def _measure(sweep: Sweep, ratios: Callable[[Sweep], Ratios]) -> Callable[[Evidence], Measurement]:
    def measure(_: Evidence) -> Measurement:
        found = ratios(sweep)
        # Runs cut short may have small networks too: their costs are not those of the paper.
        return of_ratios(found.values, sweep.support(found.cells)[1])

    return measure


def _ppo(factorization: str) -> Where:
    return {"algorithm": "ppo", "factorization": factorization}


def _of_all_families(sweep: Sweep, number: str, ours: str, theirs: str) -> Ratios:
    found = []
    for algorithm in ALGORITHMS:
        first, second = ({"algorithm": algorithm, "factorization": f} for f in (ours, theirs))
        try:
            found.append(sweep.ratio(number, first, second))
        except (SeveralConfigurationsError, IncompleteError):
            raise  # that family is there, and may not be left out without a word
        except NotMeasuredError:
            continue
    if not found:
        raise NotMeasuredError(f"no task has both {ours} and {theirs}")
    cells = frozenset[str]().union(*(ratios.cells for ratios in found))
    return Ratios(np.concatenate([ratios.values for ratios in found]), cells)


def _trade_offs(sweep: Sweep) -> Ratios:
    """One ratio for each family: the score per millisecond of shared or VDN over the best other's.

    Two factorizations are compared on the tasks that both have.
    """
    ratios: list[float] = []
    names: set[str] = set()
    for algorithm in ALGORITHMS:
        asked = {cell.factorization for cell in sweep.asked if cell.algorithm == algorithm}
        kinds = asked | {c.factorization for c in sweep.every(algorithm=algorithm)}
        camp = kinds & {"shared", "vdn"}
        rivals = []
        for other in sorted(kinds - camp):
            found = [r for one in sorted(camp) for r in _rate(sweep, algorithm, one, other)]
            if found:
                rivals.append(max(ratio for ratio, _ in found))
                names.update(*(cells for _, cells in found))
        if rivals:
            ratios.append(min(rivals))
    if not ratios:
        raise NotMeasuredError("no family has both kinds with times")
    return Ratios(np.array(ratios), frozenset(names))


def _rate(sweep: Sweep, algorithm: str, ours: str, theirs: str) -> list[tuple[float, set[str]]]:
    """How many times the score per millisecond, and of which cells; nothing if it is not known."""
    first, second = ({"algorithm": algorithm, "factorization": f} for f in (ours, theirs))
    try:
        pairs = sweep.pairs(first, second)
    except (SeveralConfigurationsError, IncompleteError):
        raise
    except NotMeasuredError:
        return []
    rates = []
    for cells in zip(*pairs, strict=True):
        score = np.mean([sweep.min_max(c, c.scores).mean() for c in cells])
        rates.append(float(score / np.mean([c.number("update_ms") for c in cells])))
    if not rates or np.isnan(rates).all():
        return []
    if not np.isfinite(rates).all() or min(rates) <= 0:
        raise IncompleteError(f"of {ours} and {theirs}, {algorithm}, one has no score or no time")
    return [(rates[0] / rates[1], {cell.name for pair in pairs for cell in pair})]
