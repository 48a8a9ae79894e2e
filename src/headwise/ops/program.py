"""What is repeated is recorded once: as a program on the CPU, as a CUDA graph on a GPU."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable

import torch

from headwise.ops.buffers import Trace
from headwise.ops.core import CoreProgram, core

WARM_UP = 2
"""Runs on a GPU before the capture; libraries set themselves up in them. They count like others."""


class Recorded:
    """Operations that are done many times, in the same order on the same buffers.

    Whatever changes from one time to the next must be in buffers: numbers that Python knows are
    those of the first time.

    Args:
        body: Does it once.
        device: Where it works.
        bundle: Times that one CUDA graph holds, for callers that often want so many at once.
    """

    def __init__(
        self, body: Callable[[], None], device: torch.device | str, *, bundle: int = 1
    ) -> None:
        self._body = body
        self._device = torch.device(device)
        self._bundle = bundle
        self._runs = 0
        self._program: CoreProgram | None = None
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}

    def __call__(self, times: int = 1, threads: int = 1) -> None:
        """Does it so many times; on the CPU members are spread over threads."""
        if Trace.now is not None:
            self._body()
        elif self._device.type == "cuda":
            while times > 0:
                bundle = self._bundle if times >= self._bundle and self._runs >= WARM_UP else 1
                self._replay(bundle)
                times -= bundle
        elif self._device.type == "cpu":
            if times > 0 and self._program is None:
                program = core.Program()
                with program:
                    self._body()
                self._program = program
                times -= 1
            if times > 0 and self._program is not None:
                self._program.run(times, threads)
        else:
            for _ in range(times):
                self._body()

    def forget(self) -> None:
        """Records again the next time: what was recorded is of other buffers."""
        self._program, self._graphs, self._runs = None, {}, 0

    def _replay(self, bundle: int) -> None:
        if self._runs < WARM_UP:
            self._runs += 1
            self._aside()
            return
        if bundle not in self._graphs:
            self._graphs[bundle] = self._capture(bundle)
        self._graphs[bundle].replay()

    def _aside(self) -> None:
        """Once, on the stream that the capture will be on."""
        current, stream = torch.cuda.current_stream(), _capture_stream()
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            self._body()
        current.wait_stream(stream)

    def _capture(self, bundle: int) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        # A graph of somebody else that is thrown away during a capture would end the process.
        collects = gc.isenabled()
        gc.disable()
        try:
            with torch.cuda.graph(
                graph, stream=_capture_stream(), capture_error_mode="thread_local"
            ):
                for _ in range(bundle):
                    self._body()
        finally:
            if collects:
                gc.enable()
        return graph


def _capture_stream() -> torch.cuda.Stream:
    """The current stream; the default one cannot be captured, so another stands in for it."""
    current = torch.cuda.current_stream()
    return current if current != torch.cuda.default_stream() else _spare_stream(current.device)


@functools.cache
def _spare_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
