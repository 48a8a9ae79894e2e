"""Many lunar landers flown together, by EnvPool or by Gymnasium: two ways to the same physics.

Both reset on the step after an episode's end, as EnvPool does. The two draw their random numbers
differently, so the same seed gives other episodes with the other one.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from headwise.checks import optional_count
from headwise.errors import ConfigError, EnvError
from headwise.registry import unknown

Backend: TypeAlias = Literal["auto", "envpool", "gymnasium"]

OBS_SIZE = 8
NO_LIMIT = 10**9
"""The time limit of those who ask for none: EnvPool always has one."""
_INSTALL = "Install it: pip install 'headwise[lander]'."


class PoolStep(NamedTuple):
    """What one step of all landers brought, a row for each."""

    obs: NDArray[np.float32]
    """The true successor; where `elapsed` is 0, the first observation of a new episode."""
    reward: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    elapsed: NDArray[np.int32]
    """Steps of the episode so far; 0 where the action was ignored and the lander only reset."""


class LanderPool(Protocol):
    """Landers that are flown together."""

    def seed(self, seeds: Sequence[int]) -> None:
        """Gives each lander its seed; all must be reset before the next step."""

    def reset(self, slots: NDArray[np.int32]) -> NDArray[np.float32]:
        """Starts an episode in these slots; their observations (len(slots), 8), in that order."""

    def step(self, engines: NDArray[np.float32]) -> PoolStep:
        """One step of every lander, with the power of both engines, (n, 2) from -1 to 1."""

    def render(self) -> tuple[Any, ...]:
        """A picture of each lander."""

    def close(self) -> None:
        """Lets go of threads and windows."""


def open_pool(
    backend: Backend,
    num_landers: int,
    *,
    max_episode_steps: int,
    num_threads: int | None = None,
    render_mode: str | None = None,
) -> LanderPool:
    """Landers from the backend asked for; "auto" is EnvPool where it is installed and can serve."""
    if backend not in get_args(Backend):
        raise unknown("backend of Lander", backend, get_args(Backend))
    if num_landers < 1:
        raise EnvError("Lander: there must be a lander to fly", got=num_landers)
    has_envpool = importlib.util.find_spec("envpool") is not None
    limit = max_episode_steps or NO_LIMIT
    if backend == "envpool" and render_mode is not None:
        raise ConfigError(
            "EnvPool's landers are not drawn",
            got=f"render_mode={render_mode!r}",
            fix='Use backend="gymnasium".',
        )
    if backend == "envpool" and not has_envpool:
        raise EnvError("Lander: EnvPool is not installed", got='backend="envpool"', fix=_INSTALL)
    if backend == "gymnasium" or render_mode is not None or not has_envpool:
        return GymnasiumPool(num_landers, limit, render_mode)
    return EnvPoolPool(num_landers, limit, num_threads)


def new_lander(render_mode: str | None = None) -> Any:
    """One of Gymnasium's lunar landers: continuous engines, no wind."""
    from gymnasium.error import DependencyNotInstalled

    try:
        # Box2D's binding warns of its own age while it loads, and crashes if that is an error.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            from gymnasium.envs.box2d.lunar_lander import LunarLander
    except (ImportError, DependencyNotInstalled) as error:
        raise EnvError("Lander: Gymnasium's Box2D is not installed", fix=_INSTALL) from error
    return LunarLander(render_mode=render_mode, continuous=True)


class EnvPoolPool:
    """Landers in EnvPool's threads.

    EnvPool takes seeds only when it is built, so a new seed is a new pool.
    """

    def __init__(self, num_landers: int, limit: int, num_threads: int | None) -> None:
        self._slots = np.arange(num_landers, dtype=np.int32)
        self._limit = limit
        self._num_threads = optional_count("Lander: num_threads", num_threads) or 0
        self._pool: Any = None

    def seed(self, seeds: Sequence[int]) -> None:
        """Builds the pool anew."""
        import envpool

        self._pool = envpool.make(
            "LunarLanderContinuous-v3",
            env_type="gymnasium",
            num_envs=len(self._slots),
            max_episode_steps=self._limit,
            num_threads=self._num_threads,
            # Any 32 bits will do; EnvPool reads them as a signed number.
            seed=[(int(seed) + 2**31) % 2**32 - 2**31 for seed in seeds],
        )
        keys = list(self._pool._state_keys)
        self._columns = itemgetter(
            *(keys.index(key) for key in ("obs", "reward", "done", "trunc", "elapsed_step"))
        )

    def reset(self, slots: NDArray[np.int32]) -> NDArray[np.float32]:
        """Starts an episode in these slots."""
        self._pool._reset(slots)
        obs: NDArray[np.float32] = self._columns(self._pool._recv())[0]
        return obs

    def step(self, engines: NDArray[np.float32]) -> PoolStep:
        """One step of every lander."""
        # The public step() takes trees apart and puts them together again; at 16 landers that costs
        # about as much as flying them. This is what it calls in between.
        self._pool._send([self._slots, self._slots, engines])
        state = self._pool._recv()
        obs, reward, done, cut, elapsed = self._columns(state)
        # EnvPool calls every end on the last step a time limit. A crash or a landing overwrites the
        # reward with exactly -100 or 100, which a step in flight never earns.
        terminated = done & (~cut | (np.abs(reward) == 100.0))
        return PoolStep(obs, reward, terminated, done & ~terminated, elapsed)

    def render(self) -> tuple[Any, ...]:
        """Nothing: see `open_pool`."""
        return ()

    def close(self) -> None:
        """Ends the threads."""
        self._pool = None


class GymnasiumPool:
    """Landers of Gymnasium, one after the other: slow, but it needs no EnvPool and can be drawn."""

    def __init__(self, num_landers: int, limit: int, render_mode: str | None) -> None:
        self._landers = [new_lander(render_mode) for _ in range(num_landers)]
        self._limit = limit
        self._elapsed = np.zeros(num_landers, dtype=np.int32)
        self._ended = np.zeros(num_landers, dtype=np.bool_)

    def seed(self, seeds: Sequence[int]) -> None:
        """Gives each lander a generator of its own."""
        from gymnasium.utils import seeding

        for lander, seed in zip(self._landers, seeds, strict=True):
            lander.np_random = seeding.np_random(int(seed))[0]

    def reset(self, slots: NDArray[np.int32]) -> NDArray[np.float32]:
        """Starts an episode in these slots."""
        self._elapsed[slots] = 0
        self._ended[slots] = False
        return np.stack([self._landers[slot].reset()[0] for slot in slots])

    def step(self, engines: NDArray[np.float32]) -> PoolStep:
        """One step of every lander."""
        n = len(self._landers)
        obs = np.empty((n, OBS_SIZE), dtype=np.float32)
        reward = np.zeros(n, dtype=np.float32)
        terminated = np.zeros(n, dtype=np.bool_)
        fresh = self._ended
        for slot, lander in enumerate(self._landers):
            if fresh[slot]:
                obs[slot], _ = lander.reset()
            else:
                obs[slot], reward[slot], terminated[slot], _, _ = lander.step(engines[slot])
        self._elapsed = np.where(fresh, 0, self._elapsed + 1).astype(np.int32)
        truncated = ~terminated & (self._elapsed >= self._limit)
        self._ended = terminated | truncated
        return PoolStep(obs, reward, terminated, truncated, self._elapsed)

    def render(self) -> tuple[Any, ...]:
        """A picture of each lander."""
        return tuple(lander.render() for lander in self._landers)

    def close(self) -> None:
        """Closes the windows."""
        for lander in self._landers:
            lander.close()
