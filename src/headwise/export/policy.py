"""A policy as a module from raw observations to the environment's own actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from headwise.algorithms.base import Algorithm
from headwise.errors import ConfigError, SpaceError
from headwise.export.actions import NamedActions
from headwise.export.observations import NamedObservations
from headwise.nets.preprocess import Seen
from headwise.ops.buffers import Trace
from headwise.spaces import ActionSpec
from headwise.spaces.bins import Binning

UNIFORM = "uniform"
"""The name of the input for uniform random numbers."""
MASK = "action_mask"
"""The name of the input that says which options are legal."""


class DeployedPolicy(nn.Module):
    """One member's policy: arrays of observations in, arrays of actions out, both by name.

    Normalization, masks, the unrolling of an auto-regressive chain, bins and units are inside.
    Use `deploy` to make one of a learner.

    Args:
        learner: A learner of one member.
        spec: The action as the training environment has it.
        observations: What the inputs are.
        actions: What the outputs are.
        binning: What the learner makes of Range heads.
        normalize: What is done to observations (1, B, ...) before the learner sees them.
        about: What a file should say of it, in words and numbers.
    """

    def __init__(
        self,
        learner: Algorithm,
        *,
        spec: ActionSpec,
        observations: NamedObservations,
        actions: NamedActions,
        binning: Binning,
        normalize: Callable[[Seen], Seen] | None = None,
        about: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.learner = learner
        self.spec = spec
        self.observations = observations
        self.actions = actions
        self.binning = binning
        self.about = about or {}
        self._normalize = normalize
        for name in (*observations.leaves, UNIFORM, MASK):
            if name in actions.leaves:
                raise SpaceError(
                    "a part of the action is called as an input of the policy is",
                    got=name,
                    fix="Rename it in the action space.",
                )

    @torch.no_grad()
    def forward(
        self,
        observation: dict[str, Tensor],
        uniform: Tensor | None = None,
        action_mask: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """The best actions, or ones drawn if uniforms are given.

        Args:
            observation: Raw observations by name, (B, ...).
            uniform: Numbers in [0, 1), (B, U), to draw actions by.
            action_mask: Which options are legal, (B, H, K), for all heads of the spec; and below
                them the rows of tables that the environment gives.

        Returns:
            The arrays of the action space by path, (B, ...).
        """
        seen = _of_one_member(self.observations(observation))
        if self._normalize is not None:
            seen = self._normalize(seen)
        uniform_PBU = None if uniform is None else uniform.unsqueeze(-3)
        legal = None if action_mask is None else self.binning.legal(action_mask).unsqueeze(-4)
        with Trace():
            chosen_PBH = self.learner.policy(seen, uniform_PBU, legal)
        action_PBH = self.binning.to_env(chosen_PBH)
        named: dict[str, Tensor] = self.actions(action_PBH.squeeze(-3))
        return named

    def example(self, rows: int, *, deterministic: bool, masks: bool) -> dict[str, Any]:
        """Arguments of `forward` with the right shapes and types, for tracing."""
        if not deterministic and not self.learner.num_uniforms:
            raise ConfigError(
                "this policy is deterministic, so actions cannot be sampled from it",
                got="deterministic=False",
                allowed="deterministic=True, which takes the greedy action",
            )
        if masks and not self.spec.num_choices:
            raise ConfigError("there are no discrete heads to mask", got=str(self.spec))
        arguments: dict[str, Any] = {
            "observation": self.observations.example(rows),
            "uniform": None,
            "action_mask": None,
        }
        if not deterministic:
            arguments["uniform"] = torch.full((rows, self.learner.num_uniforms), 0.5)
        if masks:
            shape = (rows, self.spec.mask_rows, self.spec.max_options)
            arguments["action_mask"] = torch.ones(shape, dtype=torch.bool)
        return arguments


def _of_one_member(seen: Seen) -> Seen:
    """The same with a member axis, (1, B, ...)."""
    if isinstance(seen, Tensor):
        return seen.unsqueeze(0)
    return {path: x.unsqueeze(0) for path, x in seen.items()}
