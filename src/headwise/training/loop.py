"""The only training loop: act, step, remember, learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headwise.algorithms.base import (
    Acted,
    Algorithm,
    Metrics,
    ReplayBatch,
    ReplayPlan,
    Report,
    RolloutBatch,
    RolloutPlan,
)
from headwise.envs.types import StepBatch, VecEnv
from headwise.population import Clock, Keys, Stream
from headwise.training.binning import Binning
from headwise.training.capture import Captured
from headwise.training.episodes import Episodes
from headwise.training.legal import LegalOptions
from headwise.training.normalise import Normaliser
from headwise.training.replay import Replay
from headwise.training.rollout import Rollout
from headwise.training.threads import training_threads
from headwise.training.transition import Transition

State = dict[str, dict[str, Tensor]]
"""Everything a run depends on: tensors by part and name."""


class Loop:
    """Trains a population in an environment.

    Args:
        env: The environment, P members with E slots each.
        algorithm: The learner.
        keys: The members' seeds.
        gamma: The members' discounts (P,), for returns over several steps.
        binning: What a learner of options makes of Range heads.
        normaliser: What makes observations and rewards of a common size; None leaves them alone.
    """

    def __init__(
        self,
        env: VecEnv,
        algorithm: Algorithm,
        keys: Keys,
        gamma: Tensor,
        binning: Binning,
        normaliser: Normaliser | None = None,
    ) -> None:
        self.env = env
        self.algorithm = algorithm
        self.keys = keys
        self.gamma = gamma
        self.binning = binning
        self.normaliser = normaliser
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
        """What to act on now, as the environment gave it."""
        self.legal: Tensor | None = None
        """Which options are legal now, for the learner; None means all."""
        self._legal_options = LegalOptions(env.spec, binning.spec, keys.device)
        self._act_clock, self._update_clock = Clock(keys.device), Clock(keys.device)
        # A normaliser makes new tensors as it goes, and so do some learners.
        captured = normaliser is None and getattr(algorithm, "capturable", True)
        where = keys.device if captured else torch.device("cpu")
        self._act = Captured(self._act_times, where)
        self._update = Captured(self._update_times, where, bundle=4)
        self._rollout: RolloutBatch | None = None

    @property
    def env_steps(self) -> int:
        """Environment steps that each member has taken."""
        return self.ticks * self.env.num_slots

    def run(self, env_steps: int, watch: Callable[[Loop], bool] | None = None) -> None:
        """Goes on until each member has taken that many environment steps in all.

        Args:
            env_steps: The steps to reach.
            watch: Called after every tick; the run stops when it says True.
        """
        with training_threads(self.keys.num_members, self.keys.device):
            while self.env_steps < env_steps:
                self.tick()
                if watch is not None and watch(self):
                    break

    def tick(self) -> None:
        """One step of every slot, and the updates that are then due."""
        if self.obs is None:
            self.begin_episodes()
        assert self.obs is not None
        seen, acted, action = self._act()
        step = self.env.step(action.cpu().numpy())
        self.ticks += 1
        self.episodes.add(step, self.env_steps)
        self.memory.add(self._transition(seen, acted, step))
        self._see(step.obs, step.legal)
        self._learn_what_is_due()

    def _act_times(self, times: int) -> tuple[Tensor, Acted, Tensor]:
        assert times == 1
        return self._act_once()

    def _act_once(self) -> tuple[Tensor, Acted, Tensor]:
        """What the learner sees now, what it does, and that as the environment takes it."""
        assert self.obs is not None
        seen = self.obs if self.normaliser is None else self.normaliser.obs(self.obs, update=True)
        acted = self.algorithm.act(seen, self.keys.at(self._act_clock.now), self.legal)
        self._act_clock.advance()
        # A member that has diverged may act by NaN; it goes on with something instead.
        return seen, acted, self.binning.to_env(acted.action).nan_to_num(0.0)

    def begin_episodes(self) -> None:
        """Starts an episode in every slot; what was going on there counts as cut off."""
        self.memory.cut()
        self._see(self.env.reset(), getattr(self.env, "first_legal", None))

    def _see(self, obs: NDArray[np.float32], legal: NDArray[np.bool_] | None) -> None:
        """Takes in what to act on next; on a GPU always in the same place, for captured code."""
        new_obs, new_legal = self._upload(obs), self._mask(legal)
        if self.obs is None or new_obs.device.type == "cpu":
            self.obs, self.legal = new_obs, new_legal
            return
        self.obs.copy_(new_obs)
        if new_legal is not None and self.legal is not None:
            self.legal.copy_(new_legal)

    # --- learning -------------------------------------------------------------------------------

    def _learn_what_is_due(self) -> None:
        plan = self.algorithm.plan
        if isinstance(self.memory, Rollout):
            due = self.updates + int(self.memory.full)
            if self.memory.full:
                self._rollout = self.memory.take()
        else:
            assert isinstance(plan, ReplayPlan)
            due = int((self.env_steps - plan.warmup) * plan.updates_per_step)
        if due > self.updates:
            self.learn(due - self.updates)

    def learn(self, updates: int) -> None:
        """So many updates of the learner from what is in memory."""
        self.metrics = self._update(updates)
        self.updates += updates

    def _update_times(self, times: int) -> Metrics:
        """So many updates; only the last one's report is worked out."""
        for _ in range(times):
            report = self._update_once()
        return report()

    def _update_once(self) -> Report:
        draws = self.keys.at(self._update_clock.now)
        batch: RolloutBatch | ReplayBatch
        if isinstance(self.memory, Rollout):
            assert self._rollout is not None
            batch = self._rollout
        else:
            assert isinstance(self.algorithm.plan, ReplayPlan)
            uniform = draws.uniform(Stream.REPLAY, self.algorithm.plan.batch_size, 2)
            batch = self.memory.sample(uniform, self.gamma)
            batch = batch if self.normaliser is None else self.normaliser.batch(batch)
        report = self.algorithm.update(batch, draws)
        self._update_clock.advance()
        return report

    def _transition(self, seen: Tensor, acted: Acted, step: StepBatch) -> Transition:
        assert self.obs is not None
        terminated, truncated = self._upload(step.terminated), self._upload(step.truncated)
        obs, next_obs, reward = self.obs, self._upload(step.next_obs), self._upload(step.reward)
        next_legal = self._mask(step.next_legal)
        valid = self._upload(step.valid)
        if self.normaliser is not None:
            ended = terminated | truncated
            scaled = self.normaliser.reward(reward, ended, update=True, valid=valid)
            if isinstance(self.memory, Rollout):
                # A policy must be judged by what it saw; replay keeps what was there, because by
                # the time it is drawn the scale is another.
                obs, reward = seen, scaled
                next_obs = self.normaliser.obs(next_obs, update=False)
        return Transition(
            obs=obs,
            acted=acted,
            reward=reward,
            next_obs=next_obs,
            terminated=terminated,
            truncated=truncated,
            valid=valid,
            legal=self.legal,
            next_legal=next_legal,
            whole=bool(step.valid.all()),
        )

    def _mask(self, legal: NDArray[np.bool_] | None) -> Tensor | None:
        return None if legal is None else self._legal_options(self._upload(legal))

    def _upload(self, array: NDArray[Any]) -> Tensor:
        # The environment's arrays are overwritten by its next step, so nothing keeps a view.
        # From pinned memory it is copied while we go on; our next action waits for it.
        return torch.from_numpy(array).to(self.keys.device, copy=True, non_blocking=True)

    # --- keeping --------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Everything that the rest of the run depends on."""
        counters = {"ticks": torch.tensor(self.ticks), "updates": torch.tensor(self.updates)}
        state: State = {
            "counters": counters,
            "learner": self.algorithm.state_dict(),
            "metrics": dict(self.metrics),
            "episodes": {"table": torch.from_numpy(self.episodes.table)},
        }
        if self.normaliser is not None:
            state["normaliser"] = self.normaliser.state_dict()
        if self.obs is not None:
            state["memory"] = self.memory.state_dict()
            state["now"] = {"obs": self.obs}
            if self.legal is not None:
                state["now"]["legal"] = self.legal
            if self.env.can_snapshot:
                snapshot = np.frombuffer(self.env.snapshot(), dtype=np.uint8)
                state["env"] = {"snapshot": torch.from_numpy(snapshot.copy())}
        return state

    def load_state_dict(self, state: State) -> None:
        """Goes back to a saved state.

        Where the environment could not be kept, every slot begins a new episode.
        """
        self.ticks = int(state["counters"]["ticks"])
        self.updates = int(state["counters"]["updates"])
        self._act_clock.set(self.ticks)
        self._update_clock.set(self.updates)
        self.metrics = dict(state["metrics"])
        self.episodes.table = state["episodes"]["table"].cpu().numpy()
        self.load_learner(state)
        if "memory" not in state:
            return
        self.memory.load_state_dict(state["memory"])
        if "env" in state and self.env.can_snapshot:
            self.env.restore(state["env"]["snapshot"].cpu().numpy().tobytes())
            self.obs, self.legal = None, None
            self._see(state["now"]["obs"].cpu().numpy(), None)
            self.legal = state["now"].get("legal")

    def load_learner(self, state: State) -> None:
        """Takes over what was learned, and nothing of where the run was."""
        self.algorithm.load_state_dict(state["learner"])
        if self.normaliser is not None:
            self.normaliser.load_state_dict(state["normaliser"])
