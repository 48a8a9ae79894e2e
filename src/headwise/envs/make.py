"""Environments by name, as the training loop sees them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

from headwise.checks import checked_count, checked_seed
from headwise.envs.lander_task import LanderVecEnv
from headwise.envs.native import env_id, public_name
from headwise.envs.native.vec_env import NativeVecEnv
from headwise.envs.probes import probes
from headwise.envs.types import VecEnv, check_allocate
from headwise.envs.zoomed import ZOOM, ZoomedVecEnv
from headwise.errors import EnvError
from headwise.registry import Registry, unknown

Factory: TypeAlias = Callable[..., VecEnv]

MOST_SLOTS = 1_000_000
"""Slots that a member may have: with more, a slip of the pen would take all memory there is."""

environments: Registry[Factory] = Registry("environment")
"""Environments of Python, by name; a factory takes `seeds`, `num_slots` and its settings. Compiled
environments and probes have lists of their own."""

environments.register("Lander")(LanderVecEnv)


def env_names() -> list[str]:
    """Every name that `make_vec` knows."""
    from headwise import _core

    return [
        *map(public_name, _core.environments()),
        *environments.names(),
        *(f"probe/{name}" for name in probes.names()),
    ]


def plain_name(name_or_id: str) -> str:
    """The name of an environment of ours, from itself or from its id; of others the id as it is.

    Only `headwise/Platform-v0` is `Platform`: without its namespace the id may be anybody's, and of
    another version it would be another environment.
    """
    name = str(name_or_id)
    own = name.removeprefix("headwise/")
    bare = own.rpartition("-v")[0]
    return bare if env_id(bare) == name else own


def own_name(env: str) -> str | None:
    """The name by which `make_vec` knows an environment; None for one of Gymnasium.

    It may be registered by a module of a user, as in `module:name`. What a user has registered with
    Gymnasium is theirs, also by a name of ours.
    """
    bare = str(env).rpartition(":")[2]
    plain = plain_name(bare)
    name = bare if plain == bare else public_name(plain)
    is_theirs = plain == bare and bare in gym.registry
    return name if name in env_names() and not is_theirs else None


def make_vec(
    name_or_id: str,
    seeds: Sequence[int],
    num_slots: int,
    /,
    *,
    constraints: Sequence[Any] = (),
    **settings: Any,
) -> VecEnv:
    """An environment for a population: P members, one for each seed, with E slots each.

    Args:
        name_or_id: "HybridShoot", its Gymnasium id "headwise/HybridShoot-v0", or "probe/agree".
        seeds: One seed for each member.
        num_slots: Environment slots of each member.
        constraints: Which options of its heads go together.
        **settings: Settings of the environment: `view`, `max_episode_steps`, ...; and for all of
            them `num_threads` and `allocate`. The view "zoom" refines the continuous heads of the
            environment's default view, in `zoom_levels` levels of `zoom_bins` bins.
    """
    name = plain_name(name_or_id)
    factory = _factory(name)
    check_population(name, seeds, num_slots)
    check_allocate(settings.get("allocate", np.zeros))
    zoom = None
    if settings.get("view") == "zoom":
        del settings["view"]  # which is then the environment's own
        zoom = {name: settings.pop(name) for name in ZOOM if name in settings}
    made = factory([int(seed) for seed in seeds], int(num_slots), **settings)
    if zoom is not None:
        made = ZoomedVecEnv(made, **zoom)
    if constraints:
        made.spec = made.spec.under(constraints)
    return made


def check_population(name: str, seeds: Sequence[int], num_slots: int) -> None:
    """Refuses seeds and slots that are no population, in the name of an environment."""
    for seed in seeds:
        checked_seed(seed, f"{name}: a seed", error=EnvError)
    checked_count(f"{name}: num_slots", num_slots, most=MOST_SLOTS, error=EnvError)
    if not len(seeds):
        raise EnvError(f"{name}: there are no members", got=seeds, fix="Give one seed for each.")


def _factory(name: str) -> Factory:
    from headwise import _core

    if name in _core.environments():
        return partial(NativeVecEnv, name)  # the engine knows its settings and checks them
    if name in environments:
        return _checked(name, environments.get(name))
    probe = name.removeprefix("probe/")
    if probe != name and probe in probes:
        return _checked(name, probes.get(probe))
    raise unknown("environment", name, env_names())


def _checked(name: str, factory: Factory) -> Factory:
    """The factory, with an unknown setting refused in our way."""
    parameters = inspect.signature(factory).parameters.values()
    known = [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    handed = [p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    anything = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)

    def make(seeds: Sequence[int], num_slots: int, /, **settings: Any) -> VecEnv:
        for setting in settings:
            if setting not in known and (setting in handed or not anything):
                raise unknown(f"setting of {name}", setting, known)
        return factory(seeds, num_slots, **settings)

    return make
