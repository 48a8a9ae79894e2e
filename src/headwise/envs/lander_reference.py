"""Lander's reference scores, and the pilot who flies it best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwise.envs.native.info import Reference
from headwise.envs.scripted import Floats, Policy, Settings, in_view
from headwise.spaces import ActionSpec, Range


def land_softly(spec: ActionSpec, settings: Settings) -> Policy:
    """Leans against its drift, sinks slower the lower it is, and cuts the engines on the ground."""
    native = ActionSpec.of(main=Range(-1.0, 1.0), lateral=Range(-1.0, 1.0))

    def act(obs: Floats) -> NDArray[np.float32]:
        x, y, vx, vy, angle, turning, left, right = obs.T
        lean = np.clip(0.36 * x + 0.97 * vx, -0.7, 0.7)
        lateral = 9.5 * (angle - lean) + 19.5 * turning
        main = 10.8 * (-0.07 - 0.98 * np.maximum(y, 0.0) - vy)
        grounded = left + right > 0
        lateral = np.where(grounded, 0.0, lateral)
        main = np.where(grounded, -10.0 * vy - 1.0, main)
        return in_view(np.clip(np.stack([main, lateral], -1), -1.0, 1.0), native, spec)

    return act


LANDER = Reference(
    how="scripted, a proportional controller; 200 counts as solved",
    policy=land_softly,
    measured={
        ("", "discrete"): (-222.65, 2.1, 4096, 280.73, 0.54, 4096),
        ("", "hybrid"): (-194.01, 1.9, 4096, 283.06, 0.46, 4096),
        ("", "continuous"): (-213.16, 2, 4096, 283.72, 0.42, 4096),
    },
)
