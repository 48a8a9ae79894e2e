"""Environments of EnvPool, handed over or made on demand."""

import envpool
import numpy as np
import pytest
from gymnasium.vector import VectorEnv

import headwise as hw
from headwise.envs.envpool import EnvPoolEnvs
from headwise.envs.foreign import foreign_env
from headwise.envs.seeds import slot_seeds

pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting")
SMALL = {"n_steps": 16, "batch_size": 32, "n_epochs": 1, "net_arch": (8,)}


def pool(name="CartPole-v1", num_envs=3, **settings):
    return envpool.make(name, env_type="gymnasium", num_envs=num_envs, num_threads=1, **settings)


def played(env, steps=60):
    """Everything that an environment says, of actions that follow from the step."""
    seen = [env.reset().copy()]
    rng = np.random.default_rng(0)
    for _ in range(steps):
        rows = env.spec.sample(rng, env.num_members * env.num_slots)
        units = np.where(env.spec.is_choice, rows, np.clip(rows, -1.0, 1.0)).astype(np.float32)
        step = env.step(units.reshape(env.num_members, env.num_slots, -1))
        seen += [x.copy() for x in step.arrays().values()]
    return seen


def same(one, other):
    return all(x.tobytes() == y.tobytes() for x, y in zip(one, other, strict=True))


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1", "Ant-v4"])
def test_seeds_say_which_episodes_are_played(name):
    """EnvPool ignores the seeds of a reset; members would all play the same."""
    make = lambda: pool(name)  # noqa: E731
    runs = [played(foreign_env(make, seeds)) for seeds in ([1, 2], [1, 2], [1, 3])]
    assert same(runs[0], runs[1])
    assert not same(runs[0], runs[2])
    alone = played(foreign_env(make, [1]))
    assert runs[0][0][0].tobytes() == alone[0][0].tobytes()  # where there is chance in the start
    if name != "FrozenLake-v1":
        assert not np.array_equal(runs[0][0][0], runs[0][0][1])


def test_what_is_said_is_what_the_pool_says():
    """The slot whose episode has ended is reset by a step of its own, which is no transition."""
    env = foreign_env(pool(num_envs=4), [7])
    seeds = [(seed + 2**31) % 2**32 - 2**31 for seed in slot_seeds([7], 4)]
    raw = pool(num_envs=4, seed=seeds)
    np.testing.assert_array_equal(env.reset()[0], raw.reset()[0])
    ended, ends = np.zeros(4, dtype=bool), 0
    for t in range(200):
        step = env.step(np.full((1, 4, 1), t % 2, dtype=np.float32))
        obs, reward, terminated, truncated, info = raw.step(np.full(4, t % 2, dtype=np.int32))
        np.testing.assert_array_equal(step.next_obs[0], obs)
        np.testing.assert_array_equal(step.terminated[0], terminated)
        np.testing.assert_array_equal(step.truncated[0], truncated)
        np.testing.assert_array_equal(step.reward[0, ~ended], reward[~ended])
        np.testing.assert_array_equal(step.valid[0], ~ended)
        assert (info["elapsed_step"][ended] == 0).all()
        assert (np.abs(obs[ended]) <= 0.05).all()  # where a cart begins
        ended = terminated | truncated
        ends += ended.sum()
    assert ends > 8


@pytest.mark.parametrize("seeds", [1, 2])
def test_an_agent_learns_in_a_pool(seeds):
    runs = [
        hw.Agent("ppo", lambda: pool(num_envs=4), seeds=seeds, **SMALL).learn(256, progress=False)
        for _ in range(2)
    ]
    assert runs[0].config.num_envs == 4
    one, other = (run.loop.algorithm.state_dict() for run in runs)
    assert all(x.equal(other[name]) for name, x in one.items())
    assert len(runs[0].loop.episodes.table) > 4
    assert np.isfinite(runs[0].evaluate(episodes=2).scores).all()


def test_a_pool_that_was_made_is_shared_by_members():
    agent = hw.Agent(
        "dqn", pool(num_envs=4), seeds=2, learning_starts=16, batch_size=16, net_arch=(8,)
    )
    agent.learn(64, progress=False)
    assert (agent.config.num_envs, agent.steps) == (2, 64)


def test_resets_of_some_slots():
    envs = EnvPoolEnvs(pool())
    envs.reset(seed=5)
    for _ in range(5):
        obs = envs.step(np.ones(3, dtype=np.int64))[0]
    mask = np.array([False, True, False])
    after, _ = envs.reset(options={"reset_mask": mask})
    np.testing.assert_array_equal(after[~mask], obs[~mask])
    assert (np.abs(after[mask]) <= 0.05).all()
    assert isinstance(envs, VectorEnv)
    np.testing.assert_array_equal(envs.reset(seed=5)[0], envs.reset(seed=[5, 6, 7])[0])


def test_pools_that_cannot_be_stepped_together_are_refused():
    with pytest.raises(hw.EnvError, match=r"is not Gymnasium's.*env_type=.gymnasium"):
        hw.Agent("ppo", envpool.make("CartPole-v1", env_type="dm", num_envs=2))
    with pytest.raises(hw.EnvError, match=r"not all .* at once.*batch_size=2.*Leave batch_size"):
        hw.Agent("ppo", lambda: pool(num_envs=4, batch_size=2))
