"""What a training leaves behind beside its results: numbers for loggers, and saves to resume from.

None of it changes a result. All of it travels to worker processes, so it is plain data and
functions that can be imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from headwise.files import remove
from headwise.study.run import Run
from headwise.training.loggers.base import Logger
from headwise.training.report import Report

LoggerName: TypeAlias = Literal["csv", "jsonl", "tensorboard", "wandb", "mlflow"]


@dataclass(frozen=True)
class LoggedRun:
    """A run whose numbers are to be logged."""

    study: str
    run: Run
    folder: Path
    """The study's folder."""
    attempt: str
    """Names this training of the run; the same when it is resumed, and no other's."""

    @property
    def name(self) -> str:
        """The run, in letters that files and services take.

        It ends as the id begins: cells that differ in a setting alone have one name.
        """
        run = self.run
        return re.sub(r"[^\w.=-]+", "-", f"{run.cell}-seed{run.seed}-{run.id[:8]}")

    @property
    def config(self) -> dict[str, Any]:
        """All of its settings, to filter by."""
        return {"study": self.study, "id": self.run.id, **self.run.to_json()}

    @property
    def tags(self) -> tuple[str, ...]:
        """Environment, algorithm and factorization."""
        run = self.run
        place = run.labels.get("environment", run.env)
        return tuple(dict.fromkeys((place, run.algorithm, run.factorization)))


Loggers: TypeAlias = Callable[[LoggedRun], Sequence[Logger]]
"""Makes the loggers of one run: any that an agent takes, for one member."""


def loggers_by_name(names: Sequence[LoggerName]) -> Loggers:
    """The usual loggers: files in the study's folder, below `logs`, or a service.

    W&B and MLflow have a project or an experiment of the study's name, with a run for each run, in
    groups by cell.
    """
    return partial(_usual, names=tuple(names))


def _usual(logged: LoggedRun, names: tuple[LoggerName, ...]) -> list[Logger]:
    from headwise.training import loggers

    made: list[Logger] = []
    for name in names:
        home = logged.folder / "logs" / name / logged.name
        if name == "csv":
            made.append(loggers.CSVLogger(home.with_name(f"{home.name}.csv")))
        elif name == "jsonl":
            made.append(loggers.JSONLLogger(home.with_name(f"{home.name}.jsonl")))
        elif name == "tensorboard":
            made.append(loggers.TensorBoardLogger(home))
        elif name == "wandb":
            made.append(
                loggers.WandbLogger(
                    logged.study,
                    logged.name,
                    id=logged.attempt,
                    group=logged.run.cell,
                    config=logged.config,
                    tags=logged.tags,
                )
            )
        else:
            made.append(
                loggers.MLflowLogger(
                    logged.study,
                    logged.name,
                    id=logged.attempt,
                    config=logged.config,
                    tags={"group": logged.run.cell, "study": logged.study},
                )
            )
    return made


@dataclass(frozen=True)
class Saves:
    """Where packs under way are saved, and how often."""

    folder: Path
    every: int
    """Environment steps of each run between two saves; a part of 1/200 of the run at least."""

    def path(self, runs: Sequence[Run]) -> Path:
        """The file of a pack of these runs."""
        from headwise.added import id_of

        return self.folder / f"{id_of({'runs': [run.id for run in runs]})}.zip"

    def forget(self, runs: Sequence[Run]) -> None:
        """Removes it."""
        remove(self.path(runs))


@dataclass(frozen=True)
class Extras:
    """What is wanted beside results."""

    study: str = ""
    folder: Path = Path()
    """The study's folder."""
    loggers: Loggers | None = None
    saves: Saves | None = None


NOTHING = Extras()


class Told:
    """The loggers of a pack, each of one run, handed reports of all.

    Args:
        loggers: Makes them.
        runs: The runs, in the order of the members.
        extras: What they are told of the study.
        attempt: Names this training.
    """

    def __init__(self, runs: Sequence[Run], extras: Extras, attempt: str) -> None:
        assert extras.loggers is not None
        self._open = ExitStack()
        self._loggers = [
            extras.loggers(LoggedRun(extras.study, run, extras.folder, f"{run.id}-{attempt}"))
            for run in runs
        ]
        self._seeds = [run.seed for run in runs]

    def open(self, step: int) -> None:
        """Opens all, or none."""
        with ExitStack() as opened:
            for seed, mine in zip(self._seeds, self._loggers, strict=True):
                for logger in mine:
                    logger.open([seed], step)
                    opened.callback(logger.close)
            self._open = opened.pop_all()

    def write(self, report: Report) -> None:
        """Tells each of its member."""
        for member, mine in enumerate(self._loggers):
            for logger in mine:
                logger.write(report.member(member))

    def flush(self) -> None:
        """Makes safe what was told, so that it is never older than a save."""
        for mine in self._loggers:
            for logger in mine:
                logger.flush()

    def close(self) -> None:
        """Closes all."""
        self._open.close()
