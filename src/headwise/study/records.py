"""A run as it was left behind, read from its folder or from an archive, and checked. No torch here.

The layout is documented in docs/studies.md. Small files are read at once, tables when asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headwise.checks import checked_seed, checked_steps
from headwise.envs.reference import default_view
from headwise.errors import ConfigError, HeadwiseError, StoreError
from headwise.files import parse_json
from headwise.study.measures import NUM_POINTS, learning_curve
from headwise.study.result import FIRST_ENGINE, engine_of
from headwise.study.run import EVALUATE, Run
from headwise.study.tables import UNREADABLE, read_table
from headwise.upgrade import upgrade

if TYPE_CHECKING:
    import pyarrow as pa

AS_IT_IS = "as it is"
"""The view of environments that are not ours: nothing in the store says what their actions are."""
_READ_AS_NUMBERS = (
    "final_", "eval_", "auc", "steps_to_", "num_parameters", "act_", "update_ms", "wall_s",
)  # fmt: skip
"""How the final numbers begin that a report reads; others may be lists."""
_PRODUCTS = {"highest": "float32", "high": "tf32", "medium": "bf16"}
"""Precisions of matrix products, by torch's words."""


@dataclass(frozen=True)
class Record:
    """A run that is finished, has failed, or is damaged, of which no more may be known."""

    id: str
    folder: Path
    """Where its files are; of an archived run, the archive."""
    study: str
    config: dict[str, Any]
    result: dict[str, Any]
    """Its final numbers."""
    fingerprint: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    """What it failed with."""
    why: str = ""
    """What is wrong with a damaged one."""
    archived: Mapping[str, bytes] | None = field(default=None, repr=False, compare=False)
    """The files of an archived run."""

    # --- what it is -----------------------------------------------------------------------------

    @property
    def env(self) -> str:
        """The name of the environment."""
        return str(self.config.get("env", ""))

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
        return int(self.config["total_timesteps"])

    @property
    def device(self) -> str:
        """The kind of device it was trained on; nothing where that is not known."""
        return str(self.fingerprint.get("device") or "").partition(":")[0]

    @property
    def matmul_precision(self) -> str:
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
        return " ".join(part for part in (self.device, self.matmul_precision, engine) if part)

    @property
    def labels(self) -> dict[str, str]:
        """What the study says of the run beside its configuration."""
        return dict(self.config.get("labels") or {})

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the algorithm."""
        return dict(self.config.get("settings") or {})

    @property
    def variant(self) -> str:
        """All further labels in one text: what sets apart cells that are otherwise alike."""
        labels = self.labels
        return " ".join(f"{key}={labels[key]}" for key in sorted(labels) if key != "environment")

    # --- what came of it ------------------------------------------------------------------------

    @property
    def is_evaluated(self) -> bool:
        """Whether it is evaluated greedily, and so is ranked by that."""
        return EVALUATE in self.config

    @property
    def score(self) -> float:
        """The mean return of greedy episodes at its end, or else of its last episodes in training.

        NaN if no episode ended.
        """
        return self.number("eval_return" if self.is_evaluated else "final_return")

    def number(self, name: str) -> float:
        """A final number, NaN where it is missing."""
        value = self.result.get(name)
        return float("nan") if value is None else float(value)

    def episodes(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The step at which each episode ended, and its return; empty if they were not kept."""
        if not self.has("episodes.parquet"):
            return np.empty(0, np.int64), np.empty(0)
        table = self.table("episodes.parquet", "step", "return")
        returns = table.column("return").to_numpy().astype(np.float64)
        return table.column("step").to_numpy(), returns

    def curve(self) -> NDArray[np.float64]:
        """The mean return in each fiftieth of the steps; NaN if no episodes were kept.

        An archived run has its curve alone.
        """
        if not self.has("curve.json"):
            return learning_curve(*self.episodes(), self.steps)
        values = self.json("curve.json").get("returns")
        try:
            curve = np.array(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise self._unreadable("curve.json", error) from error
        if curve.shape != (NUM_POINTS,):
            raise self._unreadable("curve.json", f"not {NUM_POINTS} numbers")
        return curve

    def evaluations(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The step of each greedy evaluation, and its mean return; empty if there was none."""
        said = self.result.get("evaluations") or {"step": [], "return": []}
        try:
            steps = np.array(said["step"], dtype=np.int64)
            returns = np.array(said["return"], dtype=np.float64)
            if steps.ndim != 1 or steps.shape != returns.shape:
                raise ValueError("not a return for each step")
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            raise self._unreadable("result.json", error) from error
        return steps, returns

    def evaluation_curve(self) -> NDArray[np.float64]:
        """The same at the end of each fiftieth of the steps, flat before the first; or NaN."""
        steps, returns = self.evaluations()
        known = np.isfinite(returns)
        if not known.any():
            return np.full(NUM_POINTS, np.nan)
        ends = np.linspace(self.steps / NUM_POINTS, self.steps, NUM_POINTS)
        return np.interp(ends, steps[known], returns[known])

    def metric(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The steps and values of a metric, empty if it was not logged."""
        if not self.has("metrics.parquet"):
            return np.empty(0, np.int64), np.empty(0)
        import pyarrow.compute as pc

        table = self.table("metrics.parquet", "step", "name", "value")
        mine = table.filter(pc.field("name") == name)
        return mine.column("step").to_numpy(), mine.column("value").to_numpy().astype(np.float64)

    # --- its files ------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Whether there is a file of that name."""
        if self.archived is not None:
            return name in self.archived
        return (self.folder / name).is_file()

    def json(self, name: str) -> dict[str, Any]:
        """What a JSON file says."""
        try:
            text = self._bytes(name).decode()
            data = parse_json(text)
            if "\\ud" in text.lower():  # maybe half of a pair, which cannot be drawn or written
                data = json.loads(json.dumps(data, ensure_ascii=False).encode(errors="replace"))
        except (OSError, ValueError, KeyError) as error:
            raise self._unreadable(name, error) from error
        if not isinstance(data, dict):
            raise self._unreadable(name, "no JSON object")
        return data

    def table(self, name: str, *columns: str) -> pa.Table:
        """Columns of a table."""
        try:
            return read_table(self._bytes(name), columns)
        except UNREADABLE as error:
            raise self._unreadable(name, error) from error

    def run(self) -> Run:
        """What is run, of which the id must be the hash, and of which a run can be made."""
        return self._run(self._config())

    def read(self) -> Record:
        """This run with its configuration, and with its final numbers or its error."""
        failed = not self.has("result.json")
        config: dict[str, Any] = {}
        if not failed or self.has("config.json"):  # else it failed before it was known what it was
            config = self._config()
            self._run(config)
        if failed:
            return replace(self, config=config, error=self.json("error.json"))
        prints = self.json("fingerprint.json") if self.has("fingerprint.json") else {}
        return replace(self, config=config, result=self.json("result.json"), fingerprint=prints)

    def _config(self) -> dict[str, Any]:
        """What is run, in the words of this layout."""
        try:
            return upgrade(self.json("config.json"))
        except ConfigError as error:
            raise self._unreadable("config.json", error) from error

    def _run(self, config: dict[str, Any]) -> Run:
        try:
            run = Run.from_json({**config, "id": self.id})
            # Whatever its hash is, no run was made of anything else.
            for part in ("labels", "env_settings", "settings", "factorization_settings"):
                if not isinstance(config[part], dict):
                    raise ConfigError(f"{part} that are no JSON object")
            trace = config["settings"].get("gae_lambda", 0.0)
            if config["algorithm"] == "ppo" and not isinstance(trace, int | float):
                raise ConfigError("a gae_lambda that is no number")
            checked_seed(config["seed"])
            checked_steps("total_timesteps", config["total_timesteps"])
        except ConfigError as error:
            raise self._unreadable("config.json", error) from error
        return run

    def checked(self) -> Record:
        """This run, read whole; if that cannot be, what is wrong with it."""
        try:
            record = self.read()
            if record.error is None:
                record._check()
        except HeadwiseError as error:
            return replace(self, why=str(error))
        return record

    def _check(self) -> None:
        try:
            for name, value in self.result.items():
                if not isinstance(value, list | dict) or name.startswith(_READ_AS_NUMBERS):
                    self.number(name)
            self.curve()
            self.evaluations()
            self.metric("")
        except (*UNREADABLE, TypeError) as error:
            raise error if isinstance(error, StoreError) else self._unreadable("", error) from error

    def _bytes(self, name: str) -> bytes:
        if self.archived is not None:
            return self.archived[name]
        return (self.folder / name).read_bytes()

    def _unreadable(self, name: str, reason: object) -> StoreError:
        if self.archived is not None:
            return StoreError(f"cannot read {name} of {self.id} in {self.folder}", got=str(reason))
        return StoreError(
            f"cannot read {self.folder / name}",
            got=str(reason),
            fix="Delete the run's folder and run the study again; finished runs are not repeated.",
        )
