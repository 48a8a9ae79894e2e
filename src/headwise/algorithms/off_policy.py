"""Settings of the algorithms that learn from replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from headwise.algorithms.base import AlgorithmConfig, ReplayPlan
from headwise.checks import check_counts


@dataclass(frozen=True, kw_only=True)
class OffPolicyConfig(AlgorithmConfig):
    """What DQN and SAC share: replay, the ratio of updates to steps, and a target that follows."""

    replay: int = 100_000
    """Transitions kept for each member."""
    batch_size: int = 256
    """Rows of a gradient step."""
    warmup: int = 1000
    """Transitions before the first gradient step."""
    updates_per_step: float = 0.25
    """Gradient steps for each environment step of a member."""
    tau: float = 0.01
    """How far the target network moves towards the online one at each update."""
    n_step: int = 1
    """Steps of reward before the next value."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("tau", 0.0, 1.0)
        self.require("updates_per_step", 0.0, 100.0, open_low=True)
        check_counts(self, "replay", "batch_size", "n_step")

    @classmethod
    def small(cls, **settings: Any) -> Self:
        """A small replay that is soon full enough."""
        few = {"replay": 200, "batch_size": 16, "warmup": 16, "updates_per_step": 0.25}
        return super().small(**few | settings)

    def replay_plan(self) -> ReplayPlan:
        """What data an update wants, and when."""
        return ReplayPlan(
            self.replay, self.batch_size, self.warmup, self.updates_per_step, self.n_step
        )
