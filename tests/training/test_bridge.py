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


class Queue:
    """A stream of a GPU whose work is done when we say so."""

    def __init__(self):
        self.done = False
        self.waited = 0

    def query(self):
        return self.done

    def synchronize(self):
        self.waited += 1


def test_actions_arrive_on_the_stream_they_were_sent_on(monkeypatch):
    mine, another = Queue(), Queue()
    bridge = Bridge(torch.device("cuda"))
    bridge._action = torch.zeros(1)
    bridge._array = bridge._action.numpy()
    for current in (mine, another):  # the thread may be on a second one when it asks
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device, stream=current: stream)
        if current is mine:
            bridge.expect()
    another.done = True
    assert not bridge.arrived()
    bridge.action()
    assert (mine.waited, another.waited) == (1, 0)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: mine)
    bridge.expect()
    mine.done = True
    assert bridge.arrived()
    bridge.action()
    assert mine.waited == 1  # what is here needs no waiting
