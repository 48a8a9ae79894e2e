"""What is trained, and how, in one value: agents, studies, flags and checkpoints are made of it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, ParamSpec, TypeVar

from headwise import checks
from headwise.added import added, as_before, id_of
from headwise.algorithms import AlgorithmConfig, algorithms
from headwise.algorithms.base import config_from, per_member_fields
from headwise.algorithms.schedules import as_json
from headwise.described import described
from headwise.envs.make import MOST_SLOTS
from headwise.errors import ConfigError
from headwise.factorizations import Factorization, factorizations
from headwise.foreign_names import AT_LEARN
from headwise.nets.encoders import NetworkConfig
from headwise.population import Keys
from headwise.registry import unknown
from headwise.spaces import ObsSpec
from headwise.training.normalize import NormalizeObs, checked_normalize_obs, chosen

P = ParamSpec("P")
T = TypeVar("T")


class Where(NamedTuple):
    """Where a user says settings: what else can be said there, and which of ours cannot."""

    beside: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


ANYWHERE = Where()


@described
@dataclass(frozen=True, kw_only=True)
class EnvironmentConfig:
    """The environment to train in, and how its action is seen."""

    env: str | None = None
    """The environment's id; None where an object or a callable was passed."""
    env_settings: dict[str, Any] = field(default_factory=dict)
    """Settings of the environment, by name."""
    view: str | None = None
    """Whether all heads are made discrete, are left hybrid, are made continuous, or continuous ones
    several levels of bins (zoom); None leaves the action as it is."""

    def __post_init__(self) -> None:
        if self.env_settings is None:
            object.__setattr__(self, "env_settings", {})


@described
@dataclass(frozen=True, kw_only=True)
class Normalization:
    """Normalization of observations and rewards, by the running moments of each seed."""

    normalize_obs: NormalizeObs = added(False)
    """Normalize observations to mean 0 and standard deviation 1; `auto` begins with the bounds of
    the observation space, and leaves compiled environments as they are."""
    normalize_reward: bool = added(False)
    """Divide rewards by the running standard deviation of the discounted return."""

    def __post_init__(self) -> None:
        switch = checked_normalize_obs(self.normalize_obs)
        object.__setattr__(self, "normalize_obs", switch)
        switch = checks.checked_switch("normalize_reward", self.normalize_reward)
        object.__setattr__(self, "normalize_reward", switch)

    @property
    def is_on(self) -> bool:
        """Whether anything is."""
        return bool(self.normalize_obs) or self.normalize_reward


