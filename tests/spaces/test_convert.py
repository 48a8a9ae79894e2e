import time

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array
from hypothesis import given, settings
from random_spaces import equal, nested, seeds

from headwise import ActionCodec, Choice, Range, SpaceError

ROBOT = spaces.Dict(
    gripper=spaces.Discrete(3, start=-1),
    arm=spaces.Tuple((spaces.Box(-1, 1, (2, 1)), spaces.MultiDiscrete([2, 4], start=[5, 0]))),
)


def test_names_lead_back_to_the_place():
    codec = ActionCodec(ROBOT)
    assert codec.spec.names == (
        "gripper", "arm[0][0,0]", "arm[0][1,0]", "arm[1][0]", "arm[1][1]",
    )  # fmt: skip
    assert codec.spec.heads == (Choice(3), Range(-1, 1), Range(-1, 1), Choice(2), Choice(4))
    assert ActionCodec(spaces.Discrete(2)).spec.names == ("action",)
    assert ActionCodec(spaces.Box(0, 1, (2,))).spec.names == ("action[0]", "action[1]")
    assert ActionCodec(spaces.Dict(a=spaces.Dict(b=spaces.Discrete(2)))).spec.names == ("a/b",)


def test_values_by_hand():
    codec = ActionCodec(ROBOT)
    heads = np.array([0, 0.5, -1.0, 1, 3])
    action = codec.to_env(heads)
    assert action["gripper"] == -1
    np.testing.assert_array_equal(action["arm"][0], np.float32([[0.5], [-1.0]]))
    np.testing.assert_array_equal(action["arm"][1], [6, 3])
    np.testing.assert_array_equal(codec.to_heads(action), heads)
    batch = codec.to_env_batch([heads, heads])
    assert batch["arm"][0].shape == (2, 2, 1)
    np.testing.assert_array_equal(batch["gripper"], [-1, -1])


@given(space=nested(), seed=seeds)
@settings(max_examples=150, deadline=None)
def test_round_trips_on_random_spaces(space, seed):
    codec = ActionCodec(space)
    spec = codec.spec
    space.seed(seed)
    rng = np.random.default_rng(seed)
    # the environment's own samples survive the trip to heads and back, one by one and batched
    samples = [space.sample() for _ in range(4)]
    heads = np.stack([codec.to_heads(sample) for sample in samples])
    spec.check(heads)
    assert all(equal(sample, codec.to_env(row)) for sample, row in zip(samples, heads, strict=True))
    batch = concatenate(space, samples, create_empty_array(space, 4))
    np.testing.assert_array_equal(codec.to_heads_batch(batch), heads)
    assert equal(codec.to_env_batch(heads), batch)
    # heads survive the trip to the environment and back, and what they become is in the space
    drawn = codec.to_heads_batch(codec.to_env_batch(spec.sample(rng, 4)))
    np.testing.assert_array_equal(codec.to_heads_batch(codec.to_env_batch(drawn)), drawn)
    np.testing.assert_array_equal(drawn, spec.canonical(drawn))
    assert all(space.contains(codec.to_env(row)) for row in drawn)
    assert batch_space(space, 4).contains(codec.to_env_batch(drawn))


@given(space=nested(), seed=seeds)
@settings(max_examples=50, deadline=None)
def test_masks_and_bounds_on_random_spaces(space, seed):
    spec = ActionCodec(space).spec
    assert spec.option_mask.shape == (spec.num_heads, spec.max_options)
    assert tuple(spec.option_mask.sum(axis=1)) == spec.cardinalities
    values = spec.sample(np.random.default_rng(seed), 20)
    assert ((spec.low <= values) & (values <= spec.high)).all()
    for head in range(spec.num_heads):
        for step in (spec.low[head] - 1, spec.high[head] + 1):
            outside = values[0].copy()
            outside[head] = step
            with pytest.raises(SpaceError, match="out of range"):
                spec.check(outside)


