"""PettingZoo's parallel environments: agents times heads as one action."""

import json

import numpy as np
import pytest
from foreign_toys import Relay
from pettingzoo.utils import parallel_to_aec

from headwise import EnvError
from headwise.envs.foreign import foreign_env
from headwise.envs.foreign.codec import EnvCodec
from headwise.envs.make import make_vec
from headwise.envs.native.parallel_env import parallel_env
from headwise.envs.seeds import slot_seeds


def test_our_own_team_earns_what_the_environment_pays():
    """CoopPush through its PettingZoo face, step for step beside the environment itself."""
    env = foreign_env(lambda: parallel_env("CoopPush", view="hybrid"), [1, 2], 2)
    beside = parallel_env("CoopPush", view="hybrid")
    agents = beside.possible_agents
    assert env.spec.num_heads == make_vec("CoopPush", [1], 1, view="hybrid").spec.num_heads
    assert list(dict.fromkeys(name.split("/")[0] for name in env.spec.names)) == agents
    shown, _ = beside.reset(seed=slot_seeds([2], 2)[1])
    obs = env.reset()
    np.testing.assert_array_equal(obs[1, 1], np.concatenate([shown[agent] for agent in agents]))
    rng, ends = np.random.default_rng(0), 0
    while not ends:
        action = np.where(
            env.spec.is_choice,
            rng.integers(9, size=(2, 2, env.spec.num_heads)),
            rng.uniform(-1, 1, (2, 2, env.spec.num_heads)),
        ).astype(np.float32)
        step = env.step(action)
        acts = env.codec.to_env(action[1, 1])
        assert all(beside.action_space(agent).contains(acts[agent]) for agent in agents)
        shown, rewards, terminated, truncated, _ = beside.step(acts)
        flat = np.concatenate([shown[agent] for agent in agents])
        np.testing.assert_array_equal(step.next_obs[1, 1], flat)
        assert step.reward[1, 1] == pytest.approx(sum(rewards.values()), rel=1e-5)
        assert step.terminated[1, 1] == all(terminated.values())
        assert step.truncated[1, 1] == all(truncated.values())
        ends = step.terminated[1, 1] + step.truncated[1, 1]


@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize("cut", [False, True])
def test_an_agent_that_leaves_early(cut, vectorization):
    env = foreign_env(Relay, [1, 2], 2, cut=cut, vectorization=vectorization)
    assert env.spec.names == ("a_2/action", "a_10/action", "b/action[0]")
    assert env.obs_spec.slices == {"a_2": slice(0, 2), "a_10": slice(2, 4), "b": slice(4, 6)}
    np.testing.assert_array_equal(env.reset()[1, 1], [1, 1, 1, 2, 1, 0])
    action = np.tile(np.array([2, 1, 0.5], dtype=np.float32), (2, 2, 1))
    # Three earn 1 each for two steps; then a_10 has left, and two do.
    expected = [
        ([2, 1, 2, 2, 0, 1], 3.0),
        ([3, 1, 3, 2, 1, 0], 3.0),
        ([4, 1, 0, 0, 0, 1], 2.0),
        ([5, 1, 0, 0, 1, 0], 2.0),
    ]
    for _ in range(2):
        for time, (obs, reward) in enumerate(expected):
            step = env.step(action)
            assert (step.next_obs == obs).all()
            assert (step.reward == reward).all()
            assert (step.terminated == (time == 3 and not cut)).all()
            assert (step.truncated == (time == 3 and cut)).all()
        np.testing.assert_array_equal(step.obs[0, 0], [1, 1, 1, 2, 1, 0])
        assert (step.episode_return == 10).all()
    env.close()


def test_the_team_acts_in_the_agents_own_terms():
    relay = Relay()
    env = foreign_env(relay, [1])
    env.reset()
    for _ in range(3):
        env.step(np.array([[[2, 1, 0.5]]], dtype=np.float32))
    assert [sorted(actions) for actions in relay.actions] == [
        ["a_10", "a_2", "b"], ["a_10", "a_2", "b"], ["a_2", "b"],
    ]  # fmt: skip
    assert relay.actions[0]["a_2"] == 2
    assert relay.actions[0]["a_10"] == 1
    np.testing.assert_array_equal(
        relay.actions[0]["b"], [3.0]
    )  # half way up from the middle of 0..4


def test_a_mean_reward():
    env = foreign_env(Relay, [1], 1, team_reward="mean")
    env.reset()
    rewards = [env.step(np.zeros((1, 1, 3), dtype=np.float32)).reward.item() for _ in range(4)]
    np.testing.assert_allclose(rewards, [1, 1, 2 / 3, 2 / 3], rtol=1e-6)


