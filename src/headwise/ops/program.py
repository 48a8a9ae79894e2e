"""What is repeated is recorded once: as a program on the CPU, as a CUDA graph on a GPU."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import torch

from headwise.ops.buffers import Trace
from headwise.ops.core import CoreProgram, core
from headwise.ops.network import rounds_products

T = TypeVar("T")

WARM_UP = 2
"""Runs on a GPU before the capture; libraries set themselves up in them. They count like others."""


class Recorded:
    """Operations that are done many times, in the same order on the same buffers.

    Whatever changes from one time to the next must be in buffers: Python numbers are
    those of the first time; only how products are rounded is looked up again. What other threads
    run during a capture is a part of it.

    Args:
        body: Does it once.
        device: Where it works.
        records: Whether it does; it must not where something grows in number.
    """

    def __init__(
        self, body: Callable[[], None], device: torch.device | str, *, records: bool = True
    ) -> None:
        self._body = body
        kind = torch.device(device).type if records else None
        self._on_cpu = kind == "cpu"
        self._program: CoreProgram | None = None
        self._rounds = False
        self._graphs = Graphs(lambda times: body()) if kind == "cuda" else None

    def __call__(self, times: int = 1, threads: int = 1) -> None:
        """Does it so many times; on the CPU members are spread over threads."""
        if self._graphs is not None and Trace.now is None and not is_capturing():
            for _ in range(times):
                self._graphs()
        elif self._on_cpu and Trace.now is None:
            self._by_program(times, threads)
        else:
            for _ in range(times):
                self._body()

    def of_member(self, member: int) -> None:
        """Does it once for a member; what the others have is then what it was, or done too."""
        if not self._on_cpu or Trace.now is not None:
            self()
        elif not self._is_recorded():
            self._record()
        else:
            assert self._program is not None
            self._program.run_member(member)

    def _by_program(self, times: int, threads: int) -> None:
        if times > 0 and not self._is_recorded():
            self._record()
            times -= 1
        if times > 0 and self._program is not None:
            self._program.run(times, threads)

    def _is_recorded(self) -> bool:
        return self._program is not None and self._rounds is rounds_products()

    def _record(self) -> None:
        """Does it once, and keeps how."""
        self._rounds = rounds_products()
        program = core.Program()
        with program:
            self._body()
        self._program = program


class Graphs(Generic[T]):
    """A piece of code as CUDA graphs, which replay the same kernels on the same memory.

    What is captured must read from and write to tensors that stay where they are, and never wait
    for the device. What it returns is overwritten by later runs.

    Args:
        body: Does it so many times, and returns what came of the last.
        bundle: Times that one graph holds, for callers that often want so many at once.
        warm_up: Runs before the capture.
    """

    def __init__(
        self, body: Callable[[int], T], *, bundle: int = 1, warm_up: int = WARM_UP
    ) -> None:
        self._body, self._bundle, self._warm_up = body, bundle, warm_up
        self._runs = 0
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, T]] = {}

    def __call__(self, times: int = 1) -> T:
        """Does it so many times, at least once."""
        assert times > 0
        while times:
            bundle = self._bundle if times >= self._bundle and self._runs >= self._warm_up else 1
            result = self._run(bundle)
            times -= bundle
        return result

    def _run(self, bundle: int) -> T:
        if self._runs < self._warm_up:
            self._runs += 1
            return self._aside()
        if bundle not in self._graphs:
            self._graphs[bundle] = self._capture(bundle)
        graph, result = self._graphs[bundle]
        graph.replay()
        return result

    def _aside(self) -> T:
        """Once, on the stream that the capture will be on."""
        current, stream = torch.cuda.current_stream(), _capture_stream()
        stream.wait_stream(current)
        with torch.cuda.stream(stream), _as_part():
            result = self._body(1)
        current.wait_stream(stream)
        return result

    def _capture(self, bundle: int) -> tuple[torch.cuda.CUDAGraph, T]:
        graph = torch.cuda.CUDAGraph()
        # Another loop's graph that is freed during a capture would end the process.
        collects = gc.isenabled()
        gc.disable()
        try:
            with (
                torch.cuda.graph(
                    graph, stream=_capture_stream(), capture_error_mode="thread_local"
                ),
                _as_part(),
            ):
                result = self._body(bundle)
        finally:
            if collects:
                gc.enable()
        return graph, result


_capturing = 0


def is_capturing() -> bool:
    """Whether the code that runs is part of a graph, or of the runs before its capture."""
    return _capturing > 0


@contextmanager
def _as_part() -> Iterator[None]:
    """While it is entered, what is recorded by itself otherwise is part of something larger."""
    global _capturing
    _capturing += 1
    try:
        yield
    finally:
        _capturing -= 1


def _capture_stream() -> torch.cuda.Stream:
    """The current stream; the default one cannot be captured, so another stands in for it."""
    current = torch.cuda.current_stream()
    return current if current != torch.cuda.default_stream() else _spare_stream(current.device)


@functools.cache
def _spare_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
