"""Environments and settings that cannot be used, and what users are told about them."""

import functools
import warnings

import gymnasium as gym
import numpy as np
import pytest
from foreign_toys import Counter
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, Text
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from headwise import ConfigError, EnvError, HeadwiseError, SpaceError
from headwise.envs.foreign import foreign_env

ZEROS = np.zeros((1, 2, 1), dtype=np.float32)


def changed(**parts):
    """A Counter with other methods or spaces."""
    return type("Changed", (Counter,), parts)


def start(env, steps=1):
    made = foreign_env(env, [1], 2)
    made.reset()
    for _ in range(steps):
        made.step(ZEROS)


def obs_of(value):
    return lambda self: np.asarray(value(self))


def failing():
    raise AssertionError


@pytest.mark.parametrize("kind", [list, functools.partial(SyncVectorEnv)])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_observations_that_are_not_finite(kind, bad):
    first = changed(_obs=obs_of(lambda self: [0.0, bad, 0.0]))
    later = changed(_obs=obs_of(lambda self: [0.0, bad if self.time == 2 else 0.0, 0.0]))
    last = changed(_obs=obs_of(lambda self: [0.0, bad if self.time == 4 else 0.0, 0.0]))
    for env, steps in ((first, 0), (later, 2), (last, 4)):
        env = env if kind is list else kind([env] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
        with pytest.raises(EnvError, match=r"at 'observation' in slot 0 of member 0 is not finite"):
            start(env, steps)


@pytest.mark.parametrize("kind", [list, functools.partial(SyncVectorEnv)])
def test_observations_that_are_too_large(kind):
    env = changed(_obs=obs_of(lambda self: [0.0, -1e300 if self.word > 500 else 1.0, 0.0]))
    env = env if kind is list else kind([env] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    words = foreign_env(Counter, [1], 2).reset()[0, :, 0]
    assert words[0] < 500 < words[1]
    name = "Changed" if kind is list else "SyncVectorEnv"
    where = f"{name} in slot 1 of member 0"
    message = f"^{where}: the observation at 'observation' is too large for float32; got -1e"
    with pytest.raises(SpaceError, match=message):
        start(env, 0)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"_obs": obs_of(lambda self: [0.0, 1.0])},
            r"Changed in slot 0 of member 0: .* wrong shape; got \(2,\); allowed: \(3,\)",
        ),
        ({"_obs": obs_of(lambda self: [[0.0, 1.0, 2.0]])}, "wrong shape"),
        ({"_obs": lambda self: "hello"}, "wrong type"),
        ({"_obs": lambda self: None}, "wrong type"),
        ({"_obs": lambda self: {"a": 1}}, "wrong type"),
        ({"observation_space": Discrete(3)}, "wrong type|wrong shape"),
        (
            {"reset": lambda self, seed=None, options=None: np.zeros(3)},
            r"reset\(\) returned.*obs, i",
        ),
        (
            {"step": lambda self, action: (np.zeros(3), 0.0, False, {})},
            r"step\(\).*4 values.*shimmy",
        ),
        ({"step": lambda self, action: None}, r"step\(\) returned something else"),
    ],
)
def test_environments_that_break_their_word(parts, message):
    with pytest.raises(HeadwiseError, match=message):
        start(changed(**parts))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"action_space": Box(-np.inf, 1, (1,))}, r"has no bounds.*Give them: bounds="),
        ({"action_space": Text(3)}, "cannot be an action"),
        ({"action_space": Box(0, 1, (0,))}, "no elements"),
        ({"observation_space": Graph(Discrete(2), None)}, "cannot be observed as a vector"),
        ({"observation_space": Dict(action_mask=MultiBinary(3))}, "mask and nothing else"),
    ],
)
def test_spaces_that_cannot_be_used(parts, message):
    with pytest.raises(SpaceError, match=message):
        foreign_env(changed(**parts), [1], 2)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("CartPol-v1", r"unknown environment.*Did you mean 'CartPole-v1'"),
        ("CartPole-v77", r"unknown environment.*Did you mean 'CartPole-v1'"),
        ("nowhere/Xyzzy-v0", "unknown environment"),
        ("headwise/HybridShot-v0", r"Did you mean 'HybridShoot'"),
        ("no_such_module_at_all:Env-v0", "cannot import the module of.*ModuleNotFoundError"),
        ("./desk.py:Desk-v0", r"the path of a file; got ./desk.py:Desk-v0; .*Write desk:Desk-v0"),
        ("C:\\robots\\desk.py:Desk-v0", "Write desk:Desk-v0"),
        (":Desk-v0", "names no module"),
        ("..desk:Desk-v0", "names no module"),
        (3, r"no environment; got 3"),
        (None, "no environment"),
        ([Counter], "no environment"),
        (lambda: 3, "made something that is no environment; got 3"),
        (dict, "made something that is no environment"),
        (lambda: 1 / 0, "made; got ZeroDivisionError: division by zero. The first traceback shows"),
        (failing, r"made; got AssertionError\. The first traceback shows where\.$"),
        (lambda missing: Counter(), "made; got TypeError: .*. Hand over what makes it"),
    ],
)
def test_what_is_no_environment(env, message):
    with pytest.raises(HeadwiseError, match=message):
        foreign_env(env, [1], 2)


