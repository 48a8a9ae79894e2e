"""The folder that holds a study, or an archive of one. Every run's folder is whole or not there.

Layout (docs/studies.md is the contract with readers):

    study.json                      name, version, plan
    runs/ID/config.json             the run
    runs/ID/fingerprint.json        where it was made
    runs/ID/episodes.parquet        step, return, length
    runs/ID/metrics.parquet         step, name, value
    runs/ID/curve.json              of a restored run, instead of both tables
    runs/ID/checkpoint.zip          the trained agent, where it was asked for
    runs/ID/result.json             final scalars: the mark of a finished run
    runs/ID/error.json              of a run that failed, with config and fingerprint only
    .scratch/, .locks/              work in progress; nothing there is a result
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.errors import ConfigError, StoreError
from headwise.files import (
    disk_troubles,
    json_bytes,
    remove,
    replace_file,
    sync_folder,
    unique,
    write_bytes,
)
from headwise.study.archive_file import ArchiveFile, read_archive_file
from headwise.study.locks import Locks
from headwise.study.plan_file import old_folders, read_study, refuse_layout_1
from headwise.study.records import Record
from headwise.study.result import EpisodeTable, MetricTable, RunFailure, RunResult, engine_of
from headwise.study.run import Run
from headwise.study.tables import episodes_bytes, metrics_bytes, parquet_module

CHECKPOINT = "checkpoint.zip"
"""As in the folders of `headwise train`, so that other commands find it in a run's folder too."""
WORKER_LOST = "WorkerLost"
"""The kind of error of a run that did not fail by itself, but lost its workers."""
HOW_TO_KEEP = (
    "Runs that are trained with --keep-checkpoints keep one; finished runs are never repeated, so "
    "for those choose another folder with --out."
)


