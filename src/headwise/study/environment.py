"""Environments of a study: Headwise's own by name, and any that Gymnasium knows by id."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from headwise.added import canonical_json
from headwise.envs.foreign import foreign_env
from headwise.envs.make import env_names, own_name
from headwise.envs.types import VecEnv
from headwise.errors import ConfigError, HeadwiseError
from headwise.registry import nearest
from headwise.study.run import Run


@dataclass(frozen=True)
class Environment:
    """An environment with settings, under a label of its own.

    `Environment("HybridShoot", "shoot-dep", {"mode": "dependent"})` is one of Headwise,
    `Environment("CartPole-v1", settings={"sutton_barto_reward": True})` one of Gymnasium, and
    `Environment("my_package:MyRobot-v0")` one that is registered when that module is imported.
    Your own is `gymnasium.register`ed in the study's file, or in a module that it imports.
    """

    name: str
    label: str = ""
    """What it is called in the report; its name if not given."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Plain data. Of one by id, those of `headwise.envs.foreign.wrap` (`bins`, `bounds`, `masks`,
    `team_reward`, `vectorization`, ...), and what is left goes to `gymnasium.make`."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ConfigError(
                "an environment of a study must be named",
                got=self.name,
                fix="gymnasium.register('My-v0', entry_point=MyEnv), then Environment('My-v0').",
            )
        if not isinstance(self.label, str):
            raise ConfigError(
                "the label of an environment must be a text",
                got=self.label,
                fix='Its settings are given by name: Environment("Platform", settings={...}).',
            )
        if not isinstance(self.settings, Mapping):
            raise ConfigError(
                "the settings of an environment must be a dict",
                got=self.settings,
                allowed='settings={"name": value}',
            )
        known = None if ":" in self.name else own_name(self.name)
        name = known or _known_id(self.name)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "label", self.label or bare_id(name))

    def checked_settings(self) -> dict[str, Any]:
        """The settings; refuses what cannot be written down as plain data."""
        try:
            canonical_json(self.settings)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"settings of the environment {self.label!r} must be plain data, to be a part of "
                "a run's id",
                got=self.settings,
                allowed="numbers, texts, lists and dicts",
                fix="Whatever else it needs goes into the function or class that you register: "
                "gymnasium.register('My-v0', entry_point=lambda **settings: MyEnv(...)).",
            ) from error
        return dict(self.settings)


def as_environment(environment: Environment | str) -> Environment:
    """An environment from itself or from its name."""
    return environment if isinstance(environment, Environment) else Environment(environment)


def bare_id(name: str) -> str:
    """An environment's id without the module that is imported for it."""
    return name.rpartition(":")[2]


def make_env(run: Run, seeds: Sequence[int], num_slots: int, threads: int | None = 1) -> VecEnv:
    """The environment of a run, for a population."""
    view = {} if run.view is None else {"view": run.view}
    settings = {**run.env_settings, **view, "num_threads": threads}
    return foreign_env(run.env, seeds, num_slots, **settings)


def check_environments(runs: Iterable[Run]) -> None:
    """Makes every environment once, so that a wrong setting is told before anything is trained."""
    distinct = {
        json.dumps([run.env, run.env_settings, run.view], sort_keys=True): run for run in runs
    }
    for run in distinct.values():
        label = run.labels.get("environment", run.env)
        try:
            make_env(run, [run.seed], 1).close()
        except HeadwiseError as error:
            cause = error.__cause__
            why = error if cause is None else f"{type(cause).__name__}: {cause}"
            raise ConfigError(
                f"the environment {label!r} of the study cannot be made", fix=f"It says: {why}"
            ) from error


def _known_id(name: str) -> str:
    """An id of Gymnasium, as it is; one like `module:Id-v0` has its module imported."""
    module, _, bare = name.rpartition(":")
    if module:
        try:
            importlib.import_module(module)
        except Exception as error:  # whatever the code of a user may do
            raise ConfigError(
                "the module of an environment cannot be imported",
                got=f"{name} ({error})",
                fix="It is looked for beside the study's file, and among what is installed.",
            ) from error
    if bare in gym.registry:
        return name
    raise ConfigError(
        "unknown environment",
        got=repr(name),
        allowed=f"{', '.join(env_names())}, or an id that Gymnasium knows",
        fix=nearest(bare, [*env_names(), *gym.registry])
        or "Your own is known once gymnasium.register(...) has been called in the study's file.",
    )
