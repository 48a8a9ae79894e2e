"""All parameters of a network in one tensor, and their gradients in another.

The optimiser, the clipping, the target network and the checkpoint then work on one tensor instead
of dozens: fewer kernels, and less Python. Each parameter stays contiguous, (P, ...), so that a
stacked layer is one batched product without a copy.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor, nn

from headwise.errors import ConfigError

_ALIGNED = 32
"""Numbers: every parameter begins at a multiple, where whole vectors are loaded and stored."""


class Trainable(Protocol):
    """Anything with stacked parameters, (P, ...): a module, known by what else it can do."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """All of them."""


class Packed:
    """Re-homes the parameters of stacked modules into one flat tensor.

    The modules go on working: their parameters, and the gradients that autograd writes, are views
    of `values` and `grads`.
    """

    def __init__(self, *modules: Trainable) -> None:
        self.parameters = [p for module in modules for p in module.parameters()]
        assert self.parameters, "a network without parameters"
        self.num_members = self.parameters[0].shape[0]
        assert all(p.shape[0] == self.num_members for p in self.parameters)
        totals = [p.numel() for p in self.parameters]
        self.sizes = torch.tensor(totals) // self.num_members
        """How many numbers each parameter has for one member."""
        ends = torch.tensor([0, *(-(-n // _ALIGNED) * _ALIGNED for n in totals)]).cumsum(0)
        self.offsets = ends[:-1]
        """Where each parameter begins; what is left between two stays zero."""
        with torch.no_grad():
            device = self.parameters[0].device
            self.values = torch.zeros(int(ends[-1]), device=device)
            self.grads = torch.zeros_like(self.values)
            for parameter, start, total in zip(
                self.parameters, self.offsets.tolist(), totals, strict=True
            ):
                mine = self.values[start : start + total].view(parameter.shape)
                parameter.data = mine.copy_(parameter.detach())
                parameter.grad = self.grads[start : start + total].view(parameter.shape)

    @property
    def num_parameters(self) -> int:
        """How many numbers one member has."""
        return int(self.sizes.sum(0))

    def blocks(self, size: int) -> tuple[Tensor, Tensor, Tensor]:
        """Runs of at most `size` numbers that belong to one member: start, length and member.

        All runs of a member follow each other, and all members have as many.
        """
        rows = []
        for member in range(self.num_members):
            for at, n in zip(self.offsets.tolist(), self.sizes.tolist(), strict=True):
                first = at + member * n
                rows += [(first + k, min(size, n - k), member) for k in range(0, n, size)]
        table = torch.tensor(rows, device=self.values.device).t().contiguous()
        start, length, owner = table.unbind(0)
        return start.contiguous(), length.contiguous(), owner.contiguous()

    def zero_grad(self) -> None:
        """Forgets all gradients."""
        self.grads.zero_()

    def rows(self, flat: Tensor) -> Tensor:
        """A tensor laid out like `values` with a row for each member, (P, N): for keeping."""
        parts = zip(self.offsets.tolist(), self.sizes.tolist(), strict=True)
        return torch.cat(
            [flat[at : at + n * self.num_members].view(self.num_members, n) for at, n in parts], 1
        )

    def load_rows(self, flat: Tensor, rows: Tensor) -> None:
        """The way back: writes rows (P, N) into a tensor laid out like `values`."""
        if rows.shape != (self.num_members, self.num_parameters):
            raise ConfigError(
                "the parameters do not fit the network",
                got=f"{tuple(rows.shape)} (members, numbers)",
                allowed=str((self.num_members, self.num_parameters)),
            )
        column = 0
        for at, n in zip(self.offsets.tolist(), self.sizes.tolist(), strict=True):
            part = rows[:, column : column + n]
            flat[at : at + n * self.num_members].view(self.num_members, n).copy_(part)
            column += n


_here = threading.local()


@contextmanager
def straight_gradients() -> Iterator[None]:
    """Layers called inside add gradients to `parameter.grad` themselves when autograd comes by.

    That saves a tensor and a kernel for every parameter. Autograd then never sees those gradients:
    inside, only `backward` makes sense, not `torch.autograd.grad` by parameters.
    """
    before = gradients_go_straight()
    _here.straight = True
    try:
        yield
    finally:
        _here.straight = before


def gradients_go_straight() -> bool:
    """Whether layers called now add their gradients up themselves."""
    return getattr(_here, "straight", False)


@contextmanager
def held_constant(packed: Packed) -> Iterator[None]:
    """Gradients of what is computed inside pass through these parameters, but not into them."""
    for parameter in packed.parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in packed.parameters:
            parameter.requires_grad_(True)
