"""Updates in passes; tests/gpu has captured ones."""

import numpy as np
import torch

from headwise.algorithms import algorithms
from headwise.algorithms.base import InPasses
from headwise.envs.make import make_vec
from headwise.factorizations import factorizations
from headwise.population import Kept
from headwise.training.build import make_loop
from headwise.training.passes import Passes


def made(name="ppo", **settings):
    config = algorithms.get(name)(hidden=(16, 16), **settings)
    env = make_vec("HybridShoot", (3, 4), 4, num_threads=1)
    return make_loop(env, config, factorizations.get("vdn")(), (3, 4), 400)


def test_passes_are_the_update():
    whole, parts = (made(rollout=64, minibatch=16, epochs=3) for _ in range(2))
    assert isinstance(whole.algorithm, InPasses)
    parts._passes = Passes(parts.algorithm, torch.device("cpu"))
    whole.run(200)
    parts.run(200)
    assert whole.updates == parts.updates == 3
    expected = whole.algorithm.state_dict()
    for name, x in parts.algorithm.state_dict().items():
        np.testing.assert_array_equal(x, expected[name])
    assert whole.metrics.keys() == parts.metrics.keys()
    for name, x in parts.metrics.items():
        np.testing.assert_array_equal(x, whole.metrics[name])


def test_learners_from_replay_have_no_passes():
    assert not isinstance(made("dqn").algorithm, InPasses)


def test_on_the_cpu_what_is_kept_is_what_was_given():
    kept, x = Kept(), torch.arange(3.0)
    kept.keep({"x": x})
    kept.keep({"x": (y := x + 1)})
    assert kept.tensors["x"] is y
