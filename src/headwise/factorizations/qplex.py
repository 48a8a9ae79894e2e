"""Monotonic mixing: Q = V + f(A_1 ... A_H | s), increasing in each advantage (PPO-MIX for PPO).

The paper's mixer is QMIX over advantages; `mixer="qplex"` weights each advantage by a positive
function of the state and the joint action instead, as QPLEX itself does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from headwise.checks import check_counts
from headwise.factorizations.base import (
    Blueprint,
    Factorization,
    Importance,
    Policy,
    Value,
    factorizations,
)
from headwise.factorizations.parts.critics import BranchingCritic
from headwise.factorizations.parts.values import BranchingValue, chosen_centred
from headwise.factorizations.shared import SharedPolicy
from headwise.factorizations.soft.base import Soft, need_options
from headwise.factorizations.soft.branching import BranchingSoft
from headwise.nets import Mixer
from headwise.nets.mixer import MixerKind


class MixedValue(BranchingValue):
    """V and max-centred advantages in a mixer that sees the embedding, without its gradient."""

    def __init__(self, blueprint: Blueprint, width: int, kind: MixerKind) -> None:
        super().__init__(blueprint)
        layout = self.layout
        self.mixer = Mixer(
            blueprint.init,
            layout.num_heads,
            self.net.embedding_size,
            width,
            kind,
            layout.num_choices * layout.max_options,
        )

    def predict(self, obs: Tensor, action: Tensor, legal: Tensor | None = None) -> Tensor:
        """What is regressed on the target, (P, B, 1)."""
        value, flat, embedding = self.net.with_embedding(obs)
        in_use = self.layout.active(action) if self.layout.is_conditional else None
        options = self.layout.choice_numbers(action)
        picked = chosen_centred(self.layout, flat, options, legal, in_use)
        return self.mixed(value, picked, embedding, action)

    def mixed(self, value: Tensor, advantage: Tensor, embedding: Tensor, action: Tensor) -> Tensor:
        """V plus the mixture (P, B, 1) of chosen advantages (P, B, D)."""
        one_hot = None
        if self.mixer.kind == "qplex":
            options = self.layout.choice_columns(action)
            one_hot = torch.nn.functional.one_hot(options, self.layout.max_options)
            if self.layout.is_conditional:  # what a head says that is not in use means nothing
                one_hot = one_hot * self.layout.active(action).unsqueeze(-1)
            one_hot = one_hot.flatten(-2).to(value.dtype)
        mixed: Tensor = self.mixer(advantage, embedding.detach(), one_hot, base=value)
        return mixed.unsqueeze(-1)


@factorizations.register("qplex")
@dataclass(frozen=True, kw_only=True)
class QPLEX(Factorization):
    """One encoder, advantages mixed monotonically: Q = V + f(A_1 ... A_H | s)."""

    name: ClassVar[str] = "qplex"
    default_importance: ClassVar[Importance] = "grad"
    mixer_width: int = 128
    """Hidden units of the mixer."""
    mixer: MixerKind = "paper"
    """`paper`: QMIX over advantages. `qplex`: positive weights that see the joint action (DQN)."""
    critic_bins: int = 5
    """Bins of a Range head in the critic of PPO."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "mixer_width", "critic_bins")

    def policy(self, blueprint: Blueprint) -> Policy:
        """A policy whose heads share an encoder."""
        return SharedPolicy(blueprint)

    def critic(self, blueprint: Blueprint) -> BranchingCritic:
        """V and policy-centred advantages in a mixer."""
        return BranchingCritic(blueprint, self.mixer_width, self.critic_bins)

    def value(self, blueprint: Blueprint) -> Value:
        """V and max-centred advantages in a mixer."""
        return MixedValue(blueprint, self.mixer_width, self.mixer)

    def soft(self, blueprint: Blueprint) -> Soft:
        """SAC-BDQ with its advantages in a mixer."""
        need_options(blueprint.spec, self.name)
        return BranchingSoft(blueprint, self.mixer_width)
