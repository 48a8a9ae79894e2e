"""Which environments can be resumed exactly: by whoever knows their whole state."""

import gymnasium as gym
import numpy as np
import pytest
from foreign_toys import Resumable

from headwise.envs.foreign import foreign_env


class Remembering(gym.Wrapper):
    """A wrapper that has a state, and tells it together with that of what is inside."""

    def __init__(self, env):
        super().__init__(env)
        self.steps = 0

    def step(self, action):
        self.steps += 1
        obs, *rest = super().step(action)
        return obs + self.steps, *rest

    def get_state(self):
        return bytes([self.steps]) + self.unwrapped.get_state()

    def set_state(self, state):
        self.steps = state[0]
        self.unwrapped.set_state(state[1:])


WRAPPED = {
    "nothing around it": (lambda env: env, True),
    "forgetful": (lambda env: gym.wrappers.ClipReward(env, 0, 100), True),
    "forgetful twice": (
        lambda env: gym.wrappers.OrderEnforcing(gym.wrappers.ReshapeObservation(env, (1, 3))),
        True,
    ),
    "frames": (lambda env: gym.wrappers.FrameStackObservation(env, 3), False),
    "a clock": (
        lambda env: gym.wrappers.TimeAwareObservation(gym.wrappers.TimeLimit(env, 9)),
        False,
    ),
    "unknown": (type("Mine", (gym.Wrapper,), {}), False),
    "a subclass": (type("Clip", (gym.wrappers.OrderEnforcing,), {}), False),
    "with hooks of its own": (Remembering, True),
}


@pytest.mark.parametrize("what", WRAPPED)
def test_a_wrapper_that_remembers_something_is_not_resumed_exactly(what):
    """What is claimed to be resumed exactly is; and a wrapper that nobody knows claims nothing."""
    wrapper, exact = WRAPPED[what]
    env, again = (foreign_env(lambda: wrapper(Resumable(length=9)), [1], 1) for _ in range(2))
    env.reset()
    assert env.can_snapshot == exact
    if not exact:
        return
    action = np.ones((1, 1, 1), dtype=np.float32)
    for _ in range(5):
        env.step(action)
    again.restore(env.snapshot())
    np.testing.assert_array_equal(env.step(action).next_obs, again.step(action).next_obs)
