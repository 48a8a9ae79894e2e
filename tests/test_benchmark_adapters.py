"""The benchmark of users' environments: that what it compares can be compared."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import adapters

from headwise.envs.foreign import wrap


@pytest.mark.parametrize(
    "case",
    list(adapters.cases()),
    ids=lambda case: f"{case.name} {case.num_envs} {case.vectorization}",
)
def test_both_sides_step_as_many_environments(case):
    meters, close = adapters.meters_of(case)
    rates = [measure(0.02) for measure in meters]
    close()
    assert min(rates) > 0


@pytest.mark.parametrize("make", [adapters.Arm, adapters.Camera])
def test_its_environments_keep_their_word(make):
    env = wrap(make, [0], 2)
    env.reset()
    ends = sum(env.step(heads).truncated.sum() for heads in adapters._heads(env) * 4)
    assert ends == 2 * (256 // 200)
    assert np.isfinite(env.step(adapters._heads(env)[0]).reward).all()
