"""Runs that were interrupted in an environment that cannot be kept: nothing is lost or made up."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from small_agents import Countdown, small_agent

import headwise as hw
from headwise.training.checkpoint import read_checkpoint


class Numbered(gym.Env):
    """Observes (number of the environment, episode, time), so every transition can be checked."""

    observation_space = spaces.Box(0, 1e6, (3,))
    action_space = spaces.Discrete(2)
    made, fails_at = 0, None

    def __init__(self):
        self.number, self.episode = Numbered.made, -1
        Numbered.made += 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.over = 0, False
        self.episode += 1
        return self._obs(), {}

    def step(self, action):
        assert not self.over, "stepped after the end of the episode"
        if self.number % 2 and self.time == Numbered.fails_at:
            Numbered.fails_at = None
            raise RuntimeError("the simulator had a hiccup")
        self.time += 1
        self.over = self.time == 10
        return self._obs(), 1.0, False, self.over, {}

    def _obs(self):
        return np.array([self.number, self.episode, self.time], dtype=np.float32)


def transitions(agent):
    """What was observed and what followed, of every transition in memory, (N, 3) each."""
    kept = agent.loop.memory.state_dict()
    return kept["obs"].reshape(-1, 3), kept["next_obs"].reshape(-1, 3)


def test_a_step_that_failed_leaves_no_transition_that_never_was():
    """One environment moves on and the other fails: what follows are new episodes in both."""
    Numbered.made, Numbered.fails_at = 0, None
    agent = small_agent("dqn", Numbered, seeds=1, num_envs=2, learning_starts=1000)
    agent.learn(20, progress=False)
    Numbered.fails_at = 9
    with pytest.raises(RuntimeError, match="hiccup"):
        agent.learn(20, progress=False)
    agent.learn(20, progress=False)
    before, after = transitions(agent)
    assert torch.equal(after - before, torch.tensor([0.0, 0.0, 1.0]).expand_as(before))


def broken(path, agent, env):
    """The agent as it comes back from a process that was killed right after it began to go on."""
    agent.save(path)
    again = hw.Agent.load(path, env=env)
    again.save(path)  # the first checkpoint of the second process, before any step
    return hw.Agent.load(path, env=env)


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_memory_survives_a_checkpoint_before_the_first_step(algo, tmp_path):
    settings = {"n_steps": 100} if algo == "ppo" else {"n_step": 3}
    agent = small_agent(algo, Countdown, **settings).learn(200, progress=False)
    again = broken(tmp_path / "x.zip", agent, Countdown)
    ours, theirs = (a.loop.memory.state_dict() for a in (agent, again))
    for name, x in ours.items():
        assert torch.equal(x, theirs[name]), name
    again.learn(100, progress=False)
    kept = again.loop.memory.state_dict()
    ended = kept["terminated"] | kept["truncated"]
    assert ended[:, 200 // 4 - 1].all()  # cut, where it went on


def test_memory_survives_an_evaluation_of_the_only_environment(tmp_path):
    agent = small_agent("dqn", Countdown(), seeds=1, num_envs=None).learn(100, progress=False)
    agent.evaluate(2)
    agent.save(tmp_path / "x.zip")
    assert "memory" in read_checkpoint(tmp_path / "x.zip").tensors
    again = hw.Agent.load(tmp_path / "x.zip", env=Countdown())
    assert int(again.loop.memory.state_dict()["count"].sum()) == 100


def test_updates_wait_for_what_is_in_memory(tmp_path):
    """A quarter of an update for each step behind 32 of warm-up; without memory, 32 more."""
    agent = small_agent("dqn", Countdown).learn(200, progress=False)
    assert agent.loop.updates == (200 - 32) / 4
    state = agent.loop.state_dict()
    del state["memory"]
    again = small_agent("dqn", Countdown)
    again.loop.load_state_dict(state)
    again.loop.run(232)
    assert again.loop.updates == (200 - 32) / 4
    again.loop.run(264)
    assert again.loop.updates == (200 - 32) / 4 + 32 / 4


def test_returns_do_not_reach_across_a_cut():
    """The first step of new episodes earns 1 and nothing is left of the old: 1 at once."""
    loop = small_agent("dqn", Countdown, normalize_reward=True).loop
    loop.run(40)
    loop.begin_episodes()
    assert loop.normalizer.state_dict()["so_far"].abs().sum() == 0.0
