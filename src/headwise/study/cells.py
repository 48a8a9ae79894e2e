"""Cells: configurations without a seed. An environment, a view, an algorithm, a factorization."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from headwise.algorithms import algorithms
from headwise.algorithms.base import AlgorithmConfig, config_from, per_member_fields
from headwise.checks import checked_count, checked_seed
from headwise.errors import ConfigError
from headwise.factorizations import Factorization, factorizations
from headwise.nets.encoders import NetworkConfig
from headwise.registry import unknown
from headwise.study.environment import Environment, as_environment
from headwise.study.evaluation import Evaluate
from headwise.study.run import Run
from headwise.training.config import EnvironmentConfig, Normalization, RunConfig


@dataclass(frozen=True)
class Cell:
    """A configuration of a study; with a seed it is a run."""

    environment: Environment
    view: str | None
    algorithm: str
    factorization: str
    total_timesteps: int
    num_envs: int = 16
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of the algorithm that differ from its defaults."""
    factorization_settings: dict[str, Any] = field(default_factory=dict)
    """Settings of the factorization that differ from its defaults."""
    labels: dict[str, str] = field(default_factory=dict)
    """Further labels for the report."""
    normalization: dict[str, Any] = field(default_factory=dict)
    """Settings of `Normalization` and `NetworkConfig` that differ from their defaults."""
    evaluate: Evaluate | None = None
    """How its runs are evaluated; None ranks them by what they earned in training."""

    def __post_init__(self) -> None:
        texts = {str(name): str(value) for name, value in self.labels.items()}
        object.__setattr__(self, "labels", texts)
        known = [one.name for one in (*fields(Normalization), *fields(NetworkConfig))]
        for name in self.normalization:
            if name not in known:
                raise unknown("setting of normalization", name, known)

    @classmethod
    def of(
        cls,
        environment: Environment | str,
        algorithm: AlgorithmConfig,
        factorization: Factorization,
        *,
        total_timesteps: int,
        view: str | None = None,
        num_envs: int = 16,
        labels: dict[str, str] | None = None,
        evaluate: Evaluate | None = None,
        **normalization: Any,
    ) -> Cell:
        """A cell from ready configs, such as presets make."""
        return cls(
            environment=as_environment(environment),
            view=view,
            algorithm=algorithm.name,
            factorization=factorization.name,
            total_timesteps=total_timesteps,
            num_envs=num_envs,
            settings=asdict(algorithm),
            factorization_settings=asdict(factorization),
            labels=labels or {},
            normalization=normalization,
            evaluate=evaluate,
        )

    @classmethod
    def from_config(
        cls, config: RunConfig, environment: Environment, evaluate: Evaluate | None = None
    ) -> Cell:
        """A cell of a whole configuration, whose steps must be known.

        Args:
            config: What is trained, and how.
            environment: Its environment, with the label that it has in a study.
            evaluate: How its runs are evaluated.
        """
        if config.total_timesteps is None:
            raise ConfigError(
                "a configuration of a study must say its steps",
                got="total_timesteps=None",
                fix="Give them: RunConfig.of(..., total_timesteps=100_000).",
            )
        return cls.of(
            environment,
            config.algorithm,
            config.factorization,
            total_timesteps=config.total_timesteps,
            view=config.environment.view,
            num_envs=config.num_envs,
            evaluate=evaluate,
            **vars(config.normalization),
        )

    @property
    def title(self) -> str:
        """What messages call it."""
        parts = (self.environment.label, self.view or "", self.algorithm, self.factorization)
        return "/".join(part for part in (*parts, *self.labels.values()) if part)

    def config(self) -> RunConfig:
        """The settings with all defaults filled in; refuses unknown and impossible ones."""
        steps, num_envs = (
            checked_count(f"{self.title}: {name}", getattr(self, name))
            for name in ("total_timesteps", "num_envs")
        )
        environment = EnvironmentConfig(
            env=self.environment.name,
            env_settings=self.environment.checked_settings(),
            view=self.view,
        )
        algorithm = config_from(algorithms.get(self.algorithm), self.settings)
        kind = factorizations.get(self.factorization)
        factorization = config_from(kind, self.factorization_settings)
        try:
            config = RunConfig.of(
                algorithm,
                environment,
                factorization=factorization,
                num_envs=num_envs,
                total_timesteps=steps,
                **self.normalization,
            )
            config.network.check_plain()
            return config
        except ConfigError as error:
            raise ConfigError(f"{self.title}: {error}") from error

    def run(self, seed: int) -> Run:
        """The run with a seed."""
        config = self.config()
        for name in per_member_fields(config.algorithm):
            if isinstance(getattr(config.algorithm, name), tuple):
                raise ConfigError(
                    f"{self.title}: setting {name!r} has several values for one run",
                    got=getattr(config.algorithm, name),
                    allowed="one number",
                    fix="Make a cell for each; they are packed into one population all the same.",
                )
        labels = {"environment": self.environment.label, **self.labels}
        return Run.of(config, checked_seed(seed, f"{self.title}: a seed"), labels, self.evaluate)
