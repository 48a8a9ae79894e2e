"""Adam whose step size, gradient clipping and divergence are each member's own."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from headwise.population.clock import Clock
from headwise.population.packing import Packed

_BLOCK, _WARPS = 512, 2  # of the kernels


class Adam:
    """Adam over packed parameters; nothing crosses members.

    The gradient of a member is clipped to `max_norm` by its own length. A member whose gradient is
    not finite has diverged: from then on it and what follows it are left as they were, and the
    others never notice.

    Args:
        packed: The parameters and their gradients.
        lr: The step size of each member, (P,).
        betas: Decay of the running mean and square.
        eps: Keeps the quotient finite.
        max_norm: The longest gradient; None does not clip.
        alive: Which members have not diverged, (P,), where that is another optimiser's to say as
            well: a member that diverges in one of them is left alone by all.
    """

    def __init__(
        self,
        packed: Packed,
        lr: Tensor,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        max_norm: float | None = None,
        alive: Tensor | None = None,
    ) -> None:
        self.packed = packed
        self.lr = lr.clone()
        self.betas = betas
        self.eps = eps
        self.max_norm = max_norm
        self.mean = torch.zeros_like(packed.values)
        self.square = torch.zeros_like(packed.values)
        device = lr.device
        self.clock = Clock(device)
        """Steps so far."""
        if alive is None:
            alive = torch.ones(packed.num_members, dtype=torch.bool, device=device)
        self.alive = alive
        """Which members have not diverged, (P,)."""
        self.norm = torch.zeros(packed.num_members, device=device)
        """The length of each member's last gradient, before clipping, (P,)."""
        if device.type == "cuda":
            self._starts, self._counts, self._members = packed.blocks(_BLOCK)

    def step(self, follower: Packed | None = None, rate: float = 0.0) -> None:
        """One step along the gradients, which are then forgotten.

        Args:
            follower: Another network that moves a part of the way to the new values.
            rate: How large a part.
        """
        kind = self.packed.values.device.type
        if kind == "cuda":
            self._step_kernels(follower, rate)
            return
        self.clock.advance()
        if kind == "cpu":
            self._step_compiled(follower, rate)
            return
        self._step_tensors(follower, rate)
        self.packed.zero_grad()

    @torch.no_grad()
    def _step_kernels(self, follower: Packed | None, rate: float) -> None:
        from headwise.population.kernels.adam import step, sum_squares

        grid = (self._starts.shape[0],)
        each = self._starts.shape[0] // self.packed.num_members
        partial = torch.empty(grid, device=self.norm.device)
        grads, starts, counts = self.packed.grads, self._starts, self._counts
        sum_squares[grid](
            grads, starts, counts, partial, self.clock.now, BLOCK=_BLOCK, num_warps=_WARPS
        )
        beta1, beta2 = self.betas
        step[grid](
            self.packed.values, grads, self.mean, self.square,
            (follower or self.packed).values, starts, counts, self._members,
            partial, self.lr, self.norm, self.alive, self.clock.now, each, rate,
            beta1, beta2, 1.0 - beta1, 1.0 - beta2, math.log(beta1), math.log(beta2), self.eps,
            self.max_norm or 0.0,
            FOLLOWED=follower is not None, BLOCK=_BLOCK, PARTS=1 << (each - 1).bit_length(),
            num_warps=_WARPS,
        )  # fmt: skip

    def _step_compiled(self, follower: Packed | None, rate: float) -> None:
        from headwise import _core

        _core.adam_step(
            self.packed.values.numpy(),
            self.packed.grads.numpy(),
            self.mean.numpy(),
            self.square.numpy(),
            self.packed.offsets.numpy(),
            self.packed.sizes.numpy(),
            self.lr.numpy(),
            self.alive.numpy(),
            self.norm.numpy(),
            self.clock.read(),
            *self.betas,
            self.eps,
            self.max_norm or 0.0,
            None if follower is None else follower.values.numpy(),
            rate,
        )

    @torch.no_grad()
    def _step_tensors(self, follower: Packed | None = None, rate: float = 0.0) -> None:
        """A step in tensor operations: for other devices, and the oracle of the compiled one."""
        beta1, beta2 = self.betas
        grads = self.packed.rows(self.packed.grads)
        self.norm.copy_(torch.linalg.vector_norm(grads, dim=1))
        self.alive &= torch.isfinite(self.norm)
        alive = self.alive.unsqueeze(1)
        if self.max_norm is not None:
            grads = grads * (self.max_norm / (self.norm + 1e-6)).clamp_max(1.0).unsqueeze(1)
        values, mean, square = (
            self.packed.rows(flat) for flat in (self.packed.values, self.mean, self.square)
        )
        mean = torch.where(alive, mean.lerp(grads, 1.0 - beta1), mean)
        square = torch.where(alive, square * beta2 + grads.square() * (1.0 - beta2), square)
        count = self.clock.read()
        correction1, correction2 = 1.0 - beta1**count, 1.0 - beta2**count
        change = mean / (square.sqrt() / correction2**0.5 + self.eps)
        change = change * (self.lr / correction1).unsqueeze(1)
        values = torch.where(alive, values - change, values)
        for flat, rows in (
            (self.packed.values, values),
            (self.mean, mean),
            (self.square, square),
        ):
            self.packed.load_rows(flat, rows)
        if follower is not None:
            behind = follower.rows(follower.values)
            behind = torch.where(alive, behind.lerp(values, rate), behind)
            follower.load_rows(follower.values, behind)

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that a later step depends on, each with the member axis first."""
        rows = self.packed.rows
        return {
            "values": rows(self.packed.values),
            "mean": rows(self.mean),
            "square": rows(self.square),
            "lr": self.lr.clone(),
            "alive": self.alive.clone(),
            "count": torch.full_like(self.lr, self.clock.read(), dtype=torch.int64),
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""
        self.packed.load_rows(self.packed.values, state["values"])
        self.packed.load_rows(self.mean, state["mean"])
        self.packed.load_rows(self.square, state["square"])
        self.lr.copy_(state["lr"])
        self.alive.copy_(state["alive"])
        self.clock.set(int(state["count"][0]))
