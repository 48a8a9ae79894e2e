"""A picture that must be read and a set whose maximum must be pointed out: known answers."""

from __future__ import annotations

import pytest
from seen_envs import LENGTH, Corner, Largest

import headwise as hw
from headwise.nets.encoders import CNN, Entities

SETTINGS = {  # every step is a task of its own, so nothing later counts
    "ppo": {"n_steps": 32, "batch_size": 64},
    "dqn": {
        "learning_starts": 200,
        "batch_size": 64,
        "exploration_fraction": 0.5,
        "exploration_final_eps": 0.0,
    },
    "sac": {"learning_starts": 200, "batch_size": 64, "target_entropy": 0.05},
}
PROBES = {
    "picture": (Corner, {"encoder": CNN(layers=((8, 3, 2),), width=32)}),
    "set": (Largest, {"encoder": Entities(16, 2), "entities": {"units": "there"}}),
}
STEPS = {"ppo": (4000, 6000), "dqn": (3000, 4000), "sac": (3000, 4000)}
LEAST = {"picture": 0.97, "set": 0.9}
"""Shares of the largest return; without looking, half of it is earned at most."""


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("algorithm", SETTINGS)
def test_what_must_be_seen_is_learned(algorithm, probe):
    env, network = PROBES[probe]
    settings = {"learning_rate": 3e-3, "gamma": 0.0, "net_arch": (32,), "num_envs": 8}
    if algorithm != "ppo":
        settings["updates_per_step"] = 0.5
    agent = hw.Agent(algorithm, env, seeds=2, **settings | SETTINGS[algorithm] | network)
    steps = dict(zip(PROBES, STEPS[algorithm], strict=True))[probe]
    agent.learn(steps, progress=False)
    scores = agent.evaluate(episodes=20).scores
    assert (scores >= LEAST[probe] * LENGTH).all(), scores