@described
@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """All settings of a run but its seeds and its device.

    A setting is written once, as a field of the part that acts on it. `of` and `replace` take
    settings by name, whichever part they belong to.
    """

    algorithm: AlgorithmConfig
    """The algorithm with its settings."""
    factorization: Factorization
    """How the joint action is built from heads, with its settings."""
    environment: EnvironmentConfig = EnvironmentConfig()
    """The environment, its settings and the view of its action."""
    normalization: Normalization = Normalization()
    """Normalization of observations and rewards."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    """How observations are encoded."""
    num_envs: int = 16
    """Environment copies of each seed."""
    total_timesteps: int | None = None
    """Environment steps of each seed that schedules are made for; None until `learn` says it."""

    def __post_init__(self) -> None:
        slots = checks.checked_count("num_envs", self.num_envs, most=MOST_SLOTS)
        object.__setattr__(self, "num_envs", slots)
        steps = checks.optional_count("total_timesteps", self.total_timesteps)
        object.__setattr__(self, "total_timesteps", steps)

    # --- from settings --------------------------------------------------------------------------

    @classmethod
    def of(
        cls,
        algorithm: str | AlgorithmConfig,
        environment: EnvironmentConfig | str | None = None,
        where: Where = ANYWHERE,
        /,
        *,
        factorization: str | Factorization = "shared",
        **flat: Any,
    ) -> RunConfig:
        """A configuration from what a user says; settings find their owner by name.

        Args:
            algorithm: By name, or its settings as a dataclass.
            environment: Its id, or where to train with all settings.
            where: Where the user says this.
            factorization: By name, or its settings as a dataclass.
            **flat: Settings of any part.
        """
        if not isinstance(environment, EnvironmentConfig):
            environment = EnvironmentConfig(env=environment)
        kinds: dict[str, Any] = {
            "algorithm": algorithm
            if isinstance(algorithm, AlgorithmConfig)
            else algorithms.get(algorithm),
            "factorization": factorization
            if isinstance(factorization, Factorization)
            else factorizations.get(factorization),
            "environment": environment,
            "normalization": Normalization(),
            "network": NetworkConfig(),
        }
        where = where._replace(beside=(*where.beside, "factorization"))
        return cls(**_shared_out(kinds, flat, where))

    def replace(self, where: Where = ANYWHERE, /, **flat: Any) -> RunConfig:
        """This configuration with other settings; arguments are those of `of`."""
        parts = {name: getattr(self, name) for name in _PARTS}
        return dataclasses.replace(self, **_shared_out(parts, flat, where))

    def fitting(self, obs_spec: ObsSpec) -> RunConfig:
        """This configuration with what is chosen for such observations, where the user did not."""
        network, scales = self.network.chosen(obs_spec), self.normalization.normalize_obs
        if not scales and network.encoder is not None and network.encoder.normalizes:
            scales = True
        config = dataclasses.replace(self, network=network)
        return config.replace(normalize_obs=chosen(scales, obs_spec))

    # --- members --------------------------------------------------------------------------------

    def check_members(self, seeds: Sequence[int]) -> None:
        """Refuses settings of other members than there are, and members that are the same run."""
        for name in per_member_fields(self.algorithm):
            if getattr(self.algorithm, name) is not None:
                self.algorithm.member_values(name, Keys(seeds))
        runs = [(seed, *self._own(member).values()) for member, seed in enumerate(seeds)]
        if len(set(runs)) < len(runs):
            raise ConfigError(
                "a seed is given twice",
                got=sorted({run[0] for run in runs if runs.count(run) > 1}),
                fix="Two members with one seed would be the same run: give each its own, or a "
                "setting in which they differ, for example learning_rate=(1e-3, 1e-4).",
            )

    def for_member(self, member: int) -> RunConfig:
        """The configuration of one member alone."""
        algorithm = dataclasses.replace(self.algorithm, **self._own(member))
        return dataclasses.replace(self, algorithm=algorithm)

    def _own(self, member: int) -> dict[str, Any]:
        """The settings of a member that are given for each."""
        values = {name: getattr(self.algorithm, name) for name in per_member_fields(self.algorithm)}
        return {name: x[member] for name, x in values.items() if isinstance(x, tuple)}

    @classmethod
    def merged(cls, configs: Sequence[RunConfig]) -> RunConfig:
        """One configuration for members that differ in settings which may vary among them."""
        first = configs[0]
        varying = per_member_fields(first.algorithm)

        def shared(config: RunConfig) -> Any:
            settings = {n: x for n, x in vars(config.algorithm).items() if n not in varying}
            rest = dataclasses.replace(config, algorithm=first.algorithm)
            return rest, type(config.algorithm), settings

        for config in configs:
            if shared(config) != shared(first):
                raise ConfigError(
                    "these cannot be members of one population",
                    got=f"{first} and {config}",
                    allowed=f"such as differ in {', '.join(varying)}",
                )
        values = {n: tuple(getattr(x.algorithm, n) for x in configs) for n in varying}
        several: dict[str, Any] = {n: x for n, x in values.items() if any(y != x[0] for y in x)}
        algorithm = dataclasses.replace(first.algorithm, **several)
        return dataclasses.replace(first, algorithm=algorithm)

    # --- as plain data --------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """What is trained, in two words."""
        return f"{self.algorithm.name} {self.factorization.name}"

    def to_json(self) -> dict[str, Any]:
        """All settings as plain data; `total_timesteps` is None where it is not known."""
        return {
            **_as_plain(self.environment),
            "algorithm": self.algorithm.name,
            "settings": _as_plain(self.algorithm),
            "factorization": self.factorization.name,
            "factorization_settings": _as_plain(self.factorization),
            "num_envs": self.num_envs,
            **_as_plain(self.normalization),
            **self.network.to_json(),
            "total_timesteps": self.total_timesteps,
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> RunConfig:
        """Reads what `to_json` or `determining` wrote; what is not said of the parts is default."""
        flat = [*_names(EnvironmentConfig), *_names(Normalization), *_names(NetworkConfig)]
        return cls.of(
            config_from(algorithms.get(form["algorithm"]), dict(form["settings"])),
            factorization=config_from(
                factorizations.get(form["factorization"]), dict(form["factorization_settings"])
            ),
            num_envs=form["num_envs"],
            total_timesteps=form["total_timesteps"],
            **{name: form[name] for name in flat if name in form},
        )

    def determining(self) -> dict[str, Any]:
        """What determines a run, but for its seed, as plain data.

        Settings that later versions added are left out where they are as before: a run keeps its
        id.
        """
        form = self.to_json()
        for part, said in (
            (self.environment, form),
            (self.normalization, form),
            (self.network, form),
            (self.algorithm, form["settings"]),
            (self.factorization, form["factorization_settings"]),
        ):
            for name, before in as_before(type(part)).items():
                if getattr(part, name) == before:
                    said.pop(name, None)
        return form

    def run_id(self, seed: int) -> str:
        """The id of the run with a seed."""
        return id_of({**self.determining(), "seed": seed})


def shown(function: Callable[P, T]) -> Callable[P, T]:
    """A decorator of what takes settings of the environment by name: its signature shows them."""
    told = inspect.signature(function)
    *named, rest = told.parameters.values()
    for one in (*fields(EnvironmentConfig), *fields(Normalization), *fields(NetworkConfig)):
        if one.name not in told.parameters:
            default = None if one.default is dataclasses.MISSING else one.default
            kind = inspect.Parameter.KEYWORD_ONLY
            named += [inspect.Parameter(one.name, kind, default=default, annotation=one.type)]
    function.__signature__ = told.replace(parameters=[*named, rest])  # type: ignore[attr-defined]
    return function


_PARTS = ("algorithm", "factorization", "environment", "normalization", "network")
_OWN = ("num_envs", "total_timesteps")


def _shared_out(parts: Mapping[str, Any], flat: Mapping[str, Any], where: Where) -> dict[str, Any]:
    """The parts, each with the settings that are its own, and what has no part."""
    owners = {name: name for name in _OWN}
    for part in reversed(list(parts)):  # what several know is the first one's
        owners |= dict.fromkeys(_names(parts[part]), part)
    own: dict[str, Any] = {owner: {} for owner in (*parts, *_OWN)}
    for name, value in flat.items():
        if name not in owners or name in where.without:
            label = f"setting of {parts['algorithm'].name} or {parts['factorization'].name}"
            known = {*where.beside, *owners}.difference(where.without)
            raise unknown(label, name, known, AT_LEARN)
        own[owners[name]][name] = value
    rest = {name: own[name][name] for name in _OWN if own[name]}
    return {part: _configured(parts[part], own[part]) for part in parts} | rest


def _configured(kind: Any, settings: dict[str, Any]) -> Any:
    """A part from its class, or from its settings so far, and further ones."""
    if isinstance(kind, type):
        return config_from(kind, settings)
    return dataclasses.replace(kind, **settings) if settings else kind


def _names(part: Any) -> list[str]:
    return [one.name for one in fields(part)]


def _as_plain(part: Any) -> dict[str, Any]:
    """The settings of a part as plain data; a whole number where a float belongs becomes one."""
    plain, kinds = {}, checks.setting_kinds(part)
    for name in _names(part):
        value = getattr(part, name)
        if float in kinds[name] and checks.is_whole(value):
            value = float(value)  # 1 and 1.0 are the same run
        plain[name] = as_json(value)
    return plain
