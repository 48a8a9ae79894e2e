"""LunarLander (continuous engines, no wind) in three views, as Gymnasium environments: one, many.

The action is the power of the main engine and of the lateral ones, each from -1 to 1. The main
engine fires above 0, the lateral ones beyond a half. In the discrete view both are bins with both
end points among them; in the hybrid view the main engine is binned and the lateral ones are not.

Many are flown by EnvPool or by Gymnasium: two ways to the same physics, which draw their random
numbers differently, so that the same seed gives other episodes with the other one.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from headwise.checks import checked_count, is_whole
from headwise.envs.autoreset import autoreset_mode as mode_by_name
from headwise.envs.envpool import EnvPoolEnvs
from headwise.envs.native import limit_given_to_make
from headwise.envs.native.engine import MOST
from headwise.errors import ConfigError, EnvError, SpaceError
from headwise.registry import unknown
from headwise.spaces import ActionCodec, ActionSpec, Choice, Range, View, ViewKind

Backend: TypeAlias = Literal["auto", "envpool", "gymnasium"]
Vector: TypeAlias = VectorEnv[NDArray[np.float32], Any, NDArray[Any]]
ENGINES = ActionSpec.of(main=Range(-1.0, 1.0), lateral=Range(-1.0, 1.0))
TIME_LIMIT = 1000
NO_LIMIT = 10**9
"""The time limit of those who ask for none: EnvPool always has one."""
RENDER_MODES = ("rgb_array", "human")
BEGIN, CLOSED = "Lander: step before reset", "Lander: the environment is closed"
_INSTALL = "Install it: pip install 'headwise[lander]'."


class LanderEnv(gymnasium.Env[NDArray[np.float32], Any]):
    """One lander, flown by Gymnasium's own Box2D.

    Args:
        view: "discrete", "hybrid" or "continuous".
        bins: Bins of an engine that is discrete.
        max_episode_steps: The time limit; None means 1000 steps, 0 or -1 no limit.
        render_mode: None, "rgb_array" or "human".
    """

    metadata: dict[str, Any] = {  # noqa: RUF012, as in Gymnasium's own environments
        "render_modes": list(RENDER_MODES),
        "render_fps": 50,
    }

    def __init__(
        self,
        view: ViewKind = "hybrid",
        *,
        bins: int = 3,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        if max_episode_steps is None:
            max_episode_steps = limit_given_to_make()
        self._limit = checked_limit(max_episode_steps)
        self.render_mode = _checked_render_mode(render_mode)
        self._view = View(ENGINES, view, bins=bins)
        self.action_spec = self._view.spec
        self.action_space = action_space(self.action_spec)
        self.observation_space = observation_space(self._limit)
        self._codec = ActionCodec(self.action_space)
        self._lander = _new_lander(render_mode)
        self._elapsed = 0
        self._needs = BEGIN

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Starts an episode."""
        if self._needs == CLOSED:
            raise refusal(CLOSED)
        _refuse_options(options)
        super().reset(seed=seed)
        self._lander.np_random = self.np_random
        obs, _ = self._lander.reset()
        self._elapsed, self._needs = 0, ""
        return obs, {}

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """One step; a refused action changes nothing."""
        if self._needs:
            raise refusal(self._needs)
        with naming_lander():
            engines = self._view.to_native(self._codec.to_heads(action))
        obs, reward, terminated, _, _ = self._lander.step(engines.astype(np.float32))
        self._elapsed += 1
        truncated = not terminated and 0 < self._limit <= self._elapsed
        if terminated or truncated:
            self._needs = "Lander: the episode has ended"
        return obs, float(reward), bool(terminated), truncated, {}

    def render(self) -> Any:
        """A picture, or None when the window shows it already."""
        return self._lander.render() if self.render_mode else None

    def close(self) -> None:
        """Closes the window, if there is one."""
        self._lander.close()
        self._needs = CLOSED


