"""The cells of a grid: a base configuration, and the values to try of some of its settings."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headwise.algorithms import AlgorithmConfig, algorithms
from headwise.algorithms.base import config_from
from headwise.errors import ConfigError
from headwise.factorizations import Factorization, factorizations
from headwise.registry import Registry
from headwise.study.cells import Cell
from headwise.study.environment import Environment
from headwise.study.evaluation import Evaluate
from headwise.training.config import EnvironmentConfig, RunConfig

_PARTS: dict[str, tuple[Registry[Any], type[Any]]] = {
    "algorithm": (algorithms, AlgorithmConfig),
    "factorization": (factorizations, Factorization),
}


def cells_of_grid(
    base: RunConfig, grid: Mapping[str, Sequence[Any]], evaluate: Evaluate | None
) -> Iterator[Cell]:
    """A cell for each combination of the grid's values, the last name varying fastest.

    Args:
        base: What they have in common.
        grid: The values to try, by name.
        evaluate: How their runs are evaluated.
    """
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise ConfigError(
                f"the grid needs a list of values of {name!r}",
                got=repr(values),
                allowed=f"for example {{{name!r}: [first, second]}}",
            )
    for values in itertools.product(*grid.values()):
        said = dict(zip(grid, values, strict=True))
        place = _environment(base.environment, said.pop("env", None))
        config = dataclasses.replace(
            base,
            environment=EnvironmentConfig(
                env=place.name, env_settings=place.settings, view=base.environment.view
            ),
            **{part: _part(base, part, said.pop(part)) for part in _PARTS if part in said},
        )
        if "env_settings" in said:
            place = dataclasses.replace(place, settings={**place.settings, **said["env_settings"]})
        yield Cell.from_config(config.replace(**said), place, evaluate)


def _environment(base: EnvironmentConfig, named: Environment | str | None) -> Environment:
    """The environment of a cell; one that the grid names by id has the settings of the base."""
    if isinstance(named, Environment):
        return named
    name = base.env if named is None else named
    if name is None:
        raise ConfigError(
            "the study has no environment",
            got="env=None",
            fix='Name it in the base, RunConfig.of("ppo", "CartPole-v1"), or in the grid as "env".',
        )
    return Environment(name, settings=base.env_settings)


def _part(base: RunConfig, name: str, value: Any) -> Any:
    """An algorithm or a factorization: that of the base if it is of this name, or with defaults."""
    registry, kind = _PARTS[name]
    ours = getattr(base, name)
    if isinstance(value, kind):
        return value
    chosen = registry.get(value)
    if isinstance(ours, chosen):
        return ours
    if ours != config_from(type(ours), {}):
        raise ConfigError(
            f"settings of {ours.name} in the base would not reach the cells of {value}",
            got=ours,
            fix="Give settings that all have in the grid, {'gamma': [0.98]}; those of one of them "
            f"with .change({name}={ours.name!r}, settings={{...}}), or as a dataclass in the grid.",
        )
    return config_from(chosen, {})
