"""What is under way in a study's folder, for `study status`: steps and returns so far, by run.

A runner writes a small file for each pack that it trains, now and then. Nothing rests on them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from headwise.files import parse_json, remove, unique
from headwise.study.planner import Pack

EVERY = 2.0
"""Seconds between two notes about a pack, at least."""


class UnderWay(NamedTuple):
    """How far a run is."""

    step: int
    mean_return: float | None
    """Of its last episodes; None before the first."""


class Live:
    """The notes in one folder.

    Args:
        folder: The study's.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / ".live"
        self._told: dict[str, float] = {}

    def stepped(self, pack: Pack, step: int, returns: Sequence[float]) -> None:
        """Takes note of how far a pack is; a disk that will not take it is no trouble."""
        now = time.monotonic()
        if now - self._told.get(pack.id, -EVERY) < EVERY:
            return
        self._told[pack.id] = now
        good = [value if value == value else None for value in returns]
        known = good or [None] * len(pack.runs)
        said = {run.id: [step, value] for run, value in zip(pack.runs, known, strict=True)}
        draft = self._folder / unique(f".{pack.id}")
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            draft.write_text(json.dumps(said))
            os.replace(draft, self._path(pack))

    def gone(self, pack: Pack) -> None:
        """The pack is no longer under way."""
        self._told.pop(pack.id, None)
        remove(self._path(pack))

    def sweep(self, held: Callable[[list[str]], list[str]]) -> None:
        """Removes the notes of killed runners: those of which no process holds a run.

        Args:
            held: Tells which of some runs a living runner has.
        """
        for path in self._folder.glob("*.json"):
            with suppress(OSError, ValueError, TypeError):
                if not held(list(parse_json(path.read_bytes()))):
                    remove(path)

    def read(self) -> dict[str, UnderWay]:
        """What was last said of each run; of those that no process works on any more, too."""
        found: dict[str, UnderWay] = {}
        for path in sorted(self._folder.glob("[!.]*.json")):
            with suppress(OSError, ValueError, TypeError, AttributeError):
                for run_id, (step, value) in parse_json(path.read_bytes()).items():
                    found[run_id] = UnderWay(int(step), None if value is None else float(value))
        return found

    def _path(self, pack: Pack) -> Path:
        return self._folder / f"{pack.id}.json"
