"""From settings to a loop that is ready to run."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import torch

from headwise.algorithms.base import Task
from headwise.envs.types import VecEnv
from headwise.errors import ConfigError
from headwise.population import Keys
from headwise.spaces.bins import Binning
from headwise.training.config import RunConfig
from headwise.training.episodes import Episodes
from headwise.training.fits import fits
from headwise.training.freed_memory import keep_freed_memory
from headwise.training.lazy_env import LazyEnv
from headwise.training.loop import Loop
from headwise.training.normalize import Normalizer, prior_of
from headwise.training.room import check_networks


def make_loop(
    env: VecEnv | LazyEnv,
    config: RunConfig,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
    *,
    keep_episodes: int | None = None,
) -> Loop:
    """A training loop for a population.

    Args:
        env: The environment, with as many members as there are seeds; its slots are those of the
            population, whatever `config.num_envs` says.
        config: What is trained, and how.
        seeds: One seed for each member.
        device: Where the learner lives.
        keep_episodes: The last episodes that are remembered, over all members; None is all.
    """
    keys, algorithm = Keys(seeds, device), config.algorithm
    if keys.device.type == "cpu":
        keep_freed_memory()
    elif keys.device.type == "cuda":
        # Graphs of a loop without references keep their memory until they are found.
        gc.collect()
    if env.num_members != keys.num_members:
        raise ConfigError(
            "environment and learner disagree about the members",
            got=f"{env.num_members} and {keys.num_members}",
        )
    names = [n for n in ("net_arch", "n_steps", "batch_size") if hasattr(algorithm, n)]
    given = ", ".join(f"{name}={getattr(algorithm, name)}" for name in names)
    with fits(
        "the learners",
        got=f"{keys.num_members} members of {config.title} with {given}",
        fix=f"Take fewer seeds or bins, or make one of these smaller: {', '.join(names)}.",
    ):
        binning = Binning(env.spec, algorithm.bins, device)
        task = Task(
            spec=binning.spec,
            obs_spec=env.obs_spec,
            num_slots=env.num_slots,
            total_steps=config.total_timesteps or 1,
            factorization=config.factorization,
            keys=keys,
            network=config.network,
            normalized=bool(config.normalization.normalize_obs),
        )
        check_networks(algorithm, task)
        gamma = algorithm.member_values("gamma", keys)
        normalizer = None
        if config.normalization.is_on:
            sizes = (keys.num_members, env.num_slots, env.obs_spec.size)
            how = config.normalization
            prior = prior_of(how.normalize_obs, env.obs_spec)
            normalizer = Normalizer(
                *sizes, gamma, **vars(how), prior=prior, packed=env.obs_spec.packed
            )
        loop = Loop(env, algorithm.build(task), keys, gamma, binning, normalizer)
    loop.total_steps = config.total_timesteps
    loop.episodes = Episodes(keep=keep_episodes)
    return loop
