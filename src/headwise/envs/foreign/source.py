"""The way in for any environment: an id, an environment, many of them, or what makes one."""

from __future__ import annotations

import difflib
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar, get_args
from weakref import WeakSet

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from headwise.checks import checked_switch
from headwise.envs.envpool import pooled
from headwise.envs.foreign.adapter import Adapter, checked_weights, mode_of
from headwise.envs.foreign.codec import EnvCodec
from headwise.envs.foreign.parallel import Team, TeamReward, parallel
from headwise.envs.foreign.vec_env import ForeignVecEnv
from headwise.envs.foreign.vector import AsyncEnvs, SyncEnvs
from headwise.envs.make import check_population, env_names, make_vec, own_name
from headwise.envs.modules import import_module_of
from headwise.envs.types import Allocate, VecEnv, check_allocate
from headwise.errors import ConfigError, EnvError, HeadwiseError
from headwise.registry import unknown
from headwise.spaces import ViewKind
from headwise.spaces.convert import Bounds

Vectorization: TypeAlias = Literal["sync", "async"]
V = TypeVar("V")
Make: TypeAlias = Callable[[], Any]

DEFAULT_SLOTS = 16
"""Slots of each member where neither the user nor the environment says how many."""

_KINDS = (
    "an id, a Gymnasium environment or vector environment, a PettingZoo ParallelEnv, or a callable "
    "that makes one"
)
_CALLABLE = "Hand over what makes it: the class, or `lambda: MyEnv(...)`."
_told: WeakSet[gym.Env[Any, Any]] = WeakSet()  # of whom users know that they differ from their spec
logger = logging.getLogger("headwise")


def foreign_env(
    env: Any, seeds: Sequence[int], num_slots: int | None = None, /, **settings: Any
) -> VecEnv:
    """Any environment for a population: P members, one for each seed, with E slots each.

    Args:
        env: An id of Headwise or of Gymnasium, also as `module:id`; a Gymnasium environment or
            vector environment; a PettingZoo ParallelEnv; or a callable that makes one of these. A
            lone environment is made anew from its `spec` for every slot; for one member with one
            slot, and where it cannot be made anew, it is used itself.
        seeds: One seed for each member.
        num_slots: Environment slots of each member; None takes as many as a vector environment has
            for each, and otherwise 16.
        **settings: For an id of Headwise those of `make_vec`. For the others those of `wrap`; what
            is left goes to `gymnasium.make` or to the callable.
    """
    if isinstance(env, str):
        if env.rpartition(":")[2] not in gym.registry:
            import_module_of(env)
        name = own_name(env)
        if name is not None or env.startswith("headwise/"):
            return make_vec(name or env, seeds, num_slots or DEFAULT_SLOTS, **settings)
        env = partial(_make_by_id, env)
    return wrap(env, seeds, num_slots, **settings)


