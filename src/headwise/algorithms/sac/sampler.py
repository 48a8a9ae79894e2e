"""Actions that the policy draws in the states of a batch, and the soft values of those states."""

from __future__ import annotations

from headwise import ops
from headwise.heads.action_value import Actor, Soft, SoftValue
from headwise.heads.layout import Layout
from headwise.ops import Buffer, Draw


class ActionSampler:
    """Draws actions, with their entropies and the bonus for those, (P, 1, B, ...) each.

    The actor draws heads first; critics choose the others given those.

    Args:
        actor: Draws the heads from `first` on; None where critics choose all.
        first: The first head of the actor.
        independent: Whether each head has a bonus for its own entropy alone.
        extra: Columns of noise in front of those that actions are drawn by.
    """

    def __init__(
        self,
        layout: Layout,
        members: int,
        rows: int,
        actor: Actor | None,
        first: int,
        *,
        independent: bool,
        extra: int = 0,
    ) -> None:
        def buffer(width: int) -> Buffer:
            return Buffer(members, rows, width, gradient=True, device=layout.device)

        heads, self.actor, self.independent = layout.num_heads, actor, independent
        self._own = first, heads - first
        drawn = 0 if actor is None else actor.table.num_uniforms
        self.noise = Buffer(members, rows, extra + first + drawn, device=layout.device)
        """Uniform numbers: the extra ones, those of discrete heads, those of continuous ones."""
        self.extra = self.noise.columns(0, extra) if extra else None
        self.uniform = self.noise.columns(extra, first + drawn)
        """Those that actions are drawn by."""
        self.action, self.entropy = buffer(heads), buffer(heads)
        self._bonus = buffer(heads if independent else 1)
        self._first = first
        self._actor_uniform = self.uniform.columns(first, drawn) if drawn else None
        self.draw: Draw | None = None
        """What the actor has drawn, if there is one."""
        if actor is not None:
            self.draw = Draw(
                actor.table, members, rows, unit=self.action.columns(*self._own),
                entropy=self.entropy.columns(*self._own), device=layout.device,
            )  # fmt: skip

    # --- soft values ----------------------------------------------------------------------------

    def soft(
        self, critic: SoftValue, seen: Buffer, x: Buffer, alpha: Buffer, mask: Buffer | None
    ) -> Soft:
        """Draws actions, and values states by them; `bonus` is to be added.

        Args:
            critic: The twin critics.
            seen: What the actor sees of states.
            x: What critics see of them.
            alpha: Temperatures.
            mask: Which options may be chosen.
        """
        self.sample(seen, mask)
        soft = critic.soft(x, self.action, alpha, self.uniform, mask)
        self.write_bonus(alpha, soft)
        return soft

    def sample(self, obs: Buffer, mask: Buffer | None) -> None:
        """Draws what the actor draws."""
        if self.actor is not None and self.draw is not None and self._actor_uniform is not None:
            self.actor.rsample(obs, self._actor_uniform, self._mask(mask), self.draw)

    def mode(self, obs: Buffer, mask: Buffer | None) -> None:
        """Writes the greedy actions of the actor's heads."""
        if self.actor is not None and self.draw is not None:
            out = [self.entropy.columns(*self._own), self.draw.unit]
            self.actor.mode(obs, self._mask(mask), out)

    def sample_backward(self, obs: Buffer, mask: Buffer | None) -> None:
        """From the gradients of what was drawn to those of the actor's parameters."""
        if self.actor is not None and self.draw is not None and self._actor_uniform is not None:
            self.actor.rsample_backward(obs, self._actor_uniform, self._mask(mask), self.draw)

    @property
    def bonus(self) -> Buffer | None:
        """The bonus for the entropies of the actor's heads, (P, 1, B, G)."""
        return None if self.actor is None else self._bonus

    def write_bonus(self, alpha: Buffer, soft: Soft) -> None:
        """Writes the bonus: by temperatures, and by how likely heads are to be in use."""
        if self.draw is not None:
            ops.entropy_bonus(
                *self._bonus_inputs(alpha, soft), adds_up=not self.independent, out=self._own_bonus
            )

    def bonus_backward(self, alpha: Buffer, soft: Soft) -> None:
        """From the gradient of the bonus to those of entropies, and of use."""
        if self.draw is not None:
            adds_up = not self.independent
            ops.entropy_bonus.backward(
                *self._bonus_inputs(alpha, soft), adds_up=adds_up, out=self._own_bonus
            )

    def gains(self, soft: Soft) -> tuple[Buffer, Buffer, Buffer | None]:
        """What the actor gains: values, the bonus, and what gains count if not all alike.

        Actors of heads that are learners of their own learn as much as those are in use.
        """
        if not self.independent:
            return soft.value, self._bonus, None
        share = None if soft.use is None else soft.use.columns(*self._own)
        return soft.value.columns(*self._own), self._own_bonus, share

    # --- entropies ------------------------------------------------------------------------------

    def use(self, soft: Soft) -> Buffer | None:
        """How likely each head is to be in use, (P, 1, B, H); None: all always are."""
        if soft.use is not None or self.draw is None:
            return soft.use
        return self.draw.activity

    def entropies(self, soft: Soft) -> Buffer:
        """The entropies of all heads, weighted with how likely they are to be in use.

        Call it after the backward pass: those of real numbers are weighted in their place.
        """
        if soft.entropy is not None:
            ops.copy(soft.entropy, out=self.entropy.columns(0, self._first))
        if soft.use is not None and self.actor is not None:
            own = self.entropy.columns(*self._own)
            ops.multiply(own, soft.use.columns(*self._own), out=own)
        return self.entropy

    def _bonus_inputs(self, alpha: Buffer, soft: Soft) -> tuple[Buffer, Buffer, Buffer | None]:
        use = None if soft.use is None or self.independent else soft.use.columns(*self._own)
        return self.entropy.columns(*self._own), alpha.columns(*self._own), use

    @property
    def _own_bonus(self) -> Buffer:
        return self._bonus.columns(*self._own) if self.independent else self._bonus

    def _mask(self, mask: Buffer | None) -> Buffer | None:
        """The mask of an actor that has discrete heads."""
        return mask if self._first == 0 else None
