"""Calls that once ended in an error of Python, NumPy or torch, or did something else in silence."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from bad_case import TINY

import headwise as hw
from headwise.agent.tensors import without_tensors
from headwise.envs.foreign import TRANSLATING
from headwise.training.fits import fits
from headwise.training.loggers.base import seed_labels

BOTH = gym.spaces.Tuple((gym.spaces.Discrete(2), gym.spaces.Box(-1, 1, (1,))))


class Desk(gym.Env):
    """Sees two numbers, and acts in two parts."""

    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space: gym.Space = BOTH

    def __init__(self, seeds=None, env=None):
        self.given = (seeds, env)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, dtype=np.float32), {}

    def step(self, action):
        return np.zeros(2, dtype=np.float32), 1.0, False, True, {}


def made(env=Desk, algo="ppo", **settings):
    return hw.Agent(algo, env, **TINY | settings)


@pytest.fixture(scope="module")
def agent():
    return made()


# --- settings of the environment ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["env", "seeds", "num_slots", "name", "self"])
@pytest.mark.parametrize("env", ["HybridShoot", "Lander", "probe/agree", "CartPole-v1"])
def test_a_setting_may_be_called_as_an_argument_of_ours_and_is_refused_as_any_other(env, name):
    with pytest.raises(hw.HeadwiseError, match=f"unknown setting of .*'{name}'|could not be made"):
        made(env, env_settings={name: 3})


_AGENTS = {"view", "bins", "constraints", "num_threads", "allocate"}  # its own, or nobody's to say


@pytest.mark.parametrize("name", sorted(TRANSLATING - _AGENTS))
def test_a_setting_of_the_environment_is_sent_there(name):
    with pytest.raises(hw.ConfigError, match=rf"unknown setting .*env_settings=\{{\"{name}\": "):
        made(**{name: 1})


def test_an_environment_of_ones_own_may_have_settings_of_any_name():
    found = made(env_settings={"seeds": 5, "env": "x"})
    assert found.world.settings == {"seeds": 5, "env": "x"}


@pytest.mark.parametrize("env", ["HybridShoot", "Lander", "probe/agree", "CartPole-v1", Desk])
def test_what_makes_no_arrays_is_refused(env):
    with pytest.raises(hw.ConfigError, match=r"allocate makes the arrays .*; got 3"):
        made(env, env_settings={"allocate": 3})


@pytest.mark.parametrize("bad", [[], 0, np.zeros(2), "abc", {1: 2}])
def test_settings_are_a_dict(bad):
    with pytest.raises(hw.ConfigError, match="env_settings must be a dict"):
        made(env_settings=bad)


@pytest.mark.parametrize("bad", [np.zeros((2, 2)), np.array([-1, 1]), {"action": np.zeros((3, 7))}])
def test_bounds_in_arrays_are_for_a_box_by_its_name(bad):
    class Arm(Desk):
        action_space = gym.spaces.Box(-np.inf, np.inf, (2,))

    with pytest.raises(hw.SpaceError, match=r"(?s)bounds .*\(low, high\)"):
        made(Arm, env_settings={"bounds": bad})
    made(Arm, env_settings={"bounds": {"action": np.array([[-1, -2], [1, 2]])}})


def test_bins_and_slots_are_as_many_as_a_memory_may_hold():
    with pytest.raises(hw.SpaceError, match="from 1 to 65,536"):
        made(view="discrete", env_settings={"bins": 10**9})
    for slots in (10**7, 10**20):
        with pytest.raises(hw.HeadwiseError, match="from 1 to 1,000,000"):
            made(num_envs=slots)


# --- seeds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", [100_001, 10**20, np.uint64(2**64 - 1), range(10**9)])
def test_more_members_than_there_can_be_are_refused_and_a_lone_seed_is_explained(many):
    with pytest.raises(hw.ConfigError, match=r"too many members; .*up to 100,000") as caught:
        made(seeds=many)
    is_seed = not isinstance(many, range) and many < 2**64  # others are refused as seeds, too
    assert (f"is seeds=[{many}]" in str(caught.value)) == is_seed


def test_seeds_in_an_array_without_axes_are_how_many():
    assert made(seeds=np.array(3)).seeds == (0, 1, 2)


def test_two_members_may_share_a_seed_if_a_setting_tells_them_apart(tmp_path):
    rates = (1e-3, 1e-4, 1e-3, 1e-4)
    agent = made(seeds=[0, 0, 1, 1], learning_rate=rates)
    loggers = [hw.CSVLogger(tmp_path / "x.csv"), hw.JSONLLogger(tmp_path / "x.jsonl")]
    agent.learn(200, progress=False, loggers=loggers)
    labels = {line.split(",")[1] for line in (tmp_path / "x.csv").read_text().splitlines()[1:]}
    assert labels == {"0-member0", "0-member1", "1-member2", "1-member3"}
    assert '"member": 3' in (tmp_path / "x.jsonl").read_text()
    agent.save(tmp_path / "x.zip")
    assert hw.Agent.load(tmp_path / "x.zip", Desk).config.algorithm.learning_rate == rates
    for twins in ({}, {"learning_rate": 1e-3}, {"learning_rate": (1e-3, 1e-3, 1e-3, 1e-4)}):
        with pytest.raises(hw.ConfigError, match=r"a seed is given twice; got \[0.*they differ"):
            made(seeds=[0, 0, 1, 1], **twins)


def test_a_table_that_tells_members_apart_by_seed_refuses_twins(tmp_path):
    pytest.importorskip("pyarrow")
    agent = made(seeds=[0, 0], learning_rate=(1e-3, 1e-4))
    with pytest.raises(
        hw.ConfigError, match=r"two members have one seed.*CSVLogger or a JSONLLogger"
    ):
        agent.learn(64, progress=False, loggers=[hw.ParquetLogger(tmp_path / "x")])
    assert seed_labels([3, 7]) == ["3", "7"]


def test_what_is_said_to_be_allowed_is_not_refused():
    """The sign of a setting is looked at before its least value is."""
    for name in ("n_steps", "batch_size", "n_epochs"):
        for bad in (-1, 0, "x"):
            with pytest.raises(hw.ConfigError, match="allowed: whole numbers from 1") as caught:
                made(**{name: bad})
            assert "not negative" not in str(caught.value)
    made(offline_rows=0)


# --- learn, evaluate, export ----------------------------------------------------------------------


def test_steps_may_be_written_as_people_write_them(tmp_path):
    agent = made()
    path = tmp_path / "x.zip"
    agent.learn(
        1e2, progress=False, checkpoint=path, checkpoint_every=5e1, log_every=np.float32(50)
    )
    assert agent.steps >= 100
    for bad in (2.5, float("nan"), float("inf"), "10", True, [10], -1e3, 0.0):
        with pytest.raises(hw.ConfigError, match="steps must be a count"):
            agent.learn(bad)
    for bad in (1e300, 10**30):
        with pytest.raises(hw.ConfigError, match=r"steps is out of range; .*up to 1e\+15"):
            agent.learn(bad)


@pytest.mark.parametrize("bad", [np.array([True, False]), "no", 1, None, []])
def test_a_switch_is_true_or_false(agent, bad, tmp_path):
    calls = [
        lambda: agent.predict(np.zeros(2), deterministic=bad),
        lambda: agent.evaluate(1, deterministic=bad),
        lambda: agent.learn(1, progress=bad),
        lambda: agent.export(tmp_path / "x.onnx", deterministic=bad),
        lambda: made(normalize_obs=bad),
    ]
    if bad is not None:  # which asks the environment
        calls.append(lambda: agent.export(tmp_path / "x.onnx", masks=bad))
    for call in calls:
        with pytest.raises(hw.ConfigError, match=r"is a switch; got .*; allowed: True or False"):
            call()


@pytest.mark.parametrize("bad", [np.array([True]), [5], {}, 1e3, b"x", len])
def test_a_checkpoint_is_a_path(bad):
    with pytest.raises(hw.CheckpointError, match="needs the path of a file"):
        made().learn(10, progress=False, checkpoint=bad)


# --- predict --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(2),
        torch.zeros(2, requires_grad=True),
        torch.zeros(2, dtype=torch.bfloat16),
        torch.zeros(2, dtype=torch.float16, requires_grad=True),
        torch.zeros(2).to_sparse(),
    ],
    ids=["plain", "with gradients", "bfloat16", "float16", "sparse"],
)
def test_tensors_are_observations(agent, tensor):
    mask = torch.ones(2, requires_grad=True)
    expected = agent.predict(np.zeros(2), deterministic=True)
    assert agent.predict(tensor, deterministic=True) == expected
    assert agent.predict(tensor, True, action_mask=mask) == expected
    option, numbers = agent.predict([tensor, tensor], deterministic=True)  # a batch of two
    assert option.shape == (2,)
    assert numbers.shape == (2, 1)
    assert agent.importance(tensor) is None


def test_a_structure_keeps_its_form_without_its_tensors():
    given = {"a": (torch.ones(2), [torch.zeros(1, dtype=torch.bfloat16)]), "b": 3}
    found = without_tensors(given)
    assert isinstance(found["a"], tuple)
    assert isinstance(found["a"][1], list)
    assert found["a"][0].tolist() == [1.0, 1.0]
    assert found["a"][1][0].dtype == np.float32
    assert found["b"] == 3


def test_a_tensor_without_numbers_is_refused(agent):
    with pytest.raises(
        hw.SpaceError, match=r"no numbers that can be read; got torch.float32 on me"
    ):
        agent.predict(torch.zeros(2, device="meta"))


def single(agent):
    action, _ = agent.predict(np.zeros(2))
    return action


def batch_of_two(agent):
    action, _states = agent.predict(np.zeros((2, 2)), deterministic=True)
    return action


def into_what_is_outside(agent):
    global ACTION, STATE
    ACTION, STATE = agent.predict(np.zeros(2))


class Cart(Desk):
    action_space = gym.spaces.Discrete(3)


class Arm(Desk):
    action_space = gym.spaces.Box(-1, 1, (2,))


class Keyed(Desk):
    action_space = gym.spaces.Dict(a=gym.spaces.Discrete(2), b=gym.spaces.Discrete(2))


@pytest.mark.parametrize("call", [single, batch_of_two, into_what_is_outside])
@pytest.mark.parametrize("env", [Desk, Cart, Arm, Keyed])
def test_a_state_beside_the_action_is_refused_whatever_the_action_is(env, call):
    with pytest.raises(hw.ConfigError, match=r"the action alone.*action = agent\.predict\(obs\)"):
        call(made(env))


def test_an_action_of_two_parts_may_be_taken_apart(agent):
    move, aim = agent.predict(np.zeros(2))
    assert move in (0, 1)
    assert aim.shape == (1,)
    first, second = list(map(agent.predict, np.zeros((2, 2))))
    assert BOTH.contains(first)
    assert BOTH.contains(second)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"state": None}, "There is no state: action = agent.predict"),
        ({"episode_start": None}, "There is no state"),
        ({"observation": np.zeros(2)}, r"Say predict\(obs\)"),
        ({"determine": True}, "Did you mean 'deterministic'"),
    ],
)
def test_arguments_of_predict_elsewhere_are_answered(agent, words, said):
    with pytest.raises(hw.ConfigError, match=f"unknown argument of predict; .*{said}"):
        agent.predict(np.zeros(2), **words)


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"net_arch": (10**15,)}, {"net_arch": (10**30,)}])
def test_networks_that_fit_nowhere(settings):
    with pytest.raises(hw.ConfigError, match="the learners do not fit into the memory"):
        made(**settings)


@pytest.mark.parametrize("steps", [10**16, 10**30])
def test_a_rollout_that_fits_nowhere(steps):
    words = f"the learners do not fit .*, n_steps={steps}.*make one of these smaller: .*n_steps"
    with pytest.raises(hw.ConfigError, match=words):
        made(n_steps=steps)


def test_other_errors_stay_what_they_are():
    with pytest.raises(TypeError, match="not iterable"), fits("things", got="x", fix="Stop."):
        list(5)
