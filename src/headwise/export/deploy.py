"""From a population of learners to the policy of one member."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from headwise.algorithms.base import Algorithm, AlgorithmConfig, Task, per_member_fields
from headwise.errors import ConfigError
from headwise.export.actions import NamedActions
from headwise.export.observations import NamedObservations
from headwise.export.policy import DeployedPolicy
from headwise.factorizations import Factorization
from headwise.nets.encoders import NetworkConfig
from headwise.nets.preprocess import Seen
from headwise.population import Keys, finite_members, select_members
from headwise.spaces import ActionCodec, ActionSpec, Choice, ObsCodec, ObsSpec, View
from headwise.spaces.bins import Binning
from headwise.training.normalize import Normalizer

_MORE_THAN_ONE = 2
"""Environment copies of the learner: what has one row is a constant of the graph (`Trace`)."""


def deploy(
    learner: Algorithm,
    config: AlgorithmConfig,
    factorization: Factorization,
    spec: ActionSpec,
    observations: ObsCodec | int,
    actions: ActionCodec | None = None,
    *,
    view: View | None = None,
    normalizer: Normalizer | None = None,
    network: NetworkConfig | None = None,
    member: int = 0,
) -> DeployedPolicy:
    """The policy of one member, on the CPU, with a copy of everything it needs.

    Args:
        learner: The population.
        config: The settings that it was built with.
        factorization: The factorization that it was built with.
        spec: The action as the training environment has it.
        observations: The observation space, or the size of a plain vector.
        actions: The action space; without one every head is an output by its own name.
        view: How the training environment sees the actions of that space, if not as they are.
        normalizer: What the learner's observations were normalized by.
        network: How the learner reads observations, if not as they are.
        member: The number of the member.
    """
    state = {name: x.cpu() for name, x in learner.state_dict().items()}
    mine = select_members(state, [member])
    for name, x in mine.items():
        if x.is_floating_point() and not bool(finite_members(x)):
            raise ConfigError(
                f"member {member} has diverged, and its policy is of no use",
                got=f"{name} with numbers that are not finite",
                fix="Export another member.",
            )
    if isinstance(observations, int):
        observations = ObsCodec(spaces.Box(-np.inf, np.inf, (observations,)))
    binning = Binning(spec, config.bins)
    single = _of_one_member(config, member).build(
        Task(
            spec=binning.spec,
            obs_spec=observations.spec,
            num_slots=_MORE_THAN_ONE,
            total_steps=1,
            factorization=factorization,
            keys=Keys([0]),  # what it begins with is overwritten
            network=network or NetworkConfig(),
            normalized=normalizer is not None and normalizer.scales_obs,
        )
    )
    single.load_state_dict(mine)
    return DeployedPolicy(
        single,
        spec=spec,
        observations=NamedObservations(observations),
        actions=NamedActions(spec, _heads_by_name(spec) if actions is None else actions, view),
        binning=binning,
        normalize=_normalize(normalizer, member, observations.spec),
        about={"algorithm": config.name, "factorization": factorization.name, "member": member},
    )


def _of_one_member(config: AlgorithmConfig, member: int) -> AlgorithmConfig:
    """The same settings, with one member's where they vary."""
    values = {name: getattr(config, name) for name in per_member_fields(config)}
    own: dict[str, Any] = {n: v[member] for n, v in values.items() if isinstance(v, tuple)}
    return replace(config, **own)


def _normalize(
    normalizer: Normalizer | None, member: int, spec: ObsSpec
) -> Callable[[Seen], Seen] | None:
    """One member's normalization of observations, frozen."""
    if normalizer is None or not normalizer.scales_obs:
        return None
    used = normalizer.obs_mean, normalizer.obs_std
    mean, std = (x[member : member + 1].cpu().clone().unsqueeze(-2) for x in used)
    clip = normalizer.clip

    def scaled(obs: Tensor, part: slice) -> Tensor:
        x = (obs.reshape(*obs.shape[:2], -1) - mean[..., part]) / std[..., part]
        return x.clamp(-clip, clip).to(torch.float32).view(obs.shape)

    def normalize(seen: Seen) -> Seen:
        if isinstance(seen, Tensor):
            return ((seen - mean) / std).clamp(-clip, clip).to(torch.float32)
        numbers = {leaf.path for leaf in spec.leaves if not leaf.is_packed}
        return {n: scaled(x, spec.slices[n]) if n in numbers else x for n, x in seen.items()}

    return normalize


def _heads_by_name(spec: ActionSpec) -> ActionCodec:
    """A space with a place for each head, called as the head is."""
    parts: OrderedDict[str, spaces.Space[Any]] = OrderedDict()  # a Dict sorts any other mapping
    for name, head in zip(spec.names, spec.heads, strict=True):
        if isinstance(head, Choice):
            parts[name] = spaces.Discrete(head.n)
        else:
            parts[name] = spaces.Box(head.low, head.high, ())
    return ActionCodec(spaces.Dict(parts))
