import itertools
import re
from contextlib import closing
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from small_agents import Countdown, small_agent, states_equal

import headwise as hw
from headwise.errors import ConfigError
from headwise.training import evaluate as module
from headwise.training.evaluate import evaluate_loop, fresh_seeds


def evaluation(returns, seeds=None):
    returns = np.array(returns, dtype=float)
    return hw.Evaluation(tuple(seeds or range(len(returns))), returns, np.ones_like(returns))


def test_what_it_prints():
    found = evaluation([[0, 2], [1, 1], [2, 4], [3, 3], [10, 10]])
    assert found.by_seed == {0: 1.0, 1: 1.0, 2: 3.0, 3: 3.0, 4: 10.0}
    assert found.iqm == pytest.approx((1 + 3 + 3) / 3)
    low, high = found.interval
    assert low < found.iqm < high
    assert found.interval == (low, high)  # at every call
    assert str(found) == f"IQM 2.3 [{low:.1f}, {high:.1f}] over 5 seeds"


def test_one_seed_is_judged_by_its_episodes():
    found = evaluation([[1.0, 2, 3, 4]], seeds=[9])
    assert found.iqm == 2.5
    told = "IQM 2.5 over 4 episodes (1 seed: too few to say how others would score)"
    assert str(found) == told
    low, high = found.interval
    assert low < 2.5 < high


def test_a_single_episode_has_no_interval():
    found = evaluation([[7.0]])
    assert np.isnan(found.interval).all()
    assert str(found).startswith("IQM 7.0 over 1 episode (1 seed: too few")


def test_an_interval_is_shown_from_five_seeds_on():
    few = evaluation([[-700.0], [100.0], [1270.0], [5.0]])
    assert str(few).endswith("(4 seeds: too few to say how others would score)")
    assert few.interval[0] < few.interval[1]  # whoever asks for it may have it
    enough = evaluation([[1.0], [2.0], [3.0], [4.0], [5.0]])
    assert re.fullmatch(r"IQM 3\.0 \[.*, .*\] over 5 seeds", str(enough))


def test_members_that_share_a_seed_have_scores_but_no_score_by_seed():
    found = evaluation([[1.0], [2.0], [3.0]], seeds=[0, 0, 1])
    assert found.scores.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ConfigError, match=r"two members have one seed.*Take `scores`"):
        _ = found.by_seed


def test_equal_seeds_have_an_interval_of_no_width():
    assert evaluation([[5.0], [5.0], [5.0]]).interval == (5.0, 5.0)


def test_three_seeds_are_within_their_interval_as_often_as_promised():
    rng, hits = np.random.default_rng(0), 0
    for _ in range(500):
        low, high = evaluation(rng.normal(size=(3, 1))).interval
        hits += low < 0.0 < high
    assert 0.925 <= hits / 500 <= 0.975  # percentiles of bootstrap samples would say 0.73


def test_it_is_deterministic_and_on_episodes_of_its_own():
    agent = small_agent().learn(100, progress=False)
    first, again = agent.evaluate(5), agent.evaluate(5)
    np.testing.assert_array_equal(first.returns, again.returns)
    assert first.returns.shape == (2, 5)
    other = agent.evaluate(5, seed=1)
    assert not np.array_equal(first.lengths, other.lengths) or not np.array_equal(
        first.returns, other.returns
    )
    keys = agent.loop.keys
    assert not set(fresh_seeds(keys, 1, 0)) & set(fresh_seeds(keys, 1, 1)) & set(keys.seeds)


def test_it_leaves_training_as_it_was():
    agent, other = (small_agent().learn(100, progress=False) for _ in range(2))
    agent.evaluate(3)
    assert states_equal(agent.loop, other.loop)


def test_a_member_scores_the_same_alone():
    both = small_agent().learn(100, progress=False).evaluate(6, deterministic=False)
    alone = small_agent(seeds=[1]).learn(100, progress=False).evaluate(6, deterministic=False)
    np.testing.assert_array_equal(both.returns[1], alone.returns[0])


def test_short_episodes_are_not_counted_twice():
    """Episodes last as long as their slot's number + 1; a fair sample has as many of each."""
    agent = hw.Agent("ppo", Countdown, num_envs=4, seeds=1, net_arch=(8,), n_steps=4)
    found = agent.evaluate(8)
    assert found.lengths.shape == (1, 8)
    assert found.returns.sum() == found.lengths.sum()  # a reward of one for each step
    assert found.lengths.max() > 2 * found.lengths.min()


def two_at_once():
    return gym.vector.SyncVectorEnv([Countdown] * 2, autoreset_mode="SameStep")


@pytest.mark.parametrize("make", [Countdown, two_at_once])
def test_the_only_environment_there_is_plays_the_same_episodes_at_every_call(make):
    agent = hw.Agent("ppo", make(), net_arch=(8,), n_steps=16).learn(40, progress=False)
    first, again, other = agent.evaluate(20), agent.evaluate(20), agent.evaluate(20, seed=1)
    np.testing.assert_array_equal(first.returns, again.returns)
    assert not np.array_equal(first.returns, other.returns)
    agent.learn(40, progress=False)
    np.testing.assert_array_equal(first.returns, agent.evaluate(20).returns)
    by_name = hw.Agent("ppo", Countdown, net_arch=(8,), n_steps=16, num_envs=agent.config.num_envs)
    np.testing.assert_array_equal(first.returns, by_name.evaluate(20).returns)
    agent.member(0).evaluate(20)  # in the same environment


