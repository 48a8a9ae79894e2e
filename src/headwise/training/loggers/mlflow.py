"""Numbers of a run for MLflow."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from headwise.training.loggers.base import extra_module, finite_values, seed_labels
from headwise.training.report import Report

_BATCH = 1000
"""Metrics that one request may hold."""
_LONGEST = 500
"""Letters that a parameter may have."""
_ID = "headwise.run"
"""The tag by which a resumed run is found."""


class MLflowLogger:
    """An MLflow run for each seed.

    Args:
        experiment: The experiment, made if there is none of that name.
        name: What the runs are called, before the seed.
        tracking_uri: The server or folder; None is MLflow's own default.
        id: By what a run that is resumed finds its own, before the seed; the name if not given.
        config: Settings to filter by, as parameters.
        tags: Words to filter by, by name.
    """

    def __init__(
        self,
        experiment: str,
        name: str,
        *,
        tracking_uri: str | None = None,
        id: str | None = None,
        config: Mapping[str, Any] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        self._mlflow: Any = extra_module("mlflow", "mlflow")
        self._experiment, self._name, self._uri = experiment, name, tracking_uri
        self._id, self._config, self._tags = id or name, dict(config or {}), dict(tags or {})
        self._client: Any = None
        self._runs: list[str] = []

    def open(self, seeds: Sequence[int], step: int) -> None:
        """Begins a run for each seed, or goes on with the one that was begun under its id."""
        self._client = self._mlflow.MlflowClient(tracking_uri=self._uri)
        known = self._client.get_experiment_by_name(self._experiment)
        experiment = (
            self._client.create_experiment(self._experiment)
            if known is None
            else known.experiment_id
        )
        self._runs = [
            (self._begun(experiment, label) if step else None) or self._new(experiment, label)
            for label in seed_labels(seeds)
        ]

    def _begun(self, experiment: str, label: str) -> str | None:
        """The run that is to be gone on with, the latest if there are several."""
        wanted = f"tags.`{_ID}` = '{self._id}-seed{label}'"
        found = self._client.search_runs([experiment], wanted, max_results=1)
        return str(found[0].info.run_id) if found else None

    def _new(self, experiment: str, label: str) -> str:
        tags = {**self._tags, _ID: f"{self._id}-seed{label}"}
        made = self._client.create_run(
            experiment, run_name=f"{self._name}-seed{label}", tags=tags
        ).info.run_id
        for name, value in self._config.items():
            self._client.log_param(made, metric_name(name), str(value)[:_LONGEST])
        return str(made)

    def write(self, report: Report) -> None:
        """Takes one report."""
        now = int(time.time() * 1000)
        metric = self._mlflow.entities.Metric
        for member, run in enumerate(self._runs):
            metrics = [
                metric(metric_name(name), value, now, report.step)
                for name, value in finite_values(report, member).items()
            ]
            for start in range(0, len(metrics), _BATCH):
                self._client.log_batch(run, metrics=metrics[start : start + _BATCH])

    def flush(self) -> None:
        """Nothing waits here: MLflow has everything."""

    def close(self) -> None:
        """Finishes the runs."""
        for run in self._runs:
            self._client.set_terminated(run)
        self._runs = []


def metric_name(name: str) -> str:
    """A name of ours with the characters that MLflow allows."""
    return re.sub(r"[^\w./ -]", "_", name)
