"""Numbers of a run for Weights & Biases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwise.training.report import Report
from headwise.training.sinks.base import extra_module, finite_values, seed_labels


class WandbSink:
    """A W&B run for each seed, in one group.

    Args:
        project: The project.
        name: The name of the group; a run that is resumed goes on under the same name.
        **settings: Anything else that `wandb.init` takes, for example `mode="offline"`.
    """

    def __init__(self, project: str, name: str, **settings: Any) -> None:
        self._wandb: Any = extra_module("wandb", "wandb")
        self._project, self._name, self._settings = project, name, settings
        self._runs: list[Any] = []

    def open(self, seeds: Sequence[int], step: int) -> None:
        """Begins, or goes on."""
        self._runs = [
            self._wandb.init(
                project=self._project,
                group=self._name,
                name=f"{self._name}-seed{label}",
                id=f"{self._name}-seed{label}",
                resume="allow" if step else None,
                reinit="create_new",  # several runs in one process
                **self._settings,
            )
            for label in seed_labels(seeds)
        ]

    def write(self, report: Report) -> None:
        """Takes one report."""
        for member, run in enumerate(self._runs):
            run.log(finite_values(report, member), step=report.step)

    def flush(self) -> None:
        """Nothing waits here: W&B has everything."""

    def close(self) -> None:
        """Finishes the runs."""
        for run in self._runs:
            run.finish()
        self._runs = []
