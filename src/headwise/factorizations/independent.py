"""Independent networks: every head has its own, all trained on the same reward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from headwise.factorizations.base import (
    Blueprint,
    Factorization,
    Judged,
    Policy,
    Value,
    factorizations,
)
from headwise.factorizations.parts.critics import ValueCritic
from headwise.factorizations.parts.plain import PlainValue
from headwise.factorizations.parts.stacks import PolicyStack, for_each_head
from headwise.factorizations.parts.values import best_options, chosen_values, max_centred
from headwise.factorizations.soft.base import Soft
from headwise.factorizations.soft.independent import IndependentSoft
from headwise.nets import Dueling


class IndependentPolicy(nn.Module):
    """A policy network for each head."""

    def __init__(self, blueprint: Blueprint) -> None:
        super().__init__()
        self.stack = PolicyStack(blueprint, blueprint.obs_size)
        self.layout = blueprint.layout
        self.num_columns = self.layout.num_heads
        self.num_uniforms = self.stack.num_uniforms

    def sample(
        self, obs: Tensor, uniform: Tensor, legal: Tensor | None = None
    ) -> tuple[Tensor, Judged]:
        """Draws raw actions and judges them."""
        heads = self.stack.heads(for_each_head(obs, self.num_columns), legal)
        raw, log_prob = heads.sample(uniform)
        return raw, Judged(log_prob, heads)

    def judge(self, obs: Tensor, raw: Tensor, legal: Tensor | None = None) -> Judged:
        """Log-probabilities and entropies of given raw actions, head by head."""
        heads = self.stack.heads(for_each_head(obs, self.num_columns), legal)
        return Judged(heads.log_prob(raw), heads)

    def mode(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """The raw actions to take when chance is not wanted."""
        return self.stack.heads(for_each_head(obs, self.num_columns), legal).mode()

    def to_unit(self, raw: Tensor) -> Tensor:
        """Raw actions in the learner's form."""
        return self.stack.spread.to_unit(self.layout, raw)


class IndependentValue(nn.Module):
    """A dueling network for each head: V_h and A_h, each regressed on its own target."""

    def __init__(self, blueprint: Blueprint) -> None:
        super().__init__()
        self.layout = blueprint.layout
        self.num_columns = self.layout.num_heads
        self.net = Dueling(
            blueprint.init,
            blueprint.obs_size,
            self.layout.max_options,
            blueprint.hidden,
            blueprint.branch_width,
            blueprint.activation,
            copies=(self.num_columns,),
            orthogonal=blueprint.orthogonal,
        )

    def branches(self, obs: Tensor, legal: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Values (..., B, H) and max-centred advantages (..., B, H, K)."""
        value, advantage = self.net(for_each_head(obs, self.num_columns))
        centred = max_centred(self.layout, advantage.movedim(-3, -2), legal)
        return value.transpose(-1, -2), centred

    def predict(self, obs: Tensor, action: Tensor, legal: Tensor | None = None) -> Tensor:
        """V_h + A_h for each head, (P, B, H)."""
        value, advantage = self.net(for_each_head(obs, self.num_columns))
        return chosen_values(self.layout, value, advantage, action, legal, stacked=True, sums=False)

    def best(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """Each head's best option."""
        advantage = self.net.advantages_alone(for_each_head(obs, self.num_columns))
        return best_options(self.layout, advantage, legal, stacked=True)

    def best_value(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """Each head's own V_h."""
        return self.net.value_alone(for_each_head(obs, self.num_columns)).transpose(-1, -2)

    def joint(self, obs: Tensor, action: Tensor) -> Tensor:
        """The mean of the heads' predictions."""
        return self.predict(obs, action).mean(-1)

    def soft_heads(
        self, obs: Tensor, temperature: float, legal: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Log-policies softmax(A_h / t), (..., H, K), and each head's soft value (..., B, H)."""
        value, advantage = self.branches(obs, legal)
        scaled = advantage / temperature
        soft = value + temperature * torch.logsumexp(scaled, dim=-1)
        return torch.log_softmax(scaled, dim=-1), soft

    def options(self, action: Tensor) -> Tensor:
        """The columns of `soft_heads` that an action picks, (..., H)."""
        return self.layout.choice_columns(action)


@factorizations.register("independent")
@dataclass(frozen=True, kw_only=True)
class Independent(Factorization):
    """A network of its own for every head, all on the same reward."""

    name: ClassVar[str] = "independent"
    sums_head_losses: ClassVar[bool] = True
    has_soft_heads: ClassVar[bool] = True
    has_plain_value: ClassVar[bool] = True

    def policy(self, blueprint: Blueprint) -> Policy:
        """A policy network for each head."""
        return IndependentPolicy(blueprint)

    def critic(self, blueprint: Blueprint) -> ValueCritic:
        """A value network for each head."""
        return ValueCritic(blueprint, blueprint.layout.num_heads)

    def value(self, blueprint: Blueprint) -> Value:
        """A network for each head, dueling or plain."""
        if blueprint.dueling:
            return IndependentValue(blueprint)
        return PlainValue(blueprint, adds_up=False, stacked=True)

    def soft(self, blueprint: Blueprint) -> Soft:
        """A SAC learner for each head."""
        return IndependentSoft(blueprint)
