"""Numbers of a run for MLflow."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

from headwise.training.report import Report
from headwise.training.sinks.base import extra_module, finite_values, seed_labels

_BATCH = 1000
"""Metrics that one request may hold."""


class MLflowSink:
    """An MLflow run for each seed.

    Args:
        experiment: The experiment, made if there is none of that name.
        name: What the runs are called, before the seed.
        tracking_uri: The server or folder; None is MLflow's own default.
    """

    def __init__(self, experiment: str, name: str, *, tracking_uri: str | None = None) -> None:
        self._mlflow: Any = extra_module("mlflow", "mlflow")
        self._experiment, self._name, self._uri = experiment, name, tracking_uri
        self._client: Any = None
        self._runs: list[str] = []

    def open(self, seeds: Sequence[int], step: int) -> None:
        """Begins a run for each seed; a resumed one begins another, with the same name."""
        self._client = self._mlflow.MlflowClient(tracking_uri=self._uri)
        known = self._client.get_experiment_by_name(self._experiment)
        experiment = (
            self._client.create_experiment(self._experiment)
            if known is None
            else known.experiment_id
        )
        self._runs = [
            self._client.create_run(experiment, run_name=f"{self._name}-seed{label}").info.run_id
            for label in seed_labels(seeds)
        ]

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
