"""Run folders: what `headwise train` leaves behind, and how other commands find it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.errors import CheckpointError

if TYPE_CHECKING:
    from headwise.agent import Agent

CHECKPOINT = "checkpoint.zip"
"""The agent, as it was last saved."""


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


def load_run(run: str | os.PathLike[str], device: str = "cpu") -> Agent:
    """The agent of a run."""
    from headwise.agent import Agent

    return Agent.load(checkpoint_of(run), device=device)
