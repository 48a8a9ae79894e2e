"""Cells: configurations without a seed. An environment, a view, an algorithm, a factorization."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from headwise.added import as_before
from headwise.algorithms import algorithms
from headwise.algorithms.base import AlgorithmConfig, config_from, per_member_fields
from headwise.envs.make import env_names, plain_name
from headwise.errors import ConfigError
from headwise.factorizations import Factorization, factorizations
from headwise.registry import unknown
from headwise.study.run import Run, canonical_json


@dataclass(frozen=True)
class Environment:
    """An environment with settings, under a label of its own.

    `Environment("HybridShoot", "shoot-dep", {"mode": "dependent"})`
    """

    name: str
    label: str = ""
    """What it is called in the report; its name if not given."""
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plain = plain_name(self.name)
        if plain not in env_names():
            raise unknown("environment", self.name, env_names())
        object.__setattr__(self, "name", plain)
        object.__setattr__(self, "label", self.label or plain)


@dataclass(frozen=True)
class Cell:
    """A configuration of a study; with a seed it is a run."""

    environment: Environment
    view: str | None
    algorithm: str
    factorization: str
    steps: int
    num_envs: int = 16
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of the algorithm that differ from its defaults."""
    factorization_settings: dict[str, Any] = field(default_factory=dict)
    """Settings of the factorization that differ from its defaults."""
    labels: dict[str, str] = field(default_factory=dict)
    """Further labels for the report."""

    @classmethod
    def of(
        cls,
        environment: Environment | str,
        algorithm: AlgorithmConfig,
        factorization: Factorization,
        *,
        steps: int,
        view: str | None = None,
        num_envs: int = 16,
        labels: dict[str, str] | None = None,
    ) -> Cell:
        """A cell from ready configs, such as presets make."""
        return cls(
            environment=as_environment(environment),
            view=view,
            algorithm=algorithm.name,
            factorization=factorization.name,
            steps=steps,
            num_envs=num_envs,
            settings=_as_plain(algorithm),
            factorization_settings=_as_plain(factorization),
            labels=labels or {},
        )

    @property
    def title(self) -> str:
        """What messages call it."""
        parts = (self.environment.label, self.view or "", self.algorithm, self.factorization)
        return "/".join(part for part in (*parts, *self.labels.values()) if part)

    def configs(self) -> tuple[AlgorithmConfig, Factorization]:
        """The settings as configs; refuses unknown and impossible ones."""
        return configs_of(
            self.algorithm, self.settings, self.factorization, self.factorization_settings
        )

    def run(self, seed: int) -> Run:
        """The run with a seed, all defaults filled in."""
        for name in ("steps", "num_envs"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(
                    f"{self.title}: {name} is no count", got=value, allowed="whole numbers from 1"
                )
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
            raise ConfigError(
                f"{self.title}: a seed is no number",
                got=seed,
                allowed="whole numbers from 0 to 2**64 - 1",
            )
        config, factorization = self.configs()
        for name in per_member_fields(config):
            if isinstance(getattr(config, name), tuple):
                raise ConfigError(
                    f"{self.title}: setting {name!r} has several values for one run",
                    got=getattr(config, name),
                    allowed="one number",
                    fix="Make a cell for each; they are packed into one population all the same.",
                )
        try:
            canonical_json(self.environment.settings)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"{self.title}: settings of an environment in a study must be plain data",
                got=self.environment.settings,
                allowed="numbers, texts, lists and dicts",
            ) from error
        return Run(
            env=self.environment.name,
            env_settings=dict(self.environment.settings),
            view=self.view,
            algorithm=self.algorithm,
            factorization=self.factorization,
            settings=_as_plain(config),
            factorization_settings=_as_plain(factorization),
            seed=seed,
            steps=self.steps,
            num_envs=self.num_envs,
            labels={"environment": self.environment.label, **self.labels},
        )


def as_environment(environment: Environment | str) -> Environment:
    """An environment from itself or from its name."""
    return environment if isinstance(environment, Environment) else Environment(environment)


def configs_of(
    algorithm: str,
    settings: dict[str, Any],
    factorization: str,
    factorization_settings: dict[str, Any],
) -> tuple[AlgorithmConfig, Factorization]:
    """Configs from names and plain settings."""
    config: AlgorithmConfig = config_from(algorithms.get(algorithm), settings)
    kind: Factorization = config_from(factorizations.get(factorization), factorization_settings)
    return config, kind


def _as_plain(config: Any) -> dict[str, Any]:
    """All settings of a config as plain data; a whole number where a float belongs becomes one.

    Those that later versions added are left out where they are as before: a run keeps its id.
    """
    plain, before = {}, as_before(type(config))
    for f in dataclasses.fields(config):
        value = getattr(config, f.name)
        if f.name in before and value == before[f.name]:
            continue
        is_float = "float" in str(f.type) or "PerMember" in str(f.type)
        if is_float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)  # 1 and 1.0 are the same run
        plain[f.name] = list(value) if isinstance(value, tuple) else value
    return plain
