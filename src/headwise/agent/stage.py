"""Where an agent is measured: an environment of its own, or the only one there is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from headwise.agent.loading import RESUME
from headwise.agent.world import World
from headwise.envs.types import Reseedable, VecEnv
from headwise.training.evaluate import evaluation_seeds, fresh_seeds
from headwise.training.loop import Loop
from headwise.training.threads import training_threads


@contextmanager
def stage(world: World, loop: Loop, number: int, episodes: int) -> Iterator[VecEnv]:
    """An environment to play in, whose episodes follow from the seeds.

    If there is no second one, it is that of training, which then goes on with new episodes.

    Args:
        world: What makes one.
        loop: The training, whose environment may have to do.
        number: Another one gives other episodes.
        episodes: Those that each member is to play: with fewer, fewer slots are made.
    """
    slots, seeds = loop.env.num_slots, evaluation_seeds(loop.keys, number)
    with training_threads(len(seeds), loop.keys.device):
        if not world.is_alone(len(seeds), slots):
            with closing(world.few(seeds, slots, episodes)) as env:
                yield env
            return
        only = loop.env
        assert isinstance(only, Reseedable), "what was handed over"
        only.reseed(seeds)
        loop.in_episodes = False
        try:
            yield only
        finally:
            only.reseed(fresh_seeds(loop.keys, RESUME, loop.ticks))
