"""Numbers of a run for Weights & Biases."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from headwise.training.loggers.base import extra_module, finite_values, seed_labels
from headwise.training.report import Report


class WandbLogger:
    """A W&B run for each seed, in one group.

    A run that is there already is never written over: W&B refuses to begin it anew. Give another
    name, or another `id`.

    Args:
        project: The project.
        name: What the runs are called, before the seed.
        id: What W&B knows them by, before the seed; the name if not given. A run that is resumed
            goes on under the same.
        group: Their group; the name if not given.
        config: Settings to filter by.
        tags: Words to filter by.
        **settings: Anything else that `wandb.init` takes, for example `mode="offline"`.
    """

    def __init__(
        self,
        project: str,
        name: str,
        *,
        id: str | None = None,
        group: str | None = None,
        config: Mapping[str, Any] | None = None,
        tags: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        self._wandb: Any = extra_module("wandb", "wandb")
        self._name, self._id = name, re.sub(r"[^\w.-]+", "-", id or name)
        self._settings: dict[str, Any] = {"project": project, "group": group or name, **settings}
        if config is not None:
            self._settings["config"] = dict(config)
        if tags:
            self._settings["tags"] = list(tags)
        self._runs: list[Any] = []

    def open(self, seeds: Sequence[int], step: int) -> None:
        """Begins, or goes on."""
        self._runs = [
            self._wandb.init(
                name=f"{self._name}-seed{label}",
                id=f"{self._id}-seed{label}",
                resume="allow" if step else "never",
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
