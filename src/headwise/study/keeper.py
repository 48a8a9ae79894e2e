"""Keeping what a run has learned: one member of a pack, cut out as an agent of its own."""

from __future__ import annotations

from headwise.agent.storage import Parts, member_state, parts_as_bytes
from headwise.agent.world import World
from headwise.envs.types import VecEnv
from headwise.study.environment import bare_id
from headwise.study.planner import Pack
from headwise.training.loop import Loop, State


class Keeper:
    """Makes checkpoints of the members of a pack, each what `Agent.member(i).save` would write.

    They hold the learner with its optimizer and what it normalizes by, and no replay: it is many
    times as large, and only needed to go on with a run that is over.

    Args:
        pack: The runs.
        env: The environment that they are trained in.
    """

    def __init__(self, pack: Pack, env: VecEnv) -> None:
        first = pack.runs[0]
        self._pack, self._obs_spec = pack, env.obs_spec
        # A checkpoint names no module: nothing is imported when it is loaded.
        self._world = World(bare_id(first.env), first.env_settings, first.view)
        self._face = self._world.face(env)

    def checkpoints(self, loop: Loop) -> list[bytes]:
        """The checkpoint of every member, in the order of the runs."""
        learned = {"learner": loop.algorithm.state_dict()}
        if loop.normalizer is not None:
            learned["normalizer"] = loop.normalizer.state_dict()
        state = {
            part: {name: x.cpu() for name, x in named.items()} for part, named in learned.items()
        }
        return [self._checkpoint(state, k) for k in range(len(self._pack.runs))]

    def _checkpoint(self, state: State, member: int) -> bytes:
        run = self._pack.runs[member]
        learned = member_state(state, member)
        config = run.config.fitting(self._obs_spec).replace(total_timesteps=None)
        made = Parts(config, (run.seed,), "cpu", self._face, self._world, learned)
        return parts_as_bytes(made._replace(steps_before=run.total_timesteps))
