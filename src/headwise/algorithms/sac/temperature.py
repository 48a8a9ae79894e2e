"""Temperatures: weights of entropy, which are learned until entropy meets its target, or fixed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from headwise import ops
from headwise.errors import ConfigError
from headwise.heads.layout import Layout
from headwise.ops import Buffer, Scratch
from headwise.ops.functions import indices
from headwise.population.keys import Keys
from headwise.population.store import Adam, Free, Store, settings

if TYPE_CHECKING:
    from headwise.algorithms.base import Metrics
    from headwise.algorithms.sac import SAC

_AUTO = "auto_"
_MOST = 1e3
RUNAWAY = 50.0
"""A temperature above this drowns any reward: its target entropy cannot be reached."""


def begins_at(ent_coef: float | str) -> tuple[float, bool]:
    """Where temperatures begin, and whether they are learned from there."""
    if isinstance(ent_coef, str):
        return float(ent_coef.removeprefix(_AUTO)), True
    return ent_coef, False


def checked_ent_coef(ent_coef: float | str) -> float | str:
    """The weight of entropy that a user gave: "auto" is "auto_1.0", a number is itself."""
    try:
        text = "auto_1" if ent_coef == "auto" else ent_coef
        if isinstance(text, str) and not text.startswith(_AUTO):
            raise ValueError
        start, is_learned = begins_at(text)
        if not 0.0 < start <= _MOST:
            raise ValueError
    except ValueError:
        raise ConfigError(
            "sac setting 'ent_coef' must be a weight of entropy",
            got=ent_coef,
            allowed=f"'auto', 'auto_0.2' to begin at 0.2, or a fixed number; above 0, at most "
            f"{_MOST:g}",
        ) from None
    return f"{_AUTO}{start!r}" if is_learned else start


class Temperatures:
    """A temperature for discrete heads and one for continuous ones, or one for every head.

    The target entropy of a discrete head is a fraction of the largest there is, the logarithm of
    how many options may be chosen; that of a continuous head is minus one.

    Args:
        learning_rate: Of every member, (P, 1, 1, 1).
        alive: Which members have not diverged, (P, 1, 1, 1).
    """

    def __init__(
        self,
        config: SAC,
        layout: Layout,
        keys: Keys,
        learning_rate: Buffer,
        alive: Buffer,
    ) -> None:
        kinds = [0] * layout.num_discrete + [1] * layout.num_continuous
        groups = range(layout.num_heads) if config.per_head_temperature else kinds
        self.groups = tuple(group - min(groups) for group in groups)
        """The temperature of each head."""
        start, self._is_learned = begins_at(config.ent_coef)
        free = Free(max(self.groups) + 1, math.log(start))
        self.store = Store(keys, [free])
        self.optimizer = Adam(self.store, learning_rate, alive=alive)
        assert free.buffer is not None
        self.log_alpha = free.buffer
        """Their logarithms, (P, 1, 1, temperatures)."""
        self._surplus = free.buffer.gradient_buffer
        self._scratch = Scratch(keys.num_members, layout.device)
        heads = layout.num_heads
        self.alpha = self._scratch("alpha", 1, heads, gradient=False)
        """The temperature of each head, (P, 1, 1, H)."""
        self.entropy, self.aim = (
            self._scratch(name, 1, heads, gradient=False) for name in ("entropy", "aim")
        )
        """The mean of each head's entropy, and what that should be, (P, 1, 1, H)."""
        self._table = layout.table(layout.side_by_side() + [(0, 0)] * layout.num_continuous)
        self._start, self._fraction = (
            settings(keys, config.member_values("target_entropy", keys), "target_entropy")
            for _ in range(2)
        )
        self._end: Buffer | None = None
        if config.target_entropy_end is not None:
            end = config.member_values("target_entropy_end", keys)
            self._end = settings(keys, end, "target_entropy_end")
        self.span = 0.0
        """Updates over which the target entropy becomes what it is in the end."""

    def now(self, clock: Buffer) -> Buffer:
        """The temperatures of all heads, (P, 1, 1, H); the target moves by the clock of updates."""
        ops.temperatures(self.log_alpha, groups=self.groups, out=self.alpha)
        if self._end is not None:
            ops.linear(clock, self._start, self._end, span=self.span, out=self._fraction)
        return self.alpha

    def target(self, mask: Buffer | None) -> Buffer:
        """The entropy that each head should have, (P, 1, 1 or B, H), given what may be chosen."""
        rows = 1 if mask is None else mask.num_rows
        target = self._scratch("target", rows, len(self.groups), gradient=False)
        ops.target_entropy(self._fraction, mask, table=self._table, out=target)
        return target

    def step(self, entropy: Buffer, use: Buffer | None, mask: Buffer | None) -> None:
        """Raises temperatures where entropy (P, 1, B, H) is below target, lowers them elsewhere.

        Fixed ones stay.

        The loss is the logarithm times the surplus, so that its gradient is the surplus. A head has
        as much less to reach as it is less likely to be in use, (P, 1, B, H).
        """
        out = [self._surplus, self.entropy, self.aim]
        ops.entropy_surplus(entropy, self.target(mask), use, groups=self.groups, out=out)
        if self._is_learned:
            self.optimizer.step()

    def metrics(self) -> Metrics:
        """Temperatures by now, and entropies at the last update."""
        logs, surplus = (x.tensor.flatten(1) for x in (self.log_alpha, self._surplus))
        alpha = logs.exp().index_select(-1, indices(self.groups, logs))
        return {
            "train/ent_coef_loss": (logs * surplus).sum(-1),
            "train/ent_coef": alpha.mean(-1),
            "heads/alpha": alpha,
            "heads/entropy": self.entropy.tensor.flatten(1).clone(),
            "heads/target_entropy": self.aim.tensor.flatten(1).clone(),
            "warn/temperature": (alpha > RUNAWAY).any(-1).float(),
        }