def test_one_environment_for_all_is_found_out():
    one = Counter()
    with pytest.raises(EnvError, match="same environment twice"):
        foreign_env(lambda: one, [1], 2)
    both = SyncVectorEnv([Counter] * 2)
    with pytest.raises(EnvError, match="same vector environment twice"):
        foreign_env(lambda: both, [1, 2], 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vectorization": "asynk"}, "Did you mean 'async'"),
        ({"masks": "no"}, r"masks is a switch; got no; allowed: True or False\. Say masks=F"),
        ({"masks": None}, "masks is a switch; got None"),
        ({"masks": np.array([True, False])}, "masks is a switch; got array"),
        ({"vectorization": np.array(["sync", "async"])}, "unknown vectorization; got"),
        ({"allocate": 3}, r"allocate makes the arrays .*; got 3; allowed: np\.zeros"),
        ({"team_reward": "summ"}, "Did you mean 'sum'"),
        ({"view": "hybri"}, "Did you mean 'hybrid'"),
        ({"bins": 5}, r"bins without a view; got 5.*view="),
        ({"autoreset": "next_step"}, "autoreset is for vector environments"),
        ({"lengths": 3}, "could not be made.*lengths"),
        ({"bounds": {"action": (0, 1)}}, "bounds were given for places that are no Box"),
    ],
)
def test_settings(settings, message):
    with pytest.raises(HeadwiseError, match=message):
        foreign_env(Counter, [1], 2, **settings)


def test_what_is_made_already_takes_no_settings():
    with pytest.raises(ConfigError, match=r"made already.*length"):
        foreign_env(Counter(), [1], 1, length=3)


@pytest.mark.parametrize(
    ("seeds", "slots", "message"),
    [
        ([], 2, "no members"),
        ([-1], 2, "a seed must be a whole number"),
        ([1.5], 2, "a seed must be a whole number"),
        ([1], 0, "num_slots must be a count"),
        ([1], 2.5, "num_slots must be a count"),
    ],
)
def test_populations(seeds, slots, message):
    with pytest.raises(EnvError, match=message):
        foreign_env(Counter, seeds, slots)


@pytest.mark.parametrize(
    ("env", "seeds", "slots"),
    [
        (SyncVectorEnv([Counter] * 4), [1, 2], 4),
        (SyncVectorEnv([Counter] * 5), [1, 2], None),
        (lambda: SyncVectorEnv([Counter] * 4), [1, 2], 2),
    ],
)
def test_vector_environments_of_the_wrong_size(env, seeds, slots):
    with pytest.raises(EnvError, match=r"has \d environments; got 2 members.*num_envs"):
        foreign_env(env, seeds, slots)


