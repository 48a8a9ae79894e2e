"""Landers as the training loop sees them, their reference scores, and the pilot who flies best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from headwise.envs.lander import (
    BEGIN,
    CLOSED,
    ENGINES,
    Backend,
    checked_limit,
    landers,
    naming_lander,
    refusal,
)
from headwise.envs.native.info import Reference
from headwise.envs.scripted import Floats, Policy, Settings, in_view
from headwise.envs.seeds import slot_seeds
from headwise.envs.types import Allocate, StepBatch
from headwise.errors import EnvError
from headwise.spaces import ActionSpec, ObsSpec, View, ViewKind, bin_values

_OBS_SIZE = 8
_INSTEAD = (
    "Look at `can_snapshot` first; without one, restore the learner, call reset() and go on from "
    "new episodes."
)


class LanderVecEnv:
    """Landers for P members with E slots each, as the training loop sees them.

    The seed of a slot is a random word made of its member's seed and its number alone, so a member
    sees the same episodes alone and in any population. A slot whose episode has ended is reset by
    the next step, which ignores its action: there `valid` is False.

    Args:
        seeds: One seed for each member.
        num_slots: Landers of each member.
        view: "discrete", "hybrid" or "continuous".
        bins: Bins of an engine that is discrete.
        max_episode_steps: The time limit; None means 1000 steps, 0 or -1 no limit.
        backend: "envpool", "gymnasium", or "auto": EnvPool where it is installed.
        num_threads: Threads of EnvPool; None leaves it to EnvPool.
        allocate: Makes the arrays, for those who want them in pinned memory.
    """

    can_snapshot: ClassVar[bool] = False
    first_legal: ClassVar[None] = None
    is_taken: ClassVar[bool] = False

    def __init__(
        self,
        seeds: Sequence[int],
        num_slots: int,
        *,
        view: ViewKind = "hybrid",
        bins: int = 3,
        max_episode_steps: int | None = None,
        backend: Backend = "auto",
        num_threads: int | None = None,
        allocate: Allocate = np.zeros,
    ) -> None:
        self.num_members, self.num_slots = len(seeds), num_slots
        self.obs_spec = ObsSpec.flat(_OBS_SIZE)
        self._view = View(ENGINES, view, bins=bins)
        self.spec = self._view.spec
        self._landers = landers(
            backend,
            len(seeds) * num_slots,
            max_episode_steps=checked_limit(max_episode_steps),
            num_threads=num_threads,
        )
        self._seeds: list[int] | None = slot_seeds(seeds, num_slots)
        self._batch = StepBatch.of_shape(self.num_members, num_slots, _OBS_SIZE, allocate)
        self._rows = self._batch.flat()
        self._binned = self.spec.num_choices
        self._powers = bin_values(-1.0, 1.0, bins if self._binned else 2).astype(np.float32)
        self._needs = BEGIN

    def reset(self) -> NDArray[np.float32]:
        """Starts an episode in every slot; returns the observations (P, E, 8)."""
        if self._needs == CLOSED:
            raise refusal(CLOSED)
        self._rows.obs[...], _ = self._landers.reset(seed=self._seeds)
        self._seeds = None
        for name in ("episode_return", "episode_length", "terminated", "truncated"):
            getattr(self._rows, name)[...] = 0
        self._needs = ""
        return self._batch.obs

    def step(self, action: NDArray[np.float32]) -> StepBatch:
        """One step of every slot, with actions (P, E, H) in the learner's form."""
        if self._needs:
            raise refusal(self._needs)
        rows, engines = self._rows, self._engines(action.reshape(len(self._rows.obs), -1))
        np.logical_not(rows.terminated | rows.truncated, out=rows.valid)
        obs, rows.reward[...], rows.terminated[...], rows.truncated[...], _ = self._landers.step(
            engines
        )
        rows.obs[...] = rows.next_obs[...] = obs
        rows.episode_length[...] = (rows.episode_length + 1) * rows.valid
        np.add(rows.episode_return, rows.reward, out=rows.episode_return)
        np.multiply(rows.episode_return, rows.valid, out=rows.episode_return)
        return self._batch

    def _engines(self, heads: NDArray[np.float32]) -> NDArray[np.float32]:
        """What the learner chose as the power of both engines, (n, 2).

        `View.to_native` says the same and names what is wrong, but takes longer than flying a
        lander; so it is asked only when something is wrong.
        """
        # Both engines span -1 to 1, so the learner's unit of a Range is its value.
        engines, good = heads, heads.shape[-1] == ENGINES.num_heads
        if good and self._binned:
            engines = heads.copy()
            options = heads[:, : self._binned]
            good = bool((options >= 0.0).all() and (options < len(self._powers)).all())
            if good:
                index = options.astype(np.intp)
                good = bool((index == options).all())
                engines[:, : self._binned] = self._powers[index]
        if not good or not (np.abs(engines) <= 1.0).all():
            with naming_lander():
                engines = self._view.to_native(heads).astype(np.float32)
        return np.ascontiguousarray(engines, dtype=np.float32)

    def snapshot(self) -> bytes:
        """Refused: neither Box2D nor EnvPool can write down its state."""
        raise EnvError(
            "Lander cannot be resumed exactly: the physics engine keeps its state to itself",
            fix=_INSTEAD,
        )

    def restore(self, snapshot: bytes) -> None:
        """Refused: neither Box2D nor EnvPool can write down its state."""
        self.snapshot()

    def close(self) -> None:
        """Lets go of threads and windows."""
        self._landers.close()
        self._needs = CLOSED


def land_softly(spec: ActionSpec, settings: Settings) -> Policy:
    """Leans against its drift, sinks slower the lower it is, and cuts the engines on the ground."""

    def act(obs: Floats) -> NDArray[np.float32]:
        x, y, vx, vy, angle, turning, left, right = obs.T
        lean = np.clip(0.36 * x + 0.97 * vx, -0.7, 0.7)
        lateral = 9.5 * (angle - lean) + 19.5 * turning
        main = 10.8 * (-0.07 - 0.98 * np.maximum(y, 0.0) - vy)
        grounded = left + right > 0
        lateral = np.where(grounded, 0.0, lateral)
        main = np.where(grounded, -10.0 * vy - 1.0, main)
        return in_view(np.clip(np.stack([main, lateral], -1), -1.0, 1.0), ENGINES, spec)

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
