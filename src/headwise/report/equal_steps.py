"""A sweep as if longer runs had ended earlier, by their learning curves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headwise.report.sweep import Sweep, asked_of


def at_equal_steps(sweep: Sweep) -> Sweep:
    """The same with runs cut to the shortest of their task and algorithm.

    A run that is cut has the score that its learning curve was at by then. Cells that were to be
    cut and have no curve are left out, as if they had never been asked for.
    """
    shortest: dict[tuple[str, str], int] = {}
    for cell in sweep.cells:
        key = (cell.task, cell.algorithm)
        shortest[key] = min(cell.steps, shortest.get(key, cell.steps))
    kept, gone = [], set()
    for cell in sweep.cells:
        steps = shortest[cell.task, cell.algorithm]
        if cell.steps == steps:
            kept.append(cell)
        elif np.isfinite(cell.curves).any():
            kept.append(replace(cell, until=steps))
        else:
            gone.add(asked_of(cell))
    asked = tuple(one for one in sweep.asked if one not in gone)
    return replace(sweep, cells=tuple(kept), asked=asked)


def left_out(sweep: Sweep) -> int:
    """How many cells have no curve to cut."""
    return len(sweep.cells) - len(at_equal_steps(sweep).cells)
