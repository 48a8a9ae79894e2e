"""Joint: one choice among all joint actions. Exact, and as large as the product of the heads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from headwise.errors import ConfigError
from headwise.factorizations.base import (
    Blueprint,
    Factorization,
    Judged,
    Policy,
    Value,
    factorizations,
)
from headwise.factorizations.critics import ValueCritic
from headwise.factorizations.layout import Layout
from headwise.factorizations.shared import SharedPolicy
from headwise.factorizations.values import BranchingValue
from headwise.spaces import ActionSpec, Choice


class JointActions:
    """All joint actions of a spec in a row: the last head turns fastest.

    An action whose idle heads are not at rest is the same as one whose are, so only the latter may
    be chosen.
    """

    def __init__(self, layout: Layout) -> None:
        self.outer = layout
        size = layout.spec.joint_size
        assert size is not None
        self.layout = Layout(ActionSpec.of(joint=Choice(size)), layout.device)
        grid = np.stack(np.unravel_index(np.arange(size), layout.spec.cardinalities), axis=-1)
        self._heads = torch.as_tensor(grid, dtype=torch.float32, device=layout.device)  # (J, H)
        rest = layout.spec.canonical(grid)
        legal = torch.as_tensor((rest == grid).all(-1), device=layout.device)
        self._legal = None if bool(legal.all()) else legal
        strides = np.cumprod([1, *layout.spec.cardinalities[:0:-1]])[::-1]
        self._strides = torch.tensor(strides.copy(), dtype=torch.float64, device=layout.device)

    def to_joint(self, action: Tensor) -> Tensor:
        """Options (..., H) as the number of their joint action, (..., 1)."""
        rested = action
        if self.outer.is_conditional:
            rested = action * self.outer.active(action)
        return (rested.double() * self._strides).sum(-1, keepdim=True).float()

    def to_heads(self, joint: Tensor) -> Tensor:
        """Numbers of joint actions (..., 1) as options (..., H)."""
        return self._heads[joint.squeeze(-1).long()]

    def legal(self, legal: Tensor | None) -> Tensor | None:
        """Which joint actions may be chosen, (..., 1, J), given options (..., D, K)."""
        allowed = self._legal
        if legal is not None:
            options = self._heads.long().T  # (H, J)
            each = legal.gather(-1, options.expand(*legal.shape[:-1], -1))
            allowed = each.all(-2) if allowed is None else each.all(-2) & allowed
        return None if allowed is None else allowed.unsqueeze(-2)


class JointPolicy(nn.Module):
    """One categorical distribution over all joint actions."""

    num_columns = 1

    def __init__(self, inner: Blueprint, actions: JointActions) -> None:
        super().__init__()
        self.actions = actions
        self.inner = SharedPolicy(inner)
        self.num_uniforms = 1

    def sample(
        self, obs: Tensor, uniform: Tensor, legal: Tensor | None = None
    ) -> tuple[Tensor, Judged]:
        """Draws joint actions and judges them."""
        joint, judged = self.inner.sample(obs, uniform, self.actions.legal(legal))
        return self.actions.to_heads(joint), judged

    def judge(self, obs: Tensor, raw: Tensor, legal: Tensor | None = None) -> Judged:
        """The log-probability and entropy of joint actions, one column."""
        return self.inner.judge(obs, self.actions.to_joint(raw), self.actions.legal(legal))

    def mode(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """The most likely joint action."""
        return self.actions.to_heads(self.inner.mode(obs, self.actions.legal(legal)))

    def to_unit(self, raw: Tensor) -> Tensor:
        """Options are what the learner's form has."""
        return raw


class JointValue(nn.Module):
    """One dueling head over all joint actions: the exact oracle for all other values."""

    num_columns = 1

    def __init__(self, inner: Blueprint, actions: JointActions) -> None:
        super().__init__()
        self.actions = actions
        self.inner = BranchingValue(inner)

    def predict(self, obs: Tensor, action: Tensor, legal: Tensor | None = None) -> Tensor:
        """V + A of the joint action, (P, B, 1)."""
        return self.inner.predict(obs, self.actions.to_joint(action), self.actions.legal(legal))

    def best(self, obs: Tensor, legal: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The best joint action as options, and its value."""
        joint, value = self.inner.best(obs, self.actions.legal(legal))
        return self.actions.to_heads(joint), value

    def joint(self, obs: Tensor, action: Tensor) -> Tensor:
        """The value of the joint action, (P, B)."""
        return self.predict(obs, action).squeeze(-1)

    def soft_heads(
        self, obs: Tensor, temperature: float, legal: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The log-policy over joint actions (..., 1, J), and the soft value (..., B, 1)."""
        return self.inner.soft_heads(obs, temperature, self.actions.legal(legal))


@factorizations.register("joint")
@dataclass(frozen=True, kw_only=True)
class Joint(Factorization):
    """One choice among all joint actions."""

    name: ClassVar[str] = "joint"
    max_joint: int = 10_000
    """The largest number of joint actions."""

    def check(self, spec: ActionSpec) -> None:
        """Every head must be a Choice, and their product not too large."""
        if spec.joint_size is None:
            raise ConfigError(
                "the joint factorization needs options, and some heads are Ranges",
                got=str(spec),
                allowed="Choices, or Ranges cut into bins",
                fix="Give a number of bins, or use factorization='ar', which is as expressive.",
            )
        if spec.joint_size > self.max_joint:
            raise ConfigError(
                "there are too many joint actions",
                got=f"{spec.joint_size:,} = {' x '.join(map(str, spec.cardinalities))}",
                allowed=f"at most {self.max_joint:,}",
                fix="Raise max_joint, use fewer bins, or use factorization='ar' or 'vdn'.",
            )

    def _inner(self, blueprint: Blueprint) -> tuple[Blueprint, JointActions]:
        actions = JointActions(blueprint.layout)
        return replace(blueprint, layout=actions.layout), actions

    def policy(self, blueprint: Blueprint) -> Policy:
        """One categorical distribution over joint actions."""
        return JointPolicy(*self._inner(blueprint))

    def critic(self, blueprint: Blueprint) -> ValueCritic:
        """One value."""
        return ValueCritic(blueprint)

    def value(self, blueprint: Blueprint) -> Value:
        """One dueling head over joint actions."""
        return JointValue(*self._inner(blueprint))
