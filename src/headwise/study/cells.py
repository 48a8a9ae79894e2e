"""Cells: configurations without a seed. An environment, a view, an algorithm, a factorization."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from headwise.added import as_before
from headwise.algorithms import algorithms
from headwise.algorithms.base import AlgorithmConfig, config_from, per_member_fields
from headwise.checks import checked_count, checked_seed, is_whole, setting_kinds
from headwise.errors import ConfigError
from headwise.factorizations import Factorization, factorizations
from headwise.study.environment import Environment, as_environment
from headwise.study.run import Run


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
    normalise_obs: bool = False
    """Whether observations are brought to mean 0 and deviation 1, by each run's own past."""
    normalise_reward: bool = False
    """Whether rewards are scaled by the deviation of each run's discounted return."""

    def __post_init__(self) -> None:
        texts = {str(name): str(value) for name, value in self.labels.items()}
        object.__setattr__(self, "labels", texts)

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
        normalise_obs: bool = False,
        normalise_reward: bool = False,
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
            normalise_obs=normalise_obs,
            normalise_reward=normalise_reward,
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
        steps, num_envs = (
            checked_count(f"{self.title}: {name}", getattr(self, name))
            for name in ("steps", "num_envs")
        )
        for name in ("normalise_obs", "normalise_reward"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(
                    f"{self.title}: {name} is a switch",
                    got=getattr(self, name),
                    allowed="True or False",
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
        return Run(
            env=self.environment.name,
            env_settings=self.environment.checked_settings(),
            view=self.view,
            algorithm=self.algorithm,
            factorization=self.factorization,
            settings=_as_plain(config),
            factorization_settings=_as_plain(factorization),
            seed=checked_seed(seed, f"{self.title}: a seed"),
            steps=steps,
            num_envs=num_envs,
            labels={"environment": self.environment.label, **self.labels},
            normalise_obs=self.normalise_obs,
            normalise_reward=self.normalise_reward,
        )


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
    plain, before, kinds = {}, as_before(type(config)), setting_kinds(config)
    for f in dataclasses.fields(config):
        value = getattr(config, f.name)
        if f.name in before and value == before[f.name]:
            continue
        if float in kinds[f.name] and is_whole(value):
            value = float(value)  # 1 and 1.0 are the same run
        plain[f.name] = list(value) if isinstance(value, tuple) else value
    return plain
