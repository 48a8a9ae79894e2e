import math

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


# --- pictures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.Box(0, 255, (5, 3, 1), np.uint8), 4),
        (spaces.Box(0, 255, (16, 16), np.uint8), 64),
        (spaces.Box(0, 255, (16, 15), np.uint8), None),
        (spaces.Box(0, 255, (48,), np.uint8), None),
        (spaces.Box(0, 255, (2, 2, 2, 2), np.uint8), None),
        (spaces.Box(0, 1, (8, 8, 3), np.uint8), None),
        (spaces.Box(0, 255, (8, 8, 3), np.int16), None),
        (spaces.Box(0, 1, (8, 8, 3), np.float32), None),
        (spaces.MultiBinary((8, 8, 3)), None),
    ],
)
def test_pictures_of_bytes_are_packed_and_nothing_else(space, words):
    spec = ObsCodec(space).spec
    assert spec.leaves[0].is_packed == (words is not None)
    assert spec.size == (words or math.prod(space.shape))
    assert spec.vector_size == math.prod(space.shape)


def test_a_batch_of_pictures_is_its_bytes():
    space = spaces.Dict(
        a=spaces.Box(-1, 1, (1,)), b=spaces.Box(0, 255, (3, 3, 3), np.uint8), c=spaces.Discrete(2)
    )
    codec = ObsCodec(space)
    assert codec.spec.slices == {"a": slice(0, 1), "b": slice(1, 8), "c": slice(8, 10)}
    assert codec.spec.packed == (slice(1, 8),)
    assert codec.spec.numbers == (slice(0, 1), slice(8, 10))
    samples = [space.sample() for _ in range(4)]
    batch = concatenate(space, samples, create_empty_array(space, 4))
    rows = codec.flatten_batch(batch)
    assert np.array_equal(rows.view(np.uint8)[:, 4:31], batch["b"].reshape(4, 27))
    assert not rows.view(np.uint8)[:, 31].any()
    for row, one in zip(rows, samples, strict=True):
        assert row.tobytes() == codec.flatten(one).tobytes()
    read = codec.read(rows.reshape(2, 2, -1))
    assert read["b"].dtype == np.uint8
    assert np.array_equal(read["b"].reshape(4, 3, 3, 3), batch["b"])
    assert np.array_equal(read["a"].reshape(4, 1), batch["a"])
    assert np.array_equal(read["c"].reshape(4, 2).argmax(-1), batch["c"])


@pytest.mark.parametrize("kind", [np.int64, np.float32, np.uint16, np.float64])
def test_whole_numbers_of_another_type_are_bytes_too(kind):
    codec = ObsCodec(spaces.Box(0, 255, (4, 4, 3), np.uint8))
    picture = np.arange(48).reshape(4, 4, 3) * 5
    packed = codec.flatten(picture.astype(np.uint8))
    assert codec.flatten(picture.astype(kind)).tobytes() == packed.tobytes()


@pytest.mark.parametrize("wrong", [0.5, -1.0, 256.0, np.nan, np.inf])
def test_what_is_no_byte_is_refused(wrong):
    codec = ObsCodec(spaces.Box(0, 255, (4, 4, 3), np.uint8))
    picture = np.zeros((2, 4, 4, 3))
    picture[1, 2, 3, 1] = wrong
    with pytest.raises(
        SpaceError, match=r"of row 1 does not fit.*that uint8 would change.*0 to 255"
    ):
        codec.flatten_batch(picture)


def test_a_picture_of_an_agent_who_has_left_is_black():
    picture = spaces.Box(0, 255, (4, 4, 3), np.uint8)
    codec = ObsCodec.of_agents({"one": picture, "two": picture})
    assert codec.spec.packed == (slice(0, 12), slice(12, 24))
    seen = {"one": np.full((4, 4, 3), 7, np.uint8), "two": np.zeros((4, 4, 3), np.uint8)}
    assert codec.flatten(seen).view(np.uint8).tolist() == [7] * 48 + [0] * 48