def test_a_vector_environment_must_say_when_it_resets():
    env = SyncVectorEnv([Counter] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    env.metadata = {}
    with pytest.raises(EnvError, match="does not say when it resets"):
        foreign_env(env, [1])
    with pytest.raises(EnvError, match=r"does not say when it resets.*got sometimes"):
        foreign_env(env, [1], autoreset="sometimes")
    told = foreign_env(env, [1], autoreset="same_step")
    told.reset()
    for _ in range(4):
        step = told.step(ZEROS)
    np.testing.assert_array_equal(step.next_obs[0, 0, 1:], [0, 4])
    np.testing.assert_array_equal(step.obs[0, 0, 1:], [1, 0])


def test_a_last_observation_that_is_kept_secret():
    class Secretive(SyncVectorEnv):
        def step(self, actions):
            *rest, infos = super().step(actions)
            infos.pop("final_obs", None)
            return *rest, infos

    env = foreign_env(Secretive([Counter] * 2, autoreset_mode=AutoresetMode.SAME_STEP), [1])
    env.reset()
    for _ in range(3):
        env.step(ZEROS)
    with pytest.raises(EnvError, match=r'keeps the last observation.*infos\["final_obs"\]'):
        env.step(ZEROS)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of Gymnasium, of a worker that ends
@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (np.nan, "Counter: the reward in slot 1 of member 1 is not finite; got nan"),
        (1e300, r"Counter: the reward in slot 1 of member 1 is too large for float32; got 1e\+300"),
        (None, "Counter in slot 1 of member 1: the reward is not a number; got None"),
        ("1", "Counter in slot 1 of member 1: the reward is not a number; got 1"),
        pytest.param(10**400, "member 1: the reward is not a number; got 1000", id="huge"),
    ],
)
def test_bad_rewards_are_found_by_slot_and_member(reward, message, vectorization):
    words = foreign_env(Counter, [1, 2], 2).reset()[..., 0]
    assert len(np.unique(words)) == 4

    class Bad(gym.Wrapper):
        def step(self, action):
            obs, good, *rest = self.env.step(action)
            return obs, reward if obs[0] == words[1, 1] else good, *rest

    def make():
        return gym.wrappers.OrderEnforcing(Bad(Counter()))

    make.__name__ = "Counter"
    env = foreign_env(make, [1, 2], 2, vectorization=vectorization)
    env.reset()
    with pytest.raises(EnvError, match=message):
        env.step(np.zeros((2, 2, 1), dtype=np.float32))
    env.close()


@pytest.mark.filterwarnings("ignore::UserWarning")  # of Gymnasium, of a worker that ends
@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize("which", ["terminated", "truncated"])
@pytest.mark.parametrize("value", ["False", "", None, np.nan, 0.5, 2, np.array([0, 1]), {}])
def test_flags_that_are_no_truths(value, which, vectorization):
    """They are refused before anything is reset, and never taken for what Python makes of them."""
    last = -2 if which == "terminated" else -1

    def step(self, action):
        result = list(Counter.step(self, action))
        if self.time == 2:
            result[last - 1] = value
        return tuple(result)

    env = foreign_env(changed(step=step), [1], 2, vectorization=vectorization)
    env.reset()
    env.step(ZEROS)
    with pytest.raises(
        EnvError, match=rf"slot [01] of member 0: {which} is not a bool; got .*True or"
    ):
        env.step(ZEROS)
    env.close()


@pytest.mark.parametrize("value", [1, 1.0, np.True_, np.array(1), np.array([True]), np.float32(1)])
def test_flags_that_are_truths_in_other_types(value):
    def step(self, action):
        return self._obs(), 1.0, value, False, {}

    env = foreign_env(changed(step=step), [1], 2)
    env.reset()
    assert env.step(ZEROS).terminated.all()


def test_flags_of_a_vector_environment():
    class Wordy(SyncVectorEnv):
        flag = "False"

        def step(self, actions):
            obs, reward, _, truncated, infos = super().step(actions)
            return obs, reward, np.array([self.flag] * 2), truncated, infos

    env = Wordy([Counter] * 2)
    made = foreign_env(env, [1])
    made.reset()
    with pytest.raises(EnvError, match=r"terminated is not a bool; got np\.str_"):
        made.step(ZEROS)
    env.flag = 0
    assert not made.step(ZEROS).terminated.any()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_an_observation_that_its_space_would_round(vectorization):
    class Gray(Counter):
        observation_space = Box(0, 255, (3,), np.uint8)

        def _obs(self):
            return np.array([0.5, 1.0, 2.0]) if self.time else np.array([1, 2, 3])

    env = foreign_env(Gray, [1], 2, vectorization=vectorization)
    np.testing.assert_array_equal(env.reset()[0, 0], [1, 2, 3])  # of another type, but the same
    with pytest.raises(SpaceError, match=r"'observation' does not fit.*float64 that uint8 would"):
        env.step(ZEROS)
    env.close()