@pytest.mark.parametrize("source", ["obs", "info"])
def test_masks_by_agent(source):
    env = foreign_env(lambda: Relay(masks=source), [1], 2)
    assert env.reset().shape == (1, 2, 6)  # without the masks
    ranges = [1, 1, 1]
    np.testing.assert_array_equal(env.first_legal[0, 0], [[1, 0, 0], [1, 0, 1], ranges])
    action = np.zeros((1, 2, 3), dtype=np.float32)
    step = env.step(action)
    np.testing.assert_array_equal(step.legal[0, 1], [[1, 1, 0], [1, 1, 1], ranges])
    step = env.step(action)  # a_10 has left: whatever its heads say is ignored
    np.testing.assert_array_equal(step.legal[0, 1], [[1, 0, 0], [1, 1, 1], ranges])
    step = env.step(action)
    np.testing.assert_array_equal(step.legal[0, 1], [[1, 1, 0], [1, 1, 1], ranges])
    step = env.step(action)
    assert step.terminated.all()
    np.testing.assert_array_equal(step.legal[0, 1], [[1, 0, 0], [1, 0, 1], ranges])


def test_the_codec_of_a_team_takes_what_its_agents_see():
    relay = Relay()
    codec = EnvCodec(relay._obs_space, relay._act_space)
    np.testing.assert_array_equal(
        codec.flatten({"a_2": np.array([1.0, 2.0]), "b": 2}), [1, 2, 0, 0, 0, 1]
    )
    both = {"a_2": np.ones((2, 2)), "a_10": np.zeros((2, 2)), "b": np.array([1, 2])}
    np.testing.assert_array_equal(
        codec.flatten_batch(both), [[1, 1, 0, 0, 1, 0], [1, 1, 0, 0, 0, 1]]
    )
    assert set(codec.to_env([1, 2, 0.0])) == {"a_2", "a_10", "b"}
    with pytest.raises(ValueError, match="dict by agent"):
        codec.flatten({"stranger": 1})


class ResumableRelay(Relay):
    def get_state(self):
        return json.dumps([self.time, self.agents]).encode()

    def set_state(self, state):
        self.time, self.agents = json.loads(state)


def test_a_team_is_resumed_exactly():
    env, action = foreign_env(ResumableRelay, [1], 2), np.zeros((1, 2, 3), dtype=np.float32)
    env.reset()
    for _ in range(3):
        env.step(action)
    snapshot = env.snapshot()
    other = foreign_env(ResumableRelay, [1], 2)
    other.restore(snapshot)
    for _ in range(6):
        a, b = env.step(action), other.step(action)
        for name, array in a.arrays().items():
            np.testing.assert_array_equal(array, b.arrays()[name], err_msg=name)


def test_who_cannot_be_a_team():
    class InTurns(Relay):
        metadata = {"name": "turns", "is_parallelizable": False}  # noqa: RUF012
        agent_selection = "b"

    with pytest.raises(EnvError, match=r"InTurns: its agents act in turns.*is_parallelizable"):
        foreign_env(InTurns, [1], 2)
    with pytest.raises(EnvError, match=r"Relay.*no `spec`.*Hand over what makes it"):
        foreign_env(Relay(), [1], 2)


def test_agents_that_act_in_turns_but_need_not():
    """PettingZoo's other kind of environment shows what the parallel one beneath it shows."""
    makes = [
        lambda: parallel_env("CoopPush", view="hybrid"),
        lambda: parallel_to_aec(parallel_env("CoopPush", view="hybrid")),
    ]
    one, other = (foreign_env(make, [1, 2], 2) for make in makes)
    np.testing.assert_array_equal(one.reset(), other.reset())
    action = np.zeros((2, 2, one.spec.num_heads), dtype=np.float32)
    for _ in range(5):
        a, b = one.step(action), other.step(action)
        for name, array in a.arrays().items():
            np.testing.assert_array_equal(array, b.arrays()[name], err_msg=name)


class ZeroSum(Relay):
    """What one agent wins, another loses."""

    def step(self, actions):
        obs, rewards, *rest = super().step(actions)
        first, *_, last = rewards
        return obs, dict.fromkeys(rewards, 0.0) | {first: 2.0, last: -2.0}, *rest


class AlmostZeroSum(ZeroSum):
    """Now and then somebody wins what nobody loses."""

    def step(self, actions):
        obs, rewards, *rest = super().step(actions)
        return obs, rewards | ({"a_2": 3.0} if self.time == 3 else {}), *rest


def test_a_team_whose_rewards_sum_to_zero_is_told_once(caplog):
    for make in (Relay, AlmostZeroSum, ZeroSum):
        assert not caplog.text
        env = foreign_env(make, [1], 2)
        env.reset()
        for _ in range(9):
            env.step(np.zeros((1, 2, 3), dtype=np.float32))
    assert caplog.text.count("ZeroSum: the rewards of its agents sum to zero") == 1
