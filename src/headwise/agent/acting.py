"""What an agent does when it is asked for actions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from headwise.agent.face import Face
from headwise.agent.tensors import without_tensors
from headwise.agent.unpacking import refuse_a_state
from headwise.checks import checked_switch
from headwise.training.evaluate import FloatArray, Player
from headwise.training.loop import Loop

logger = logging.getLogger("headwise")


class Acting:
    """Counts draws, so that the same calls give the same actions, and reminds of masks once.

    What acts is kept from one call to the next. It holds nothing of what was learned, so that
    learning on makes nothing of it wrong; a learner made anew has one of its own.
    """

    def __init__(self) -> None:
        self._draws = 0
        self._reminded = False
        self._player: Player | None = None
        self._best: tuple[object, int] = (None, 0)

    def best(self, loop: Loop, scores: FloatArray | None, find: Callable[[], int]) -> int:
        """The best member, who is looked for when something was learned or measured since."""
        now = loop.ticks, loop.updates, None if scores is None else scores.tobytes()
        if now != self._best[0]:
            self._best = now, find()
        return self._best[1]

    def act(
        self,
        loop: Loop,
        face: Face,
        obs: Any,
        member: int,
        *,
        deterministic: bool,
        action_mask: Any,
        gives_masks: bool,
    ) -> Any:
        """Actions of one member for observations, both in the environment's own structure.

        Args:
            loop: Whose learner acts.
            face: How the environment speaks.
            obs: One observation, or a batch.
            member: Which member acts.
            deterministic: Whether the best action is taken, or one drawn from the policy.
            action_mask: Which options are legal; None takes what the observation says.
            gives_masks: Whether the environment gives masks.
        """
        refuse_a_state()
        deterministic = checked_switch("deterministic", deterministic)
        obs, action_mask = without_tensors(obs), without_tensors(action_mask)
        rows, batched = face.observe(obs)
        if action_mask is None:
            action_mask = face.mask_in(obs, len(rows), batched=batched)
        legal = None
        if action_mask is not None:
            legal = face.legal(action_mask, len(rows), batched=batched)
        elif gives_masks and not self._reminded:
            self._reminded = True
            logger.warning(
                "The environment gives masks and predict() got none, so it may choose an illegal "
                "option. Pass it on: predict(obs, action_mask=info['action_mask'])."
            )
        draw = None if deterministic else self._draws
        self._draws += not deterministic
        if self._player is None or self._player.loop is not loop:
            self._player = Player(loop)
        return face.act(self._player.act_alone(rows, member, legal, draw), batched=batched)
