"""What a logger is: somewhere to write the numbers of a run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Protocol

import numpy as np

from headwise.errors import ConfigError
from headwise.training.report import Report


class Logger(Protocol):
    """Takes the numbers of a run, report by report.

    One that may find the numbers of another run where it writes also has `check_unused`, which
    raises a ConfigError then. It is called before a run that begins at its start.
    """

    def open(self, seeds: Sequence[int], step: int) -> None:
        """Begins, or goes on after a run was resumed.

        Args:
            seeds: The members' seeds.
            step: Where the run begins. What an earlier run wrote after this step is taken back,
                because it is about to be written again.
        """

    def write(self, report: Report) -> None:
        """Takes one report."""

    def flush(self) -> None:
        """Makes what was taken so far safe; called before every checkpoint."""

    def close(self) -> None:
        """Ends; everything that was taken is now safe."""


def finite_values(report: Report, member: int) -> dict[str, float]:
    """The numbers of one member by name, without those that are not there yet."""
    numbers = {name: float(values[member]) for name, values in report.values.items()}
    return {name: value for name, value in numbers.items() if np.isfinite(value)}


def seed_labels(seeds: Sequence[int]) -> list[str]:
    """A label for each member: its seed, and its number where another has the same seed."""
    times = Counter(seeds)
    return [
        str(seed) if times[seed] == 1 else f"{seed}-member{member}"
        for member, seed in enumerate(seeds)
    ]


def writable(path: str | os.PathLike[str], *, folder: bool = False) -> Path:
    """The path, once its folder is there and can be written to."""
    try:
        target = Path(path)
        if "\0" in str(target):
            raise ValueError("a path ends at a zero byte")
        where = target if folder else target.parent
        where.mkdir(parents=True, exist_ok=True)
        good = os.access(where, os.W_OK) and (folder or not target.is_dir())
    except (OSError, TypeError, ValueError) as error:
        raise ConfigError(
            "cannot write there", got=repr(path), allowed="a path that can be written to"
        ) from error
    if not good:
        raise ConfigError(
            "cannot write there", got=repr(path), allowed="a path that can be written to"
        )
    return target


def another_run(path: Path) -> ConfigError:
    """What `check_unused` raises."""
    return ConfigError(
        "there are metrics of another run already",
        got=str(path),
        fix="Resume that run, Agent.load(path).learn(...); or delete them, or choose another path.",
    )


def extra_module(name: str, extra: str) -> ModuleType:
    """A package that only this logger needs."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(
            f"this logger needs {name.split('.')[0]}, which is not installed",
            fix=f"Install it: pip install 'headwise[{extra}]'.",
        ) from error
