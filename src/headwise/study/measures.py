"""The final numbers of a run, from its episodes."""

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


def _mean(values: NDArray[np.float64]) -> float | None:
    mean = float(values.mean()) if len(values) else math.nan
    return mean if math.isfinite(mean) else None
