"""Captured code on the CPU is the code itself; what a GPU makes of it is in tests/gpu."""

import torch

from headwise.population import Clock
from headwise.training.capture import Captured


def test_it_runs_as_often_as_asked_and_returns_the_last_result():
    """Many at once are left to the code itself, whatever a graph would hold."""
    for bundle in (1, 4):
        asked = []

        def body(times, asked=asked):
            asked.append(times)
            return sum(asked)

        captured = Captured(body, torch.device("cpu"), bundle=bundle)
        assert captured() == 1
        assert captured(times=6) == 7
        assert asked == [1, 6]


def test_a_clock_counts_wherever_it_is():
    for device in ("cpu", "meta") if not torch.cuda.is_available() else ("cpu", "cuda"):
        clock = Clock(device)
        clock.advance()
        clock.advance(3)
        if device != "meta":
            assert clock.read() == 4
            assert clock.now == 4
            clock.set(9)
            assert clock.read() == 9
        else:
            assert isinstance(clock.now, torch.Tensor)
