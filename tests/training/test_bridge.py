"""Between arrays and tensors, on the CPU; tests/gpu trains across the page-locked one."""

import numpy as np
import torch

from headwise.envs.make import make_vec
from headwise.training.bridge import Bridge


def test_steps_arrive_as_copies_and_actions_as_they_are():
    env = make_vec("HybridShoot", (0, 1), 3, num_threads=1)
    env.reset()
    bridge = Bridge(torch.device("cpu"))
    action = torch.zeros(2, 3, env.spec.num_heads)
    bridge.send(action)
    step = env.step(bridge.action())
    bridge.load(step)
    tensors = bridge.tensors()
    assert set(tensors) == {"obs", "next_obs", "reward", "terminated", "truncated", "valid"}
    before = {name: x.clone() for name, x in tensors.items()}
    for name, x in tensors.items():
        np.testing.assert_array_equal(x, getattr(step, name))
    env.step(bridge.action())  # overwrites the environment's arrays
    assert all(torch.equal(x, before[name]) for name, x in tensors.items())
