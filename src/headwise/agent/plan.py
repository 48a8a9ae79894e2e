"""All settings of an agent in one value, which a checkpoint can hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import torch

from headwise import checks
from headwise.algorithms import AlgorithmConfig, algorithms
from headwise.algorithms.base import config_from, per_member_fields
from headwise.envs.make import MOST_SLOTS
from headwise.envs.types import VecEnv
from headwise.errors import CheckpointError, ConfigError, HeadwiseError
from headwise.factorizations import Factorization, factorizations
from headwise.foreign_names import AT_LEARN
from headwise.population import Keys
from headwise.registry import unknown
from headwise.training.build import make_loop
from headwise.training.episodes import Episodes
from headwise.training.fits import fits
from headwise.training.loop import Loop

HISTORY = 100_000
"""The last episodes that an agent keeps, over all members: 3 MB of a checkpoint."""


_OF_LOAD = ("num_envs", "env_settings", "device")
_OF_AGENT = (*_OF_LOAD, "factorization", "seeds", "view", "normalise_obs", "normalise_reward")
"""Settings of the agent itself, for suggestions: where it is loaded, and where it is made."""
_ANEW = "Train a new Agent with it."
_FIXED = {
    "algo": _ANEW,
    "factorization": _ANEW,
    "seeds": "Take one of its members: Agent.load(path).best(), or .member(2). For other seeds "
    "train a new Agent.",
    "view": "The heads that were learned follow from it. " + _ANEW,
    "normalise_obs": _ANEW,
    "normalise_reward": _ANEW,
}
"""What a checkpoint settles, and what to do for something else."""


@dataclass(frozen=True)
class Plan:
    """What is trained, and how."""

    config: AlgorithmConfig
    factorization: Factorization
    seeds: tuple[int, ...]
    num_envs: int
    normalise_obs: bool
    normalise_reward: bool
    device: str
    total_steps: int | None = None
    """Environment steps of each member that schedules are laid out for, by the first `learn`."""
    target_steps: int | None = None
    """Environment steps of each member that the last `learn` was to reach."""

    def __post_init__(self) -> None:
        slots = checks.checked_count("num_envs", self.num_envs, most=MOST_SLOTS)
        object.__setattr__(self, "num_envs", slots)
        for name in ("normalise_obs", "normalise_reward"):
            object.__setattr__(self, name, checks.checked_switch(name, getattr(self, name)))
        for name in per_member_fields(self.config):
            if getattr(self.config, name) is not None:
                self.config.member_values(name, Keys(self.seeds))
        self._check_twins()

    def _check_twins(self) -> None:
        """Refuses members that have a seed in common and no setting that tells them apart."""
        runs = [
            (seed, *self._own_settings(member).values()) for member, seed in enumerate(self.seeds)
        ]
        if len(set(runs)) < len(runs):
            raise ConfigError(
                "a seed is given twice",
                got=sorted({run[0] for run in runs if runs.count(run) > 1}),
                fix="Two members with one seed would be the same run: give each its own, or a "
                "setting in which they differ, for example lr=(1e-3, 1e-4).",
            )

    def _own_settings(self, member: int) -> dict[str, float]:
        """The settings of a member that are given for each."""
        values = {name: getattr(self.config, name) for name in per_member_fields(self.config)}
        return {name: x[member] for name, x in values.items() if isinstance(x, tuple)}

    @classmethod
    def of(
        cls,
        algo: str | AlgorithmConfig,
        factorization: str | Factorization,
        seeds: int | Sequence[int],
        settings: Mapping[str, Any],
        *,
        device: str,
        beside: Sequence[str] = _OF_AGENT,
        **others: Any,
    ) -> Plan:
        """A plan from what a user says; settings find their owner by name.

        Args:
            algo: The algorithm.
            factorization: The factorization.
            seeds: How many members, or their seeds.
            settings: Those of the algorithm and the factorization.
            device: Where learners live.
            beside: What else can be set where the user says this, for suggestions.
            **others: The fields of a plan that have no owner among those.
        """
        kinds = {
            "algorithm": algo if isinstance(algo, AlgorithmConfig) else algorithms.get(algo),
            "factorization": factorization
            if isinstance(factorization, Factorization)
            else factorizations.get(factorization),
        }
        shares: dict[str, dict[str, Any]] = {"algorithm": {}, "factorization": {}}
        known = {what: [f.name for f in fields(kind)] for what, kind in kinds.items()}
        for name, value in settings.items():
            owner = next((what for what in known if name in known[what]), None)
            if owner is None:
                label = f"setting of {kinds['algorithm'].name} or {kinds['factorization'].name}"
                names = [*beside, *known["algorithm"], *known["factorization"]]
                raise unknown(label, name, names, AT_LEARN)
            shares[owner][name] = value
        config, factor = (_configured(kinds[what], shares[what]) for what in kinds)
        return cls(
            config=config,
            factorization=factor,
            seeds=_seeds(seeds),
            device=_device(device),
            **others,
        )

    def loop(self, env: VecEnv) -> Loop:
        """A loop that trains so in an environment."""
        names = [n for n in ("hidden", "rollout", "batch_size") if hasattr(self.config, n)]
        sizes = ", ".join(f"{name}={getattr(self.config, name)}" for name in names)
        with fits(
            "the learners",
            got=f"{len(self.seeds)} members of {self.title} with {sizes}",
            fix=f"Take fewer seeds or bins, or make one of these smaller: {', '.join(names)}.",
        ):
            loop = make_loop(
                env,
                self.config,
                self.factorization,
                self.seeds,
                self.total_steps or 1,
                self.device,
                normalise_obs=self.normalise_obs,
                normalise_reward=self.normalise_reward,
            )
        loop.episodes = Episodes(keep=HISTORY)
        return loop

    def changed(self, settings: Mapping[str, Any]) -> Plan:
        """This plan with other settings of the algorithm or the factorization."""
        if not settings:
            return self
        for name in settings:
            if name in _FIXED:
                raise ConfigError(
                    f"{name} is fixed in a checkpoint", got=settings[name], fix=_FIXED[name]
                )
        known = {f.name: getattr(self, f.name) for f in fields(self)}
        config, factorization, seeds = (known.pop(n) for n in ("config", "factorization", "seeds"))
        return Plan.of(config, factorization, seeds, settings, beside=_OF_LOAD, **known)

    @property
    def title(self) -> str:
        """What is trained, in two words."""
        return f"{self.config.name} {self.factorization.name}"

    def begun_for(self) -> int:
        """The steps that the last `learn` was to reach; refuses where there was none."""
        if self.target_steps is None:
            raise ConfigError(
                "the first call of learn needs steps", got=None, fix="Say learn(100_000)."
            )
        return self.target_steps

    def of_member(self, member: int) -> Plan:
        """The plan of one member alone, whose run is to begin."""
        own: dict[str, Any] = self._own_settings(member)
        return replace(
            self,
            config=replace(self.config, **own),
            seeds=(self.seeds[member],),
            total_steps=None,
            target_steps=None,
        )

    def to_json(self) -> dict[str, Any]:
        """All of it in numbers, words, lists and dicts."""
        return {
            "algorithm": self.config.name,
            "settings": asdict(self.config),
            "factorization": self.factorization.name,
            "factorization_settings": asdict(self.factorization),
            "seeds": list(self.seeds),
            "num_envs": self.num_envs,
            "normalise_obs": self.normalise_obs,
            "normalise_reward": self.normalise_reward,
            "total_steps": self.total_steps,
            "target_steps": self.target_steps,
        }

    @classmethod
    def from_json(cls, form: Any, device: str) -> Plan:
        """Reads what `to_json` wrote, from a file that may be anything."""
        place = _device(device)
        try:
            total = form["total_steps"]
            target = form.get("target_steps", total)  # once every call finished the first one
            factorization = factorizations.get(form["factorization"])
            return cls(
                config=config_from(algorithms.get(form["algorithm"]), dict(form["settings"])),
                factorization=config_from(factorization, dict(form["factorization_settings"])),
                seeds=_seeds(list(form["seeds"])),
                num_envs=form["num_envs"],
                normalise_obs=form["normalise_obs"],
                normalise_reward=form["normalise_reward"],
                device=place,
                total_steps=checks.optional_count("total_steps", total),
                target_steps=checks.optional_count("target_steps", target),
            )
        except (KeyError, TypeError, ValueError, HeadwiseError) as error:
            raise CheckpointError(
                "the settings in the checkpoint cannot be used",
                got=(str(error) or repr(error)).rstrip("."),
            ) from error


def _configured(kind: Any, settings: dict[str, Any]) -> Any:
    if isinstance(kind, type):
        return config_from(kind, settings)
    return replace(kind, **settings) if settings else kind


def _seeds(seeds: Any) -> tuple[int, ...]:
    given = checks.plain(seeds)
    if checks.is_whole(given):
        if given < 1:
            raise ConfigError("there must be a seed", got=seeds, allowed="a number from 1")
        given = range(int(given))
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise ConfigError(
            "seeds must be a number of members, or a seed for each",
            got=seeds,
            allowed="5 or [0, 7]",
        )
    if given[checks.MAX_MEMBERS :]:
        is_seed = checks.is_whole(seeds) and seeds <= checks.MAX_SEED
        one = f" The seed {seeds} alone is seeds=[{seeds}]." if is_seed else ""
        raise ConfigError(
            "there are too many members",
            got=seeds,
            allowed=f"up to {checks.MAX_MEMBERS:,}",
            fix=f"seeds=5 trains five, with the seeds 0 to 4.{one}",
        )
    return Keys(given).seeds


def _device(device: Any) -> str:
    try:
        place = torch.device(device)
        torch.empty(0, device=place)
    except (RuntimeError, TypeError, AssertionError, ValueError) as error:
        raise ConfigError(
            "this device cannot be used here",
            got=device,
            allowed="auto, cpu, and cuda where there is a GPU",
        ) from error
    return str(place)


def checked_member(member: Any, num_members: int) -> int:
    """The number of a member that a user gave."""
    if not checks.is_whole(member) or not 0 <= member < num_members:
        raise ConfigError("there is no such member", got=member, allowed=f"0 to {num_members - 1}")
    return int(member)