def landers(
    backend: Backend,
    num_landers: int,
    *,
    max_episode_steps: int,
    num_threads: int | None = None,
    render_mode: str | None = None,
) -> Any:
    """Many in the continuous view, each reset by the step after its end.

    Of the backends "auto" is EnvPool where it is installed and nothing is drawn.
    """
    if backend not in get_args(Backend):
        raise unknown("backend of Lander", backend, get_args(Backend))
    if num_landers < 1:
        raise EnvError("Lander: there must be a lander to fly", got=num_landers)
    has_envpool = importlib.util.find_spec("envpool") is not None
    if num_threads is not None:
        num_threads = checked_count("Lander: num_threads", num_threads, error=EnvError)
    if backend == "envpool" and render_mode is not None:
        raise ConfigError(
            "EnvPool's landers are not drawn",
            got=f"render_mode={render_mode!r}",
            fix='Use backend="gymnasium".',
        )
    if backend == "envpool" and not has_envpool:
        raise EnvError("Lander: EnvPool is not installed", got='backend="envpool"', fix=_INSTALL)
    if backend == "gymnasium" or render_mode is not None or not has_envpool:
        settings: Any = {"max_episode_steps": max_episode_steps, "render_mode": render_mode}
        return SyncVectorEnv([partial(LanderEnv, "continuous", **settings)] * num_landers)
    import envpool

    pool = envpool.make(
        "LunarLanderContinuous-v3",
        env_type="gymnasium",
        num_envs=num_landers,
        max_episode_steps=max_episode_steps or NO_LIMIT,
        num_threads=num_threads or 0,  # EnvPool's own choice
    )
    # A crash or a landing overwrites the reward with exactly -100 or 100, which a step in flight
    # never earns.
    return EnvPoolEnvs(pool, ends=lambda reward: np.abs(reward) == 100.0)


