"""The pace of a loop, on a clock that a test holds in its hand."""

from types import SimpleNamespace

import pytest
import torch

from headwise.training import pace


class Timed:
    """A loop of 4 slots: a tick takes a second, an update ten more and comes every fifth tick."""

    def __init__(self, clock, every=5, update=10.0):
        self.clock, self.every, self.update = clock, every, update
        self.keys = SimpleNamespace(device=torch.device("cpu"))
        self.ticks = self.updates = 0

    @property
    def env_steps(self):
        return 4 * self.ticks

    def go_on(self):
        self.ticks += 1
        self.clock.now += 1.0
        if self.ticks % self.every == 0:
            self.updates += 1
            self.clock.now += self.update


@pytest.fixture
def clock(monkeypatch):
    held = SimpleNamespace(now=100.0)
    monkeypatch.setattr(pace.time, "perf_counter", lambda: held.now)
    return held


def test_it_is_ready_after_the_first_update(clock):
    loop = Timed(clock)
    pace.get_ready(loop, at_most=1000.0)
    assert loop.ticks == 5


def test_on_a_gpu_it_waits_for_the_capture(clock, monkeypatch):
    loop = Timed(clock)
    loop.keys.device = torch.device("cuda")
    waits = []
    monkeypatch.setattr(pace, "_wait", waits.append)
    pace.get_ready(loop, at_most=1000.0)
    assert loop.updates == 3  # two before it, and the capture
    assert waits == [True]


@pytest.mark.parametrize("seconds", [0.5, 15.0, 16.0, 44.0])
def test_a_rollout_counts_whole_or_not_at_all(clock, seconds):
    """Fifteen seconds are five ticks and an update, twenty steps of each member: 0.75 a step."""
    loop = Timed(clock)
    pace.get_ready(loop, at_most=1000.0)
    assert pace.seconds_per_step(loop, seconds, at_most=1000.0) == 0.75
    assert loop.ticks % 5 == 0


def test_one_that_never_learns_is_judged_by_its_ticks(clock):
    loop = Timed(clock, every=10**6)
    pace.get_ready(loop, at_most=7.0)
    assert clock.now == 107.0
    assert pace.seconds_per_step(loop, 1.0, at_most=8.0) == 0.25