def wrap(
    env: Any,
    seeds: Sequence[int],
    num_slots: int | None = None,
    /,
    *,
    view: ViewKind | None = None,
    bins: int | Mapping[str, int] | None = None,
    zoom_levels: int | Mapping[str, int] | None = None,
    zoom_bins: int | Mapping[str, int] | None = None,
    bounds: Mapping[str, Bounds] | None = None,
    masks: bool = True,
    constraints: Sequence[Any] = (),
    vectorization: Vectorization = "sync",
    autoreset: str | None = None,
    team_reward: TeamReward = "sum",
    reward_weights: Sequence[float] | None = None,
    num_threads: int | None = None,
    allocate: Allocate = np.zeros,
    **settings: Any,
) -> ForeignVecEnv:
    """An environment that is not ours, for a population.

    Args:
        env: As in `foreign_env`, but no id.
        seeds: One seed for each member.
        num_slots: Environment slots of each member.
        view: "discrete", "hybrid", "continuous" or "zoom"; None leaves the action as it is.
        bins: Bins of a Range that a view makes discrete: one number, or numbers by head name.
        zoom_levels: Levels of each Range in the zoom view, likewise; None means 3.
        zoom_bins: Bins of each of these levels, likewise; None means 5.
        bounds: Bounds for Boxes of the action that have none, as `{path: (low, high)}`.
        masks: Whether to use the environment's action masks.
        constraints: Which options go together: `Forbid`, `Require`, `Given`.
        vectorization: "sync" runs environments one after another, "async" each in a process.
        autoreset: When a vector environment resets, if its metadata do not say: "next_step",
            "same_step" or "disabled".
        team_reward: What a team earns: the "sum" of its agents' rewards, or their "mean".
        reward_weights: How much each part of a reward counts in the sum, where it has parts.
        num_threads: Not needed here; taken so that every environment takes it.
        allocate: Makes the arrays, for those who want them in pinned memory.
        **settings: For the callable.
    """
    kinds = {"vectorization": Vectorization, "team_reward": TeamReward}
    for (what, allowed), value in zip(kinds.items(), (vectorization, team_reward), strict=True):
        if not isinstance(value, str) or value not in get_args(allowed):
            raise unknown(what, value, get_args(allowed))
    masks = checked_switch("masks", masks, fix="Say masks=False to ignore the environment's masks.")
    check_allocate(allocate)
    name = _name_of(env)
    check_population(name, seeds, DEFAULT_SLOTS if num_slots is None else num_slots)
    seeds, env = [int(seed) for seed in seeds], pooled(env)
    make, first = _maker(name, env, settings, itself=is_itself(env, len(seeds), num_slots))
    weights = checked_weights(reward_weights)
    coded = partial(EnvCodec, view=view, bins=bins, zoom_levels=zoom_levels, zoom_bins=zoom_bins,
                    bounds=bounds, masks=masks, constraints=constraints)  # fmt: skip
    if isinstance(first, VectorEnv):
        return ForeignVecEnv(
            name,
            *_vectors(name, first, make, seeds, num_slots, autoreset, coded, weights),
            stepped=first,
            allocate=allocate,
        )
    if autoreset is not None:
        raise ConfigError(
            "autoreset is for vector environments", got=autoreset, fix="Leave it out."
        )
    slots = (1 if first is env else DEFAULT_SLOTS) if num_slots is None else int(num_slots)
    codec, where = _codec(name, first, coded), partial(_where, name, slots)

    def dressed(env: Any, slot: int) -> gym.Env[Any, Any]:
        env = parallel(env)
        return env if isinstance(env, gym.Env) else Team(env, codec, where(slot), team_reward)

    def adapters() -> list[Adapter]:
        count = len(seeds) * slots
        vector: SyncEnvs | AsyncEnvs
        if vectorization == "async":
            making = [lambda slot=slot: dressed(make(), slot) for slot in range(count)]
            vector = _built(name, partial(AsyncEnvs, making, codec, where))
        else:
            envs = [first, *(make() for _ in range(1, count))]
            _check_different(
                name, [env.unwrapped if isinstance(env, gym.Env) else env for env in envs]
            )
            dressed_envs = [dressed(env, slot) for slot, env in enumerate(envs)]
            vector = _built(name, partial(SyncEnvs, dressed_envs, codec, where))
        return [Adapter(vector, codec, AutoresetMode.SAME_STEP, len(seeds), where, weights)]

    if vectorization == "async":
        first.close()
    stepped = first if vectorization == "sync" else None
    return ForeignVecEnv(name, adapters, seeds, slots, codec, stepped=stepped, allocate=allocate)


TRANSLATING = frozenset(
    name
    for name, parameter in inspect.signature(wrap).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY
)
"""The settings that `wrap` takes for itself; all others go to what makes the environment."""


# --- what was handed over -------------------------------------------------------------------------


def is_itself(env: Any, num_members: int, num_slots: int | None) -> bool:
    """Whether the object handed over is the one that is stepped, so that there is no other."""
    if isinstance(env, VectorEnv):
        return True
    if not isinstance(env, gym.Env) and not _is_team(env):
        return False
    return num_members == 1 and (num_slots == 1 or (num_slots is None and not _can_be_made(env)))