class LanderVectorEnv(Vector):
    """Many landers, flown by EnvPool where it is installed and by Gymnasium where not.

    Args:
        num_envs: How many.
        view: "discrete", "hybrid" or "continuous".
        bins: Bins of an engine that is discrete.
        max_episode_steps: The time limit; None means 1000 steps, 0 or -1 no limit.
        autoreset_mode: What happens when an episode ends: one of Gymnasium's three modes.
        backend: "envpool", "gymnasium", or "auto": EnvPool if it is there and nothing is drawn.
        num_threads: Threads of EnvPool; None leaves it to EnvPool.
        episode_stats: Whether to report `infos["episode"]`; Gymnasium's RecordEpisodeStatistics
            wants to do so itself.
        render_mode: None, "rgb_array" or "human".
    """

    def __init__(
        self,
        num_envs: int = 1,
        view: ViewKind = "hybrid",
        *,
        bins: int = 3,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        backend: Backend = "auto",
        num_threads: int | None = None,
        episode_stats: bool = True,
        render_mode: str | None = None,
    ) -> None:
        self._episode_stats = episode_stats
        limit = checked_limit(max_episode_steps)
        self._mode = mode_by_name(autoreset_mode)
        self.num_envs = num_envs
        self.render_mode = _checked_render_mode(render_mode)
        self.metadata = {**LanderEnv.metadata, "autoreset_mode": self._mode}
        self._view = View(ENGINES, view, bins=bins)
        self.action_spec = self._view.spec
        self.single_action_space = action_space(self.action_spec)
        self.single_observation_space = observation_space(limit)
        self._landers = landers(
            backend,
            num_envs,
            max_episode_steps=limit,
            num_threads=num_threads,
            render_mode=render_mode,
        )
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._codec = ActionCodec(self.single_action_space)
        self._return = np.zeros(num_envs, dtype=np.float64)
        self._length = np.zeros(num_envs, dtype=np.int32)
        self._ended = np.zeros(num_envs, dtype=np.bool_)
        self._needs = BEGIN

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Starts an episode in every slot, or in those of `options["reset_mask"]`.

        An int seeds slot i with `seed + i`, a sequence gives one seed each.
        """
        if self.closed:
            raise refusal(CLOSED)
        options = dict(options or {})
        mask = _checked_mask(options.pop("reset_mask", None), self.num_envs)
        _refuse_options(options)
        seeds = None
        if seed is not None or self._needs:
            if not mask.all():
                raise EnvError("Lander: a first or seeded reset must be of all slots")
            seeds = self._seeds(seed)
            super().reset(seed=seed if isinstance(seed, int) else None)
        some = None if mask.all() else {"reset_mask": mask}
        obs, _ = self._landers.reset(seed=seeds, options=some)
        self._return[mask] = self._length[mask] = 0
        self._ended[mask] = False
        self._needs = ""
        return obs.copy(), {}

    def step(
        self, actions: Any
    ) -> tuple[
        NDArray[np.float32],
        NDArray[np.float64],
        NDArray[np.bool_],
        NDArray[np.bool_],
        dict[str, Any],
    ]:
        """One step of every slot; a refused action changes nothing."""
        if self.closed or self._needs:
            raise refusal(CLOSED if self.closed else self._needs)
        if self._mode is AutoresetMode.DISABLED and self._ended.any():
            raise EnvError(
                f"Lander: the episode of slot {int(np.argmax(self._ended))} has ended",
                fix='Reset it: reset(options={"reset_mask": ...}).',
            )
        with naming_lander():
            engines = self._view.to_native(self._codec.to_heads_batch(actions))
        obs, reward, terminated, truncated, _ = self._landers.step(engines.astype(np.float32))
        fresh = self._ended
        self._return = np.where(fresh, 0.0, self._return + reward)
        self._length = np.where(fresh, 0, self._length + 1)
        self._ended = ended = terminated | truncated
        infos: dict[str, Any] = {}
        if ended.any():
            infos = self._infos_of_ends()
            if self._mode is AutoresetMode.SAME_STEP:
                final_obs = np.full(self.num_envs, None, dtype=object)
                for slot in np.flatnonzero(ended):
                    final_obs[slot] = obs[slot].copy()
                told = {"final_obs": final_obs, "final_info": infos}
                infos = infos | told | {f"_{name}": ended.copy() for name in told}
                obs, _ = self.reset(options={"reset_mask": ended})
        return obs.copy(), reward.astype(np.float64), terminated, truncated, infos

    def render(self) -> tuple[Any, ...] | None:
        """A picture of each lander."""
        return self._landers.render() if self.render_mode else None

    def close_extras(self, **kwargs: Any) -> None:
        """Lets go of threads and windows."""
        self._landers.close()

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int]:
        if seed is None:  # never seeded: from Gymnasium's own source of seeds
            return [int(word) for word in self.np_random.integers(2**31, size=self.num_envs)]
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else list(seed)
        if len(seeds) != self.num_envs or any(s is None or s < 0 for s in seeds):
            raise EnvError(
                "Lander: seeds must be one whole number from 0 up for each slot", got=seed
            )
        return [int(s) for s in seeds if s is not None]

    def _infos_of_ends(self) -> dict[str, Any]:
        if not self._episode_stats:
            return {}
        ended = self._ended
        numbers = {"r": np.where(ended, self._return, 0.0), "l": np.where(ended, self._length, 0)}
        masks = {f"_{key}": ended.copy() for key in numbers}
        return {"episode": numbers | masks, "_episode": ended.copy()}


def observation_space(max_episode_steps: int) -> spaces.Box[Any]:
    """The bounds that no lander leaves: Box2D moves a body by 2 and turns it by pi/2 at most."""
    steps = (max_episode_steps or 10**6) + 2
    reach = [1.3, 0.31 * steps + 2.0, 21.0, 14.0, 1.6 * steps, 32.0, 1.0, 1.0]
    high = np.array(reach, dtype=np.float32)
    low = -high
    low[6:] = 0.0  # whether a leg touches the ground
    return spaces.Box(low, high)


def action_space(spec: ActionSpec) -> spaces.Space[Any]:
    """The action space of a view."""
    options = [head.n for head in spec.heads if isinstance(head, Choice)]
    ranges = spaces.Box(-1.0, 1.0, (spec.num_ranges,))
    if not options:
        return ranges
    if spec.num_ranges:
        return spaces.Tuple((spaces.Discrete(options[0]), ranges))
    return spaces.MultiDiscrete(options)


def checked_limit(max_episode_steps: object) -> int:
    """The time limit as a number; 0 means none."""
    if max_episode_steps is None:
        return TIME_LIMIT
    number = int(max_episode_steps) if is_whole(max_episode_steps) else -2
    if not -1 <= number <= MOST["max_episode_steps"]:
        raise EnvError(
            "Lander: max_episode_steps is not a number of steps",
            got=max_episode_steps,
            allowed=f"whole numbers to {MOST['max_episode_steps']}; 0 or -1 is no limit",
        )
    return max(0, number)


def _new_lander(render_mode: str | None = None) -> Any:
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


def refusal(why: str) -> EnvError:
    """The refusal of a call, with what to do about it."""
    return EnvError(why, fix="Make a new one." if why == CLOSED else "Call reset() first.")


@contextmanager
def naming_lander() -> Iterator[None]:
    """Errors about an action that also say whose action it was."""
    try:
        yield
    except SpaceError as error:
        raise EnvError(f"Lander: {str(error).removesuffix('.')}") from None


def _checked_render_mode(mode: str | None) -> str | None:
    if mode is not None and mode not in RENDER_MODES:
        raise unknown("render mode", mode, RENDER_MODES)
    return mode


def _checked_mask(mask: object, num_envs: int) -> NDArray[np.bool_]:
    if mask is None:
        return np.ones(num_envs, dtype=np.bool_)
    fits = isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (num_envs,)
    if not isinstance(mask, np.ndarray) or not fits or not mask.any():
        raise EnvError(
            "Lander: the reset mask does not fit",
            got=mask,
            allowed=f"a numpy array of {num_envs} bools, one of them True",
        )
    return mask


def _refuse_options(options: dict[str, Any] | None) -> None:
    if options:
        raise ConfigError("Lander has no such reset options", got=sorted(options))
