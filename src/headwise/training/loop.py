"""The only training loop: act, step, remember, learn."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from headwise.algorithms.base import (
    Acted,
    Algorithm,
    Metrics,
    ReplayBatch,
    ReplayPlan,
    RolloutBatch,
    RolloutPlan,
)
from headwise.envs.types import StepBatch, VecEnv
from headwise.population import Keys, Stream
from headwise.training.binning import Binning
from headwise.training.episodes import Episodes
from headwise.training.replay import Replay
from headwise.training.rollout import Rollout
from headwise.training.transition import Transition


class Loop:
    """Trains a population in an environment.

    Args:
        env: The environment, P members with E slots each.
        algorithm: The learner.
        keys: The members' seeds.
        gamma: The members' discounts (P,), for returns over several steps.
        binning: What a learner of options makes of Range heads.
    """

    def __init__(
        self, env: VecEnv, algorithm: Algorithm, keys: Keys, gamma: Tensor, binning: Binning
    ) -> None:
        self.env = env
        self.algorithm = algorithm
        self.keys = keys
        self.gamma = gamma
        self.binning = binning
        self.episodes = Episodes()
        self.metrics: Metrics = {}
        """What the last update reported."""
        self.ticks = 0
        """Steps of the vector environment."""
        self.updates = 0
        """Updates of the learner."""
        plan = algorithm.plan
        self.memory: Rollout | Replay
        if isinstance(plan, RolloutPlan):
            self.memory = Rollout(plan.length)
        else:
            self.memory = Replay(plan.capacity, env.num_slots, plan.n_step)
        self.obs: Tensor | None = None

    @property
    def env_steps(self) -> int:
        """Environment steps that each member has taken."""
        return self.ticks * self.env.num_slots

    def run(self, env_steps: int) -> None:
        """Goes on until each member has taken that many environment steps in all."""
        while self.env_steps < env_steps:
            self.tick()

    def tick(self) -> None:
        """One step of every slot, and the updates that are then due."""
        if self.obs is None:
            self.obs = self._upload(self.env.reset())
        acted = self.algorithm.act(self.obs, self.keys.at(self.ticks))
        # A member that has diverged may act by NaN; it goes on with something instead.
        action = self.binning.to_env(acted.action).nan_to_num(0.0)
        step = self.env.step(action.cpu().numpy())
        self.ticks += 1
        self.episodes.add(step, self.env_steps)
        self.memory.add(self._transition(acted_on=self.obs, acted=acted, step=step))
        self.obs = self._upload(step.obs)
        self._learn()

    def _learn(self) -> None:
        plan = self.algorithm.plan
        if isinstance(self.memory, Rollout):
            if self.memory.full:
                self._update(self.memory.take())
            return
        assert isinstance(plan, ReplayPlan)
        due = int((self.env_steps - plan.warmup) * plan.updates_per_step)
        while self.updates < due:
            uniform = self.keys.uniform(Stream.REPLAY, self.updates, (plan.batch_size, 2))
            self._update(self.memory.sample(uniform, self.gamma))

    def _update(self, batch: RolloutBatch | ReplayBatch) -> None:
        self.metrics = self.algorithm.update(batch, self.keys.at(self.updates))
        self.updates += 1

    def _transition(self, acted_on: Tensor, acted: Acted, step: StepBatch) -> Transition:
        return Transition(
            obs=acted_on,
            acted=acted,
            reward=self._upload(step.reward),
            next_obs=self._upload(step.next_obs),
            terminated=self._upload(step.terminated),
            truncated=self._upload(step.truncated),
            valid=self._upload(step.valid),
        )

    def _upload(self, array: NDArray[Any]) -> Tensor:
        # The environment's arrays are overwritten by its next step, so nothing keeps a view.
        return torch.from_numpy(array).to(self.keys.device, copy=True)