def test_rewards_of_a_vector_environment_must_be_numbers():
    class Wordy(SyncVectorEnv):
        def step(self, actions):
            obs, reward, *rest = super().step(actions)
            return obs, reward.astype(str), *rest

    env = foreign_env(Wordy([Counter] * 2), [1])
    env.reset()
    with pytest.raises(EnvError, match="reward is of the wrong type; got dtype <U32"):
        env.step(ZEROS)


def test_a_reward_of_the_wrong_shape():
    class Wide(SyncVectorEnv):
        def step(self, actions):
            obs, reward, *rest = super().step(actions)
            return obs, reward[:, None], *rest

    env = foreign_env(Wide([Counter] * 2), [1])
    env.reset()
    with pytest.raises(EnvError, match=r"reward has the wrong shape; got \(2, 1\)"):
        env.step(ZEROS)


def test_rewards_of_a_vector_environment_must_be_finite():
    bad = changed(step=lambda s, a: (np.zeros(3), np.inf, False, False, {}))
    env = foreign_env(SyncVectorEnv([bad] * 2), [1])
    env.reset()
    with pytest.raises(EnvError, match="reward in slot 0 of member 0 is not finite"):
        env.step(ZEROS)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.zeros((1, 2, 2), np.float32), r"wrong shape; got \(1, 2, 2\); allowed: \(1, 2, 1\)"),
        (np.zeros((2, 1), np.float32), "wrong shape"),
        (ZEROS + 3, "head 'action' of action .* is out of range; got 3"),
        (ZEROS + 0.5, "head 'action' of action .* is out of range; got 0.5"),
        (ZEROS + np.nan, "out of range"),
    ],
)
def test_a_refused_action_changes_nothing(action, message):
    env, twin = foreign_env(Counter, [1], 2), foreign_env(Counter, [1], 2)
    env.reset()
    twin.reset()
    with pytest.raises(HeadwiseError, match=message):
        env.step(action)
    np.testing.assert_array_equal(env.step(ZEROS).obs, twin.step(ZEROS).obs)


def test_numbers_out_of_range():
    env = foreign_env(changed(action_space=Box(2, 5, (1,))), [1], 2)
    env.reset()
    with pytest.raises(SpaceError, match=r"head 'action\[0\]' of action 0.*got 1.5.*-1 to 1"):
        env.step(ZEROS + 1.5)


def test_calls_out_of_order():
    env = foreign_env(Counter, [1], 2)
    with pytest.raises(EnvError, match=r"Counter: step before reset.*Call reset\(\)"):
        env.step(ZEROS)
    env.reset()
    env.close()
    for call in (lambda: env.step(ZEROS), env.reset, env.snapshot):
        with pytest.raises(EnvError, match=r"it is closed\. Make a new one\."):
            call()


def test_an_environments_own_mistakes_are_shown_as_they_are():
    def step(self, action):
        raise RuntimeError("the robot fell over")

    with pytest.raises(RuntimeError, match="the robot fell over"):
        start(changed(step=step))


def test_a_mistake_in_another_process_is_told_too():
    bad = changed(_obs=obs_of(lambda self: [0.0, 1.0] if self.time else [0.0, 1.0, 2.0]))
    env = foreign_env(bad, [1], 2, vectorization="async")
    env.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gymnasium also logs it
        with pytest.raises(SpaceError, match=r"wrong shape; got \(2,\); allowed: \(3,\)\.$"):
            env.step(ZEROS)
    env.close()


def test_what_cannot_be_made_anew_says_so():
    class Plain(gym.Wrapper):
        """A wrapper that does not write down how it was made."""

    env = Plain(gym.make("CartPole-v1"))
    with pytest.raises(EnvError, match=r"the wrapper Plain does not.*`lambda: Plain\(gym.make"):
        foreign_env(env, [1, 2], 2)
    with pytest.raises(EnvError, match=r"it has no `spec`; allowed: one member with one slot"):
        foreign_env(Counter(), [1], 2)
