"""The only training loop: act, step, remember, learn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
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
    RolloutBatch,
)
from headwise.envs.types import LostEpisodesError, StepBatch, VecEnv
from headwise.population import Clock, Keys, Stream
from headwise.spaces.bins import Binning
from headwise.training.bridge import Bridge
from headwise.training.capture import Captured
from headwise.training.compiled_ticks import CompiledTicks, compiled_ticks
from headwise.training.episodes import Episodes
from headwise.training.lazy_env import LazyEnv
from headwise.training.memory import load_memory, memory_for
from headwise.training.normalize import Normalizer
from headwise.training.rollout import Rollout
from headwise.training.threads import training_threads
from headwise.training.transition import Transition
from headwise.training.turns import Question

SLOW = 300e-6
"""Seconds of a step of the environment from which a separate thread pays."""

State = dict[str, dict[str, Tensor]]
"""Everything a run depends on: tensors by part and name."""


class Loop:
    """Trains a population in an environment.

    Args:
        env: The environment, P members with E slots each, or what makes it when it is stepped.
        algorithm: The learner.
        keys: The members' seeds.
        gamma: The members' discounts (P,), for returns over several steps.
        binning: What the learner makes of the environment's heads.
        normalizer: What makes observations and rewards of a common size; None leaves them alone.
    """

    def __init__(
        self,
        env: VecEnv | LazyEnv,
        algorithm: Algorithm,
        keys: Keys,
        gamma: Tensor,
        binning: Binning,
        normalizer: Normalizer | None = None,
    ) -> None:
        self.lazy_env = env if isinstance(env, LazyEnv) else LazyEnv.of(env)
        """What is known of the environment, which may not be made yet."""
        self.algorithm, self.keys = algorithm, keys
        self.gamma, self.binning, self.normalizer = gamma, binning, normalizer
        self.episodes = Episodes()
        self.metrics: Metrics = {}  # of the last update
        self.ticks = 0  # steps of the vector environment
        self.env_steps = 0  # of each member
        self.updates = 0  # of the learner
        self.total_steps: int | None = None
        """Environment steps of each member by which the run ends, for settings that follow it."""
        self.memory = memory_for(algorithm.plan, self.lazy_env)
        self.obs: Tensor | None = None
        """What to act on now, as the environment gave it; None before the first episode."""
        self._in_episodes = False
        self.legal: Tensor | None = None
        """Which options are legal now, for the learner; None means all."""
        self._clock = Clock(keys.device)
        """Updates, by which rows of the past are drawn."""
        self._capture()
        self._rollout: RolloutBatch | None = None
        self._bridge = Bridge(keys.device)
        self._compiled: CompiledTicks | None = None
        self._quickest = float("inf")  # seconds that a step of the environment took so far

    def _capture(self) -> None:
        """Whatever is captured, anew."""
        if (where := self.keys.device).type == "cuda":  # a graph must not go while it runs
            torch.cuda.synchronize(where)
        self._act = Captured(lambda times: self._act_once(), where)
        self._take_in = Captured(lambda times: self._take_in_once(), where)
        # Those of PPO are thousands of kernels: it records its passes itself.
        alone = where if isinstance(self.algorithm.plan, ReplayPlan) else torch.device("cpu")
        self._update = Captured(self._update_times, alone, bundle=4)

    @property
    def env(self) -> VecEnv:
        """The environment, made now if need be."""
        return self.lazy_env.opened()

    @property
    def in_episodes(self) -> bool:
        """Whether every slot is in the episode that `obs` is of; if not, new ones begin."""
        return self._in_episodes and not self.lazy_env.is_taken

    @in_episodes.setter
    def in_episodes(self, value: bool) -> None:
        self._in_episodes = value

    def run(
        self,
        env_steps: int,
        watch: Callable[[Loop], bool] | None = None,
        due: Callable[[], float] | None = None,
    ) -> None:
        """Goes on until each member has taken that many environment steps in all.

        Args:
            env_steps: The steps to reach.
            watch: Looks at the loop now and then; the run stops when it says True.
            due: The steps by which it is to look next, at the latest; None: after every tick.
        """
        with training_threads(self.keys.num_members, self.keys.device):
            while self.env_steps < env_steps:
                if watch is None:
                    self.go_on(env_steps)
                    continue
                self.go_on(min(env_steps, 0 if due is None else due()))
                if watch(self):
                    break

    def turns(self, env_steps: int, aside: Executor | None = None) -> Iterator[Question]:
        """The same as `run`, with a pause in every tick while the device chooses actions.

        So one thread can train several loops on a GPU by turns.

        Args:
            env_steps: The steps to reach.
            aside: Threads for a slow environment, with a pause while it takes its step.
        """
        while self.env_steps < env_steps:
            if self._ticks_at_once(env_steps):
                yield self._bridge.arrived
                continue
            self._begin_tick()
            yield self._bridge.arrived
            action = self._bridge.action()
            if aside is not None and self._quickest > SLOW:
                stepping = aside.submit(self._step, action)
                try:
                    yield stepping.done
                finally:  # an environment is never closed in the middle of a step
                    step = stepping.result()
                self._end_tick(step)
            else:
                self._end_tick(self._step(action))

    def go_on(self, env_steps: float = float("inf")) -> None:
        """A tick; or, where they are one call, all up to an update or up to so many steps."""
        if not self._ticks_at_once(env_steps):
            self.tick()

    def _ticks_at_once(self, env_steps: float) -> bool:
        """Whether everything is compiled; then as many ticks as `go_on` says, at least one."""
        compiled = self._compiled_ticks(self.obs) if self.in_episodes else None
        if compiled is None or compiled.env is None:
            return False
        self.in_episodes = False  # as in `_step`
        try:
            compiled.run((env_steps - self.env_steps) / self.lazy_env.num_slots)
        finally:
            taken = compiled.take_in(self.episodes, self.env_steps)
            self.ticks += taken
            self.env_steps += taken * self.lazy_env.num_slots
        assert taken
        self.in_episodes = True
        self._learn_what_is_due()
        return True

    def _compiled_ticks(self, seen: Tensor | None) -> CompiledTicks | None:
        """Acting and remembering as compiled calls, where they can be; with scaling only acting."""
        memory = self.memory if self.normalizer is None else None
        if self.legal is not None or (memory is None and seen is self.obs):
            return None
        given = self.env, self.algorithm, seen, self.binning, memory, self._compiled
        self._compiled = compiled_ticks(*given)
        return self._compiled

    def tick(self) -> None:
        """One step of every slot, and the updates that are then due."""
        self._begin_tick()
        self._end_tick(self._step(self._bridge.action()))

    def _begin_tick(self) -> None:
        """Chooses actions."""
        if not self.in_episodes:
            self.begin_episodes()
        self._seen, self._acted = self._act()
        self._bridge.expect()

    def _step(self, action: NDArray[np.float32]) -> StepBatch | None:
        """Takes them; None where that came to nothing, because every slot begins anew."""
        # Until its end is taken in: if a step fails, it is unknown which slots have moved.
        self.in_episodes = False
        begun = time.perf_counter()
        try:
            step = self.env.step(action)
        except LostEpisodesError:
            return None
        self._quickest = min(self._quickest, time.perf_counter() - begun)
        return step

    def _end_tick(self, step: StepBatch | None) -> None:
        """Learns from what came of them."""
        if step is None:
            return
        if step.legal is not None and self.legal is None:
            self._expect_masks(self.binning.legal(self._upload(step.legal)))
        self.ticks += 1
        self.env_steps += self.lazy_env.num_slots
        self.episodes.add(step, self.env_steps)
        self._bridge.load(step)
        self._whole = isinstance(self.memory, Rollout) or bool(step.valid.all())
        self._take_in()
        if self.memory.count():
            self._capture()
        self.in_episodes = True
        self._learn_what_is_due()

    def _act_once(self) -> tuple[Tensor, Acted]:
        """What the learner sees now and what it does, which is sent to the environment."""
        assert self.obs is not None
        seen = self.obs if self.normalizer is None else self.normalizer.shown(self.obs)
        if compiled := self._compiled_ticks(seen):
            self._bridge.send(compiled.act())
            return seen, compiled.acted
        acted = self.algorithm.act(seen, self.legal)
        # A member that has diverged may act by NaN; it goes on with something instead.
        self._bridge.send(self.binning.to_env(acted.action).nan_to_num(0.0))
        return seen, acted

    def _take_in_once(self) -> None:
        """Remembers the step that the environment took, and sees what there is now."""
        compiled = self._compiled
        if compiled is not None and compiled.remember(self._acted, self._bridge.step):
            return
        fresh = self._bridge.tensors()
        self.memory.write(self._transition(fresh))
        self._keep_seeing(fresh["obs"], self._mask(fresh.get("legal")))

    def begin_episodes(self) -> None:
        """Starts an episode in every slot; what was going on there counts as cut off."""
        self.memory.cut()
        if self.normalizer is not None:
            self.normalizer.begin_episodes()
        obs = self._upload(self.env.reset())
        legal = self.env.first_legal  # of the observations just given
        self._keep_seeing(obs, self._mask(None if legal is None else self._upload(legal)))
        self.in_episodes = True

    def _expect_masks(self, legal: Tensor) -> None:
        """Where masks come for the first time: till now everything was legal."""
        self.legal = torch.ones_like(legal)
        self._capture()  # what was captured knows of none

    def _keep_seeing(self, obs: Tensor, legal: Tensor | None = None) -> None:
        """Takes in what to act on next, and what the learner may do there, in the same place."""
        if self.obs is None:
            self.obs, self.legal = obs.clone(), None if legal is None else legal.clone()
            return
        self.obs.copy_(obs)
        if legal is not None and self.legal is None:
            self._expect_masks(legal)
        if self.legal is not None:
            self.legal.copy_(torch.ones_like(self.legal) if legal is None else legal)

    # --- learning -------------------------------------------------------------------------------

    def _learn_what_is_due(self) -> None:
        plan = self.algorithm.plan
        if isinstance(self.memory, Rollout):
            due = int(self.memory.full)
            if due:
                self._rollout = self.memory.take()
        else:
            assert isinstance(plan, ReplayPlan)
            # By what was taken into memory, which is less than all steps where it began anew.
            slots = self.lazy_env.num_slots
            after, before = (slots * (self.memory.steps - ago) for ago in (0, 1))
            due = plan.updates_by(after) - plan.updates_by(before)
        if self.normalizer is not None:
            self.normalizer.advance(self.ticks, None if isinstance(plan, ReplayPlan) else due > 0)
        if due:
            self.learn(due)

    def learn(self, updates: int) -> None:
        """So many updates of the learner from what is in memory."""
        if total := self.total_steps:
            self.algorithm.follow(max(1.0 - self.env_steps / total, 0.0))
        self.metrics = self._update(updates)
        self.updates += updates

    def lay_out(self, total_steps: int) -> None:
        """Says how many environment steps each member will take, before it takes the first one."""
        self.total_steps = total_steps
        self._capture()
        self.algorithm.lay_out(total_steps)

    def _update_times(self, times: int) -> Metrics:
        """So many updates; only the last one's metrics are worked out."""
        for _ in range(times):
            metrics = self.algorithm.update(self._batch())
            self._clock.advance()
        return metrics()

    def _batch(self) -> RolloutBatch | ReplayBatch:
        if isinstance(self.memory, Rollout):
            assert self._rollout is not None
            return self._rollout
        assert isinstance(self.algorithm.plan, ReplayPlan)
        shape = (self.algorithm.plan.batch_size, 2)
        uniform = self.keys.uniform(Stream.REPLAY, self._clock.now, shape)
        batch = self.memory.sample(uniform, self.gamma)
        return batch if self.normalizer is None else self.normalizer.batch(batch)

    def _transition(self, fresh: dict[str, Tensor]) -> Transition:
        assert self.obs is not None
        step = Transition(
            obs=self.obs,
            acted=self._acted,
            reward=fresh["reward"],
            next_obs=fresh["next_obs"],
            terminated=fresh["terminated"],
            truncated=fresh["truncated"],
            valid=fresh["valid"],
            legal=self.legal,
            next_legal=self._mask(fresh.get("next_legal")),
            whole=self._whole,
        )
        as_seen, known = isinstance(self.memory, Rollout), self.normalizer
        return step if known is None else known.taken_in(step, self._seen, as_seen=as_seen)

    def _mask(self, legal: Tensor | None) -> Tensor | None:
        return None if legal is None else self.binning.legal(legal)

    def _upload(self, array: NDArray[Any]) -> Tensor:
        # The environment's arrays are overwritten by its next step, so nothing keeps a view.
        return torch.from_numpy(array).to(self.keys.device, copy=True)

    # --- keeping --------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Everything that the rest of the run depends on."""
        counters = {"ticks": self.ticks, "steps": self.env_steps, "updates": self.updates}
        state: State = {
            "counters": {name: torch.tensor(count) for name, count in counters.items()},
            "learner": self.algorithm.state_dict(),
            "metrics": dict(self.metrics),
            "episodes": {"table": torch.from_numpy(self.episodes.table)},
        }
        if self.normalizer is not None:
            state["normalizer"] = self.normalizer.state_dict()
        if memory := self.memory.state_dict():
            state["memory"] = memory
        if self.in_episodes:
            assert self.obs is not None
            # On a GPU what is seen next is written to the same place, so it is copied.
            state["now"] = {"obs": self.obs.clone()}
            if self.legal is not None:
                state["now"]["legal"] = self.legal.clone()
            if self.lazy_env.can_snapshot:
                snapshot = np.frombuffer(self.lazy_env.snapshot(), dtype=np.uint8)
                state["env"] = {"snapshot": torch.from_numpy(snapshot.copy())}
        return state

    def load_state_dict(self, state: State) -> None:
        """Goes back to a saved state; to new episodes, where the environment could not be kept."""
        counters = (state["counters"][name] for name in ("ticks", "steps", "updates"))
        self.ticks, self.env_steps, self.updates = map(int, counters)
        self._clock.set(self.updates)
        self.metrics = dict(state["metrics"])
        self.episodes.table = state["episodes"]["table"].cpu().numpy()
        self.algorithm.load_state_dict(state["learner"])
        if self.normalizer is not None:
            self.normalizer.load_state_dict(state.get("normalizer", {}))
        if "memory" in state:
            load_memory(self.memory, state["memory"], self.lazy_env.num_slots)
            self._capture()  # it may lie somewhere else
        self.in_episodes = "env" in state and self.lazy_env.can_snapshot
        if self.in_episodes:
            self.env.restore(state["env"]["snapshot"].cpu().numpy().tobytes())
            self._keep_seeing(**state["now"])
