"""The agent: a population of learners in an environment, behind one small door."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from headwise import checks
from headwise.agent.acting import Acting
from headwise.agent.importance import head_importance
from headwise.agent.learning import check_ready, train
from headwise.agent.loading import lent, load_changed, load_with_env, placed
from headwise.agent.members import AT_AGENT, HISTORY, as_device, as_seeds, begun_for, checked_member
from headwise.agent.place import chosen_device
from headwise.agent.scheduled import EPISODES, scheduled, stage
from headwise.agent.ship import export_member
from headwise.agent.storage import Parts, load_state, member_state, save_parts
from headwise.agent.tensors import without_tensors
from headwise.agent.world import World
from headwise.algorithms import AlgorithmConfig
from headwise.envs.types import VecEnv
from headwise.factorizations import Factorization
from headwise.registry import known_keywords
from headwise.training.build import make_loop
from headwise.training.callbacks import Callback
from headwise.training.config import RunConfig, shown
from headwise.training.device import AUTO
from headwise.training.evaluate import Evaluation, FloatArray, evaluate_loop
from headwise.training.lazy_env import LazyEnv
from headwise.training.loggers.base import Logger
from headwise.training.loop import Loop


class Agent:
    """Trains PPO, DQN or SAC with any factorization in any environment, for several seeds at once.

    Examples:
        >>> import headwise as hw
        >>> agent = hw.Agent("ppo", "headwise/HybridShoot-v0", factorization="vdn", seeds=2)
        >>> agent.learn(1000, progress=False).steps >= 1000
        True

    Args:
        algo: "ppo", "dqn" or "sac", or its settings as a dataclass.
        env: An environment's id, a Gymnasium env or vector env, a callable that makes one, or a
            PettingZoo parallel env.
        factorization: How the joint action is built from heads, by name or as a dataclass.
        seeds: How many members to train (their seeds are 0, 1, ...), or the seed of each.
        num_envs: Environment slots of each member; None is 16, or what a vector env has.
        device: Where learners live: "cpu", "cuda"; "auto" measures which is faster.
        constraints: Which options of heads go together: `Forbid`, `Require`, `Given`.
        **settings: Settings of any part of a `RunConfig`: `learning_rate`, `view`, ...
    """

    @shown
    def __init__(
        self,
        algo: str | AlgorithmConfig,
        env: Any,
        *,
        factorization: str | Factorization = "shared",
        seeds: int | Sequence[int] = 1,
        num_envs: int | None = None,
        device: str = "cpu",
        constraints: Sequence[Any] = (),
        **settings: Any,
    ) -> None:
        slots = 16 if num_envs is None else num_envs
        settings |= {"factorization": factorization, "num_envs": slots}
        config = RunConfig.of(algo, None, AT_AGENT, **settings)
        members, place = as_seeds(seeds), as_device("cpu" if device == AUTO else device)
        config.check_members(members)
        world = World(env, (e := config.environment).env_settings, e.view, constraints)
        vec = world.vec(members, num_envs)
        config = config.replace(num_envs=vec.num_slots).fitting(vec.obs_spec)
        if device == AUTO:
            place = chosen_device(config, members, world)
        self._begin(Parts(config, members, place, world.face(vec), world, {}), vec)
        self._has_room = check_ready(self._loop)

    def _begin(self, parts: Parts, env: VecEnv | LazyEnv) -> None:
        self.face, self.world = parts.face, parts.world
        self.config = replace(parts.config, environment=parts.world.config)
        self.target_steps = parts.target_steps
        self._gives_masks, self._steps_before = parts.gives_masks, parts.steps_before
        self._scores: FloatArray | None = None  # of the last evaluation
        if (scores := parts.state.get("scores")) is not None:
            self._scores = scores["scores"].cpu().numpy()
        self._acting = Acting()
        self._was_loaded = self._has_learned = self._has_room = False
        kept = {"keep_episodes": HISTORY}
        self._loop: Loop = make_loop(env, self.config, parts.seeds, parts.device, **kept)

    # --- what it is -----------------------------------------------------------------------------

    @property
    def loop(self) -> Loop:
        """The training loop, with learner, memory and episodes."""
        return self._loop

    @property
    def seeds(self) -> tuple[int, ...]:
        """The members' seeds."""
        return self._loop.keys.seeds

    @property
    def device(self) -> str:
        """Where the learners live."""
        return str(self._loop.keys.device)

    @property
    def steps(self) -> int:
        """Environment steps that each member has taken."""
        return self._loop.env_steps

    @property
    def best_member(self) -> int:
        """The member with the best score: in the last evaluation, or else in training so far."""
        scores = self._scores
        if scores is None:
            scores = self._loop.episodes.recent_return(len(self.seeds))
        alive = self._loop.algorithm.alive.cpu().numpy()
        return int(np.argmax(np.where(np.isfinite(scores) & alive, scores, -np.inf)))

    @property
    def gives_masks(self) -> bool:
        """Whether the environment gives masks, as far as it was seen."""
        by_name = self.face.codec.mask_in_obs
        return self._gives_masks or by_name or self._loop.legal is not None

    def __repr__(self) -> str:
        config, before = self.config, f" after {self._steps_before:,}" if self._steps_before else ""
        return (
            f"Agent({config.algorithm.name!r}, factorization={config.factorization.name!r}, "
            f"seeds={list(self.seeds)}, steps={self.steps:,}{before}; {self.face.spec})"
        )

    # --- learning -------------------------------------------------------------------------------

    @known_keywords
    def learn(
        self,
        total_timesteps: int | None = None,
        *,
        progress: bool = True,
        callbacks: Sequence[Callback] = (),
        loggers: Sequence[Logger] = (),
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        log_every: int | None = None,
        eval_every: int | None = None,
        eval_episodes: int = EPISODES,
    ) -> Agent:
        """Trains every member for so many more environment steps; called again, it goes on.

        Ctrl-C ends the run after the current step, saves the checkpoint if there is one, and says
        how to go on. A checkpoint that is further than this agent is not replaced, and a logger
        that holds another run is not written to.

        Args:
            total_timesteps: Environment steps of each member. The first call also sets what
                schedules are laid out for. None finishes what the last call began.
            progress: Whether to show speed, time left and returns.
            callbacks: Functions called with every `Report`, which stop the run by returning True;
                or a `RunCallback` each.
            loggers: Where numbers are written.
            checkpoint: A file to save to during the run and at its end.
            checkpoint_every: Steps of a member between two checkpoints; None is every minute.
            log_every: Environment steps of a member between two reports; None is 200 in a run.
            eval_every: Steps of a member between two greedy evaluations, in an environment of their
                own; learning is the same without them. The agent that scored best is kept beside
                the checkpoint, in `run-best.zip` for `run.zip`.
            eval_episodes: Episodes of each member in an evaluation.
        """
        self._has_room = check_ready(self._loop, has_room=self._has_room)
        checkpoint_every = checks.optional_steps("checkpoint_every", checkpoint_every)
        log_every = checks.optional_steps("log_every", log_every)
        eval_every = checks.optional_steps("eval_every", eval_every)
        before = self.config, self.target_steps, self.steps
        self._loop.total_steps = target = self._target(total_timesteps)
        self._scores = None if eval_every is None else self._scores  # they are of the past
        new, told = self.steps == 0 and not self._was_loaded, (self._note, self.save)
        try:
            train(
                self._loop,
                target,
                save=lambda: self.save(checkpoint or ""),
                load=self.world.load_call(str(checkpoint)),
                is_new=new,
                tell=total_timesteps is not None and not self._has_learned,
                title=self.config.title,
                progress=progress,
                callbacks=callbacks,
                loggers=loggers,
                checkpoint=checkpoint,
                checkpoint_every=checkpoint_every,
                log_every=log_every or max(1000, target // 200),
                evaluate=scheduled(
                    self.world, self._loop, eval_every, eval_episodes, checkpoint, *told, is_new=new
                ),
            )
        except Exception:
            if self.steps == before[-1]:  # it was refused, so that nothing is to be finished
                self.config, self.target_steps, _ = before
            raise
        self._has_learned = True
        return self

    def _target(self, steps: int | None) -> int:
        """The steps to reach, for which the learner is laid out if nothing has happened yet."""
        if steps is None:
            return begun_for(self.target_steps)
        more = checks.checked_steps("total_timesteps", steps)
        if self.config.total_timesteps is None:
            self.config = self.config.replace(total_timesteps=more)
            self._loop.lay_out(more)
        self.target_steps = self.steps + more
        return self.target_steps

    # --- acting ---------------------------------------------------------------------------------

    @known_keywords
    def predict(
        self,
        obs: Any,
        deterministic: bool = False,
        action_mask: Any = None,
        *,
        member: int | None = None,
    ) -> Any:
        """Actions for observations, both in the environment's own structure, single or batched.

        Args:
            obs: One observation, or a batch with one more axis.
            deterministic: Whether the best action is taken, or one drawn from the policy.
            action_mask: Which options are legal, in any form that an environment may give it; for
                a batch one after another. None takes the mask in the observation, if it has one.
            member: Which member acts; None is the best known.
        """
        how = {"deterministic": deterministic, "action_mask": action_mask}
        who, how["gives_masks"] = self._who(member), self.gives_masks
        return self._acting.act(self._loop, self.face, obs, who, **how)

    def importance(self, obs: Any, *, member: int | None = None) -> FloatArray | None:
        """How much each head matters, (H,) or (B, H), as shares that sum to one.

        Only the critics of ppo with vdn or qplex tell heads apart; for others the answer is None.
        """
        rows, batched = self.face.observe(without_tensors(obs))
        shares = head_importance(self._loop, rows, self._who(member))
        return shares if shares is None or batched else shares[0]

    def _who(self, member: int | None) -> int:
        if member is not None:
            return checked_member(member, len(self.seeds))
        return self._acting.best(self._loop, self._scores, lambda: self.best_member)

    @known_keywords
    def evaluate(
        self,
        episodes: int = 20,
        *,
        deterministic: bool = True,
        seed: int = 0,
        max_steps: int | None = None,
    ) -> Evaluation:
        """What every member scores in new episodes, which are the same at every call.

        An environment that was handed over made, and is the only one, is reset for it; training
        then goes on there with new episodes.

        Args:
            episodes: Episodes of each member.
            deterministic: Whether the best action is taken, or one drawn from the policy.
            seed: Another number gives other episodes.
            max_steps: The longest episode: what it has earned by then counts. None waits for its
                end. Every half minute a line says how many have ended.
        """
        episodes = checks.checked_count("episodes", episodes)
        max_steps = checks.optional_count("max_steps", max_steps)
        deterministic = checks.checked_switch("deterministic", deterministic)
        number = checks.checked_seed(seed, "seed")
        with stage(self.world, self._loop, number, episodes) as env:
            found = evaluate_loop(
                self._loop, env, episodes, deterministic=deterministic, max_steps=max_steps
            )
        self._note(found)
        return found

    def _note(self, found: Evaluation) -> None:
        self._scores = found.scores

    def member(self, member: int, env: Any = None) -> Agent:
        """One member as an agent of its own, with what it has learned but without its memory.

        An only environment stays this agent's, which begins new episodes once a member plays there.

        Args:
            member: Its number.
            env: Where it is to learn and to be evaluated, if not where all were trained.
        """
        seeds = (self.seeds[checked_member(member, len(self.seeds))],)
        config = self.config.for_member(member).replace(total_timesteps=None)
        world, face, before = self.world.handed(env), self.face, self._steps_before + self.steps
        place = lent(config.num_envs, seeds, world, self._loop.lazy_env)
        if env is not None:
            config, place = placed(config, seeds, world, face)
            face = world.face(place.opened())
        state = member_state(self._loop.state_dict(), member, config.num_envs)
        told, alone = (None, self.gives_masks, before), Agent.__new__(Agent)
        alone._begin(Parts(config, seeds, self.device, face, world, state, *told), place)
        load_state(alone._loop, state)
        return alone

    def best(self, env: Any = None) -> Agent:
        """The best member known, as an agent of its own: to predict, to export or to save."""
        return self.member(self.best_member, env)

    # --- keeping --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves everything, so that training can go on as if it had never stopped."""
        state = self._loop.state_dict()
        if self._scores is not None:
            state["scores"] = {"scores": torch.from_numpy(self._scores)}
        made = (self.config, self.seeds, self.device, self.face, self.world, state)
        told = (self.target_steps, self.gives_masks, self._steps_before)
        save_parts(path, Parts(*made, *told))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        env: Any = None,
        *,
        device: str = "cpu",
        num_envs: int | None = None,
        env_settings: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> Agent:
        """An agent from a file; nothing in the file is run.

        Where the environment can be kept (all compiled ones can), training goes on to the bit;
        elsewhere every slot begins a new episode. Without an environment an agent can still
        predict and be exported.

        Args:
            path: The file.
            env: The environment, if the file does not name it by id, or another one of its kind.
            device: Where learners live; "auto" measures which is faster.
            num_envs: Environment slots of each member, if not as many as before; one environment
                that was made already is one slot.
            env_settings: Settings of the environment that are to be others than in training.
            **settings: Settings of the algorithm or the factorization that are to be others, as
                far as they leave the networks as they are: `learning_rate=1e-5` to fine-tune. An
                `encoder` that is a module of your own must be handed over again.
        """
        how: Any = {"device": device, "num_envs": num_envs, "env_settings": env_settings}
        parts, place = load_with_env(path, env, settings=settings, **how)
        agent = cls.__new__(cls)
        agent._begin(parts, place)
        settings.pop("encoder", None)
        load_changed(agent._loop, parts.state, settings)
        agent._was_loaded = True
        return agent

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        deterministic: bool = True,
        masks: bool | None = None,
    ) -> None:
        """Writes the best member's policy to run without Headwise: as ONNX, or `.pt2` for torch.

        Args:
            path: The file.
            deterministic: If not, actions are drawn, by uniform numbers that are one more input.
            masks: Whether it takes masks as an input; None does if the environment gives them.
        """
        masks = self.gives_masks if masks is None else masks
        parts = self._loop, self.config, self.face, self.best_member
        export_member(*parts, path, deterministic=deterministic, masks=masks)

    def close(self) -> None:
        """Lets go of the environment; the agent can still predict, be saved and be exported.

        What is saved then goes on as exactly as before. A member leaves an only environment open.
        """
        env = self._loop.lazy_env
        env.close(keep=self._loop.in_episodes)
        self._loop.in_episodes = env.can_snapshot
