"""The benchmark of rollouts: that it measures what it says, not how fast anything is."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import rollout  # noqa: E402
from benchmarks.__main__ import SECTIONS  # noqa: E402
from benchmarks.timing import race  # noqa: E402


def test_it_has_a_name():
    assert SECTIONS["rollout"] is rollout


def test_a_unit_of_work_is_a_rollout_that_nobody_learns_from():
    for env in (rollout.NATIVE, rollout.GYMNASIUM):
        for at_once in (True, False):
            loop = rollout.without_learning(rollout.loop_of(env, rollout=64))
            rollout.ticks(loop, at_once=at_once)()
            assert (loop.ticks, loop.updates, loop.memory.size) == (9, 0, 1)


def test_what_is_compiled_takes_no_tick_of_python(monkeypatch):
    loop = rollout.without_learning(rollout.loop_of(rollout.NATIVE, rollout=64))
    monkeypatch.setattr(loop, "tick", None)
    rollout.ticks(loop, at_once=True)()
    assert loop.ticks == 9


def test_training_learns():
    loop = rollout.loop_of(rollout.NATIVE, rollout=64)
    rollout.ticks(loop, at_once=True)()
    assert loop.updates == 1


def test_every_row_has_a_rate():
    for meters in (rollout.collecting(64), rollout.training(64)):
        found = race(list(meters.values()), rounds=1, seconds=0.01)
        assert len(rollout._rows(meters, found, as_us=True)) == 4
        assert min(found.rates) > 0.0