def test_one_of_knows_which_parameters_are_in_use():
    space = spaces.OneOf(
        (spaces.Box(0, 30, ()), spaces.Tuple((spaces.Box(0, 9, ()), spaces.Discrete(2))))
    )
    codec = ActionCodec(space)
    assert codec.spec.names == ("action", "action:0", "action:1[0]", "action:1[1]")
    heads = codec.to_heads((0, np.array(12.0)))
    np.testing.assert_array_equal(heads, [0, 12.0, 4.5, 0])  # idle parameters: middle, option 0
    np.testing.assert_array_equal(codec.spec.active(heads), [True, True, False, False])
    heads = codec.to_heads((1, (np.array(3.0), 1)))
    np.testing.assert_array_equal(codec.spec.active(heads), [True, False, True, True])


def test_integer_boxes():
    small = ActionCodec(spaces.Box(10, 14, (2,), dtype=np.int32))
    assert small.spec.heads == (Choice(5), Choice(5))
    np.testing.assert_array_equal(small.to_env([0, 4]), np.int32([10, 14]))
    wide = ActionCodec(spaces.Box(0, 1000, (), dtype=np.int64))
    assert wide.spec.heads == (Range(0, 1000),)
    assert wide.to_env([499.7]) == 500


def test_whole_numbers_that_a_float_cannot_hold_are_refused():
    widest = spaces.Box(-(2**53), 2**53, (1,), np.int64)
    codec = ActionCodec(widest, bounds={"action": (-(2**53), 2**53)})
    for end in (codec.spec.low, codec.spec.high):
        assert widest.contains(codec.to_env(end))
    for low, high in ((0, 2**63 - 1), (-(2**53) - 1, 0)):
        with pytest.raises(SpaceError, match=r"too wide to be an action.*bounds={'action'"):
            ActionCodec(spaces.Box(low, high, (1,), np.int64), bounds={"action": (low, high)})
    wide = spaces.Box(0, 2**63 - 1, (1,), np.int64)
    assert ActionCodec(wide, bounds={"action": (0, 9)}).spec.heads == (Choice(10),)


def test_given_bounds():
    space = spaces.Dict(x=spaces.Box(-np.inf, np.inf, (2,)), y=spaces.Box(0, np.inf, ()))
    codec = ActionCodec(space, bounds={"x": (-1, [1, 2]), "y": (0, 5)})
    assert codec.spec.heads == (Range(-1, 1), Range(-1, 2), Range(0, 5))
    with pytest.raises(SpaceError, match=r"'x\[0\]' is out of range; got -3"):
        codec.to_heads({"x": np.float32([-3, 0]), "y": np.float32(1)})


FLOATS = np.finfo(np.float32)


@pytest.mark.parametrize(
    "box",
    [
        spaces.Box(FLOATS.min, FLOATS.max, (1,)),
        spaces.Box(-1, 1e6, (1,)),
        spaces.Box(-1e6, 0, (1,)),
        spaces.Box(-(2**31), 2**31 - 1, (1,), np.int32),
        spaces.Box(0, 10**6, (1,), np.int64),
    ],
)
def test_bounds_of_a_million_and_more_are_none(box):
    fix = (
        r"'arm/joints\[0\]' has no bounds.*allowed: .* than 1,000,000.*bounds={'arm/joints': \(low"
    )
    space = spaces.Dict(arm=spaces.Dict(joints=box))
    with pytest.raises(SpaceError, match=fix):
        ActionCodec(space)
    codec = ActionCodec(space, bounds={"arm/joints": (box.low, box.high)})
    assert codec.spec.low == box.low  # whoever says that they are meant is believed
    assert ActionCodec(spaces.Box(-999_999, 999_999, (1,))).spec.high == 999_999


