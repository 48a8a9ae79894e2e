"""Policies written by hand, one for each environment: what a good player scores, without learning.

They read observations and nothing else, and answer for all slots at once: observations (n, O) to
actions (n, H) in the learner's form. Each works in every view of its environment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headwise.registry import Registry
from headwise.spaces import ActionSpec, Choice, Range

Floats: TypeAlias = NDArray[np.floating[Any]]
Policy: TypeAlias = Callable[[Floats], NDArray[np.float32]]
PolicyFactory: TypeAlias = Callable[..., Policy]

scripted: Registry[PolicyFactory] = Registry("scripted policy")
"""By environment: from the action spec of a view to the policy for it."""


def in_view(intent: Floats, native: ActionSpec, spec: ActionSpec) -> NDArray[np.float32]:
    """Native actions (n, H) as those of a view, in the learner's form.

    A number that must be an option becomes the nearest bin, an option that must be a number the
    middle of its part of the range.
    """
    columns = []
    for column, want, have in zip(intent.T, native.heads, spec.heads, strict=True):
        if isinstance(want, Choice):
            as_number = (2.0 * column + 1.0) / want.n - 1.0
            columns.append(column if isinstance(have, Choice) else as_number)
        else:
            share = (column - want.low) / (want.high - want.low)
            bins = have.n - 1 if isinstance(have, Choice) else 0
            columns.append(np.rint(share * bins) if bins else 2.0 * share - 1.0)
    return np.stack(columns, axis=-1).astype(np.float32)


@scripted.register("ContextualDecoupler")
def obey_the_context(spec: ActionSpec) -> Policy:
    """The active head takes its target, the idle one rests at 0."""

    def act(obs: Floats) -> NDArray[np.float32]:
        context, first, second = obs.T
        return np.stack([first * (context == 0), second * (context == 1)], -1).astype(np.float32)

    return act


@scripted.register("HybridShoot")
def shoot_the_first(spec: ActionSpec) -> Policy:
    """Selects the first target that is alive and shoots at it."""
    scalar = "aim" in spec.names

    def act(obs: Floats) -> NDArray[np.float32]:
        x, y, alive = np.moveaxis(obs.reshape(len(obs), -1, 3), -1, 0)
        select = np.argmax(alive, axis=1)
        rows = np.arange(len(obs))
        target = np.stack([x[rows, select], y[rows, select]], -1)
        heads = {"select": Choice(alive.shape[1])}
        if scalar:
            aim = _number_that_aims_at(target, spec)
            native = ActionSpec.of(heads, aim=Range(0.0, 1.0))
            return in_view(np.stack([select, aim], -1), native, spec)
        native = ActionSpec.of(heads, aim_x=Range(0.0, 1.0), aim_y=Range(0.0, 1.0))
        return in_view(np.column_stack([select, target]), native, spec)

    return act


def hilbert_points(numbers: Floats, width: int = 16) -> Floats:
    """The points of the unit square (n, 2) that numbers in [0, 1] aim at along the curve."""
    d = np.clip(np.floor(numbers * width * width + 0.5), 0, width * width - 1).astype(int)
    x, y = np.zeros_like(d), np.zeros_like(d)
    side = 1
    while side < width:
        right = (d // 2) & 1
        up = (d ^ right) & 1
        turned = up == 0
        mirrored = turned & (right == 1)
        x, y = np.where(mirrored, side - 1 - x, x), np.where(mirrored, side - 1 - y, y)
        x, y = np.where(turned, y, x) + side * right, np.where(turned, x, y) + side * up
        d, side = d // 4, side * 2
    return np.stack([x, y], -1) / (width - 1)


def _number_that_aims_at(target: Floats, spec: ActionSpec) -> Floats:
    """Of the numbers that a view can say, the one whose point is nearest."""
    options = spec.cardinalities[spec.names.index("aim")]
    numbers = np.linspace(0.0, 1.0, options) if options else np.arange(256) / 256
    miss = ((target[:, None] - hilbert_points(numbers)) ** 2).sum(-1)
    nearest: Floats = numbers[np.argmin(miss, axis=1)]
    return nearest


@scripted.register("CoopPush")
def push_together(spec: ActionSpec, num_boulders: int = 1, num_landmarks: int = 2) -> Policy:
    """Every particle goes behind the nearest unfinished boulder and pushes it to its landmark."""
    num_particles = len({name.split("_")[1] for name in spec.names})
    directions = (
        np.array(_DIRECTIONS) / np.maximum(1.0, np.linalg.norm(_DIRECTIONS, axis=1))[:, None]
    )
    sizes = np.cumsum([4 * num_particles, 2 * num_boulders, 2 * num_landmarks])

    def act(obs: Floats) -> NDArray[np.float32]:
        parts = np.split(obs, sizes, axis=1)
        at = 25.0 * parts[0].reshape(len(obs), num_particles, 4)[..., :2]
        boulders, landmarks = (25.0 * part.reshape(len(obs), -1, 2) for part in parts[1:3])
        # A flag for each (landmark, boulder), or for each boulder when one landmark is enough.
        done = np.broadcast_to(
            parts[3].reshape(len(obs), -1, num_boulders), (len(obs), num_landmarks, num_boulders)
        )
        way = np.linalg.norm(landmarks[:, :, None] - boulders[:, None], axis=-1) + 1e6 * done
        to = np.take_along_axis(landmarks, np.argmin(way, axis=1)[..., None], axis=1) - boulders
        ahead = to / np.linalg.norm(to, axis=-1, keepdims=True)
        # Whose boulder: the nearest one that still has somewhere to go.
        far = np.linalg.norm(at[:, :, None] - boulders[:, None], axis=-1)
        mine = np.argmin(far + 1e6 * np.min(done, axis=1)[:, None], axis=2)[..., None]
        boulder, ahead = (np.take_along_axis(a, mine, axis=1) for a in (boulders, ahead))
        outward = at - boulder
        distance = np.linalg.norm(outward, axis=-1, keepdims=True)
        behind = (outward * ahead).sum(-1, keepdims=True) < -0.1 * distance
        push = ahead + 0.25 * (boulder - 6.0 * ahead - at)
        # Not behind yet: along the boulder's edge, away from where it is to go.
        outward = outward / np.maximum(distance, 1e-9)
        around = outward[..., ::-1] * (-1.0, 1.0)
        around *= np.where((around * ahead).sum(-1, keepdims=True) > 0, -1.0, 1.0)
        move = np.where(behind, push, around + (6.2 - distance) * outward)
        move = move / np.maximum(1.0, np.linalg.norm(move, axis=-1, keepdims=True))
        columns = []
        for particle in range(num_particles):
            velocity = move[:, particle]
            if f"particle_{particle}" in spec.names:
                miss = np.linalg.norm(velocity[:, None] - directions, axis=-1)
                columns.append(np.argmin(miss, axis=1)[:, None])
            else:
                columns.append(velocity)
        return np.concatenate(columns, axis=1).astype(np.float32)

    return act


_DIRECTIONS = ((0, 0), (0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1))


@scripted.register("Platform")
def hop_over_everything(spec: ActionSpec, margin: float = 6.0) -> Policy:
    """Hops over an enemy ahead, runs up to the edge otherwise, and hops over the gap."""
    right = np.array([250.0, 750.0, 1035.0])[:, None]
    far_side = np.array([455.0, 965.0, np.inf])[:, None]
    options = spec.cardinalities[spec.names.index("run")]
    strengths = np.linspace(0.0, 30.0, options or 61)
    native = ActionSpec.of(
        kind=Choice(3), run=Range(0.0, 30.0), hop=Range(0.0, 720.0), leap=Range(0.0, 430.0)
    )

    def act(obs: Floats) -> NDArray[np.float32]:
        x, vx = obs[:, :1] * 1055.0 - 20.0, obs[:, 1:2] * 100.0
        enemy_x = obs[:, 2:3] * 1035.0
        platform = np.searchsorted([0.3, 0.7], obs[:, 7])
        edge, goal = right[platform], far_side[platform]

        def crosses(x: Floats, vx: Floats) -> Any:
            # A hop adds 30 to the speed, up to 70, and lasts 3.8 speeds with the air's resistance.
            return x + 3.8 * np.minimum(70.0, vx + 30.0) >= goal + 2.0 * margin

        # Where each strength of a run leads; it must leave room to stop, or a hop that crosses.
        end, speed = x, vx
        for _ in range(20):
            speed = np.minimum(70.0, speed + strengths)
            end, speed = end + 0.05 * speed, 0.99 * speed
        safe = (end <= edge - margin) & (
            crosses(end, speed) | (end + 0.92 * speed <= edge - margin)
        )
        run = np.where(safe, strengths, 0.0).max(axis=1)
        last = platform == 2
        hops = ~last & ((enemy_x > x) | crosses(x, vx))[:, 0]
        intent = np.stack(
            [hops * 1.0, np.where(last, 30.0, run), np.full_like(run, 720.0), np.zeros_like(run)],
            -1,
        )
        return in_view(intent, native, spec)

    return act


@scripted.register("Lander")
def land_softly(spec: ActionSpec) -> Policy:
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
