"""`predict` keeps what it acts with, and never what it acted by."""

import numpy as np
import pytest

import headwise as hw
from headwise.training.evaluate import Player

OBS = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)


def small(algo="ppo", seeds=3, **settings):
    more = (
        {"n_steps": 8}
        if algo == "ppo"
        else {"learning_starts": 32, "batch_size": 16, "buffer_size": 500}
    )
    return hw.Agent(algo, "CartPole-v1", seeds=seeds, num_envs=4, net_arch=(8,), **more, **settings)


def as_before(agent, member):
    """As it was once done: a player made for the call, and all members act."""
    everyone = np.broadcast_to(OBS, (len(agent.seeds), *OBS.shape))
    units = Player(agent.loop).act(everyone, None, None)[member]
    return agent.face.act(units, batched=True)


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_it_acts_by_what_was_learned_last(algo, tmp_path):
    agent = small(algo, learning_rate=0.05)
    seen = []
    for _ in range(4):
        for member in range(3):
            expected = as_before(agent, member)
            found = agent.predict(OBS, deterministic=True, member=member)
            np.testing.assert_array_equal(found, expected)
            single = agent.predict(OBS[2], deterministic=True, member=member)
            assert single == expected[2]
        best = agent.predict(OBS, deterministic=True)
        np.testing.assert_array_equal(best, as_before(agent, agent.best_member))
        units = Player(agent.loop).act_alone(OBS, 0)
        seen.append((agent.loop.algorithm.state_dict()["values"][0].numpy().tobytes(), units))
        agent.learn(256, progress=False)
    assert len({values for values, _ in seen}) == 4  # it did learn in between
    agent.save(tmp_path / "x.zip")
    loaded = hw.Agent.load(tmp_path / "x.zip")
    for member in range(3):
        one, other = (a.predict(OBS, deterministic=True, member=member) for a in (agent, loaded))
        np.testing.assert_array_equal(one, other)


def test_the_best_member_is_looked_for_again_after_an_evaluation_and_after_learning(monkeypatch):
    agent = small()
    asked = []

    def act(_, loop, face, obs, member, **others):
        asked.append(member)

    monkeypatch.setattr("headwise.agent.acting.Acting.act", act)
    agent._scores = np.array([0.0, 2.0, 1.0])
    agent.predict(OBS)
    agent._scores = np.array([3.0, 2.0, 1.0])
    agent.predict(OBS)
    agent.predict(OBS)
    agent.learn(64, progress=False)  # what was measured is of the past now
    monkeypatch.setattr(agent.loop.episodes, "recent_return", lambda *_: np.array([0.0, 1.0, 5.0]))
    agent.predict(OBS)
    assert asked == [1, 0, 0, 2]


def test_a_member_of_its_own_and_a_closed_agent_still_act():
    agent = small()
    before = agent.predict(OBS, deterministic=True, member=1)
    alone = agent.member(1)
    np.testing.assert_array_equal(alone.predict(OBS, deterministic=True), before)
    agent.close()
    np.testing.assert_array_equal(agent.predict(OBS, deterministic=True, member=1), before)
