"""Reads a study's folder: which runs there are, how they ended, and their tables.

The layout is documented in docs/studies.md. Small files are read at once, tables when asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headwise.checks import checked_seed, checked_steps
from headwise.envs.reference import default_view
from headwise.errors import ConfigError
from headwise.study.measures import NUM_POINTS, learning_curve
from headwise.study.result import FIRST_ENGINE, engine_of
from headwise.study.run import Run
from headwise.study.store import Store
from headwise.study.tables import UNREADABLE, read_table

_ESTIMATORS = {"range_slope": "range"}
"""Estimators that go under the name of another one in the paper."""
_AUTOMATIC = {"vdn": "range", "qplex": "grad"}
"""What `importance="auto"` meant in a run with a branching critic. The classes say it too, as their
`default_importance`, but a report reads no torch; and it is of runs as they were made."""
AS_IT_IS = "as it is"
"""The view of environments that are not ours: nothing in the store says what their actions are."""
_NEEDED = ("env", "algorithm", "factorization", "seed", "steps")
"""What a run's configuration cannot be read without."""
_READ_AS_NUMBERS = (
    "final_", "auc", "steps_to_", "num_parameters", "act_", "update_ms", "wall_s",
)  # fmt: skip
"""How the final numbers begin that a report reads; others may be lists."""
_PRODUCTS = {"highest": "float32", "high": "tf32", "medium": "bf16"}
"""Precisions of matrix products, by torch's words."""


