"""Evaluation: what the members score in episodes that they never trained on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.averages import interquartile_mean
from headwise.envs.types import VecEnv
from headwise.errors import ConfigError
from headwise.population import Keys, Stream
from headwise.training.legal import LegalOptions
from headwise.training.loop import Loop

FloatArray = NDArray[np.float64]

RESAMPLES = 2000
"""Bootstrap samples of an interval."""


@dataclass(frozen=True)
class Evaluation:
    """Returns of every seed, and what they say together.

    The score of a seed is its mean return. The interquartile mean (IQM) leaves out the lowest and
    the highest quarter of the seeds; its interval holds 95 % of bootstrap samples of the seeds, or
    of the episodes if there is one seed only.
    """

    seeds: tuple[int, ...]
    returns: FloatArray
    """Of each seed's episodes, (P, episodes)."""
    lengths: FloatArray
    """Steps of each episode, (P, episodes)."""

    @property
    def by_seed(self) -> dict[int, float]:
        """The mean return of each seed."""
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
        """Where the IQM lies in 95 % of bootstrap samples; the same at every call."""
        units = self._units
        rng = np.random.default_rng(0)
        samples = units[rng.integers(len(units), size=(RESAMPLES, len(units)))]
        low, high = np.quantile(interquartile_mean(samples), [0.025, 0.975])
        return float(low), float(high)

    @property
    def _units(self) -> FloatArray:
        return self.scores if len(self.seeds) > 1 else self.returns.ravel()

    def __str__(self) -> str:
        low, high = self.interval
        number = len(self.seeds)
        over = f"{number} seeds" if number > 1 else f"{self.returns.size} episodes of 1 seed"
        return f"IQM {self.iqm:.1f} [{low:.1f}, {high:.1f}] over {over}"


def evaluate_loop(
    loop: Loop, env: VecEnv, episodes: int, *, deterministic: bool = True
) -> Evaluation:
    """Plays episodes with what a loop has learned, in an environment of its own.

    Every slot plays a fixed number of episodes, however long they are: to take whatever ends first
    would count short episodes twice.

    Args:
        loop: Whose learner plays; nothing of it changes.
        env: Where, with as many members.
        episodes: Episodes of each member.
        deterministic: Whether the best action is taken, or one drawn from the policy.
    """
    if isinstance(episodes, bool) or not isinstance(episodes, int) or episodes < 1:
        raise ConfigError(
            "episodes is no number of episodes", got=episodes, allowed="whole numbers from 1"
        )
    members, slots = env.num_members, min(env.num_slots, episodes)
    quota = np.full(env.num_slots, 0)
    quota[:slots] = episodes // slots + (np.arange(slots) < episodes % slots)
    count = np.zeros((members, env.num_slots), dtype=int)
    returns: list[list[float]] = [[] for _ in range(members)]
    lengths: list[list[float]] = [[] for _ in range(members)]
    player = Player(loop)
    obs, legal, tick = env.reset(), getattr(env, "first_legal", None), 0
    while (count < quota).any():
        step = env.step(player.act(obs, legal, None if deterministic else tick))
        obs, legal = step.obs, step.legal
        ended = (step.terminated | step.truncated) & step.valid & (count < quota)
        for member, slot in np.argwhere(ended):
            returns[member].append(float(step.episode_return[member, slot]))
            lengths[member].append(float(step.episode_length[member, slot]))
        count += ended
        tick += 1
    return Evaluation(loop.keys.seeds, np.array(returns), np.array(lengths))


class Player:
    """What a loop's learner does when it only plays: no exploring, no learning, no updating."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._legal_options = LegalOptions(loop.env.spec, loop.binning.spec, loop.keys.device)

    @torch.no_grad()
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
        loop = self._loop
        device = loop.keys.device
        seen = torch.from_numpy(np.array(obs, dtype=np.float32)).to(device)
        if loop.normaliser is not None:
            seen = loop.normaliser.obs(seen, update=False)
        mask = None
        if legal is not None:
            mask = self._legal_options(torch.from_numpy(np.array(legal)).to(device))
        uniform = None
        numbers = loop.algorithm.num_uniforms
        if draw is not None and numbers:
            uniform = loop.keys.uniform(Stream.EVALUATE, draw, (seen.shape[-2], numbers))
        action = loop.binning.to_env(loop.algorithm.policy(seen, uniform, mask))
        played: NDArray[np.float32] = action.nan_to_num(0.0).cpu().numpy()
        return played

    def act_alone(
        self,
        obs: NDArray[np.float32],
        member: int,
        legal: NDArray[np.bool_] | None = None,
        draw: int | None = None,
    ) -> NDArray[np.float32]:
        """Actions (B, H) of one member for observations (B, O)."""
        members = self._loop.keys.num_members
        everyone = np.broadcast_to(obs, (members, *obs.shape))
        masks = None if legal is None else np.broadcast_to(legal, (members, *legal.shape))
        alone: NDArray[np.float32] = self.act(everyone, masks, draw)[member]
        return alone


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
