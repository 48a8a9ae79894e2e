"""Agents that are loaded into an environment made otherwise: it stays what it is."""

import functools
import pickle

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

import headwise as hw
from headwise.training.checkpoint import read_checkpoint, write_checkpoint

PPO = {"net_arch": (8,), "n_steps": 16, "batch_size": 32, "n_epochs": 1, "num_envs": 4}
NAME = "headwise_test/Level-v0"


class Level(gym.Env):
    """20 steps, each worth the level; its state is all of it, the level too."""

    observation_space = spaces.Box(-10, 10, (2,))
    action_space = spaces.Discrete(2)

    def __init__(self, level=1, size=(3, 4), render_mode=None):
        self.level, self.size, self.render_mode = level, size, render_mode
        self.time = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._obs(), {}

    def step(self, action):
        self.time += 1
        return self._obs(), float(self.level), False, self.time == 20, {}

    def _obs(self):
        return np.array([self.time / 20, 0], np.float32)

    def get_state(self):
        return pickle.dumps({n: x for n, x in vars(self).items() if n != "_np_random"})

    def set_state(self, state):
        vars(self).update(pickle.loads(state))


class Other(Level):
    pass


@pytest.fixture(autouse=True)
def registered():
    gym.register(NAME, entry_point=Level)
    yield
    del gym.registry[NAME]


def saved(path, env, steps=132, **settings):
    """After 33 steps of each slot, so in the middle of an episode."""
    hw.Agent("ppo", env, **{**PPO, **settings}).learn(steps, progress=False).save(path)


@pytest.mark.parametrize(
    ("trained", "given", "told"),
    [
        (Level, {"env": lambda: Level(level=7)}, "level=7 and not 1"),
        (Level, {"env": functools.partial(Level, level=7)}, "level=7 and not 1"),
        (Level, {"env": Level, "env_settings": {"level": 7}}, "(level)"),
        (Level, {"env": lambda: Other(level=7)}, "Other and not Level"),
        (NAME, {"env_settings": {"level": 7}}, "(level)"),
        (NAME, {"env": NAME, "env_settings": {"level": 7}}, "(level)"),
        (NAME, {"env": lambda: Level(level=7)}, "level=7 and not 1"),
    ],
)
def test_another_level_is_not_taken_back_by_the_snapshot(trained, given, told, tmp_path, caplog):
    saved(tmp_path / "x.zip", trained)
    agent = hw.Agent.load(tmp_path / "x.zip", **given)
    assert not agent.loop.in_episodes
    assert told in caplog.text
    assert "every slot begins a new episode" in caplog.text
    agent.learn(200, progress=False)
    assert agent.loop.episodes.last(0)[0][-4:].tolist() == [140.0] * 4


def test_one_that_was_made_is_known_by_how_it_was_made(tmp_path, caplog):
    """Not by how far it is in an episode."""
    one = Level()
    saved(tmp_path / "x.zip", one, steps=73, num_envs=1)
    for env in (one, Level()):
        assert hw.Agent.load(tmp_path / "x.zip", env=env).loop.in_episodes
    assert caplog.text == ""
    agent = hw.Agent.load(tmp_path / "x.zip", env=Level(level=7))
    assert not agent.loop.in_episodes
    assert agent.learn(40, progress=False).loop.episodes.last(0)[0][-1] == 140


@pytest.mark.parametrize(
    ("trained", "given"),
    [
        (Level, {"env": Level}),
        (Level, {"env": lambda: Level()}),
        (Level, {"env": lambda: Level(render_mode="human")}),
        (Level, {"env": NAME}),
        (NAME, {}),
        (NAME, {"env": Level}),
    ],
)
def test_the_same_one_goes_on(trained, given, tmp_path, caplog):
    saved(tmp_path / "x.zip", trained)
    agent = hw.Agent.load(tmp_path / "x.zip", **given)
    assert agent.loop.in_episodes
    assert agent.loop.env.adapters[0].vector.envs[0].unwrapped.time == 13
    assert caplog.text == ""


def test_settings_given_as_they_were_change_nothing(tmp_path):
    saved(tmp_path / "x.zip", Level, env_settings={"level": 7, "size": (5, 6)})
    settings = {"level": 7, "size": (5, 6), "vectorization": "sync"}
    assert hw.Agent.load(tmp_path / "x.zip", env=Level, env_settings=settings).loop.in_episodes
    assert not hw.Agent.load(
        tmp_path / "x.zip", env=Level, env_settings={"level": 6}
    ).loop.in_episodes


@pytest.mark.parametrize("given", [{"env": Level}, {"env": lambda: Level()}])
def test_a_snapshot_of_an_earlier_version_goes_on_as_before(given, tmp_path):
    """It did not say how the environment was made."""
    saved(tmp_path / "x.zip", Level)
    found = read_checkpoint(tmp_path / "x.zip")
    snapshot = found.tensors["env"]["snapshot"].numpy().tobytes()
    magic, header, rest = snapshot.split(b"\n", 2)
    header = header.partition(b', "made"')[0] + b"}"
    old = np.frombuffer(b"\n".join((magic, header, rest)), np.uint8)
    found.tensors["env"]["snapshot"] = torch.from_numpy(old.copy())
    info = {n: x for n, x in found.info.items() if n not in ("format", "entries")}
    write_checkpoint(tmp_path / "y.zip", found._replace(info=info))
    assert hw.Agent.load(tmp_path / "y.zip", **given).loop.in_episodes


def test_settings_of_ours_are_not_taken_back_either(tmp_path):
    """A compiled environment's snapshot says what it is of; settings are compared all the same."""
    saved(tmp_path / "x.zip", "HybridShoot", env_settings={"num_targets": 4})
    settings = {"num_targets": 4, "miss_reward": -7.0}
    assert hw.Agent.load(tmp_path / "x.zip", env_settings={"num_targets": 4}).loop.in_episodes
    agent = hw.Agent.load(tmp_path / "x.zip", env_settings=settings)
    assert not agent.loop.in_episodes
