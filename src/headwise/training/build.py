"""From settings to a loop that is ready to run."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import torch

from headwise.algorithms.base import AlgorithmConfig, Task
from headwise.envs.types import VecEnv
from headwise.errors import ConfigError
from headwise.factorizations import Factorization
from headwise.population import Keys
from headwise.training.binning import Binning
from headwise.training.freed_memory import keep_freed_memory
from headwise.training.loop import Loop
from headwise.training.normalise import Normaliser
from headwise.training.room import check_networks


def make_loop(
    env: VecEnv,
    config: AlgorithmConfig,
    factorization: Factorization,
    seeds: Sequence[int],
    total_steps: int,
    device: torch.device | str = "cpu",
    *,
    normalise_obs: bool = False,
    normalise_reward: bool = False,
) -> Loop:
    """A training loop for a population.

    Args:
        env: The environment, with as many members as there are seeds.
        config: The algorithm's settings.
        factorization: The factorization's settings.
        seeds: One seed for each member.
        total_steps: Environment steps of each member over the whole run, for schedules.
        device: Where the learner lives.
        normalise_obs: Bring observations to mean 0 and deviation 1, by each member's own past.
        normalise_reward: Scale rewards by the deviation of each member's discounted return.
    """
    keys = Keys(seeds, device)
    if keys.device.type == "cpu":
        keep_freed_memory()
    elif keys.device.type == "cuda":
        # Graphs of a loop that nobody has any more keep their memory until they are found.
        gc.collect()
    if env.num_members != keys.num_members:
        raise ConfigError(
            "environment and learner disagree about the members",
            got=f"{env.num_members} and {keys.num_members}",
        )
    binning = Binning(env.spec, config.bins, device)
    task = Task(
        spec=binning.spec,
        obs_size=env.obs_spec.size,
        num_slots=env.num_slots,
        total_steps=total_steps,
        factorization=factorization,
        keys=keys,
    )
    check_networks(config, task)
    gamma = config.member_values("gamma", keys)
    normaliser = None
    if normalise_obs or normalise_reward:
        normaliser = Normaliser(
            keys.num_members,
            env.num_slots,
            env.obs_spec.size,
            gamma,
            normalise_obs=normalise_obs,
            normalise_reward=normalise_reward,
        )
    return Loop(env, config.build(task), keys, gamma, binning, normaliser)
