"""A compiled environment and the arrays it writes: what all faces of our environments share."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headwise.checks import checked_count
from headwise.cores import usable_cores
from headwise.envs.types import Allocate
from headwise.errors import ConfigError, EnvError
from headwise.registry import unknown
from headwise.spaces import ActionSpec, Choice, Range

MOST = {"num_envs": 2**24, "max_episode_steps": 10**9, "num_threads": 1024}
"""What the compiled module takes at most."""


class Autoreset(IntEnum):
    """What happens to a slot whose episode has ended (the numbers are the compiled module's)."""

    SAME_STEP = 0
    NEXT_STEP = 1
    DISABLED = 2


def settings_of(name: str) -> dict[str, tuple[object, str, str]]:
    """The settings of a compiled environment: name to (default, allowed, help)."""
    from headwise import _core

    environments = _core.environments()
    if name not in environments:
        raise unknown("environment", name, environments)
    return {
        setting: (default, allowed, text) for setting, default, allowed, text in environments[name]
    }


class Engine:
    """Many slots of one compiled environment, over arrays that Python can see.

    The arrays are written in place at every step: `choices` and `ranges` are read, all others are
    results. Copy a result to keep it.

    Args:
        name: The environment, as in `headwise envs`.
        num_envs: How many slots.
        settings: Settings of the environment. A mapping given for one of them is spread out:
            `layout={"boulders": ...}` is `boulders=...`.
        max_episode_steps: The time limit; None takes the environment's own, 0 means none.
        autoreset: What happens when an episode ends.
        num_threads: Threads for large numbers of slots, at most; None takes one for each core that
            this process may use.
        allocate: Makes the arrays, for those who want them in pinned memory.
    """

    def __init__(
        self,
        name: str,
        num_envs: int,
        settings: Mapping[str, Any] | None = None,
        *,
        max_episode_steps: int | None = None,
        autoreset: Autoreset = Autoreset.SAME_STEP,
        num_threads: int | None = None,
        allocate: Allocate = np.zeros,
    ) -> None:
        from headwise import _core

        self.name = name
        self.num_envs = _count(name, "num_envs", num_envs)
        limit = None
        if max_episode_steps is not None:
            limit = _count(name, "max_episode_steps", max_episode_steps, 0)
        cores = min(usable_cores(), MOST["num_threads"])
        threads = cores if num_threads is None else _count(name, "num_threads", num_threads)
        settings = dict(settings or {})
        # A view may be named where there is but one, so that a study can name that of every task.
        view = None if "view" in settings_of(name) else settings.pop("view", None)
        given = _plain_settings(name, settings)
        self._core = _core.VecEnv(name, self.num_envs, given, limit, int(autoreset), threads)
        self.max_episode_steps = self._core.time_limit
        self.spec = ActionSpec(
            tuple(head for head, *_ in self._core.heads),
            tuple(
                Choice(n) if n else Range(low, high, levels)
                for _, n, low, high, levels in self._core.heads
            ),
        )
        _check_only_view(name, self.spec, view)
        self.obs_low = np.array(self._core.obs_low, dtype=np.float32)
        self.obs_high = np.array(self._core.obs_high, dtype=np.float32)
        n, size = self.num_envs, self._core.obs_size
        self.choices = allocate((n, self.spec.num_choices), np.int32)
        self.ranges = allocate((n, self.spec.num_ranges), np.float32)
        self.obs = allocate((n, size), np.float32)
        self.next_obs = allocate((n, size), np.float32)
        self.reward = allocate((n,), np.float32)
        self.terminated = allocate((n,), np.bool_)
        self.truncated = allocate((n,), np.bool_)
        self.episode_return = allocate((n,), np.float32)
        self.episode_length = allocate((n,), np.int32)
        self._core.attach(
            self.choices, self.ranges, self.obs, self.next_obs, self.reward, self.terminated,
            self.truncated, self.episode_return, self.episode_length,
        )  # fmt: skip
        self.step = self._core.step
        """One step of every slot, with the actions in `choices` and `ranges`."""
        self.step_units = self._core.step_units
        """One step with actions (n, H) as learners give them: options, and numbers from -1 to 1."""

    def seed(
        self, seeds: ArrayLike, lanes: ArrayLike, mask: NDArray[np.bool_] | None = None
    ) -> None:
        """Gives each slot, or those of the mask, a seed and a lane: where its randomness starts."""
        self._core.seed(
            np.ascontiguousarray(seeds, dtype=np.uint64),
            np.ascontiguousarray(lanes, dtype=np.uint32),
            mask,
        )

    def reset(self, mask: NDArray[np.bool_] | None = None) -> None:
        """Starts an episode in every slot, or in those of the mask."""
        self._core.reset(mask)

    def snapshot(self) -> bytes:
        """The whole state of every slot, randomness included."""
        return self._core.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Goes back to a snapshot; what follows is equal to the bit."""
        self._core.restore(snapshot)

    def port(self) -> object:
        """What compiled learners step it by, in the environment's own module; keeps it alive."""
        return self._core.port()

    def state(self, slot: int) -> dict[str, NDArray[np.float64]]:
        """The state of one slot, part by part."""
        parts = {}
        for name, (numbers, rows, columns) in self._core.state(slot).items():
            shape = tuple(size for size in (rows, columns) if size)
            parts[name] = np.array(numbers).reshape(shape)
        return parts

    def set_state(self, slot: int, state: Mapping[str, ArrayLike]) -> None:
        """Sets parts of the state of one slot; an impossible one is refused and nothing changes."""
        shapes = {name: part.shape for name, part in self.state(slot).items()}
        values = {}
        for name, part in state.items():
            array = np.asarray(part, dtype=np.float64)
            if name in shapes and array.shape != shapes[name]:
                raise EnvError(
                    f"{self.name}: the state has another shape at {name!r}",
                    got=array.shape,
                    allowed=str(shapes[name]),
                )
            values[name] = np.ascontiguousarray(array.reshape(-1))
        self._core.set_state(slot, values)


def _check_only_view(name: str, spec: ActionSpec, view: object) -> None:
    only, heads = ("continuous", "numbers") if spec.num_ranges else ("discrete", "categories")
    if view not in (None, only):
        raise ConfigError(
            f"{name} has one view only: its heads are {heads} and nothing else",
            got=repr(view),
            allowed=repr(only),
        )


def _plain_settings(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    known = settings_of(name)
    spread: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in known:
            raise unknown(f"setting of {name}", key, known)
        spread.update(value if isinstance(value, Mapping) else {key: value})
    plain = {}
    for key, value in spread.items():
        if key not in known:
            raise unknown(f"setting of {name}", key, known)
        plain[key] = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        if isinstance(value, Sequence) and not isinstance(value, str):
            with contextlib.suppress(ValueError):  # a ragged list is left for the engine to refuse
                plain[key] = np.asarray(value).tolist()
    return plain


def _count(name: str, what: str, value: object, least: int = 1) -> int:
    return checked_count(f"{name}: {what}", value, least, MOST[what], error=EnvError)
