"""Run folders: what `headwise train` leaves behind, and how other commands find it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import gymnasium as gym
import tyro

from headwise.envs import modules
from headwise.envs.make import own_name
from headwise.errors import CheckpointError

if TYPE_CHECKING:
    from headwise.agent import Agent

CHECKPOINT = "checkpoint.zip"
"""The agent, as it was last saved; runs of studies have one of the same name."""
RUNS = Path("runs")
"""Where runs, studies and reports are put by default."""


@dataclass(frozen=True, kw_only=True)
class OfRun:
    """Flags of every command about a trained run."""

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Folder of a run, or a checkpoint."""
    env: str | None = None
    """The environment, if the checkpoint does not name one that can be made. module:id imports the
    module, which is done only if you name it here."""
    device: str = "cpu"
    """Device: cpu, cuda, or auto, which measures which is faster."""


def checkpoint_of(run: str | os.PathLike[str]) -> Path:
    """The checkpoint of a run: a folder that holds one, or the file itself."""
    path = Path(run)
    found = path / CHECKPOINT if path.is_dir() else path
    if not found.is_file():
        raise CheckpointError(
            "there is no run here",
            got=str(path),
            allowed=f"a folder with a {CHECKPOINT}, or such a file",
            fix="`headwise train --out FOLDER` makes one, and `headwise study run "
            "--keep-checkpoints` one for each run.",
        )
    return found


def load_run(
    run: str | os.PathLike[str],
    env: str | None,
    device: str,
    again: Sequence[str],
    *,
    plays: bool = True,
) -> Agent:
    """The agent of a run. A module is imported only if the user named it.

    Args:
        run: The folder, or a checkpoint.
        env: The environment as the user typed it, if they did.
        device: Where learners live; "auto" measures which is faster.
        again: The words of the command, to say what to type where `env` is missing.
        plays: Whether the environment is needed.
    """
    from headwise.agent import Agent

    path = checkpoint_of(run)
    if env is not None:
        import_module_of(env)
    elif plays:
        _check_environment(path, again)
    return Agent.load(path, env=env, device=device)


def import_module_of(env: str) -> None:
    """Imports the module of an environment like `module:id`, also from the current folder.

    To be called with what a user typed, never with what a file says.
    """
    if ":" in env and (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    modules.import_module_of(env)


def _check_environment(checkpoint: Path, again: Sequence[str]) -> None:
    """Refuses a run whose environment only the user can name, with the command that names it."""
    from headwise.training.checkpoint import read_checkpoint

    told = read_checkpoint(checkpoint, only=()).info.get("env")
    env = told.get("id") if isinstance(told, dict) else None
    if not isinstance(env, str):
        raise CheckpointError(
            "this checkpoint does not say how to make its environment",
            fix=f"Name it: {shlex.join([*again, '--env'])} MODULE:ID, with the id that your module "
            "registers.",
        )
    if ":" in env:
        raise CheckpointError(
            "the environment of this run is in a module, and a checkpoint imports none by itself",
            got=env,
            fix=f"If you trust it: {shlex.join([*again, '--env', env])}",
        )
    if own_name(env) is None and not _knows(env):
        raise CheckpointError(
            "the environment of this run is registered by a module that is not imported here",
            got=env,
            fix=f"Name the module that registers it: {shlex.join([*again, '--env'])} MODULE:{env}",
        )


def _knows(env: str) -> bool:
    """Whether an id without a module is registered with Gymnasium."""
    try:
        gym.spec(env)
    except gym.error.Error:
        return False
    return True
