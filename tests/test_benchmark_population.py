"""The benchmark of populations: that it measures what it says, not how fast anything is."""

import sys
import time
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import population  # noqa: E402
from benchmarks.__main__ import SECTIONS  # noqa: E402

from headwise.ops import Recorded  # noqa: E402


def test_it_has_a_name():
    assert SECTIONS["population"] is population


def test_the_unit_of_work_is_a_rollout_and_its_update():
    loop = population.loop_of(2, (8, 8), rollout=64)
    work = population.one_update(loop)
    for done in (1, 2):
        work()
        assert (loop.updates, loop.env_steps) == (done, 64 * done)


def test_both_sides_take_turns():
    result = population.times(rounds=1, seconds=0.05, rollout=64)
    one, many = result.rates
    assert result.ratios[0] == one / many > 0


def test_a_clock_adds_up_what_it_wraps():
    clock = population.Clock()
    for _ in range(3):
        assert clock.timed(lambda x: time.sleep(0.01) or x)(5) == 5
    assert 0.03 <= clock.total < 1.0


def test_the_share_of_programs_is_measured_and_nothing_stays_wrapped():
    call = Recorded.__call__
    share = population.share(1, updates=2, rollout=256)
    assert 0.2 < share < 1.0
    assert Recorded.__call__ is call
    # Whose time is not taken does not count.
    with mock.patch.object(population.Clock, "timed", lambda _, function: function):
        assert population.share(1, updates=1, rollout=256) == 0.0
