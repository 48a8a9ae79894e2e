"""Pictures of users' environments arrive in rows as the bytes that were shown."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from headwise.envs.foreign import foreign_env
from headwise.errors import EnvError

LAST = 5


def picture(shape, episode, time):
    """Another one at every step, with words that are no numbers to float32."""
    shown = np.arange(np.prod(shape), dtype=np.int64).reshape(shape) * (episode + 3) + 7 * time
    shown = (shown % 256).astype(np.uint8)
    shown.reshape(-1)[:4] = 255
    return shown


class Film(gym.Env):
    """Shows a picture of 4 x 6 x 3 bytes, which is whole words."""

    shape = (4, 6, 3)
    observation_space = spaces.Box(0, 255, shape, np.uint8)
    action_space = spaces.Discrete(2)
    episode = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.time = self.episode + 1, 0
        return self._obs(), {}

    def step(self, action):
        self.time += 1
        return self._obs(), 1.0, self.time == LAST, False, {}

    def _obs(self):
        return picture(self.shape, self.episode, self.time)


class Odd(Film):
    """3 x 3 x 3 bytes, which are not, among other things."""

    shape = (3, 3, 3)
    observation_space = spaces.Dict(
        clock=spaces.Box(-1e3, 1e3, (1,)),
        eye=spaces.Box(0, 255, shape, np.uint8),
        hands=spaces.Tuple([spaces.Discrete(9), spaces.Box(0, 255, (2,), np.uint8)]),
    )
    bad = None

    def _obs(self):
        clock = np.float32([self.time if self.time != self.bad else np.nan])
        hands = self.episode % 9, np.uint8([self.time, 255])
        return {"clock": clock, "eye": super()._obs(), "hands": hands}


def expected(kind, codec, episode, time):
    env = kind()
    env.episode, env.time = episode, time
    return codec.flatten(env._obs())


def vector(mode):
    return lambda kind: SyncVectorEnv([kind] * 2, autoreset_mode=mode)


WAYS = {
    "sync": lambda kind: foreign_env(kind, [1], 2),
    "async": lambda kind: foreign_env(kind, [1], 2, vectorization="async"),
} | {
    mode.name: lambda kind, mode=mode: foreign_env(vector(mode)(kind), [1], 2)
    for mode in AutoresetMode
}


@pytest.mark.parametrize("kind", [Film, Odd])
@pytest.mark.parametrize("way", WAYS)
def test_rows_are_what_was_shown(kind, way):
    env = WAYS[way](kind)
    codec, episode, time = env.codec, 1, 0
    obs = env.reset().copy()
    for _ in range(3 * LAST):
        assert (obs.view(np.uint8) == expected(kind, codec, episode, time).view(np.uint8)).all()
        step = env.step(np.zeros((1, 2, 1), np.float32))
        if step.valid.all():
            time += 1
            successor = expected(kind, codec, episode, time).view(np.uint8)
            assert (step.next_obs.view(np.uint8) == successor).all()
            assert (step.terminated == (time == LAST)).all()
        if not step.valid.all() or (way != "NEXT_STEP" and time == LAST):
            episode, time = episode + 1, 0
        obs = step.obs.copy()
    assert episode >= 3
    env.close()


def test_numbers_beside_a_picture_must_be_finite():
    class Bad(Odd):
        bad = 2

    env = foreign_env(Bad, [1], 2)
    env.reset()
    env.step(np.zeros((1, 2, 1), np.float32))
    with pytest.raises(
        EnvError, match="observation at 'clock' in slot 0 of member 0 is not finite"
    ):
        env.step(np.zeros((1, 2, 1), np.float32))


def test_a_lone_picture_is_gathered_where_it_is_needed():
    """One copy: the rows of a batch are the buffer of the vector environment."""
    env = foreign_env(Film, [1, 2], 3)
    rows = env.reset()
    shown = env.adapters[0].vector._observations
    assert np.shares_memory(rows, shown)
    step = env.step(np.zeros((2, 3, 1), np.float32))
    assert step.obs is rows
    assert step.next_obs is rows
