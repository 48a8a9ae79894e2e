"""Joint: one choice among all joint actions. Exact, and as large as the product of the heads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor, nn

from headwise.checks import check_counts
from headwise.errors import ConfigError
from headwise.factorizations.base import (
    Blueprint,
    Factorization,
    Judged,
    Policy,
    Value,
    factorizations,
)
from headwise.factorizations.parts.critics import ValueCritic
from headwise.factorizations.parts.joint_actions import JointActions
from headwise.factorizations.parts.plain import PlainValue
from headwise.factorizations.parts.values import BranchingValue
from headwise.factorizations.shared import SharedPolicy
from headwise.factorizations.soft.base import Soft
from headwise.factorizations.soft.joint import JointSoft
from headwise.spaces import ActionSpec


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
    """One head over all joint actions: the exact oracle for all other values."""

    num_columns = 1

    def __init__(self, inner: Blueprint, actions: JointActions) -> None:
        super().__init__()
        self.actions = actions
        self.inner = BranchingValue(inner) if inner.dueling else PlainValue(inner)

    def predict(self, obs: Tensor, action: Tensor, legal: Tensor | None = None) -> Tensor:
        """The value of the joint action, (P, B, 1)."""
        return self.inner.predict(obs, self.actions.to_joint(action), self.actions.legal(legal))

    def best(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """The best joint action as options."""
        return self.actions.to_heads(self.inner.best(obs, self.actions.legal(legal)))

    def best_value(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """Its value, which for a dueling network is V, whatever is legal."""
        if isinstance(self.inner, BranchingValue):
            return self.inner.best_value(obs)
        return self.inner.best_value(obs, self.actions.legal(legal))

    def joint(self, obs: Tensor, action: Tensor) -> Tensor:
        """The value of the joint action, (P, B)."""
        return self.predict(obs, action).squeeze(-1)

    def soft_heads(
        self, obs: Tensor, temperature: float, legal: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The log-policy over joint actions (..., 1, J), and the soft value (..., B, 1)."""
        return self.inner.soft_heads(obs, temperature, self.actions.legal(legal))

    def options(self, action: Tensor) -> Tensor:
        """The columns of `soft_heads` that an action picks, (..., 1)."""
        return self.actions.to_joint(action).long()


@factorizations.register("joint")
@dataclass(frozen=True, kw_only=True)
class Joint(Factorization):
    """One choice among all joint actions."""

    name: ClassVar[str] = "joint"
    joint_ratio: ClassVar[bool] = True
    has_soft_heads: ClassVar[bool] = True
    has_plain_value: ClassVar[bool] = True
    max_joint: int = 10_000
    """The largest number of joint actions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # A joint action travels as a float32, which counts no further.
        check_counts(self, "max_joint", most=2**24)

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

    def least_numbers(self, spec: ActionSpec) -> int:
        """One of each joint action."""
        return spec.joint_size or 0

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
        """One head over joint actions, dueling or plain."""
        return JointValue(*self._inner(blueprint))

    def soft(self, blueprint: Blueprint) -> Soft:
        """Discrete SAC over joint actions."""
        return JointSoft(blueprint)