@pytest.mark.parametrize(
    ("space", "bounds", "message"),
    [
        (spaces.Box(-np.inf, 1, (2,)), {}, r"'action\[0\]' has no bounds.*bounds="),
        (spaces.Dict(a=spaces.Box(0, np.inf, ())), {}, "'a' has no bounds"),
        (
            spaces.Dict(a=spaces.Discrete(2), b=spaces.Box(-np.inf, np.inf, (2,))),
            (-1, 1),
            r"which Box they are for; got \(-1, 1\); allowed: .*: {'b': \(low, high\)}",
        ),
        (spaces.Box(-1, 1, (2,)), "x", r"which Box they are for; got x; .*{'action': \(low, hi"),
        (spaces.Discrete(3), (-1, 1), r"that are no Box; got \(-1, 1\); allowed: none"),
        (spaces.Box(-np.inf, np.inf, (2,)), {"action": (0, [1, 2, 3])}, "do not fit"),
        (spaces.Box(-np.inf, np.inf, (2,)), {"action": 3}, "do not fit"),
        (spaces.Box(-np.inf, np.inf, ()), {"action": (0, np.nan)}, "'action'.*nan"),
        (spaces.Box(0, np.inf, ()), {"action": (-1, 1)}, "reach beyond"),
        (spaces.Box(0, 1, ()), {"elsewhere": (0, 1)}, r"no Box.*'elsewhere'.*allowed: action"),
        (spaces.Box(1, 1, (2,)), {}, "nothing to choose"),
        (spaces.Box(0, 1, (0,)), {}, "'action' has no elements"),
        (spaces.Text(5), {}, "'action' cannot be an action.*Discrete"),
        (spaces.Tuple([spaces.Discrete(2), spaces.Text(3)]), {}, r"action\[1\]"),
        (spaces.Dict(s=spaces.Sequence(spaces.Discrete(2))), {}, "'s' cannot be"),
        (spaces.Dict(g=spaces.Graph(spaces.Box(0, 1, ()), None)), {}, "'g' cannot be"),
        (spaces.Tuple(()), {}, "'action' is empty"),
        (spaces.Dict(a=spaces.Dict({})), {}, "'a' is empty"),
    ],
)  # fmt: skip
def test_spaces_that_cannot_be_actions(space, bounds, message):
    with pytest.raises(SpaceError, match=message):
        ActionCodec(space, bounds=bounds)


def _robot(gripper=0, box=((0.0,), (0.0,)), buttons=(5, 0)):
    return {"gripper": gripper, "arm": (np.float32(box), np.array(buttons))}


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (_robot(gripper=2), "'gripper' is out of range; got 2; allowed: -1 to 1"),
        (_robot(gripper=0.0), "'gripper' is of the wrong type"),
        (_robot(gripper="x"), "'gripper' has the wrong structure"),
        (_robot(gripper=[0, 1]), "'gripper' has the wrong shape"),
        (_robot(box=((0.0,), (1.5,))), r"'arm\[0\]\[1,0\]' is out of range; got 1.5"),
        (_robot(box=((0.0,), (np.nan,))), r"'arm\[0\]\[1,0\]' is out of range; got nan"),
        (_robot(box=(0.0, 0.0)), r"'arm\[0\]' has the wrong shape; got \(2,\)"),
        (_robot(buttons=(7, 0)), r"'arm\[1\]\[0\]' is out of range; got 7; allowed: 5 to 6"),
        ({"gripper": 0}, "'action' has the wrong structure.*keys"),
        ({**_robot(), "more": 1}, "'action' has the wrong structure"),
        ([0, 1], "a dict with keys"),
        ({"gripper": 0, "arm": (1,)}, "'arm' has the wrong structure.*a tuple of 2 parts"),
        ({"gripper": 0, "arm": 7}, "'arm' has the wrong structure"),
        ({"gripper": 0, "arm": ([[1], [2, 3]], np.array([5, 0]))}, r"'arm\[0\]'.*numbers"),
    ],
)
def test_actions_outside_the_space_are_refused(action, message):
    with pytest.raises(SpaceError, match=message):
        ActionCodec(ROBOT).to_heads(action)


def test_one_of_refuses_what_it_does_not_know():
    codec = ActionCodec(spaces.OneOf((spaces.Discrete(2), spaces.Discrete(3))))
    for action in [(2, 0), (0,), 5, (0.5, 1), (0, 9)]:
        with pytest.raises(SpaceError, match="'action"):
            codec.to_heads(action)
    with pytest.raises(SpaceError, match="not a batch"):
        codec.to_heads_batch(3)


