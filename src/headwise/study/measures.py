"""What is made of a run's episodes: its final numbers and its learning curve."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

LAST = 100
"""Episodes whose mean return is the final one."""
LAST_SMOOTHED = 50
"""Points of the smoothed curve whose mean is the paper's final return."""
KEEP = 0.95
"""Share of the smoothed return that stays when an episode comes in (the paper's curves)."""
NUM_POINTS = 50
"""Points of a learning curve."""


def smoothed(returns: NDArray[np.float64]) -> NDArray[np.float64]:
    """The running mean 0.95 s + 0.05 r over episodes, beginning with the first one."""
    curve = np.empty(len(returns))
    state = returns[0] if len(returns) else 0.0
    for i, value in enumerate(returns.tolist()):
        state = KEEP * state + (1.0 - KEEP) * value
        curve[i] = state
    return curve


def measures(
    step: NDArray[np.int64], returns: NDArray[np.float64], thresholds: tuple[float, ...] = ()
) -> dict[str, float | int | None]:
    """Final scalars of a run; None where there is nothing to measure.

    `final_return` is the mean of the last 100 episodes. `final_smoothed` is the mean of the last 50
    points of the smoothed curve, and `auc` the mean of all of them, as in the paper.
    `steps_to_X` is the step at which the smoothed curve first reaches X; None if it never does.
    """
    curve = smoothed(returns)
    result: dict[str, float | int | None] = {
        "episodes": len(returns),
        "final_return": _mean(returns[-LAST:]),
        "final_smoothed": _mean(curve[-LAST_SMOOTHED:]),
        "auc": _mean(curve),
    }
    for threshold in thresholds:
        reached = np.nonzero(curve >= threshold)[0]
        result[f"steps_to_{threshold:g}"] = int(step[reached[0]]) if len(reached) else None
    return result


def learning_curve(
    step: NDArray[np.int64], returns: NDArray[np.float64], steps: int
) -> NDArray[np.float64]:
    """The mean return of the episodes that ended in each of `NUM_POINTS` equal shares of steps.

    Shares in which none ended are interpolated; before the first one the curve is flat, and without
    any it is NaN. The last step of many slots may go beyond the end; it belongs to the last share.
    """
    keep = np.isfinite(returns)
    share = np.minimum((step[keep] - 1) * NUM_POINTS // steps, NUM_POINTS - 1)
    counts = np.bincount(share, minlength=NUM_POINTS)
    sums = np.bincount(share, weights=returns[keep], minlength=NUM_POINTS)
    filled = np.nonzero(counts)[0]
    if not filled.size:
        return np.full(NUM_POINTS, np.nan)
    return np.interp(np.arange(NUM_POINTS), filled, sums[filled] / counts[filled])


def _mean(values: NDArray[np.float64]) -> float | None:
    mean = float(values.mean()) if len(values) else math.nan
    return mean if math.isfinite(mean) else None