class Store:
    """A study's folder, or an archive, which can only be read.

    Args:
        folder: Where it is; a folder is made when something is first written.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.runs = self.folder / "runs"
        self.scratch = self.folder / ".scratch"

    # --- the plan -------------------------------------------------------------------------------

    def begin(
        self, study: dict[str, Any], locks: Locks | None = None, *, join: bool = False
    ) -> None:
        """Writes down what is to be done; a folder belongs to one study.

        The same study may come with another plan (more seeds, say): runs that are there stay.

        Args:
            study: What `study.json` is to say.
            locks: Those of the runner that begins; without them it is one for this moment.
            join: Whether what was planned before stays planned. It does anyway while another runner
                is at work here: neither takes away what the other was asked for.
        """
        parquet_module()  # if it is not there, it is better known now than when a run is finished
        with disk_troubles(self.folder):
            self.runs.mkdir(parents=True, exist_ok=True)
            self.scratch.mkdir(exist_ok=True)
        path = self.folder / "study.json"
        with nullcontext(locks) if locks else Locks(self.folder) as held, held.planning() as alone:
            if path.exists():
                refuse_layout_1(self.folder)
                before = self.study()
                if before["name"] != study["name"]:
                    raise ConfigError(
                        f"the folder {self.folder} holds another study",
                        got=study["name"],
                        allowed=before["name"],
                        fix="Choose another folder with --out.",
                    )
                if join or not alone:
                    plan = {entry["id"]: entry for entry in (*before["plan"], *study["plan"])}
                    study = {**study, **before, "plan": list(plan.values())}
                if before == study:
                    return
            with disk_troubles(self.folder):
                replace_file(path, json_bytes(study), self.scratch)

    def study(self) -> dict[str, Any]:
        """What `study.json` says."""
        if self.archive is not None:
            return self.archive.study
        return read_study(self.folder)

    def plan(self) -> list[Run]:
        """All runs of the study."""
        return [Run.from_json(entry) for entry in self.study()["plan"]]

    def beside_the_plan(self) -> list[Run]:
        """Runs that are there and not in the plan: those of the study as it was before."""
        files = map(self._files, self.ids_beside())
        return [record.run() for record in files if record.has("config.json")]

    def ids_beside(self) -> list[str]:
        """The ids of those runs, and of what else is there."""
        planned = {entry["id"] for entry in self.study()["plan"]}
        if self.archive is not None:
            planned.update(self.archive.nameless)
        return [run_id for run_id in self.run_ids() if run_id not in planned]

    # --- what is there --------------------------------------------------------------------------

    @cached_property
    def archive(self) -> ArchiveFile | None:
        """What the file holds, if it is one."""
        return read_archive_file(self.folder) if self.folder.is_file() else None

    def run_ids(self) -> list[str]:
        """All runs of which there is something, in or beside the plan, in order."""
        if self.archive is not None:
            return list(self.archive.files)
        if not self.runs.is_dir():
            return []
        ids = {folder: run_id for run_id, folder in self._old_folders.items()}
        return sorted(ids.get(path.name, path.name) for path in self.runs.iterdir())

    def records(self, *, all_runs: bool = False) -> Iterator[Record]:
        """Every run that is finished or has failed, in the order of the plan, each read whole.

        One that cannot be read says so in `why`, and costs the others nothing.

        Args:
            all_runs: Whether those beside the plan come, too, behind the others.
        """
        study = self.study()
        order = {entry["id"]: place for place, entry in enumerate(study["plan"])}
        nameless = () if self.archive is None else self.archive.nameless
        for run_id in sorted(self.run_ids(), key=lambda run_id: order.get(run_id, len(order))):
            files = self._files(run_id, study["name"])
            there = files.has("result.json") or files.has("error.json")
            if (there and (all_runs or run_id in order)) or run_id in nameless:
                yield files.checked()

    def is_finished(self, run_id: str) -> bool:
        """Whether a run's results are there."""
        return self._files(run_id).has("result.json")

    def is_failed(self, run_id: str) -> bool:
        """Whether a run ended in an error."""
        return self._files(run_id).has("error.json")

    def is_open(self, run_id: str, *, retry_failed: bool) -> bool:
        """Whether a run is still to be done: one that lost its workers may be luckier now."""
        if self.is_finished(run_id):
            return False
        return retry_failed or not self.is_failed(run_id) or self._lost_its_worker(run_id)

    def _lost_its_worker(self, run_id: str) -> bool:
        with suppress(StoreError):
            return self.error(run_id).get("type") == WORKER_LOST
        return False

    def record(self, run_id: str) -> Record:
        """A run that is finished or has failed."""
        return self._files(run_id).read()

    def result(self, run_id: str) -> dict[str, Any]:
        """A finished run's scalars."""
        files = self._files(run_id)
        files.run()
        return files.json("result.json")

    def error(self, run_id: str) -> dict[str, Any]:
        """A failed run's error."""
        return self._files(run_id).json("error.json")

    def fingerprint(self, run_id: str) -> dict[str, Any]:
        """Where a run was made."""
        return self._files(run_id).json("fingerprint.json")

    def engine(self, run_id: str) -> int:
        """Which engine trained a run."""
        return engine_of(self.fingerprint(run_id))

    def episodes(self, run_id: str) -> EpisodeTable:
        """A finished run's episodes."""
        table = self._files(run_id).table("episodes.parquet", "step", "return", "length")
        step, returns, length = (table[name].to_numpy() for name in ("step", "return", "length"))
        return EpisodeTable(step, returns, length)

    def curve(self, run_id: str) -> NDArray[np.float64]:
        """A finished run's learning curve; NaN if no episode ended, or none was kept."""
        return self.record(run_id).curve()

    def metrics(self, run_id: str) -> MetricTable:
        """A finished run's metrics."""
        table = self._files(run_id).table("metrics.parquet", "step", "name", "value")
        names = table["name"].to_pylist()
        return MetricTable(table["step"].to_numpy(), names, table["value"].to_numpy())

    def _files(self, run_id: str, study: str = "") -> Record:
        """A run of which nothing is read yet."""
        if self.archive is not None:
            archived = self.archive.files.get(run_id, {})
            return Record(run_id, self.folder, study, {}, {}, archived=archived)
        folder = self.runs / self._old_folders.get(run_id, run_id)
        return Record(run_id, folder, study, {}, {})

    @cached_property
    def _old_folders(self) -> dict[str, str]:
        """What the folders of runs are called that have another name than the run's id."""
        return old_folders(self.folder)

    def has_checkpoint(self, run_id: str) -> bool:
        """Whether a run's trained agent was kept."""
        return self._files(run_id).has(CHECKPOINT)

    def checkpoint(self, run_id: str) -> Path:
        """The file of a run's trained agent, for `Agent.load`."""
        if not self.has_checkpoint(run_id):
            why = "failed" if self.is_failed(run_id) else "is not finished"
            if self.is_finished(run_id):
                why = "was finished without one"
            raise StoreError(
                f"there is no checkpoint in {self.folder}",
                got=f"run {run_id}, which {why}",
                fix=HOW_TO_KEEP,
            )
        return self._files(run_id).folder / CHECKPOINT

    # --- putting in -----------------------------------------------------------------------------

    def put(self, result: RunResult) -> bool:
        """Puts a finished run in; False if another process had finished it already."""
        checkpoint = {} if result.checkpoint is None else {CHECKPOINT: result.checkpoint}
        return self.put_files(
            result.run,
            {
                "fingerprint.json": result.fingerprint,
                "episodes.parquet": episodes_bytes(result.episodes),
                "metrics.parquet": metrics_bytes(result.metrics),
                **checkpoint,
                "result.json": result.scalars,
            },
        )

    def put_failure(self, failure: RunFailure) -> bool:
        """Puts a failed run in, unless it is finished after all."""
        error = {
            "type": failure.kind,
            "message": failure.message,
            "traceback": failure.traceback,
        }
        return self.put_files(
            failure.run, {"fingerprint.json": failure.fingerprint, "error.json": error}
        )

    def put_files(self, run: Run, contents: dict[str, Any]) -> bool:
        """Puts a run's folder in, whole or not at all; False if the run is finished already.

        Args:
            run: Whose it is.
            contents: Its files by name beside `config.json`: bytes, or data for JSON.
        """
        part, target = self.scratch / unique(run.id), self.runs / run.id
        failed = self.scratch / unique(run.id)
        with disk_troubles(self.folder):
            try:
                while True:
                    try:
                        self._write(part, run, contents)
                        published = _move_folder(part, target)
                    except FileNotFoundError:
                        if part.exists():
                            raise
                        continue  # another runner took it for what a dead process had left behind
                    if published:
                        sync_folder(self.runs)
                        return True
                    if self.is_finished(run.id):
                        return False
                    # A failed attempt makes room. Killed in between, the run is simply not there.
                    _move_folder(target, failed)
                    remove(failed)
            finally:
                remove(part)

    def _write(self, part: Path, run: Run, contents: dict[str, Any]) -> None:
        """Writes a run's folder where no reader looks for it; what is there already stays."""
        part.mkdir(parents=True, exist_ok=True)
        for name, content in {"config.json": run.to_json(), **contents}.items():
            data = content if isinstance(content, bytes) else json_bytes(content)
            write_bytes(part / name, data)
        sync_folder(part)

    def sweep(self, held: Callable[[list[str]], list[str]]) -> None:
        """Removes what killed runners left behind.

        Args:
            held: Tells which of some runs a living runner has. It is asked after the folder is
                listed, so that nothing begun in the meantime is taken for a remnant.
        """
        if not self.scratch.is_dir():
            return
        owners = {path: path.name.split(".")[0] for path in self.scratch.iterdir()}
        kept = {"study", *held(list(owners.values()))}
        for path, owner in owners.items():
            if owner not in kept:  # whole, so that a late writer sees it
                gone = self.scratch / unique("gone")
                with suppress(OSError):
                    path.rename(gone)
                remove(gone)


def _move_folder(source: Path, target: Path) -> bool:
    """Renames a folder; False if there is one in the way, or the source has gone."""
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.EACCES) and target.exists():
            return False
        if isinstance(error, FileNotFoundError) and not source.exists() and target.exists():
            return False
        raise
    return True
