"""How a piece of tensor code is run again and again: as it is on the CPU, as a CUDA graph on a GPU.

A graph replays the same kernels on the same memory without Python, which small networks would spend
most of their time in. What is captured must therefore read from and write to
tensors that stay where they are, draw its random numbers by a clock on the device, and never wait
for the device. No other file knows whether code is captured.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import Generic, TypeVar

import torch

T = TypeVar("T")

WARM_UP = 2
"""Runs before the capture; libraries set themselves up in them. They count like any other run."""


class Captured(Generic[T]):
    """Something that is done many times.

    Args:
        body: Does it once, and returns what came of it. That is overwritten by later runs on a GPU.
        device: Where it works.
        repeated: Does it so many times, and returns what came of the last, where that is less work
            than to call `body` as often.
        bundle: Runs that one graph holds, for callers that often want so many at once.
        warm_up: Runs before the capture.
    """

    def __init__(
        self,
        body: Callable[[], T],
        device: torch.device,
        *,
        repeated: Callable[[int], T] | None = None,
        bundle: int = 1,
        warm_up: int = WARM_UP,
    ) -> None:
        self._body = body
        self._repeated = repeated
        self._captures = device.type == "cuda"
        self._bundle = bundle
        self._warm_up = warm_up
        self._runs = 0
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, T]] = {}

    def __call__(self, times: int = 1) -> T:
        """Runs it so many times, at least once; the result is that of the last run."""
        assert times > 0
        if not self._captures:
            return self._plainly(times)
        while times:
            bundle = self._bundle if times >= self._bundle and self._runs >= self._warm_up else 1
            result = self._run(bundle)
            times -= bundle
        return result

    def _plainly(self, times: int) -> T:
        """So many runs of the code as it is."""
        if self._repeated is not None:
            return self._repeated(times)
        for _ in range(times):
            result = self._body()
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
        """A run on the stream that the capture will be on."""
        current, stream = torch.cuda.current_stream(), _capture_stream()
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            result = self._body()
        current.wait_stream(stream)
        return result

    def _capture(self, bundle: int) -> tuple[torch.cuda.CUDAGraph, T]:
        graph = torch.cuda.CUDAGraph()
        # A graph of somebody else that is thrown away during a capture would end the process.
        collects = gc.isenabled()
        gc.disable()
        try:
            with torch.cuda.graph(
                graph, stream=_capture_stream(), capture_error_mode="thread_local"
            ):
                result = self._plainly(bundle)
        finally:
            if collects:
                gc.enable()
        return graph, result


def _capture_stream() -> torch.cuda.Stream:
    """The current stream; the default one cannot be captured, so another stands in for it."""
    current = torch.cuda.current_stream()
    return current if current != torch.cuda.default_stream() else _spare_stream(current.device)


@functools.cache
def _spare_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