def _can_be_made(env: Any) -> bool:
    """Whether its spec says how to make it, with all wrappers around it."""
    spec = env.spec if isinstance(env, gym.Env) else None
    return spec is not None and all(w.kwargs is not None for w in spec.additional_wrappers)


def _maker(name: str, env: Any, settings: dict[str, Any], *, itself: bool) -> tuple[Make, Any]:
    """What makes one more, and the first."""
    if isinstance(env, VectorEnv | gym.Env) or _is_team(env):
        if settings:
            raise ConfigError(
                f"{name} is made already and takes no settings",
                got=sorted(settings),
                fix=_CALLABLE,
            )
        if itself:
            return partial(_another, name), env
        if not _can_be_made(env):
            raise _only_one(name, env)
        make = partial(_made, name, partial(gym.make, env.spec, disable_env_checker=True))
        first = make()
        _tell_of_changes(name, env, first)
        return make, first
    if not callable(env):
        raise EnvError("this is no environment", got=env, allowed=_KINDS)
    make = partial(_made, name, partial(env, **settings))
    return make, make()


def _only_one(name: str, env: Any) -> EnvError:
    """An environment that several slots cannot share and that cannot be made anew."""
    spec = env.spec if isinstance(env, gym.Env) else None
    wrappers = () if spec is None else spec.additional_wrappers
    silent = [wrapper.name for wrapper in wrappers if wrapper.kwargs is None]
    why = f"the wrapper {silent[-1]} does not say how it was made" if silent else "it has no `spec`"
    fix = (
        f"Hand over what makes it: `lambda: {silent[-1]}(gym.make(...))`." if silent else _CALLABLE
    )
    return EnvError(
        f"{name}: one environment cannot serve several slots, and more cannot be made: {why}",
        allowed="one member with one slot (seeds=1, num_envs=1)",
        fix=fix,
    )


def _tell_of_changes(name: str, given: gym.Env[Any, Any], made: gym.Env[Any, Any]) -> None:
    """Says which plain attributes of an environment are others in those made from its spec."""
    ours, theirs = vars(made.unwrapped), vars(given.unwrapped)
    changed = [
        f"{attribute}={ours[attribute]!r} and not {value!r}"
        for attribute, value in theirs.items()
        if isinstance(value, bool | int | float | str)
        and not attribute.startswith("_")
        and isinstance(ours.get(attribute), bool | int | float | str)
        and ours[attribute] != value
    ]
    if changed and given not in _told:
        _told.add(given)
        logger.warning(
            "%s: every slot has an environment made from the spec of the one handed over, with %s. "
            "Hand over a callable that makes it as you want it, or use the one itself: seeds=1, "
            "num_envs=1.",
            name, ", ".join(changed),
        )  # fmt: skip


def _made(name: str, make: Make) -> Any:
    try:
        return pooled(make())
    except HeadwiseError:
        raise
    except Exception as error:
        got = ": ".join(filter(None, (type(error).__name__, str(error))))
        fix = _CALLABLE if isinstance(error, TypeError) else "The first traceback shows where."
        raise EnvError(f"{name} could not be made", got=got, fix=fix) from error


def _another(name: str) -> Any:
    raise EnvError(f"{name}: there is only one of it", fix=_CALLABLE)


def _make_by_id(env_id: str, **settings: Any) -> gym.Env[Any, Any]:
    try:
        return gym.make(env_id, disable_env_checker=True, **settings)
    except (gym.error.NameNotFound, gym.error.NamespaceNotFound, gym.error.VersionNotFound) as why:
        module, _, bare = env_id.rpartition(":")
        close = difflib.get_close_matches(bare, [*env_names(), *gym.registry], n=1)
        hint = f"Did you mean {close[0]!r}?" if close else None
        if module:
            raise EnvError(
                f"the module {module!r} can be imported, but registers no {bare!r}",
                hint=hint,
                fix=f"Let it call gymnasium.register({bare!r}, ...) when it is imported.",
            ) from why
        raise EnvError(
            "unknown environment",
            got=repr(env_id),
            hint=hint,
            allowed="an id of Headwise, one that Gymnasium knows, or MODULE:ID of yours",
            fix="Import what registers it first.",
        ) from why


