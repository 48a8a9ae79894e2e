"""Evaluation: what the members score in episodes that they never trained on."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.averages import interquartile_mean, iqm_interval
from headwise.checks import checked_count
from headwise.envs.types import LostEpisodesError, Restable, StepBatch, VecEnv
from headwise.errors import ConfigError
from headwise.population import Keys, Stream
from headwise.training.loop import Loop

FloatArray = NDArray[np.float64]

LINE_SECONDS = 30.0
"""Time between lines that say how far an evaluation is."""
FEW_SEEDS = 5
"""With fewer seeds no interval is shown: of two or three it is wider than anything they differ by,
and that of a lone seed is about its episodes and not about seeds."""
_MUCH_LONGER = 10
"""An episode so many times as long as all that have ended may be one that never ends."""
logger = logging.getLogger("headwise")


@dataclass(frozen=True)
class Evaluation:
    """Returns of every seed, and what they say together.

    The score of a seed is its mean return. The interquartile mean (IQM) leaves out the lowest and
    the highest quarter of the seeds, none of fewer than four; its interval says where, with 95 %
    confidence, the IQM of all seeds that there might be lies. A lone seed is judged by its episodes
    instead, and what is said is about that seed alone.
    """

    seeds: tuple[int, ...]
    returns: FloatArray
    """Of each seed's episodes, (P, episodes)."""
    lengths: FloatArray
    """Steps of each episode, (P, episodes)."""

    @property
    def by_seed(self) -> dict[int, float]:
        """The mean return of each seed; where members share one, `scores` tells them apart."""
        if len(set(self.seeds)) < len(self.seeds):
            raise ConfigError(
                "two members have one seed, so that a seed has no score of its own",
                got=list(self.seeds),
                fix="Take `scores`: the mean return of each member, in their order.",
            )
        return dict(zip(self.seeds, self.scores.tolist(), strict=True))

    @property
    def scores(self) -> FloatArray:
        """The mean return of each member, (P,)."""
        means: FloatArray = self.returns.mean(axis=-1)
        return means

    @property
    def iqm(self) -> float:
        """The interquartile mean over seeds, or over the episodes of a lone seed."""
        return float(interquartile_mean(self._units))

    @property
    def interval(self) -> tuple[float, float]:
        """Student's 95 % interval of the IQM, the same at every call; NaN for a single episode."""
        return iqm_interval(self._units, np.random.default_rng(0))

    @property
    def _units(self) -> FloatArray:
        return self.scores if len(self.seeds) > 1 else self.returns.ravel()

    def __repr__(self) -> str:
        return f"Evaluation({self})"

    def __str__(self) -> str:
        number, episodes = len(self.seeds), self.returns.shape[-1]
        seeds = f"{number} seed{'s' * (number > 1)}"
        if number >= FEW_SEEDS:
            low, high = self.interval
            return f"IQM {self.iqm:.1f} [{low:.1f}, {high:.1f}] over {seeds}"
        played = f" over {episodes} episode{'s' * (episodes > 1)}" if number == 1 else ""
        return f"IQM {self.iqm:.1f}{played} ({seeds}: too few to say how others would score)"


def evaluate_loop(
    loop: Loop,
    env: VecEnv,
    episodes: int,
    *,
    deterministic: bool = True,
    max_steps: int | None = None,
) -> Evaluation:
    """Plays episodes with what a loop has learned, in an environment of its own.

    Every slot plays a fixed number of episodes, however long they are: to take whatever ends first
    would count short episodes twice.

    Args:
        loop: Whose learner plays; nothing of it changes.
        env: Where, with as many members.
        episodes: Episodes of each member.
        deterministic: Whether the best action is taken, or one drawn from the policy.
        max_steps: The longest episode; what it has earned by then is its return.
    """
    episodes = checked_count("episodes", episodes)
    slots = min(env.num_slots, episodes)
    quota = np.full(env.num_slots, 0)
    quota[:slots] = episodes // slots + (np.arange(slots) < episodes % slots)
    tally = _Tally(quota, env.num_members, max_steps)
    player, tick = Player(loop), 0
    began = said = time.monotonic()
    rest = env.rest if isinstance(env, Restable) else _go_on
    try:
        while not tally.done:
            if tally.is_waiting:
                obs, legal = env.reset(), env.first_legal
                tally.begin()
                rest(tally.rests)
            try:
                step = env.step(player.act(obs, legal, None if deterministic else tick))
            except LostEpisodesError:  # those that were under way count for nothing
                tally.lose()
                continue
            obs, legal = step.obs, step.legal
            if tally.add(step):
                rest(tally.rests)
            tick += 1
            if (now := time.monotonic()) - said >= LINE_SECONDS:
                said = now
                told = tally.so_far()
                logger.warning("The evaluation goes on after %.0f s: %s", now - began, told)
    finally:
        rest(np.zeros_like(tally.rests))
    return Evaluation(loop.keys.seeds, np.array(tally.returns), np.array(tally.lengths))


def _go_on(slots: NDArray[np.bool_]) -> None:
    """Where all slots are stepped, whether they rest or not."""


