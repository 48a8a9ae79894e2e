"""Which runs of a study are compared with each other: those with the same labels, ranked alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headwise.report.cells import cells_of, lost_of
from headwise.report.sweep import Sweep
from headwise.study.records import Record


def sweeps_of(
    study: str,
    runs: Iterable[Record],
    timed: Sequence[Record] = (),
    failed: Sequence[Record] = (),
) -> list[Sweep]:
    """The sweeps of a study: one for each set of labels that its runs carry.

    Runs that are ranked by greedy evaluation, and runs that are ranked by their returns in
    training, are never compared: they are sweeps of their own.

    Args:
        study: Its name.
        runs: Its runs.
        timed: Runs that lend their times to the cells.
        failed: Runs that raised.
    """
    variants: dict[tuple[str, bool], list[Record]] = {}
    for run in (every := list(runs)):
        variants.setdefault((run.variant, run.is_evaluated), []).append(run)
    found = []
    for kind in sorted(variants):
        cells = tuple(cells_of(variants[kind], timed, failed))
        gone = (run for run in failed if (run.variant, run.is_evaluated) == kind)
        name, is_evaluated = kind
        if not is_evaluated and (name, True) in variants:
            name = f"{name} ranked in training".strip()
        found.append(Sweep(study, name, cells, lost=tuple(lost_of(every, gone))))
    return found
