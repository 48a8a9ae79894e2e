"""EnvPool's environments as Gymnasium's vector environments are.

EnvPool takes seeds where a pool is made and ignores those of `reset`, so that members and repeated
runs would play other episodes than their seeds say: here new seeds are a new pool. A slot whose
episode has ended is reset by the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from headwise.errors import EnvError

Flags = NDArray[np.bool_]


def pooled(env: Any) -> Any:
    """EnvPool's environments as Gymnasium's vector environments are; all others as they are."""
    is_pool = all(hasattr(env, name) for name in ("_state_keys", "_send", "_recv", "config"))
    return EnvPoolEnvs(env) if is_pool else env


class EnvPoolEnvs(VectorEnv[Any, Any, Any]):
    """The environments of an EnvPool.

    Args:
        pool: What `envpool.make(..., env_type="gymnasium")` returned.
        ends: Which rewards are of a task's own end. EnvPool calls every end on the last step a time
            limit; None takes its word for it.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self, pool: Any, *, ends: Callable[[NDArray[np.float32]], Flags] | None = None
    ) -> None:
        name, config = type(pool).__name__, pool.config
        self._pool: Any = pool
        if not isinstance(pool, VectorEnv):
            raise EnvError(
                f"{name}: this interface of EnvPool is not Gymnasium's",
                fix='Make it with envpool.make(..., env_type="gymnasium").',
            )
        self.num_envs = int(config["num_envs"])
        if config["batch_size"] not in (0, self.num_envs) or config["max_num_players"] != 1:
            raise EnvError(
                f"{name}: not all of its environments take a step at once, with one action each",
                got=f"num_envs={self.num_envs}, batch_size={config['batch_size']}, "
                f"max_num_players={config['max_num_players']}",
                fix="Leave batch_size out; play games of several players through PettingZoo.",
            )
        self.single_observation_space = pool.single_observation_space
        self.single_action_space = pool.single_action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._ends = ends
        self._slots = np.arange(self.num_envs, dtype=np.int32)
        # The public step takes trees apart and puts them together again, which costs as much as 16
        # landers' flight. This is what it calls in between, where there are no trees.
        keys, plain = list(self._pool._state_keys), ("obs", "reward", "done", "trunc")
        self._columns: Callable[[Any], Any] | None = None
        if "obs" in keys and isinstance(self.single_action_space, spaces.Box):
            self._columns = itemgetter(*map(keys.index, plain))
        self._obs: Any = None

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode in every slot, or in those of `options["reset_mask"]`.

        A number seeds slot i with `seed + i`; of numbers there is one for each slot.
        """
        mask = (options or {}).get("reset_mask")
        if seed is not None:
            several = [seed + i for i in self._slots] if isinstance(seed, int) else seed
            self._pool = _made_anew(self._pool, [int(one or 0) for one in several])
        slots = self._slots if mask is None else self._slots[mask]
        obs = self._pool.reset(slots)[0]
        self._obs = obs if mask is None else _with_rows(self._obs, slots, obs)
        return self._obs, {}

    def step(self, actions: Any) -> tuple[Any, NDArray[np.float32], Flags, Flags, dict[str, Any]]:
        """One step of every slot; where an episode has ended, a reset."""
        if self._columns is None:
            self._obs, reward, terminated, truncated, _ = self._pool.step(actions)
            done = terminated | truncated
        else:
            dtype = self.single_action_space.dtype
            units = np.ascontiguousarray(actions, dtype=dtype)
            self._pool._send([self._slots, self._slots, units])
            self._obs, reward, done, truncated = self._columns(self._pool._recv())
        if self._ends is not None:
            truncated = truncated & ~self._ends(reward)
        return self._obs, reward, done & ~truncated, done & truncated, {}

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the threads."""
        self._pool = None


def _made_anew(pool: Any, seeds: Sequence[int]) -> Any:
    """The same pool with other seeds: any 32 bits, which EnvPool reads as a signed number."""
    signed = [(seed + 2**31) % 2**32 - 2**31 for seed in seeds]
    kind = type(pool.spec)
    config = dict(pool.config) | {"seed": 0, "env_seed": signed}
    return type(pool)(kind(kind.gen_config(**config)))


def _with_rows(obs: Any, slots: NDArray[np.int32], rows: Any) -> Any:
    """Observations with other rows in some slots."""
    if isinstance(obs, dict):
        return {name: _with_rows(x, slots, rows[name]) for name, x in obs.items()}
    if isinstance(obs, tuple):
        return tuple(_with_rows(x, slots, y) for x, y in zip(obs, rows, strict=True))
    obs = obs.copy()
    obs[slots] = rows
    return obs
