"""`device="auto"`: a choice that leaves no trace in what is learned."""

import logging

import gymnasium as gym
import pytest
import torch
from gymnasium import spaces

import headwise as hw
from headwise.agent import place
from headwise.cli import main
from headwise.training.device import DeviceChoice

SMALL = {
    "net_arch": (8,),
    "seeds": 2,
    "num_envs": 4,
    "learning_starts": 16,
    "batch_size": 8,
    "buffer_size": 200,
}


def states_equal(one, other):
    ours, theirs = one.loop.state_dict(), other.loop.state_dict()
    for part, named in ours.items():
        for name, x in named.items():
            assert torch.equal(x.nan_to_num(7.5), theirs[part][name].nan_to_num(7.5)), (part, name)
    return True


@pytest.fixture
def measured(monkeypatch):
    """Both measurements are made on the CPU, and the CPU wins."""
    seconds = []

    def faster(measure):
        seconds.extend([measure("cpu"), measure("cpu")])
        return DeviceChoice("cpu", "device cpu: twice as fast, say")

    monkeypatch.setattr(place, "faster_device", faster)
    monkeypatch.setattr(place, "_SECONDS", 0.01)
    return seconds


@pytest.mark.parametrize("algo", ["dqn", "ppo"])
def test_measuring_changes_nothing_that_is_learned(algo, measured, caplog):
    settings = SMALL if algo == "dqn" else {"net_arch": (8,), "seeds": 2, "num_envs": 4}
    with caplog.at_level(logging.INFO, "headwise.device"):
        chosen = hw.Agent(algo, "HybridShoot", device="auto", **settings)
    assert caplog.messages == ["device cpu: twice as fast, say"]
    assert len(measured) == 2
    assert min(measured) > 0.0
    assert chosen.device == "cpu"
    assert chosen.config.algorithm == hw.Agent(algo, "HybridShoot", **settings).config.algorithm
    told = hw.Agent(algo, "HybridShoot", device="cpu", **settings)
    for agent in (chosen, told):
        agent.learn(64, progress=False)
    assert states_equal(chosen, told)


def test_without_cuda_nothing_is_measured_or_said(monkeypatch, caplog, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(place, "_seconds", lambda *words: pytest.fail("measured"))
    with caplog.at_level(logging.INFO, "headwise"):
        agent = hw.Agent("dqn", "HybridShoot", device="auto", **SMALL)
        agent.learn(64, progress=False)
        agent.save(tmp_path / "agent.zip")
        loaded = hw.Agent.load(tmp_path / "agent.zip", device="auto")
    assert caplog.messages == []
    assert loaded.device == "cpu"
    assert states_equal(agent, loaded)


def test_an_environment_that_is_the_only_one_is_not_stepped(monkeypatch, caplog):
    class Alone(gym.Env):
        observation_space = spaces.Box(0, 1, (1,))
        action_space = spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return self.observation_space.sample(), {}

        def step(self, action):
            raise AssertionError("stepped")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with caplog.at_level(logging.INFO, "headwise.device"):
        agent = hw.Agent("dqn", Alone(), device="auto", net_arch=(8,))
    assert agent.device == "cpu"
    assert caplog.messages == ["device cpu: there is no second environment to measure with"]


def test_train_says_what_was_chosen(measured, tmp_path, capsys):
    words = [
        "--algo",
        "dqn",
        "--net-arch",
        "8",
        "--seeds",
        "2",
        "--total-timesteps",
        "64",
        "--no-progress",
    ]
    auto = ["--device", "auto"]
    assert main(["train", *words, "--out", str(tmp_path / "one"), *auto]) == 0
    assert "device cpu: twice as fast, say" in capsys.readouterr().err
    assert main(["train", *words, "--out", str(tmp_path / "two")]) == 0
    assert "as fast" not in capsys.readouterr().err
    assert len(measured) == 2
    assert main(["train", "--resume", str(tmp_path / "one"), "--no-progress", *auto]) == 0
    assert "device cpu: twice as fast, say" in capsys.readouterr().err