@dataclass(frozen=True)
class RunRecord:
    """A finished run: its configuration and its final numbers."""

    id: str
    folder: Path
    study: str
    config: dict[str, Any]
    result: dict[str, Any]
    fingerprint: dict[str, Any] = field(default_factory=dict)

    @property
    def env(self) -> str:
        """The name of the environment."""
        return str(self.config["env"])

    @property
    def task(self) -> str:
        """What the study calls the environment with its settings."""
        return str(self.labels.get("environment", self.env))

    @property
    def view(self) -> str:
        """How the action is seen."""
        return str(self.config.get("view") or default_view(self.env) or AS_IT_IS)

    @property
    def algorithm(self) -> str:
        """The name of the algorithm."""
        return str(self.config["algorithm"])

    @property
    def factorization(self) -> str:
        """The name of the factorization."""
        return str(self.config["factorization"])

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.config["seed"])

    @property
    def steps(self) -> int:
        """Environment steps of the run."""
        return int(self.config["steps"])

    @property
    def device(self) -> str:
        """The kind of device it was trained on; nothing where that is not known."""
        return str(self.fingerprint.get("device") or "").partition(":")[0]

    @property
    def products(self) -> str:
        """The precision of its matrix products; nothing where that is not known."""
        said = str(self.fingerprint.get("float32_products") or "")
        return _PRODUCTS.get(said, said)

    @property
    def engine(self) -> int:
        """Which learning core trained it."""
        return engine_of(self.fingerprint)

    @property
    def made(self) -> str:
        """What may change a result though no configuration says so; engine 1 goes unsaid."""
        engine = f"engine {self.engine}" if self.engine != FIRST_ENGINE else ""
        return " ".join(part for part in (self.device, self.products, engine) if part)

    @property
    def labels(self) -> dict[str, str]:
        """What the study says of the run beside its configuration."""
        return dict(self.config.get("labels") or {})

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the algorithm."""
        return dict(self.config.get("settings") or {})

    @property
    def preset(self) -> str:
        """`sound` or `as_published` in the decoupler studies, else nothing."""
        return str(self.labels.get("preset", ""))

    @property
    def estimator(self) -> str:
        """How a branching critic of PPO shares out credit; nothing where it does not."""
        if self.algorithm != "ppo" or self.factorization not in _AUTOMATIC:
            return ""
        name = str(self.settings.get("importance", "auto"))
        name = _AUTOMATIC[self.factorization] if name == "auto" else name
        return _ESTIMATORS.get(name, name)

    @property
    def critic(self) -> str:
        """Whether the critic learns from the rollout or from a buffer of the past."""
        return "offline" if self.settings.get("offline_rows") else "online"

    @property
    def change(self) -> str:
        """How a cell departs from the paper's, in a word; nothing where it does not."""
        return str(self.labels.get("change", ""))

    @property
    def variant(self) -> str:
        """All further labels in one text: what sets apart cells that are otherwise alike."""
        labels = self.labels
        return " ".join(f"{key}={labels[key]}" for key in sorted(labels) if key != "environment")

    @property
    def score(self) -> float:
        """The mean return of its last episodes; NaN if no episode ended."""
        return self.number("final_return")

    def number(self, name: str) -> float:
        """A final number, NaN where it is missing."""
        value = self.result.get(name)
        return float("nan") if value is None else float(value)

    def episodes(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The step at which each episode ended, and its return; empty if they were not kept."""
        path = self.folder / "episodes.parquet"
        if not path.exists():
            return np.empty(0, np.int64), np.empty(0)
        table = _read_table(path, ["step", "return"])
        returns = table.column("return").to_numpy().astype(np.float64)
        return table.column("step").to_numpy(), returns

    def curve(self) -> NDArray[np.float64]:
        """The mean return in each fiftieth of the steps; NaN if no episodes were kept.

        A restored run has its curve alone (`headwise study restore`).
        """
        kept = self.folder / "curve.json"
        if not kept.exists():
            return learning_curve(*self.episodes(), self.steps)
        values = _read_json(kept).get("returns")
        try:
            curve = np.array(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise _unreadable(kept, error) from error
        if curve.shape != (NUM_POINTS,):
            raise _unreadable(kept, f"not {NUM_POINTS} numbers")
        return curve

    def metric(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The steps and values of a metric, empty if it was not logged."""
        path = self.folder / "metrics.parquet"
        if not path.exists():
            return np.empty(0, np.int64), np.empty(0)
        table = _read_table(path, ["step", "name", "value"])
        mine = table.filter(pc.field("name") == name)
        return mine.column("step").to_numpy(), mine.column("value").to_numpy().astype(np.float64)


@dataclass(frozen=True)
class Failure:
    """A run that raised."""

    id: str
    folder: Path
    config: dict[str, Any]
    error: dict[str, Any]

    @property
    def run(self) -> RunRecord | None:
        """The run without any number; None if it failed before it was known what it was."""
        if any(name not in self.config for name in _NEEDED):
            return None
        return RunRecord(self.id, self.folder, "", self.config, {})

    @property
    def task(self) -> str:
        """What the study calls the environment with its settings."""
        labels = self.config.get("labels") or {}
        return str(labels.get("environment", self.config.get("env", "")))


@dataclass(frozen=True)
class Damaged:
    """A run with a file that cannot be read, or that is of another one."""

    id: str
    why: str


@dataclass(frozen=True)
class StudyRuns:
    """What a study's folder holds."""

    path: Path
    name: str
    about: str
    runs: tuple[RunRecord, ...]
    """Finished ones, in the order of the plan where they are of one folder."""
    failures: tuple[Failure, ...]
    plan: frozenset[str]
    """The ids of all runs that the study asks for now."""
    num_beside: int = 0
    """Runs in the folder that are not in the plan and were left out."""
    damaged: tuple[Damaged, ...] = ()
    """Runs that were left out because they cannot be read."""

    @property
    def num_planned(self) -> int:
        """How many runs are, or are to be, looked at."""
        return len(self.plan.union(run.id for run in self.runs))

    @property
    def failed(self) -> list[RunRecord]:
        """The runs that raised, without any number."""
        return [failure.run for failure in self.failures if failure.run is not None]

    def __iter__(self) -> Iterator[RunRecord]:
        return iter(self.runs)

    @property
    def table(self) -> pa.Table:
        """A row for each finished run: what it was and its final numbers."""
        columns = ("id", "study", "task", "view", "algorithm", "factorization", "variant", "seed")
        rows: dict[str, list[Any]] = {
            name: [getattr(run, name) for run in self.runs] for name in (*columns, "steps")
        }
        numbers = sorted({name for run in self.runs for name in run.result})
        for name in numbers:
            values = [run.result.get(name) for run in self.runs]
            if not any(isinstance(value, list | dict) for value in values):
                rows.setdefault(name, values)
        return pa.table(rows)


def read_store(path: str | Path, *, all_runs: bool = False) -> StudyRuns:
    """The store in a folder; raises if there is none, or if its plan cannot be read.

    Every file of every run is looked at. A run that cannot be read costs the others nothing.

    Args:
        path: The folder.
        all_runs: Whether runs count that are in the folder and not in its plan: those of the study
            as it was before its file or its arguments changed.
    """
    root = Path(path)
    if not (root / "study.json").is_file():
        raise ConfigError(
            "no study in this folder",
            got=str(root),
            allowed="a folder with a study.json, as `headwise study run` makes it",
        )
    study = Store(root).study()
    name = study["name"]
    order = {entry["id"]: place for place, entry in enumerate(study["plan"])}
    folders = root / "runs"
    there = [f.name for f in folders.iterdir() if f.is_dir()] if folders.is_dir() else []
    runs: list[RunRecord] = []
    failures: list[Failure] = []
    damaged: list[Damaged] = []
    num_beside = 0
    for run_id in sorted(there, key=lambda name: (order.get(name, len(order)), name)):
        folder = folders / run_id
        finished = (folder / "result.json").is_file()
        if run_id not in order and not all_runs:
            num_beside += finished
            continue
        try:
            if finished:
                runs.append(_read_run(folder, name))
            elif (folder / "error.json").is_file():
                config = _read_config(folder) if (folder / "config.json").is_file() else {}
                failures.append(Failure(run_id, folder, config, _read_json(folder / "error.json")))
        except ConfigError as error:
            damaged.append(Damaged(run_id, str(error)))
    return StudyRuns(
        root,
        name,
        str(study.get("about", "")).encode(errors="replace").decode(),
        tuple(runs),
        tuple(failures),
        frozenset(order),
        num_beside,
        tuple(damaged),
    )


def _read_run(folder: Path, study: str) -> RunRecord:
    """A finished run, of which everything can be read."""
    prints = folder / "fingerprint.json"
    run = RunRecord(
        id=folder.name,
        folder=folder,
        study=study,
        config=_read_config(folder),
        result=_read_json(folder / "result.json"),
        fingerprint=_read_json(prints) if prints.is_file() else {},
    )
    try:
        for name, value in run.result.items():
            if not isinstance(value, list | dict) or name.startswith(_READ_AS_NUMBERS):
                run.number(name)
        run.curve()
        run.metric("")
    except (*UNREADABLE, TypeError) as error:
        raise error if isinstance(error, ConfigError) else _unreadable(folder, error) from error
    return run


def _read_config(folder: Path) -> dict[str, Any]:
    """A run's configuration, of which the folder's name must be the hash."""
    path = folder / "config.json"
    config = _read_json(path)
    try:
        Run.from_json({**config, "id": folder.name})
    except ConfigError as error:
        raise _unreadable(path, error) from error
    for name in ("labels", "env_settings", "settings", "factorization_settings"):
        if not isinstance(config[name], dict):  # whatever its hash is, no run was made of it
            raise _unreadable(path, f"{name} that are no JSON object")
    trace = config["settings"].get("gae_lambda", 0.0)
    if config["algorithm"] == "ppo" and not isinstance(trace, int | float):
        raise _unreadable(path, "a gae_lambda that is no number")
    try:
        checked_seed(config["seed"])
        checked_steps("steps", config["steps"])
    except ConfigError as error:
        raise _unreadable(path, error) from error
    return config


def _read_json(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text()
        data = json.loads(text)
        if "\\ud" in text.lower():  # maybe half of a pair, which nobody can draw or write
            data = json.loads(json.dumps(data, ensure_ascii=False).encode(errors="replace"))
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, error) from error
    if not isinstance(data, dict):
        raise _unreadable(path, "not a JSON object")
    return data


def _read_table(path: Path, columns: list[str]) -> pa.Table:
    try:
        return read_table(path, columns)
    except UNREADABLE as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, reason: object) -> ConfigError:
    return ConfigError(
        f"cannot read {path}",
        got=str(reason),
        fix="Delete the run's folder and run the study again; finished runs are not repeated.",
    )
