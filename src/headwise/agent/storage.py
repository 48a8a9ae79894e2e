"""Agents in files: what a checkpoint says of an agent, and how one is made from it again."""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from headwise import ENGINE
from headwise.agent.face import Face
from headwise.agent.members import as_device, as_seeds
from headwise.agent.state_check import check_extras, check_fit, check_state
from headwise.agent.world import World
from headwise.checks import is_whole, optional_count
from headwise.errors import CheckpointError, HeadwiseError
from headwise.population import select_members
from headwise.training.checkpoint import (
    Checkpoint,
    checkpoint_bytes,
    read_checkpoint,
    write_checkpoint,
)
from headwise.training.config import RunConfig
from headwise.training.loop import Loop, State
from headwise.upgrade import STATE_PARTS, upgrade_plan


class Parts(NamedTuple):
    """What an agent is made of."""

    config: RunConfig
    seeds: tuple[int, ...]
    device: str
    face: Face
    world: World
    state: State
    target_steps: int | None = None
    """Environment steps of each member that the last `learn` was to reach."""
    gives_masks: bool = False
    """Whether the environment was seen to give masks."""
    steps_before: int = 0
    """Environment steps that it had learned from as a member of others, before its own began."""


def save_parts(path: str | os.PathLike[str], parts: Parts) -> None:
    """Writes them into one file, whole or not at all."""
    write_checkpoint(path, _checkpoint(parts))


def parts_as_bytes(parts: Parts) -> bytes:
    """The file that `save_parts` would write, for those who keep files themselves."""
    return checkpoint_bytes(_checkpoint(parts))


def _checkpoint(parts: Parts) -> Checkpoint:
    info = {
        "engine": ENGINE,
        "plan": _plan_of(parts),
        "face": parts.face.to_json(),
        "env": parts.world.to_json(),
        "masks": parts.gives_masks,
        "steps_before": parts.steps_before,
        "versions": versions(),
    }
    return Checkpoint(info, parts.state)


def load_parts(path: str | os.PathLike[str], device: str, encoder: Any = None) -> Parts:
    """Reads them from a file that may be anything.

    Args:
        path: The file.
        device: Where tensors go.
        encoder: A user's module that encodes observations, of which a file has only the name.
    """
    info, tensors = read_checkpoint(path)
    tensors = {STATE_PARTS.get(name, name): part for name, part in tensors.items()}
    _check_engine(path, info)
    config, seeds, target = _read_plan(info.get("plan"))
    network = config.network.handed(encoder)
    config = replace(config, network=network)
    device = as_device(device)
    face = Face.from_json(info.get("face"))
    for part in ("counters", "learner", "metrics", "episodes"):
        if part not in tensors:
            raise CheckpointError(f"the checkpoint has no {part}", got=sorted(tensors))
    if "scores" in tensors:
        _check_scores(seeds, tensors["scores"])
    check_state(config, seeds, face, tensors)
    state = {
        part: {name: x.to(device) for name, x in named.items()} for part, named in tensors.items()
    }
    world = World.from_json(info.get("env"), face)
    masks, before = info.get("masks"), info.get("steps_before")
    if not is_whole(before) or before < 0:
        raise CheckpointError("the checkpoint does not say what it was trained for", got=before)
    return Parts(config, seeds, device, face, world, state, target, bool(masks), int(before))


def _plan_of(parts: Parts) -> dict[str, Any]:
    """What a checkpoint says of the training: the configuration but for the environment, beside."""
    said = parts.config.to_json()
    steps = said.pop("total_timesteps")
    for name in vars(parts.config.environment):
        del said[name]
    named = ("algorithm", "settings", "factorization", "factorization_settings")
    return {
        **{name: said.pop(name) for name in named},
        "seeds": list(parts.seeds),
        **said,
        "total_steps": steps,
        "target_steps": parts.target_steps,
    }


def _read_plan(plan: Any) -> tuple[RunConfig, tuple[int, ...], int | None]:
    """The configuration, the seeds and the target in what `_plan_of` wrote, which may be anything.

    The environment of the configuration is not said.
    """
    try:
        plan = upgrade_plan(plan)
        total = plan["total_steps"]
        target = plan.get("target_steps", total)  # once every call finished the first one
        seeds = as_seeds(list(plan["seeds"]))
        config = RunConfig.from_json({**plan, "total_timesteps": total})
        config.check_members(seeds)
        return config, seeds, optional_count("target_steps", target)
    except (KeyError, TypeError, ValueError, HeadwiseError) as error:
        raise CheckpointError(
            "the settings in the checkpoint cannot be used",
            got=(str(error) or repr(error)).rstrip("."),
        ) from error


def held_steps(path: str | os.PathLike[str]) -> int:
    """Environment steps of the checkpoint at a path; 0 where there is none."""
    if not os.path.isfile(path) or not os.path.getsize(path):
        return 0
    try:
        tensors = read_checkpoint(path, only=("counters",)).tensors
        return int(tensors["counters"]["steps"])
    except (CheckpointError, KeyError) as error:
        raise CheckpointError(
            f"there is another file at {os.fspath(path)!r}, which is no checkpoint",
            got=str(error) or repr(error),
            fix="Choose another path, or delete it.",
        ) from error


def load_state(loop: Loop, state: State) -> None:
    """Puts a state that may be anything into a loop, or says why it does not fit."""
    wanted = loop.state_dict()
    for part in ("counters", "learner", "normalizer"):
        check_fit(part, wanted.get(part, {}), state.get(part, {}))
    check_extras(loop, state)
    try:
        loop.load_state_dict(state)
    except Exception as error:  # whatever a forged memory or snapshot may lead to
        raise CheckpointError(
            "the state in the checkpoint does not fit its settings",
            got=f"{type(error).__name__}: {error}",
        ) from error


def member_state(state: State, member: int, num_slots: int = 1) -> State:
    """What one member has learned, as the state of a loop that is about to begin.

    Its memory and its episodes stay behind: it is a learner to act, or to learn on anew.

    Args:
        state: Of all members.
        member: Its number.
        num_slots: Environment slots that it will have.
    """
    learned: State = {
        part: select_members(state[part], [member])
        for part in ("learner", "normalizer")
        if part in state
    }
    if "so_far" in (known := learned.get("normalizer", {})):
        known["so_far"] = known["so_far"].new_zeros(1, num_slots)
    return {
        "counters": {name: torch.tensor(0) for name in ("ticks", "steps", "updates")},
        "metrics": {},
        "episodes": {"table": torch.empty((0, 4), dtype=torch.float64)},
        **learned,
    }


def versions() -> dict[str, str]:
    """What a run was made with."""
    from headwise import __version__

    return {
        "headwise": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


def _check_engine(path: str | os.PathLike[str], info: dict[str, Any]) -> None:
    """Refuses what another engine has learned: its parameters mean nothing to this one."""
    engine = info.get("engine", 1)  # the first one did not say
    if engine != ENGINE:
        made = info.get("versions")
        version = made.get("headwise") if isinstance(made, dict) else None
        raise CheckpointError(
            f"{os.fspath(path)!r} was trained by another engine, whose networks this one cannot "
            "go on with",
            got=f"engine {engine} of headwise {version}",
            allowed=f"engine {ENGINE}",
            fix="Train it again, or load it with the version that made it.",
        )


def _check_scores(seeds: tuple[int, ...], named: dict[str, Tensor]) -> None:
    scores = named.get("scores")
    if scores is None or scores.shape != (len(seeds),) or not scores.is_floating_point():
        raise CheckpointError(
            "the scores in the checkpoint do not fit its seeds", got=sorted(named)
        )
