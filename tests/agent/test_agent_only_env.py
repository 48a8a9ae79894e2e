"""One environment that several agents play in: each knows when another has been there."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import headwise as hw

DQN = {"net_arch": (8,), "learning_starts": 10_000, "buffer_size": 200}
PPO = {"net_arch": (8,), "n_steps": 40, "batch_size": 20, "n_epochs": 1}


class Count(gym.Env):
    """Shows the number of the episode, and of the step in it; an episode has 37."""

    observation_space = spaces.Box(-1e6, 1e6, (2,))
    action_space = spaces.Discrete(2)
    episode = 0
    closed = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        self.episode += 1
        return self._obs(), {}

    def step(self, action):
        assert not self.closed
        self.time += 1
        return self._obs(), 1.0, False, self.time == 37, {}

    def _obs(self):
        return np.array([self.episode, self.time], np.float32)

    def close(self):
        self.closed = True


def single():
    return Count()


def vector():
    return gym.vector.SyncVectorEnv([Count])


def never_happened(agent):
    """Pairs of observations in memory that did not follow each other in an episode."""
    kept = agent.loop.memory.state_dict()
    obs, following = kept["obs"][0, :, 0], kept["next_obs"][0, :, 0]
    jumped = (obs[:, 0] != following[:, 0]) | (obs[:, 1] + 1 != following[:, 1])
    return list(zip(obs[jumped].tolist(), following[jumped].tolist(), strict=True))


PLAYED = {
    "evaluated": lambda agent: agent.best().evaluate(2),
    "trained": lambda agent: agent.best().learn(5, progress=False),
    "by a new agent": lambda agent: hw.Agent("dqn", agent.world.env, **DQN, num_envs=1).learn(
        5, progress=False
    ),
}


@pytest.mark.parametrize("what", PLAYED)
@pytest.mark.parametrize("make", [single, vector])
@pytest.mark.parametrize("settings", [DQN, PPO], ids=["dqn", "ppo"])
def test_no_transition_reaches_from_one_users_episode_to_anothers(what, make, settings):
    algo = "ppo" if settings is PPO else "dqn"
    # What a rollout keeps is what the policy saw: here that is to be what there was.
    agent = hw.Agent(algo, make(), normalize_obs=False, **settings).learn(10, progress=False)
    PLAYED[what](agent)
    assert not agent.loop.in_episodes
    agent.learn(10, progress=False)
    assert never_happened(agent) == []
    kept = agent.loop.memory.state_dict()
    assert kept["truncated"][0, :, 0].tolist() == [False] * 9 + [True] + [False] * 10
    assert kept["obs"][0, 10, 0, 1] == 0


def test_a_child_notices_its_parent_as_well():
    agent = hw.Agent("dqn", Count(), **DQN).learn(10, progress=False)
    child = agent.best().learn(10, progress=False)
    agent.learn(7, progress=False)
    assert not child.loop.in_episodes
    child.learn(10, progress=False)
    assert never_happened(child) == []
    assert never_happened(agent) == []


def test_who_plays_alone_is_not_disturbed():
    env = Count()
    agent = hw.Agent("dqn", env, **DQN).learn(10, progress=False)
    agent.best().predict(np.zeros(2))
    hw.Agent("dqn", Count(), **DQN).learn(10, progress=False)
    agent.learn(10, progress=False)
    assert (env.episode, env.time) == (1, 20)


def test_what_another_left_there_is_not_saved(tmp_path):
    """It would be the child's episode, with the parent's observation."""

    class Kept(Count):
        def get_state(self):
            return f"{self.episode} {self.time}".encode()

        def set_state(self, state):
            self.episode, self.time = map(int, state.split())

    agent = hw.Agent("dqn", Kept(), **DQN).learn(10, progress=False)
    agent.save(tmp_path / "x.zip")
    assert hw.Agent.load(tmp_path / "x.zip", env=Kept()).loop.in_episodes
    agent.best().evaluate(1)
    agent.save(tmp_path / "x.zip")
    assert not hw.Agent.load(tmp_path / "x.zip", env=Kept()).loop.in_episodes


@pytest.mark.parametrize("make", [single, vector])
def test_only_its_owner_closes_it(make):
    env = make()
    agent = hw.Agent("dqn", env, **DQN).learn(10, progress=False)
    child = agent.best().learn(10, progress=False)
    child.close()
    with pytest.raises(hw.EnvError, match="was closed"):
        child.learn(10, progress=False)
    agent.learn(10, progress=False)
    agent.close()
    assert env.closed
