"""Rows and numbers that minibatches are made of."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from headwise.ops.buffers import Buffer
from headwise.ops.core import core
from headwise.ops.operation import emit
from headwise.ops.philox import uniforms


def gather(
    sources: Sequence[Buffer], order: Buffer, cursor: Buffer, *, out: Sequence[Buffer]
) -> None:
    """The next rows of each source, in a member's own order, from its cursor on, which moves.

    Args:
        sources: (P, 1, R, W) each.
        order: Which row comes when, whole numbers (P, 1, 1, any).
        cursor: How many were taken, a whole number (P, 1, 1, 1).
        out: (P, 1, B, W) each.
    """
    if order.is_compiled:
        core.gather([x.core for x in sources], order.core, cursor.core, [x.core for x in out])
        return

    def define() -> None:
        rows = out[0].num_rows
        at = cursor.ints[:, 0, 0] + torch.arange(rows, device=cursor.device)  # (P, B)
        index = order.ints[:, 0, 0].gather(-1, at.long())
        for source, batch in zip(sources, out, strict=True):
            wide = index.long()[:, None, :, None].expand(-1, -1, -1, batch.width)
            batch.tensor.copy_(source.tensor.gather(2, wide))
        cursor.ints.add_(rows)

    emit(define)


def take(x: Buffer, index: Buffer, *, out: Buffer) -> None:
    """Rows of x by their numbers, which are the same for all members, (1, 1, 1, B)."""
    if x.is_compiled:
        core.take(x.core, index.core, out.core)
    else:
        emit(lambda: _copy(x.tensor.index_select(2, index.ints.flatten().long()), out))


def copy(x: Buffer, *, out: Buffer) -> None:
    """The same numbers."""
    if x.is_compiled:
        core.copy(x.core, out.core)
    else:
        emit(lambda: _copy(x.tensor, out))


def fill(x: Buffer, value: float) -> None:
    """The same number everywhere."""
    if x.is_compiled:
        core.fill(x.core, value)
    else:
        emit(lambda: x.write(torch.full_like(x.tensor, value)))


def uniform(out: Buffer, seeds: Buffer, clock: Buffer, stream: int) -> None:
    """Numbers in [0, 1) (P, 1, R, W): functions of (seed, stream, clock, index in the rows).

    Args:
        out: What is written.
        seeds: The members' seeds, the bits of an int64 (P, 1, 1, 2).
        clock: The members' clocks, likewise.
        stream: What the numbers are for.
    """
    if out.is_compiled:
        core.uniform(out.core, seeds.core, clock.core, stream)
    else:
        emit(lambda: uniforms(out.tensor, seeds.longs, clock.longs, stream))


def advance(clock: Buffer, steps: int = 1) -> None:
    """Moves the members' clocks on."""
    if clock.is_compiled:
        core.advance(clock.core, steps)
        return

    def define() -> None:
        clock.longs.add_(steps)

    emit(define)


def shuffle(numbers: Buffer, *, order: Buffer, cursor: Buffer) -> None:
    """A permutation of R rows for each epoch, by the order of uniform numbers.

    Args:
        numbers: The numbers, (P, 1, epochs, R).
        order: The permutations one after another, whole numbers (P, 1, 1, epochs * R).
        cursor: Is set to the start of them, (P, 1, 1, 1).
    """
    if numbers.is_compiled:
        core.shuffle(numbers.core, order.core, cursor.core)
        return

    def define() -> None:
        ranks = torch.argsort(numbers.tensor[:, 0], dim=-1, stable=True)
        order.ints[:, 0, 0].copy_(ranks.flatten(1))
        cursor.ints.zero_()

    emit(define)


def _copy(x: Tensor, out: Buffer) -> None:
    out.write(x)
