"""Replay of large observations: the room it takes, and what is said of it beforehand."""

import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from small_agents import small_agent
from test_replay import step

import headwise as hw
from headwise.spaces import ObsCodec
from headwise.training import replay_room
from headwise.training.replay import Replay


class Camera(gym.Env):
    """Pictures of 32 x 32 bytes; `broken` ones promise bytes and show halves from step 3 on."""

    observation_space = spaces.Box(0, 255, (32, 32), np.uint8)
    action_space = spaces.Discrete(2)

    def __init__(self, broken=False):
        self.broken = broken

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._obs(), {}

    def step(self, action):
        self.time += 1
        return self._obs(), 1.0, False, self.time == 5, {}

    def _obs(self):
        picture = self.np_random.integers(0, 256, (32, 32), dtype=np.uint8)
        return picture + 0.5 if self.broken and self.time >= 3 else picture


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the kernel of Linux")
def test_memory_is_taken_as_it_fills():
    """1.6 GB when it is full; ten steps take a few pages."""
    replay, before = Replay(200_000, 1), resident()
    wide = step(0, members=1)
    wide = wide._replace(obs=wide.obs.expand(1, 1, 1000), next_obs=wide.next_obs.expand(1, 1, 1000))
    for _ in range(10):
        replay.add(wide)
    assert replay.num_bytes > 1.6e9
    assert resident() - before < 1e8


def seen_as_bytes(space):
    return ObsCodec(space).spec.is_bytes


def test_who_promises_bytes():
    image = spaces.Box(0, 255, (4, 4), np.uint8)
    both = spaces.Dict(image=image, gear=spaces.Discrete(3), flags=spaces.MultiBinary(2))
    assert seen_as_bytes(image)
    assert seen_as_bytes(both)
    assert not seen_as_bytes(spaces.Dict(image=image, speed=spaces.Box(-1, 1, (1,))))
    assert not seen_as_bytes(spaces.Box(0, 9, (4,), np.int64))


def test_who_promises_bytes_must_show_bytes():
    with pytest.raises(hw.SpaceError, match=r"Camera in slot 0 .*float64 that uint8 would change"):
        small_agent("dqn", Camera, env_settings={"broken": True}).learn(160, progress=False)


@pytest.mark.parametrize("algo", ["dqn", "sac"])
def test_what_is_stored_once_changes_nothing(algo, monkeypatch):
    """Compared with the same run whose memory has every successor beside its observation."""
    settings = {"n_step": 3, "net_arch": (8,), "buffer_size": 80}
    plain = small_agent(algo, Camera, **settings).learn(160, progress=False)
    assert plain.loop.memory.frames is None
    monkeypatch.setattr(Replay.__init__, "__kwdefaults__", {"frames_from": 1})
    ours = small_agent(algo, Camera, **settings).learn(160, progress=False)
    assert ours.loop.memory.frames is not None
    a, b = (agent.loop.algorithm.state_dict() for agent in (ours, plain))
    assert all(torch.equal(a[name], b[name]) for name in a)
    kept = [agent.loop.memory.state_dict()["obs"].view(torch.uint8) for agent in (ours, plain)]
    assert torch.equal(*kept)
    share = ours.loop.memory.num_bytes / plain.loop.memory.num_bytes
    assert 0.5 < share < 0.95  # every fifth step ends an episode; for so few there is more room


@pytest.mark.parametrize("algo", ["ppo", "dqn", "sac"])
def test_bytes_that_are_packed_are_learned_from_as_numbers(algo):
    """A picture, and the same bytes as a vector that is divided by 255: the same runs."""

    class Two(Camera):
        action_space = spaces.MultiDiscrete([2, 3])

    class Flat(Two):
        observation_space = spaces.Box(0, 255, (1024,), np.uint8)

        def _obs(self):
            return super()._obs().ravel()

    runs = []
    for env, words in ((Two, 256), (Flat, 1024)):
        settings = {"net_arch": (8,), "normalize_obs": "auto", "factorization": "vdn"}
        agent = small_agent(algo, env, **settings).learn(160, progress=False)
        assert agent.loop.env.obs_spec.size == words
        assert agent.loop.obs.shape[-1] == words
        runs.append(agent)
    a, b = (agent.loop.algorithm.state_dict() for agent in runs)
    assert all(torch.equal(a[name], b[name]) for name in a)
    picture = np.random.default_rng(0).integers(0, 256, (5, 32, 32), dtype=np.uint8)
    shown = picture, picture.reshape(5, 1024)
    ours, theirs = (agent.predict(obs) for agent, obs in zip(runs, shown, strict=True))
    np.testing.assert_array_equal(ours, theirs)
    ours, theirs = (agent.importance(obs) for agent, obs in zip(runs, shown, strict=True))
    assert (ours is None) == (algo != "ppo")
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("there", "words"), [(10**6, "refused"), (2 * 10**6, "warned"), (10**9, "")]
)
def test_what_cannot_fit_is_refused_and_what_hardly_fits_is_said(there, words, monkeypatch, caplog):
    """Two seeds with 300 transitions of 2 x 1024 bytes and 4 numbers are 1,238,400 bytes.

    Their 21,411 parameters, each with a gradient and two moments, are there already.
    """
    monkeypatch.setattr(replay_room, "memory_of", lambda device: there + 2 * 16 * 21_411)

    def make():
        return small_agent("dqn", Camera, buffer_size=300, num_envs=3)

    if words == "refused":
        with pytest.raises(hw.ConfigError, match=r"0 GB beside networks of 0.0 GB; got.*1,024"):
            make()
        return
    make().learn(30, progress=False)
    assert caplog.text.count("The replay takes") == (words == "warned")
    if words == "warned":
        assert "buffer_size=121" in caplog.text  # a quarter of the memory: 500,000 / 2 / 2,064


def test_this_machine_has_some_memory():
    assert replay_room.memory_of(torch.device("cpu")) > 10**8


def test_rollouts_are_not_asked(monkeypatch):
    monkeypatch.setattr(replay_room, "memory_of", lambda device: 1)
    small_agent("ppo", Camera)


def test_who_only_acts_needs_no_room(monkeypatch, tmp_path):
    """A policy goes to a small computer, with a replay that would not fit there."""
    agent = small_agent("dqn", Camera, buffer_size=300, num_envs=3)
    agent.save(tmp_path / "all.zip")
    monkeypatch.setattr(replay_room, "memory_of", lambda device: 10**5)
    for one in (agent.best(), hw.Agent.load(tmp_path / "all.zip", env=Camera)):
        one.predict(np.zeros((32, 32), np.uint8))
        one.evaluate(1)
        for _ in range(2):
            with pytest.raises(hw.ConfigError, match="can never fit into memory"):
                one.learn(30, progress=False)
        assert one.steps == 0
