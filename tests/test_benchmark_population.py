"""The benchmark of populations: that it measures what it says, not how fast anything is."""

import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import population  # noqa: E402
from benchmarks.__main__ import SECTIONS  # noqa: E402

from headwise import _core  # noqa: E402


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


def test_both_shares_are_measured_and_nothing_stays_wrapped():
    kernels = _core.adam_step, _core.fill_uniforms
    torchs, ours = population.shares(1, updates=1, rollout=64)
    # The wall time is that of other updates: on a busy machine the shares can add up to more than 1.
    assert torchs > 0.0
    assert ours > 0.0
    assert kernels == (_core.adam_step, _core.fill_uniforms)
