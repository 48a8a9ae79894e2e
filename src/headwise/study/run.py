"""One run: a configuration and a seed, and the id that is a hash of both."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headwise.added import canonical_json, id_of
from headwise.errors import ConfigError

if TYPE_CHECKING:
    from headwise.study.evaluation import Evaluate
    from headwise.training.config import RunConfig

_NOT_DETERMINING = ("labels",)
EVALUATE = "evaluate"
"""Where a configuration says how the run is evaluated; that of one that is not does not have it."""


@dataclass(frozen=True)
class Run:
    """Everything that determines a result, and labels, which do not.

    Settings are complete: a default that changes in a later version makes it another run. Only a
    setting that a later version added is left out while it is as before; see `headwise.added`. Use
    `Study` to make runs; it fills the defaults in.
    """

    env: str
    """The name of the environment."""
    env_settings: dict[str, Any]
    view: str | None
    """How its action is seen; None leaves it to the environment."""
    algorithm: str
    factorization: str
    settings: dict[str, Any]
    """Every setting of the algorithm."""
    factorization_settings: dict[str, Any]
    """Every setting of the factorization."""
    seed: int
    total_timesteps: int
    """Environment steps."""
    num_envs: int
    """Environment slots."""
    labels: dict[str, str] = field(default_factory=dict)
    """What the report calls it; no part of its identity."""
    more: dict[str, Any] = field(default_factory=dict)
    """Settings of the environment and its normalization that later versions added, by name, where
    they are not as before; and how it is evaluated, if it is."""

    @classmethod
    def of(
        cls,
        config: RunConfig,
        seed: int,
        labels: dict[str, str],
        evaluate: Evaluate | None = None,
    ) -> Run:
        """The run of a configuration with a seed, and how it is evaluated if it is."""
        said = config.determining()
        own = {name: said.pop(name) for name in _NAMES if name in said}
        more = said if evaluate is None else {**said, EVALUATE: evaluate.to_json()}
        return cls(**own, seed=seed, labels=labels, more=more)

    @cached_property
    def id(self) -> str:
        """The hash of what determines it."""
        return id_of({k: v for k, v in self.to_json().items() if k not in _NOT_DETERMINING})

    @cached_property
    def config(self) -> RunConfig:
        """What is trained, and how, as it is built; refuses what cannot be."""
        from headwise.training.config import RunConfig  # runs are read where there is no torch

        return RunConfig.from_json(self.to_json())

    @property
    def cell(self) -> str:
        """A name for people: environment, view, algorithm, factorization and further labels."""
        first = self.labels.get("environment", self.env)
        further = [
            str(self.labels[key]) for key in sorted(self.labels) if key not in ("environment",)
        ]
        parts = [first, self.view or "", self.algorithm, self.factorization, *further]
        return "/".join(part for part in parts if part)

    @property
    def name(self) -> str:
        """The cell and the seed."""
        return f"{self.cell}/seed{self.seed}"

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        said = {name: getattr(self, name) for name in _NAMES} | self.more
        plain: dict[str, Any] = json.loads(canonical_json(said))
        return plain

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Run:
        """Reads what `to_json` wrote; an `id` beside the fields must be the right one."""
        if any(name not in data for name in _NAMES):
            raise ConfigError("a run is not complete", got=data, allowed=f"all of {_NAMES}")
        more = {name: x for name, x in data.items() if name not in (*_NAMES, "id")}
        run = cls(**{name: data[name] for name in _NAMES}, more=more)
        try:
            right = run.id
        except (ValueError, TypeError, RecursionError) as error:  # such as one with infinity in it
            raise ConfigError("a run cannot be read", got=str(error)) from error
        if data.get("id", right) != right:
            raise ConfigError(
                "a run's id is not the hash of its configuration",
                got=data["id"],
                allowed=right,
                fix="The file was changed by hand; take its id out to make it a new run.",
            )
        return run


_NAMES = [one.name for one in fields(Run) if one.name != "more"]
