"""Claims of the paper about what factorizations cost, and what they give for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from typing import Any

import numpy as np

from headwise.report.claims.ledger import Claim
from headwise.report.claims.measurement import Evidence, Measurement, of_ratios
from headwise.report.names import ALGORITHMS, VIEWS
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
    made = _claim(sweep)
    for key, ours, text, published in (
        ("joint", "joint", "Joint output layers grow with the product of the options.",
         "exponential"),
        ("independent", "independent", "Independent networks cost an encoder for every head.",
         "H times"),
        ("ar", "ar", "Auto-regressive networks cost an encoder for every head.", "H times"),
    ):  # fmt: skip
        yield made(
            f"cost-{key}-size", text, published, f"parameters, {ours} over shared", 1, inf,
            _measure(sweep, partial(_of_all_families, number="num_parameters", ours=ours)),
        )  # fmt: skip
    timed = f"time per action on a CPU{_machine(sweep)}"
    yield made(
        "cost-ar-latency", "Auto-regressive actions take longer, one head after the other.", "O(H)",
        f"{timed}, ar over shared", 1, inf,
        _measure(sweep, partial(_of_all_families, number="act_ms", ours="ar")),
    )  # fmt: skip
    for key, theirs, than in (("joint", "vdn", "branching"), ("joint-ar", "ar", "auto-regressive")):
        text = f"Joint actions are faster to infer than {than} ones"
        yield made(
            f"cost-{key}-latency", f"{text}, on a CPU.", "frequently",
            f"{timed}: share of tasks and families in which joint is faster than {theirs}", 0.5, 1,
            _counted(sweep, partial(_of_all_families, number="act_ms", ours="joint", than=theirs)),
        )  # fmt: skip
        yield made(
            f"cost-{key}-latency-gpu", f"{text}, on a GPU.", "frequently",
            f"time per action on a GPU, joint and {theirs}", 0.5, 1, _not_timed,
        )  # fmt: skip
    yield made(
        "cost-independent-latency-gpu",
        "Independent networks run side by side at the speed of the slowest.", "≈ 1",
        "time per action on a GPU, independent over shared", 0.5, 1.5, _not_timed,
    )  # fmt: skip
    updated = f"time per update on a CPU{_machine(sweep)}"
    yield made(
        "cost-ppo-critic", "PPO with a factored critic costs less than auto-regressive PPO.",
        "significantly less", f"{updated}, VDN-PPO over AR-PPO", 0, 1,
        _measure(sweep, lambda s: s.ratio("update_ms", _ppo("vdn"), _ppo("ar"))),
    )  # fmt: skip
    yield made(
        "cost-trade-off", "Shared encoders give the best score for the compute.", "best trade-off",
        f"score per {updated}, best of shared and VDN over best of the others", 1, inf,
        _measure(sweep, _trade_offs),
    )  # fmt: skip


def _claim(sweep: Sweep) -> Callable[..., Claim]:
    settings = sweep.variant or sweep.study

    def made(key: str, *rest: Any) -> Claim:
        return Claim(key, _GROUP, settings, *rest)

    return made


def _machine(sweep: Sweep) -> str:
    """What times were taken on, with a space before it."""
    timed = {
        str((run.fingerprint.get("machine") or {}).get("processor") or "")
        for cell in sweep.cells
        for run in cell.timed or cell.runs
        if np.isfinite(run.number("act_ms"))
    } - {""}
    return f" ({' and '.join(sorted(timed))})" if timed else ""


def _not_timed(_: Evidence) -> Measurement:
    raise NotMeasuredError("acting is timed on a CPU alone")


def _counted(sweep: Sweep, ratios: Callable[[Sweep], Ratios]) -> Callable[[Evidence], Measurement]:
    """In which share of the comparisons it is less: they are counted, and not a sample."""

    def measure(_: Evidence) -> Measurement:
        found = ratios(sweep)
        share = float(np.mean(found.values < 1.0))
        return Measurement(share, share, share, None, sweep.support(found.cells)[1])

    return measure


def _measure(sweep: Sweep, ratios: Callable[[Sweep], Ratios]) -> Callable[[Evidence], Measurement]:
    def measure(_: Evidence) -> Measurement:
        found = ratios(sweep)
        # Runs cut short may have small networks too: their costs are not those of the paper.
        return of_ratios(found.values, sweep.support(found.cells)[1])

    return measure


def _ppo(factorization: str) -> Where:
    return {"algorithm": "ppo", "factorization": factorization}


def _of_all_families(sweep: Sweep, number: str, ours: str, than: str = "shared") -> Ratios:
    """One ratio for each task of each family that has both, like with like.

    SAC-Concat has an actor beside its critics. Discrete `joint` and `independent` act by their
    critics, as SAC-BDQ does, and are set against that where it exists.
    """
    found = []
    for algorithm in ALGORITHMS:
        for view in VIEWS:
            branching = algorithm == "sac" and than == "shared" and ours != "ar"
            theirs = "vdn" if branching and view != "continuous" else than
            first, second = (
                {"algorithm": algorithm, "factorization": f, "view": view} for f in (ours, theirs)
            )
            try:
                found.append(sweep.ratio(number, first, second))
            except (SeveralConfigurationsError, IncompleteError):
                raise  # that family is there, and may not be left out without a word
            except NotMeasuredError:
                continue
    if not found:
        raise NotMeasuredError(f"no task has both {ours} and {than}")
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