class _Tally:
    """The episodes that count: who has played how many, and what they earned.

    An environment can only be reset as a whole. A slot whose episode was cut short waits until no
    other has an episode to finish.

    Args:
        quota: Episodes of each slot, (E,).
        num_members: Members (P).
        max_steps: Steps after which an episode is cut short.
    """

    def __init__(self, quota: NDArray[np.int_], num_members: int, max_steps: int | None) -> None:
        self._quota, self._max_steps = quota, max_steps
        shape = (num_members, len(quota))
        self._count = np.zeros(shape, dtype=int)
        self._return, self._length = np.zeros(shape), np.zeros(shape, dtype=int)
        self._waits = np.ones(shape, dtype=np.bool_)
        self.returns: list[list[float]] = [[] for _ in range(num_members)]
        """Of each member's episodes, in the order in which they ended."""
        self.lengths: list[list[float]] = [[] for _ in range(num_members)]

    @property
    def done(self) -> bool:
        """Whether every slot has played its episodes."""
        return bool((self._count >= self._quota).all())

    @property
    def is_waiting(self) -> bool:
        """Whether nothing goes on before the environment is reset."""
        return bool(self.rests.all())

    def lose(self) -> None:
        """Nothing of what was under way can go on."""
        self._waits[...] = True

    def begin(self) -> None:
        """Every slot begins an episode."""
        self._return[...] = self._length[...] = 0
        self._waits[...] = False

    @property
    def rests(self) -> NDArray[np.bool_]:
        """Which slots have no episode to play, (P, E)."""
        return self._waits | (self._count >= self._quota)

    def add(self, step: StepBatch) -> bool:
        """Takes note of what ended in a step, and says whether anything did."""
        self._return += np.where(step.valid, step.reward, 0.0)
        self._length += step.valid
        ended = (step.terminated | step.truncated) & step.valid
        cut = np.zeros_like(ended)
        if self._max_steps is not None:
            cut = (self._length >= self._max_steps) & ~ended
        counts = (ended | cut) & ~self._waits & (self._count < self._quota)
        for member, slot in np.argwhere(counts):
            whole = step.episode_return if ended[member, slot] else self._return
            self.returns[member].append(float(whole[member, slot]))
            self.lengths[member].append(float(self._length[member, slot]))
        self._count += counts
        self._waits |= cut
        self._return[ended] = 0.0
        self._length[ended] = 0
        return bool(counts.any())

    def so_far(self) -> str:
        """How many episodes have ended, and whether one may never end, in a sentence."""
        ended = [length for lengths in self.lengths for length in lengths]
        total = int(self._quota.sum()) * len(self.lengths)
        going = ~self._waits & (self._count < self._quota)
        longest = int(self._length[going].max(initial=0))
        told = f"{len(ended):,} of {total:,} episodes have ended."
        if longest <= _MUCH_LONGER * max(ended, default=0):
            return told
        return (
            f"{told} One that has not has taken {longest:,} steps. If it never ends, give the "
            "longest, as max_steps=1000 or --max-steps 1000, or put a TimeLimit around the "
            "environment."
        )


class Player:
    """What a loop's learner does when it only plays: no exploring, no learning, no updating."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self._alone: dict[int, Keys] = {}

    def act(
        self,
        obs: NDArray[np.float32],
        legal: NDArray[np.bool_] | None = None,
        draw: int | None = None,
    ) -> NDArray[np.float32]:
        """Actions (P, B, H) in the learner's form of the environment's spec.

        Args:
            obs: Observations as the environment gives them, (P, B, O).
            legal: Which options are legal, (P, B, H, K); None means all.
            draw: The number of the draw, for actions drawn from the policy; None for the best ones.
        """
        return self._act(obs, legal, draw, None)

    def act_alone(
        self,
        obs: NDArray[np.float32],
        member: int,
        legal: NDArray[np.bool_] | None = None,
        draw: int | None = None,
    ) -> NDArray[np.float32]:
        """Actions (B, H) of one member for observations (B, O); they are those of `act`."""
        alone: NDArray[np.float32] = self._act(
            obs[None], None if legal is None else legal[None], draw, member
        )[0]
        return alone

    @torch.no_grad()
    def _act(
        self,
        obs: NDArray[np.float32],
        legal: NDArray[np.bool_] | None,
        draw: int | None,
        member: int | None,
    ) -> NDArray[np.float32]:
        loop = self.loop
        device = loop.keys.device
        seen = torch.from_numpy(np.array(obs, dtype=np.float32)).to(device)
        if loop.normalizer is not None:
            seen = loop.normalizer.obs(seen, member)
        mask = None
        if legal is not None:
            mask = loop.binning.legal(torch.from_numpy(np.array(legal)).to(device))
        uniform = None
        numbers = loop.algorithm.num_uniforms
        if draw is not None and numbers:
            keys = loop.keys if member is None else self._keys_of(member)
            uniform = keys.uniform(Stream.EVALUATE, draw, (seen.shape[-2], numbers))
        action = loop.binning.to_env(loop.algorithm.policy(seen, uniform, mask, member))
        played: NDArray[np.float32] = action.nan_to_num(0.0).cpu().numpy()
        return played

    def _keys_of(self, member: int) -> Keys:
        if member not in self._alone:
            keys = self.loop.keys
            self._alone[member] = Keys([keys.seeds[member]], keys.device)
        return self._alone[member]


def evaluation_seeds(keys: Keys, number: int) -> list[int]:
    """Seeds of environments to be measured in, one for each member; another number gives others."""
    return fresh_seeds(keys, 1, number)


def fresh_seeds(keys: Keys, purpose: int, number: int) -> list[int]:
    """Seeds of environments that no training ever uses, one for each member.

    Args:
        keys: The members' seeds.
        purpose: What they are for, so that two purposes never share episodes.
        number: Which of many.
    """
    from headwise import _core

    seeds = []
    for seed in keys.seeds:
        words = _core.philox(
            [number & 0xFFFFFFFF, number >> 32, int(Stream.EVALUATE), purpose], seed
        )
        seeds.append(int(words[0]) | int(words[1]) << 32)
    return seeds
