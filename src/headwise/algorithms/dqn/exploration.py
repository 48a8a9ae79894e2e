"""Epsilon-greedy choice: now and then, a head takes any of its options."""

from __future__ import annotations

from torch import Tensor

from headwise import ops
from headwise.heads.joint_actions import JointActions
from headwise.heads.layout import Layout
from headwise.ops import Buffer, operation
from headwise.population.keys import Keys, Stream
from headwise.population.store import seeds_of, settings


class EpsilonGreedy:
    """How often heads explore, and what they do then.

    Heads explore each by itself, those of a joint action as well; constrained ones after those that
    their options depend on.

    Args:
        layout: The heads, all of them discrete, as the learner has them.
        num_envs: Environment copies (E).
        start: How often each member's heads explore in the beginning, (P,).
        end: How often in the end, (P,).
    """

    def __init__(
        self, layout: Layout, keys: Keys, num_envs: int, start: Tensor, end: Tensor
    ) -> None:
        self._joint = layout.joint
        self.heads = Layout(layout.spec, layout.device) if layout.joint else layout
        """The heads of the action themselves."""
        self._table = self.heads.table(self.heads.side_by_side(), conditional=False)
        self._start = settings(keys, start, "exploration_initial_eps")
        self._end = settings(keys, end, "exploration_final_eps")
        self.span = 0.0
        """Times that the learner acts until then."""
        self._seeds = seeds_of(keys)
        self._epsilon = Buffer(keys.num_members, device=keys.device)

        def made(rows: int) -> Buffer:
            return Buffer(keys.num_members, rows, self.heads.num_heads, device=keys.device)

        self._uniform, self._best = made(2 * num_envs), made(num_envs)
        self.action = made(num_envs)
        """What was chosen last, (P, 1, E, H)."""

    def choose(self, best: Buffer, clock: Buffer, mask: Buffer | None) -> None:
        """The best actions (P, 1, E, D), or any options that the mask of the heads allows."""
        if self._joint is not None:
            heads_of_joint(best, actions=self._joint, out=self._best)
            best = self._best
        ops.uniform(self._uniform, self._seeds, clock, Stream.EXPLORE)
        self._schedule(clock)
        given = best, self._uniform, self._epsilon, mask
        if self.heads.links is None:
            ops.explore(*given, table=self._table, out=self.action)
        else:
            ops.explore_linked(*given, links=self.heads.links, out=self.action)

    def epsilon(self, clock: Buffer) -> Tensor:
        """How often a head takes an option at random now, (P,)."""
        self._schedule(clock)
        return self._epsilon.tensor.flatten().clone()

    def _schedule(self, clock: Buffer) -> None:
        ops.linear(clock, self._start, self._end, span=self.span, out=self._epsilon)


@operation(compiled=False)
def heads_of_joint(joint: Tensor, *, actions: JointActions) -> Tensor:
    """Numbers of joint actions (P, 1, E, 1) as options of their heads, (P, 1, E, H)."""
    return actions.to_heads(joint)
