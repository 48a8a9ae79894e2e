"""Where an agent's learners live, if that is left to Headwise."""

from __future__ import annotations

import logging
from dataclasses import asdict, replace

from headwise.agent.plan import Plan
from headwise.agent.world import World
from headwise.training.device import DeviceChoice, faster_device
from headwise.training.pace import get_ready, impatient, seconds_per_step
from headwise.training.threads import training_threads

logger = logging.getLogger("headwise.device")
_SECONDS = 0.3
"""How long a device is measured, once it is ready."""


def chosen_device(plan: Plan, world: World) -> str:
    """The device on which this plan trains faster; one line of the log says which and why."""
    if not world.is_known or world.is_alone(len(plan.seeds), plan.num_envs):
        choice = DeviceChoice("cpu", "device cpu: there is no second environment to measure with")
    else:
        choice = faster_device(lambda device: _seconds(plan, world, device))
    if choice.why:
        logger.info(choice.why)
    return choice.device


def _seconds(plan: Plan, world: World, device: str) -> float:
    """Of one environment step of all members, in an environment of its own."""
    settings = {name: getattr(plan.config, name) for name in asdict(plan.config)}
    env = world.vec(plan.seeds, plan.num_envs)
    try:
        hasty = replace(plan.config, **impatient(settings, plan.num_envs))
        loop = replace(plan, config=hasty, device=device).loop(env)
        with training_threads(len(plan.seeds), loop.keys.device):
            get_ready(loop)
            return seconds_per_step(loop, _SECONDS)
    finally:
        env.close()
