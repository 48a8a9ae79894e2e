"""From a file to an agent that goes on: in the same environment, or in another one of its kind."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import torch

from headwise.agent.face import Face
from headwise.agent.place import chosen_device
from headwise.agent.storage import Parts, load_parts, load_state
from headwise.agent.world import World
from headwise.checks import optional_count
from headwise.envs.foreign import ForeignVecEnv
from headwise.envs.types import Reseedable, VecEnv
from headwise.errors import CheckpointError, ConfigError, EnvError
from headwise.nets.encoders import NetworkConfig
from headwise.population import Keys
from headwise.training.config import Normalization, RunConfig, Where
from headwise.training.device import AUTO
from headwise.training.evaluate import fresh_seeds
from headwise.training.lazy_env import LazyEnv
from headwise.training.loop import Loop, State

logger = logging.getLogger("headwise")

_FIRST = ("ent_coef", "policy_gain", "critic_orthogonal")
"""Settings of how learning begins, which change nothing once it has."""
_KEPT = {"learning_rate": "learning_rate", "actor_lr_scale": "learning_rate", "kl_coef": "kl_coef"}
"""Settings whose values are in what was learned as well, with the name that they have there."""
_ANEW = "Train a new Agent with it."
_FIXED = {
    "algo": _ANEW,
    "factorization": _ANEW,
    "seeds": "Take one of its members: Agent.load(path).best(), or .member(2). For other seeds "
    "train a new Agent.",
    "view": "The heads that were learned follow from it. " + _ANEW,
    **{one.name: _ANEW for one in (*fields(Normalization), *fields(NetworkConfig))},
}
"""What a checkpoint settles, and what to do for something else."""
_AT_LOAD = Where(beside=("device",), without=(*_FIXED, "env", "total_timesteps"))
RESUME = 2
"""The purpose of episodes that come after a break."""


def load_with_env(
    path: str | os.PathLike[str],
    env: Any,
    *,
    device: str,
    num_envs: int | None,
    env_settings: Mapping[str, Any] | None,
    settings: Mapping[str, Any],
) -> tuple[Parts, LazyEnv]:
    """What an agent is made of, and its environment; arguments are those of `Agent.load`."""
    num_envs = optional_count("num_envs", num_envs)
    settings = dict(settings)
    encoder = settings.pop("encoder", None)
    parts = load_parts(path, "cpu" if device == AUTO else device, encoder)
    elsewhere = env is not None or env_settings is not None
    world = parts.world.handed(env, env_settings)
    config, seeds = _changed(parts.config, settings), parts.seeds
    config.check_members(seeds)
    _check_late(parts.config, config)
    try:
        config, place = placed(config, seeds, world, parts.face, num_envs)
    except EnvError as error:
        if elsewhere:
            raise
        # What the file names cannot be made here, where the policy may only be wanted to act.
        world = world.without(error)
        config, place = placed(config, seeds, world, parts.face, num_envs)
    face = world.face(place.opened()) if elsewhere and world.is_known else parts.face
    state = dict(parts.state)
    same_slots = place.num_slots == parts.config.num_envs
    changed = ", ".join(world.changed(parts.world)) if elsewhere else ""
    if not (same_slots and _goes_on(place.made, state, changed, elsewhere=elsewhere)):
        place = _leave_episodes(place, world, seeds, state)
    here = chosen_device(config, seeds, world) if device == AUTO else parts.device
    if here != parts.device:
        state = {part: {n: x.to(here) for n, x in named.items()} for part, named in state.items()}
    return parts._replace(config=config, device=here, world=world, face=face, state=state), place


def _changed(config: RunConfig, settings: Mapping[str, Any]) -> RunConfig:
    """A configuration with other settings of the algorithm or the factorization."""
    for name in settings:
        if name in _FIXED:
            raise ConfigError(
                f"{name} is fixed in a checkpoint", got=settings[name], fix=_FIXED[name]
            )
    return config.replace(_AT_LOAD, **settings)


def placed(
    config: RunConfig, seeds: Sequence[int], world: World, face: Face, num_envs: int | None = None
) -> tuple[RunConfig, LazyEnv]:
    """A configuration with an environment, which must be of the kind that it was trained in.

    Args:
        config: What is trained.
        seeds: Those of the members.
        world: Where.
        face: How the environment trained in speaks.
        num_envs: Slots of each member; None is as many as before, or as many as there are of an
            environment that is used itself.
    """
    members = len(seeds)
    slots = config.num_envs if num_envs is None else num_envs
    if not world.is_known:
        late = LazyEnv(members, slots, face.spec, face.obs_spec, lambda: world.vec(seeds, slots))
        return config.replace(num_envs=slots), late
    as_there_are = num_envs is None and world.is_alone(members, None)
    if members > 1 and world.is_alone(1, None) and not world.is_alone(members, None):
        raise EnvError(
            "one environment cannot serve several members",
            got=f"{members} members",
            fix="Take one there: Agent.load(path).best(env=...). Or hand over what makes it.",
        )
    vec = world.vec(seeds, None if as_there_are else slots)
    face.check(world.face(vec))
    return config.replace(num_envs=vec.num_slots), LazyEnv.of(vec)


def lent(num_envs: int, seeds: Sequence[int], world: World, env: LazyEnv) -> LazyEnv:
    """The environment of a member on its own, made when it is needed.

    If there is only one, it is that of the agent which the member is of.
    """
    return LazyEnv(
        len(seeds),
        num_envs,
        env.spec,
        env.obs_spec,
        lambda: world.vec(seeds, num_envs),
        is_lent=world.is_alone(len(seeds), num_envs),
    )


def _goes_on(vec: VecEnv | None, state: State, changed: str, *, elsewhere: bool) -> bool:
    """Whether the environment can go on with the episodes that it was saved in.

    Args:
        vec: The environment, if it is there.
        state: What was saved.
        changed: The settings that are others than they were.
        elsewhere: Whether it was handed over, or its settings were.
    """
    if "env" not in state or vec is None or not vec.can_snapshot:
        return False
    if "snapshot" not in state["env"]:  # a forged file, which is said when it is loaded
        return True
    snapshot = state["env"]["snapshot"].cpu().numpy().tobytes()
    if not changed and isinstance(vec, ForeignVecEnv):
        changed = vec.made_otherwise(snapshot)
    if changed:  # the snapshot would bring the old one back
        logger.warning(
            "The environment is another one than that trained in (%s): every slot begins a new "
            "episode.",
            changed,
        )
        return False
    if elsewhere:  # it may be another one, which does not know what to make of the snapshot
        try:
            vec.restore(snapshot)
        except Exception:
            return False
    return True


def _leave_episodes(place: LazyEnv, world: World, seeds: Sequence[int], state: State) -> LazyEnv:
    """The environment at the start of new episodes, and a state without the old ones."""
    for part in ("env", "now"):
        state.pop(part, None)
    if "so_far" in (known := state.get("normalizer", {})):
        slots = (len(seeds), place.num_slots)
        state["normalizer"] = known | {"so_far": known["so_far"].new_zeros(slots)}
    ticks = int(state["counters"].get("ticks", torch.tensor(0)))
    if not ticks or place.made is None:
        return place
    fresh = fresh_seeds(Keys(seeds), RESUME, ticks)
    if isinstance(place.made, Reseedable):
        place.made.reseed(fresh)
        return place
    place.made.close()
    return LazyEnv.of(world.vec(fresh, place.num_slots))


def _check_late(before: RunConfig, after: RunConfig) -> None:
    """Refuses what would be taken without an effect."""
    ours, theirs = before.algorithm, after.algorithm
    late = [n for n in _FIRST if getattr(ours, n, None) != getattr(theirs, n, None)]
    if late:
        raise ConfigError(
            "this setting applies to the start of training, which the checkpoint is past",
            got=", ".join(late),
            fix="Leave it out, or train a new agent with it.",
        )


def load_changed(loop: Loop, state: State, settings: Mapping[str, Any]) -> None:
    """Puts a state into a loop whose settings are others than those it was saved with."""
    ours, theirs = loop.algorithm.state_dict(), dict(state["learner"])
    for setting, kept in _KEPT.items():  # optimizers, say, would go back to their old learning rate
        if setting in settings:
            theirs |= {name: x for name, x in ours.items() if name.rpartition(".")[2] == kept}
    try:
        load_state(loop, state | {"learner": theirs})
    except CheckpointError as error:
        if not settings:
            raise
        raise ConfigError(
            "what was learned does not fit these settings",
            got=", ".join(settings),
            allowed="settings that leave the networks as they are, for example learning_rate",
        ) from error
