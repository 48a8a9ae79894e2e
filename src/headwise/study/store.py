"""The folder that holds a study. Every run's folder is whole or not there, whatever happens.

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
    .scratch/, .claims/, .runners/  work in progress; nothing there is a result
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headwise.errors import ConfigError, StoreError
from headwise.study.files import (
    disk_troubles,
    read_json,
    remove,
    replace_json,
    sync_folder,
    unique,
    write_bytes,
    write_json,
)
from headwise.study.measures import NUM_POINTS, learning_curve
from headwise.study.result import EpisodeTable, MetricTable, RunFailure, RunResult
from headwise.study.run import Run

if TYPE_CHECKING:
    import pyarrow as pa

LAYOUT = 1
"""The version of the layout that this code reads and writes."""
CHECKPOINT = "checkpoint.zip"
"""As in the folders of `headwise train`, so that other commands find it in a run's folder too."""
HOW_TO_KEEP = (
    "Runs that are trained with --keep-checkpoints keep one; finished runs are never repeated, so "
    "for those choose another folder with --out."
)


class Store:
    """A study's folder.

    Args:
        folder: Where it is; made when something is first written.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.runs = self.folder / "runs"
        self.scratch = self.folder / ".scratch"

    # --- the plan -------------------------------------------------------------------------------

    def begin(self, study: dict[str, Any]) -> None:
        """Writes down what is to be done; a folder belongs to one study.

        The same study may come with another plan (more seeds, say): runs that are there stay.
        """
        parquet_module()  # if it is not there, it is better known now than when a run is finished
        with disk_troubles(self.folder):
            self.runs.mkdir(parents=True, exist_ok=True)
            self.scratch.mkdir(exist_ok=True)
            path = self.folder / "study.json"
            if path.exists():
                before = self.study()
                if before["name"] != study["name"]:
                    raise ConfigError(
                        f"the folder {self.folder} holds another study",
                        got=study["name"],
                        allowed=before["name"],
                        fix="Choose another folder with --out.",
                    )
                if before == study:
                    return
            replace_json(path, study, self.scratch)

    def study(self) -> dict[str, Any]:
        """What `study.json` says."""
        path = self.folder / "study.json"
        try:
            data: dict[str, Any] = read_json(path)
        except FileNotFoundError:
            raise StoreError(
                f"there is no study in {self.folder}",
                fix="Give the folder that `headwise study run` wrote; it holds a study.json.",
            ) from None
        except ValueError as error:
            raise StoreError(f"{path} is no JSON", got=str(error)) from error
        if data.get("version") != LAYOUT:
            raise StoreError(
                f"{path} has another layout", got=data.get("version"), allowed=str(LAYOUT)
            )
        return data

    def plan(self) -> list[Run]:
        """All runs of the study."""
        return [Run.from_json(entry) for entry in self.study()["plan"]]

    def beside_the_plan(self) -> list[Run]:
        """Runs that are in the folder and not in its plan: those of the study as it was before."""
        planned = {entry["id"] for entry in self.study()["plan"]}
        there = sorted(path.name for path in self.runs.iterdir()) if self.runs.is_dir() else []
        configs = (self.runs / name / "config.json" for name in there if name not in planned)
        try:
            return [Run.from_json(read_json(path)) for path in configs if path.is_file()]
        except ValueError as error:
            raise StoreError(
                f"a config.json in {self.runs} is no JSON",
                got=str(error),
                fix="Delete the folder of that run.",
            ) from error

    # --- what is there --------------------------------------------------------------------------

    def is_finished(self, run_id: str) -> bool:
        """Whether a run's results are there."""
        return (self.runs / run_id / "result.json").is_file()

    def is_failed(self, run_id: str) -> bool:
        """Whether a run ended in an error."""
        return (self.runs / run_id / "error.json").is_file()

    def result(self, run_id: str) -> dict[str, Any]:
        """A finished run's scalars."""
        data: dict[str, Any] = read_json(self.runs / run_id / "result.json")
        return data

    def error(self, run_id: str) -> dict[str, Any]:
        """A failed run's error."""
        data: dict[str, Any] = read_json(self.runs / run_id / "error.json")
        return data

    def fingerprint(self, run_id: str) -> dict[str, Any]:
        """Where a run was made."""
        data: dict[str, Any] = read_json(self.runs / run_id / "fingerprint.json")
        return data

    def episodes(self, run_id: str) -> EpisodeTable:
        """A finished run's episodes."""
        table = parquet_module().read_table(self.runs / run_id / "episodes.parquet")
        return EpisodeTable(*(table[name].to_numpy() for name in ("step", "return", "length")))

    def curve(self, run_id: str) -> NDArray[np.float64]:
        """A finished run's learning curve; NaN if no episode ended, or none was kept."""
        kept, episodes = (self.runs / run_id / n for n in ("curve.json", "episodes.parquet"))
        if kept.is_file():
            return np.array(read_json(kept)["returns"], dtype=np.float64)
        if not episodes.is_file():
            return np.full(NUM_POINTS, np.nan)
        table = self.episodes(run_id)
        steps = read_json(self.runs / run_id / "config.json")["steps"]
        return learning_curve(table.step, table.returns.astype(np.float64), steps)

    def metrics(self, run_id: str) -> MetricTable:
        """A finished run's metrics."""
        table = parquet_module().read_table(self.runs / run_id / "metrics.parquet")
        return MetricTable(
            table["step"].to_numpy(), table["name"].to_pylist(), table["value"].to_numpy()
        )

    def has_checkpoint(self, run_id: str) -> bool:
        """Whether a run's trained agent was kept."""
        return (self.runs / run_id / CHECKPOINT).is_file()

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
        return self.runs / run_id / CHECKPOINT

    # --- putting in -----------------------------------------------------------------------------

    def put(self, result: RunResult) -> bool:
        """Puts a finished run in; False if someone else had finished it already."""
        checkpoint = {} if result.checkpoint is None else {CHECKPOINT: result.checkpoint}
        return self.put_files(
            result.run,
            {
                "fingerprint.json": result.fingerprint,
                "episodes.parquet": _episodes_bytes(result.episodes),
                "metrics.parquet": _metrics_bytes(result.metrics),
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
        with disk_troubles(self.folder):
            try:
                part.mkdir(parents=True)
                write_json(part / "config.json", run.to_json())
                for name, content in contents.items():
                    if isinstance(content, bytes):
                        write_bytes(part / name, content)
                    else:
                        write_json(part / name, content)
                sync_folder(part)
                while not _move_folder(part, target):
                    if self.is_finished(run.id):
                        return False
                    # A failed attempt makes room. Killed in between, the run is simply not there.
                    _move_folder(target, self.scratch / unique(run.id))
                sync_folder(self.runs)
                return True
            finally:
                remove(part)

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
            if owner not in kept:
                remove(path)


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


def parquet_module() -> Any:
    """Pyarrow's module for Parquet files; raises with advice if it is not installed."""
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ConfigError(
            "studies keep their tables as Parquet, and pyarrow is not installed",
            fix="pip install 'headwise[study]'",
        ) from error
    return parquet


def _table_bytes(columns: dict[str, Any], types: dict[str, str]) -> bytes:
    parquet = parquet_module()
    import pyarrow as pa

    kinds: dict[str, pa.DataType] = {
        "int64": pa.int64(),
        "int32": pa.int32(),
        "float32": pa.float32(),
        "name": pa.dictionary(pa.int16(), pa.string()),
    }
    schema = pa.schema([(name, kinds[kind]) for name, kind in types.items()])
    arrays = [pa.array(columns[name], kinds[kind]) for name, kind in types.items()]
    sink = io.BytesIO()
    parquet.write_table(pa.Table.from_arrays(arrays, schema=schema), sink, compression="zstd")
    return sink.getvalue()


def _episodes_bytes(episodes: EpisodeTable) -> bytes:
    columns = {"step": episodes.step, "return": episodes.returns, "length": episodes.length}
    return _table_bytes(columns, {"step": "int64", "return": "float32", "length": "int32"})


def _metrics_bytes(metrics: MetricTable) -> bytes:
    columns = {"step": metrics.step, "name": metrics.name, "value": metrics.value}
    return _table_bytes(columns, {"step": "int64", "name": "name", "value": "float32"})
