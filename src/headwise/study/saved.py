"""Saving packs that are under way, so that a study goes on in the middle of a run.

A save holds all that the rest of the training depends on. Where the environment can be kept (all
compiled ones can), the results are those of a training that never stopped, to the bit; elsewhere
every slot begins a new episode.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from headwise import ENGINE
from headwise.errors import CheckpointError
from headwise.files import remove
from headwise.study.extras import Saves
from headwise.study.planner import Pack
from headwise.study.run import Run
from headwise.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from headwise.training.loop import Loop

logger = logging.getLogger("headwise")


class Before(NamedTuple):
    """What was done of a pack before this training of it."""

    part: int
    """Parts that are done."""
    seconds: float
    attempt: str
    said: dict[str, Any]
    """What those who watch the training have kept."""
    rows: Any
    """The metrics so far, (rows, members)."""


class Saver:
    """Saves one pack.

    Args:
        saves: Where and how often.
        pack: The pack.
    """

    def __init__(self, saves: Saves, pack: Pack) -> None:
        self._path, self._every = saves.path(pack.runs), saves.every
        self._ids = [run.id for run in pack.runs]
        self._next = 0

    def resume(self, loop: Loop) -> Before | None:
        """Puts a loop where the save was; None where there is no save, or none that can be used."""
        self._next = self._every
        try:
            info, tensors = read_checkpoint(self._path)
            if info.get("engine") != ENGINE or info.get("runs") != self._ids:
                raise CheckpointError("a save of something else", got=self._path)
            rows = tensors.pop("study")["rows"].numpy()
            before = Before(info["part"], info["seconds"], info["attempt"], info["said"], rows)
        except (CheckpointError, KeyError):
            return None
        device = loop.keys.device
        try:
            loop.load_state_dict(
                {p: {n: x.to(device) for n, x in named.items()} for p, named in tensors.items()}
            )
        except Exception:
            remove(self._path)  # it would stop the next try, too
            raise
        self._next = (loop.env_steps // self._every + 1) * self._every
        return before

    def is_due(self, env_steps: int) -> bool:
        """Whether it is time."""
        return env_steps >= self._next

    def save(self, loop: Loop, before: Before) -> None:
        """Saves. Where that cannot be, the last save stays, and the training goes on."""
        self._next = (loop.env_steps // self._every + 1) * self._every
        info = {"engine": ENGINE, "runs": self._ids, **before._asdict()}
        rows = torch.from_numpy(np.ascontiguousarray(info.pop("rows")))
        state = {**loop.state_dict(), "study": {"rows": rows}}
        try:
            write_checkpoint(self._path, Checkpoint(info, state))
        except CheckpointError as error:
            logger.warning("%s The run goes on, and tries again later.", error)


def saved_packs(folder: Path, runs: Sequence[Run]) -> list[Pack]:
    """The packs that were saved and can go on: all of whose runs are among these."""
    by_id, found, taken = {run.id: run for run in runs}, [], set[str]()
    for path in sorted(folder.glob("*.zip")) if folder.is_dir() else ():
        try:
            info = read_checkpoint(path, only=()).info
            ids = [str(one) for one in info["runs"]]
            good = info["engine"] == ENGINE
        except (CheckpointError, KeyError, TypeError):
            good, ids = False, []
        if good and ids and all(one in by_id and one not in taken for one in ids):
            taken.update(ids)
            found.append(Pack(tuple(by_id[one] for one in ids)))
    return found


def sweep_saves(folder: Path, is_open: Callable[[str], bool]) -> None:
    """Removes saves of which no run is still to be done."""
    for path in sorted(folder.glob("*.zip")) if folder.is_dir() else ():
        try:
            ids = read_checkpoint(path, only=()).info["runs"]
        except (CheckpointError, KeyError):
            ids = []
        if not any(is_open(one) for one in ids):
            remove(path)