def _name_of(env: Any) -> str:
    if isinstance(env, partial) and env.func is _make_by_id:
        return str(env.args[0])
    if isinstance(env, gym.Env):
        env = env.unwrapped
    name = getattr(env, "__name__", type(env).__name__)
    return str("the environment" if name == "<lambda>" else name)


def _is_team(env: Any) -> bool:
    """Whether it is PettingZoo's, whose agents act at once or in turns."""
    if isinstance(env, type | gym.Env | VectorEnv):
        return False
    in_turns = hasattr(env, "agent_selection") or hasattr(env, "agent_iter")
    return hasattr(env, "possible_agents") and (
        in_turns or callable(getattr(env, "action_space", None))
    )


# --- single environments ------------------------------------------------------------------------


def _codec(name: str, env: Any, coded: Callable[..., EnvCodec]) -> EnvCodec:
    """What knows the spaces of an environment."""
    if isinstance(env, gym.Env):
        return coded(env.observation_space, env.action_space)
    if _is_team(env):
        team = parallel(env)
        agents = list(team.possible_agents)
        return coded(
            {agent: team.observation_space(agent) for agent in agents},
            {agent: team.action_space(agent) for agent in agents},
        )
    raise EnvError(f"{name} made something that is no environment", got=env, allowed=_KINDS)


def _where(name: str, num_slots: int, slot: int, first: int = 0) -> str:
    return f"{name} in slot {(slot + first) % num_slots} of member {(slot + first) // num_slots}"


def _built(name: str, build: Callable[[], V]) -> V:
    """A vector environment of several, which must be of one kind."""
    try:
        return build()
    except HeadwiseError:
        raise
    except (EOFError, OSError) as error:
        raise EnvError(
            f"{name} could not be made in a process of its own", fix=_CALLABLE
        ) from error
    except RuntimeError as error:
        raise EnvError(
            f"{name} gave environments with different spaces",
            got=str(error),
            allowed="the same spaces in every slot",
        ) from error


def _check_different(name: str, made: Sequence[object], kind: str = "environment") -> None:
    if len({id(one) for one in made}) < len(made):
        allowed = None if "vector" in kind else "a new one at every call"
        raise EnvError(f"{name} gave the same {kind} twice", allowed=allowed, fix=_CALLABLE)


# --- vector environments --------------------------------------------------------------------------


def _vectors(
    name: str,
    first: VectorEnv[Any, Any, Any],
    make: Make,
    seeds: Sequence[int],
    num_slots: int | None,
    autoreset: str | None,
    coded: Callable[..., EnvCodec],
    weights: NDArray[np.float64] | None,
) -> tuple[Callable[[], list[Adapter]], Sequence[int], int, EnvCodec]:
    """One vector environment for all members, or one for each if it can be made."""
    num_members = len(seeds)
    given = isinstance(make, partial) and make.func is _another
    share = first.num_envs // num_members if given else first.num_envs
    wanted = share if num_slots is None else int(num_slots)
    if wanted * (num_members if given else 1) != first.num_envs:
        if not given:
            first.close()
        raise EnvError(
            f"{name} has {first.num_envs} environments",
            got=f"{num_members} members with {wanted} slots each",
            allowed="as many as all members have slots" if given else "as many as a member's slots",
            fix="Leave out num_envs, choose it to fit, or hand over a callable that makes one for "
            "each member.",
        )
    vectors = [first] if given else [first, *(make() for _ in range(num_members - 1))]
    _check_different(name, vectors, "vector environment")
    codec = coded(first.single_observation_space, first.single_action_space)
    members = num_members if given else 1
    adapters = [
        Adapter(
            vector,
            codec,
            mode_of(name, vector, autoreset),
            members,
            partial(_where, name, wanted, first=number * members * wanted),
            weights,
        )
        for number, vector in enumerate(vectors)
    ]
    return lambda: adapters, seeds, wanted, codec