def test_head_vectors_of_the_wrong_shape_are_refused():
    codec = ActionCodec(ROBOT)
    for call, heads in [
        (codec.to_env, np.zeros((2, 5))),
        (codec.to_env_batch, np.zeros(5)),
        (codec.to_env, np.zeros(4)),
        (codec.to_env_batch, np.zeros((2, 6))),
    ]:
        with pytest.raises(SpaceError, match="wrong shape"):
            call(heads)


def test_a_batch_whose_columns_differ_in_length_is_refused():
    codec = ActionCodec(spaces.Tuple((spaces.Discrete(2), spaces.Discrete(2))))
    with pytest.raises(SpaceError, match=r"'action\[1\]' have the wrong shape"):
        codec.to_heads_batch((np.array([0, 1]), np.array([0])))


def test_agents_are_one_action():
    codec = ActionCodec.of_agents(
        {"walker": spaces.Discrete(4), "gunner": spaces.Dict(aim=spaces.Box(0, 1, (2,)))}
    )
    assert codec.spec.names == ("walker/action", "gunner/aim[0]", "gunner/aim[1]")
    assert codec.agents == ("walker", "gunner", "gunner")
    action = codec.to_env([3, 0.25, 1])
    assert action["walker"] == 3
    np.testing.assert_array_equal(action["gunner"]["aim"], np.float32([0.25, 1]))
    np.testing.assert_array_equal(codec.to_heads(action), [3, 0.25, 1])


def test_ten_thousand_nested_actions_in_five_milliseconds():
    space = spaces.Dict(
        move=spaces.Tuple((spaces.Discrete(9), spaces.Box(-1, 1, (2,)))),
        tool=spaces.Dict(kind=spaces.Discrete(4), power=spaces.Box(0, 10, ())),
        lights=spaces.MultiBinary(1),
    )
    codec = ActionCodec(space)
    assert codec.spec.num_heads == 6
    heads = codec.spec.sample(np.random.default_rng(0), 10_000)

    def best(call, argument):
        times = []
        for _ in range(20):
            start = time.perf_counter()
            call(argument)
            times.append(time.perf_counter() - start)
        return min(times)

    assert best(codec.to_env_batch, heads) < 5e-3
    assert best(codec.to_heads_batch, codec.to_env_batch(heads)) < 5e-3


def test_a_gymnasium_environment_takes_our_actions():
    env = gym.make("Pendulum-v1")
    codec = ActionCodec(env.action_space)
    env.reset(seed=0)
    env.step(codec.to_env([1.5]))
    env.close()


def test_elements_with_one_value_are_filled_in():
    """Such a Box is what grid2op has for the generators that nobody may redispatch."""
    low, high = np.array([[-1, 3, 0], [2, -4, 7]], np.float32), np.array([[1, 3, 0], [2, 4, 7]])
    space = spaces.Dict(a=spaces.Discrete(2), b=spaces.Box(low, high.astype(np.float32)))
    codec = ActionCodec(space)
    assert codec.spec.names == ("a", "b[0,0]", "b[1,1]")
    action = codec.to_env([1, 0.5, -2])
    np.testing.assert_array_equal(action["b"], [[0.5, 3, 0], [2, -2, 7]])
    assert space.contains(action)
    np.testing.assert_array_equal(codec.to_heads(action), [1, 0.5, -2])
    batch = codec.to_env_batch([[1, 0.5, -2], [0, 1, 4]])
    np.testing.assert_array_equal(batch["b"][1], [[1, 3, 0], [2, 4, 7]])
    np.testing.assert_array_equal(codec.to_heads_batch(batch), [[1, 0.5, -2], [0, 1, 4]])
    with pytest.raises(SpaceError, match=r"'b\[0,1\]' is out of range; got 2.5; allowed: 3 to 3"):
        codec.to_heads({"a": 0, "b": np.array([[0, 2.5, 0], [2, 0, 7]], np.float32)})
