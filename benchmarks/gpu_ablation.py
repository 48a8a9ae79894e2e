"""What each Triton kernel gains: whole updates with it, and with tensor operations instead."""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor

from benchmarks.gpu import Cell, bundle, parts, ready
from benchmarks.machine import description
from benchmarks.results import renew, table
from headwise.ops import Buffer, operations
from headwise.ops.adam import definition
from headwise.ops.philox import tensor_uniforms
from headwise.training import replay
from headwise.training.replay import Replay
from headwise.training.transition import Transition

MEMBERS = (1, 5, 64)
GAIN = 5.0
"""Percent of a whole update that a kernel must gain somewhere, to stay."""
NOISE = 16  # of the counters of learners, which kernels are told with the stream


class Contest(NamedTuple):
    """A kernel, how it is left out, and updates that it has a part in."""

    kernel: str
    without: Callable[[], AbstractContextManager[Any]]
    cells: tuple[Cell, ...]
    ticks: bool = False
    """Whether a step of the environment is measured in place of an update."""


def _adam(
    parameters: Buffer, mean: Buffer, square: Buffer, count: Buffer, rate: Buffer, alive: Buffer,
    norm: Buffer, betas: tuple[float, float], eps: float, max_norm: float,
    follower: Buffer | None, tau: float,
) -> None:  # fmt: skip
    count.longs.add_(1)
    definition(
        parameters.tensor, parameters.gradient, mean.tensor, square.tensor, count.longs,
        rate.tensor, alive.tensor, norm.tensor, betas, eps, max_norm,
        None if follower is None else follower.tensor, tau,
    )  # fmt: skip


def _uniforms(out: Tensor, seeds: Tensor, clocks: Tensor, stream: int) -> None:
    size = out[0].numel()
    numbers = tensor_uniforms(seeds.view(-1), clocks.view(-1), size, stream - NOISE)
    out.copy_(numbers.view(out.shape))


def _write(self: Replay, step: Transition) -> None:
    named = step.parts()
    self._write_where_valid({name: named[name] for name in replay._NUMBERS}, step.valid)
    written = step.valid.long()
    self._next.add_(written).remainder_(self.rows)
    self._count.add_(written).clamp_max_(self.rows)


def without_adam() -> AbstractContextManager[Any]:
    """Adam by its definition."""
    return patch.object(importlib.import_module("headwise.ops.triton.adam"), "adam_step", _adam)


def without_philox() -> AbstractContextManager[Any]:
    """Uniform numbers by tensor operations."""
    kernels = importlib.import_module("headwise.ops.triton.philox")
    return patch.object(kernels, "fill_uniforms", _uniforms)


def without_mixture() -> AbstractContextManager[Any]:
    """The mixture by its definition, with autograd's way back."""
    return patch.object(operations.get("mix"), "switched_off", True)


def without_drawing() -> AbstractContextManager[Any]:
    """Rows of the past by gathers."""
    return patch.object(replay, "way_to_draw", lambda device, width: "gather")


def without_writing() -> AbstractContextManager[Any]:
    """A step to memory by tensor operations."""
    return patch.object(Replay, "_write_kernel", _write)


DQN = Cell("DQN vdn", "dqn", "vdn", "discrete", {})
SAC = Cell("SAC shared", "sac", "shared", "hybrid", {})
PPO = Cell("PPO vdn, minibatch of 128", "ppo", "vdn", "discrete", {})
QPLEX = tuple(Cell(f"{a.upper()} qplex", a, "qplex", "discrete", {}) for a in ("dqn", "sac", "ppo"))
CONTESTS = (
    Contest("Adam", without_adam, (DQN, SAC, PPO)),
    Contest("uniform numbers", without_philox, (DQN, SAC, PPO)),
    Contest("mixture", without_mixture, QPLEX),
    Contest("drawing from replay", without_drawing, (DQN, SAC)),
    Contest("writing to replay", without_writing, (DQN, SAC), ticks=True),
)


class Turn:
    """A loop that is measured, with or without a kernel, which stays as it was built."""

    def __init__(self, contest: Contest, cell: Cell, members: int, *, without: bool) -> None:
        self._ticks = contest.ticks
        with contest.without() if without else _nothing():
            self._loop = ready(cell, members)
            if contest.ticks:
                self._loop.learn = lambda updates: None  # type: ignore[method-assign]
            for _ in range(4):  # all of it is captured while the kernel is left out
                self._once()
        torch.cuda.synchronize()

    def _once(self) -> None:
        if self._ticks:
            self._loop.tick()
        else:
            self._loop.learn(bundle(self._loop))

    def microseconds(self, seconds: float) -> float:
        """Of one update (PPO: one minibatch), or one step of all slots."""
        each = 1 if self._ticks else parts(self._loop)
        rounds, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            for _ in range(20 if each <= 4 else 2):
                self._once()
                rounds += 1
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / (rounds * each) * 1e6


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def run(*, rounds: int, seconds: float, command: str) -> str:
    """Measures all contests, by turns, and renews RESULTS.md."""
    rows: list[list[str]] = []
    for contest in CONTESTS:
        for cell in contest.cells:
            what = f"{cell.name}: a step" if contest.ticks else cell.name
            row = [contest.kernel, what]
            for members in MEMBERS:
                sides = [Turn(contest, cell, members, without=x) for x in (False, True)]
                turns = [[side.microseconds(seconds) for side in sides] for _ in range(rounds)]
                own, other = (statistics.median(side) for side in zip(*turns, strict=True))
                gains = sorted(100.0 * (1.0 - one / two) for one, two in turns)
                span = f"{gains[0]:.0f} to {gains[-1]:.0f}"
                gain = statistics.median(gains)
                row.append(f"{own:.0f} / {other:.0f}: {gain:.0f} % ({span})")
            rows.append(row)
            sys.stderr.write(" | ".join(row) + "\n")
            renew("gpu_ablation", section(rows, command))  # whatever comes, this is kept
    return section(rows, command)


def section(rows: list[list[str]], command: str) -> str:
    """The section of RESULTS.md."""
    columns = ["kernel", "update", *(f"P = {members}" for members in MEMBERS)]
    return "\n\n".join(
        [
            "## What each Triton kernel gains",
            "Microseconds of one update of one population, captured: with the kernel / with tensor "
            "operations in its place, and what it gains of the whole (median and range of the "
            f"rounds, which take turns). One that gains less than {GAIN:g} % everywhere goes.",
            f"{torch.cuda.get_device_name()}, {description(command)}.",
            table(columns, rows),
        ]
    )
