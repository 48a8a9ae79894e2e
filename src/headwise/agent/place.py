"""Where an agent's learners live, if that is left to Headwise."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headwise.agent.world import World
from headwise.training.build import make_loop
from headwise.training.config import RunConfig
from headwise.training.device import DeviceChoice, faster_device
from headwise.training.pace import get_ready, impatient, seconds_per_step
from headwise.training.threads import training_threads

logger = logging.getLogger("headwise.device")
_SECONDS = 0.3
"""How long a device is measured, once it is ready."""


def chosen_device(config: RunConfig, seeds: Sequence[int], world: World) -> str:
    """The device on which this trains faster; one line of the log says which and why."""
    if not world.is_known or world.is_alone(len(seeds), config.num_envs):
        choice = DeviceChoice("cpu", "device cpu: there is no second environment to measure with")
    else:
        choice = faster_device(lambda device: _seconds(config, seeds, world, device))
    if choice.why:
        logger.info(choice.why)
    return choice.device


def _seconds(config: RunConfig, seeds: Sequence[int], world: World, device: str) -> float:
    """Of one environment step of all members, in an environment of its own."""
    env = world.vec(seeds, config.num_envs)
    try:
        hasty = config.replace(**impatient(vars(config.algorithm), config.num_envs))
        loop = make_loop(env, hasty, seeds, device)
        with training_threads(len(seeds), loop.keys.device):
            get_ready(loop)
            return seconds_per_step(loop, _SECONDS)
    finally:
        env.close()