class Endless(gym.Env):
    """Pays the number of the step; an episode never ends, unless it is of odd number."""

    observation_space = spaces.Box(0, 1, (1,))
    action_space = spaces.Discrete(2)
    episode = -1

    def reset(self, *, seed=None, options=None):
        self.time = 0
        self.episode += 1
        return np.zeros(1, dtype=np.float32), {}

    def step(self, action):
        self.time += 1
        over = self.episode % 2 == 1 and self.time == 2
        return np.zeros(1, dtype=np.float32), float(self.time), over, False, {}


@pytest.mark.parametrize("num_envs", [1, 2])
def test_an_episode_without_end_can_be_cut_short(num_envs):
    agent = hw.Agent("ppo", Endless, num_envs=num_envs, net_arch=(8,))
    found = agent.evaluate(5, max_steps=4)
    # 1 + 2 + 3 + 4 where it was cut; 1 + 2 in the episode after the reset, which ends by itself.
    expected = {1: ([10, 3, 10, 3, 10], [4, 2, 4, 2, 4]), 2: ([10, 10, 3, 3, 10], [4, 4, 2, 2, 4])}
    assert found.returns.tolist() == [expected[num_envs][0]]
    assert found.lengths.tolist() == [expected[num_envs][1]]


def test_cutting_changes_nothing_where_episodes_are_shorter():
    agent = small_agent().learn(100, progress=False)
    found = agent.evaluate(9)
    np.testing.assert_array_equal(found.returns, agent.evaluate(9, max_steps=10_000).returns)
    assert (agent.evaluate(9, max_steps=2).lengths <= 2).all()
    with pytest.raises(hw.ConfigError, match="max_steps"):
        agent.evaluate(9, max_steps=0)


def ticking(monkeypatch, seconds):
    """A clock that goes on by so much whenever it is read."""
    clock = itertools.count(0.0, seconds)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(clock)))


def test_a_long_evaluation_says_how_far_it_is(monkeypatch, caplog):
    agent = hw.Agent("ppo", Countdown, num_envs=1, net_arch=(8,))
    agent.evaluate(3)
    assert not caplog.text  # it takes less than half a minute
    ticking(monkeypatch, 10.0)
    total = agent.evaluate(3).lengths.sum()
    assert len(caplog.messages) == total // 3
    assert caplog.messages[0].startswith("The evaluation goes on after 30 s: ")
    assert " of 3 episodes have ended." in caplog.messages[-1]


def test_an_episode_that_may_never_end_is_pointed_out(monkeypatch, caplog):
    ticking(monkeypatch, 1.0)
    agent = hw.Agent("ppo", Endless, num_envs=2, net_arch=(8,))
    agent.evaluate(2, max_steps=70)
    first, second = caplog.messages
    assert "after 30 s: 0 of 2 episodes have ended. One that has not has taken 30 steps." in first
    assert "max_steps=1000 or --max-steps 1000" in first
    assert "taken 60 steps" in second


@pytest.mark.parametrize("episodes", [0, -1, 2.5, "many", True, None])
def test_bad_numbers_of_episodes(episodes):
    agent = small_agent()
    if episodes is None:
        episodes = np.nan
    with pytest.raises(hw.ConfigError, match="episodes"):
        agent.evaluate(episodes)


class Counted(Countdown):
    """Counts the steps of all of its kind."""

    steps = 0

    def step(self, action):
        Counted.steps += 1
        return super().step(action)


@pytest.mark.parametrize("episodes", [1, 3, 4, 9])
def test_only_copies_with_episodes_to_play_are_stepped(monkeypatch, episodes):
    agent = hw.Agent("ppo", Counted, num_envs=4, seeds=2, net_arch=(8,), n_steps=4)
    monkeypatch.setattr(Counted, "steps", 0)
    found = agent.evaluate(episodes)
    assert Counted.steps == found.lengths.sum()
    # They are those that all copies play, where nobody can be let alone.
    monkeypatch.setattr(module, "Restable", type(None))
    monkeypatch.setattr(Counted, "steps", 0)
    with closing(agent.world.vec(module.evaluation_seeds(agent.loop.keys, 0), 4)) as env:
        again = evaluate_loop(agent.loop, env, episodes)
    assert Counted.steps % 8 == 0
    assert Counted.steps > found.lengths.sum()
    np.testing.assert_array_equal(found.returns, again.returns)


def test_an_only_environment_is_stepped_as_a_whole_again_after_an_evaluation(monkeypatch):
    agent = hw.Agent("ppo", Counted(), net_arch=(8,), n_steps=16)
    agent.evaluate(3)
    monkeypatch.setattr(Counted, "steps", 0)
    agent.learn(40, progress=False)
    assert Counted.steps == 40
