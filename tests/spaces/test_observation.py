import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.spaces.utils import flatten
from gymnasium.vector.utils import concatenate, create_empty_array
from hypothesis import given, settings
from random_spaces import nested, seeds

from headwise import ObsCodec, SpaceError

CAR = spaces.Dict(
    gear=spaces.Discrete(3, start=-1),
    view=spaces.Tuple((spaces.Box(-5, 5, (2, 2)), spaces.MultiDiscrete([2, 3]))),
    lights=spaces.MultiBinary(2),
)


def test_layout_and_values_by_hand():
    codec = ObsCodec(CAR)
    assert codec.spec.size == 3 + 2 + 4 + 5
    assert codec.spec.slices == {
        "gear": slice(0, 3),
        "view[0]": slice(3, 7),
        "view[1]": slice(7, 12),
        "lights": slice(12, 14),
    }
    obs = {
        "gear": 1,
        "lights": np.array([1, 0]),
        "view": (np.float32([[1, 2], [3, 4]]), np.array([1, 2])),
    }
    expected = [0, 0, 1, 1, 2, 3, 4, 0, 1, 0, 0, 1, 1, 0]
    flat = codec.flatten(obs)
    assert flat.dtype == np.float32
    np.testing.assert_array_equal(flat, expected)


@given(space=nested(with_one_of=False), seed=seeds)
@settings(max_examples=100, deadline=None)
def test_agrees_with_gymnasium_on_random_spaces(space, seed):
    space.seed(seed)
    codec = ObsCodec(space)
    samples = [space.sample() for _ in range(3)]
    expected = np.stack([flatten(space, sample) for sample in samples]).astype(np.float32)
    np.testing.assert_array_equal([codec.flatten(sample) for sample in samples], expected)
    batch = concatenate(space, samples, create_empty_array(space, 3))
    out = np.full((3, codec.spec.size), np.nan, dtype=np.float32)
    assert codec.flatten_batch(batch, out) is out
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(codec.flatten_batch(batch), expected)


def test_agents_side_by_side():
    codec = ObsCodec.of_agents({"b": spaces.Discrete(2), "a": spaces.Box(0, 1, (1,))})
    assert codec.spec.slices == {"b": slice(0, 2), "a": slice(2, 3)}
    np.testing.assert_array_equal(codec.flatten({"a": np.array([0.5]), "b": 1}), [0, 1, 0.5])


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Text(4), "'observation' cannot be observed"),
        (spaces.Dict(a=spaces.Sequence(spaces.Discrete(2))), "'a' cannot be observed"),
        (spaces.Tuple((spaces.OneOf((spaces.Discrete(2),)),)), r"'observation\[0\]'"),
        (spaces.Dict({}), "is empty"),
        (spaces.Box(-1, 1, (0,)), r"has no elements; got Box.*something to see"),
    ],
)
def test_spaces_that_cannot_be_observed(space, message):
    with pytest.raises(SpaceError, match=message):
        ObsCodec(space)


def test_a_batch_needs_observations():
    with pytest.raises(SpaceError, match=r"batch has no observations; got \(0, 3\)"):
        ObsCodec(spaces.Box(-1, 1, (3,))).flatten_batch(np.zeros((0, 3)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gear": 2}, "'gear' is out of range; got 2; allowed: -1 to 1"),
        ({"gear": 0.5}, "'gear' is of the wrong type"),
        ({"lights": np.zeros(3)}, r"'lights' has the wrong shape; got \(3,\)"),
        ({"view": (np.zeros((2, 2)),)}, r"lacks 'view\[1\]'"),
        ({"view": (np.zeros(4), np.array([0, 0]))}, r"'view\[0\]' has the wrong shape"),
        ({"lights": "on"}, "'lights' is of the wrong type"),
    ],
)
def test_observations_that_do_not_fit(change, message):
    good = {"gear": 0, "lights": np.zeros(2), "view": (np.zeros((2, 2)), np.array([0, 0]))}
    ObsCodec(CAR).flatten(good)
    with pytest.raises(SpaceError, match=message):
        ObsCodec(CAR).flatten({**good, **change})
