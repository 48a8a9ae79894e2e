"""A Ray cluster. Workers train and return results; the driver alone writes the store.

Ray is told not to retry: a lost worker's runs come back to the conductor, which does the same for
every executor.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from typing import Any

from headwise.errors import ConfigError
from headwise.study.executors.base import (
    Crashed,
    Event,
    ExecutorSettings,
    Finished,
    Lost,
    Source,
    executors,
)
from headwise.study.imports import check_imports, load_imports
from headwise.study.planner import Pack


@executors.register("ray")
class RayExecutor:
    """One task for each pack, one core for each task."""

    def __init__(self, settings: ExecutorSettings) -> None:
        self.settings = settings
        self._ray = _import_ray()
        if settings.extras.saves is not None:
            raise ConfigError(
                "Ray's workers may have no disk in common, so they cannot save what is under way",
                got="checkpoint_every with the executor ray",
                fix="Leave it out, or start runners with the executor `inline` as jobs of the "
                "cluster, all on one folder.",
            )
        check_imports(settings.imports)
        self._began = False
        self._task: Any = None

    def __enter__(self) -> RayExecutor:
        ray = self._ray
        if not ray.is_initialized():
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            quiet = {"log_to_driver": False, "logging_level": "warning"}
            address = self.settings.address or os.environ.get("RAY_ADDRESS")
            if address is None:
                # "local" is one of our own, even if another user's runs on this machine.
                ray.init("local", num_cpus=self.settings.workers, include_dashboard=False, **quiet)
            else:
                _check_reachable(address)
                try:
                    ray.init(address, **quiet)
                except (ConnectionError, ValueError) as error:
                    raise _nobody_there(address, error) from error
            self._began = True
        needs = {"num_cpus": 1}
        if self.settings.device != "cpu":
            needs["num_gpus"] = 1
        self._task = ray.remote(_train).options(max_retries=0, **needs)
        return self

    def __exit__(self, *_: object) -> None:
        if self._began:  # a cluster that the user had already goes on
            self._ray.shutdown()

    @property
    def num_workers(self) -> int:
        """As many as the cluster has cores now; machines come and go."""
        if not self._ray.is_initialized():
            return self.settings.workers or 1
        cores = int(self._ray.cluster_resources().get("CPU", 0))
        return max(1, min(cores, self.settings.workers or cores))

    def run(self, source: Source) -> Iterator[Event]:
        """Keeps every core of the cluster busy."""
        under_way: dict[Any, Pack] = {}
        try:
            while True:
                while len(under_way) < self.num_workers and (pack := source()) is not None:
                    under_way[self._task.remote(pack, self.settings)] = pack
                if not under_way:
                    return
                ready, _ = self._ray.wait(list(under_way), num_returns=1)
                for reference in ready:
                    yield self._outcome(under_way.pop(reference), reference)
        finally:
            for reference in under_way:
                self._ray.cancel(reference, force=True)

    def _outcome(self, pack: Pack, reference: Any) -> Event:
        exceptions = self._ray.exceptions
        try:
            event: Event = self._ray.get(reference)
        except exceptions.RayTaskError as error:  # it could not even begin
            return Crashed.by(pack, error)
        except exceptions.RayError as error:
            return Lost(pack, str(error))
        return event


def _import_ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise ConfigError("Ray is not installed", fix="pip install 'headwise[ray]'") from error
    return ray


def _check_reachable(address: str) -> None:
    """Refuses an address where nothing listens; Ray itself would try for minutes."""
    found = re.fullmatch(r"(?:ray://)?(?P<host>[^/]+):(?P<port>\d+)", address)
    if found is None:  # "auto" and the like
        return
    try:
        socket.create_connection((found["host"], int(found["port"])), timeout=10.0).close()
    except (OSError, OverflowError) as error:
        raise _nobody_there(address, error) from error


def _nobody_there(address: str, error: Exception) -> ConfigError:
    return ConfigError(
        "there is no Ray cluster to be reached",
        got=f"{address} ({error})",
        allowed="the address of a cluster",
        fix="Start one with `ray start --head`, or leave the address out.",
    )


def _train(pack: Pack, settings: ExecutorSettings) -> Event:
    """What a task of the cluster does."""
    import torch

    from headwise.study.train import train_pack
    from headwise.training.matmul_precision import set_matmul_precision

    torch.set_num_threads(1)
    set_matmul_precision(settings.matmul_precision)
    try:
        load_imports(settings.imports)
        results = train_pack(
            pack,
            settings.thresholds,
            settings.device,
            keep_checkpoints=settings.keep_checkpoints,
            extras=settings.extras,
        )
        return Finished(pack, results)
    except Exception as error:  # whatever it is, it is that run's, not the study's
        return Crashed.by(pack, error)
