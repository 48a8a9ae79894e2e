"""Rows of words as leaves in the shapes of their space."""

import numpy as np
import torch
from gymnasium import spaces

import headwise as hw
from headwise.nets.preprocess import leaves_of, vector_of
from headwise.spaces.observation import ObsLeaf

SPACE = spaces.Dict(
    map=spaces.Box(-1, 1, (2, 3)), gear=spaces.Discrete(4), speed=spaces.Box(0, 9, ())
)


def test_numbers_have_the_shape_of_their_leaf_and_categories_are_one_hot():
    codec = hw.ObsCodec(SPACE)
    seen = [SPACE.sample() for _ in range(5)]
    rows = torch.tensor(np.stack([codec.flatten(one) for one in seen]))
    found = leaves_of(rows[None], codec.spec)
    assert {name: x.shape[1:] for name, x in found.items()} == {
        "gear": (5, 4), "map": (5, 2, 3), "speed": (5,)
    }  # fmt: skip
    for i, one in enumerate(seen):
        assert np.array_equal(found["map"][0, i], one["map"])
        assert found["gear"][0, i].argmax() == one["gear"]
        assert found["speed"][0, i] == one["speed"]


def test_a_packed_leaf_is_its_bytes():
    picture = np.arange(30, dtype=np.uint8).reshape(2, 5, 3)
    words = np.concatenate([picture.ravel(), np.zeros(2, np.uint8)]).view(np.float32)
    leaf = ObsLeaf("eye", picture.shape, is_packed=True)
    spec = hw.ObsSpec(9, {"x": slice(0, 1), "eye": slice(1, 9)}, leaves=(ObsLeaf("x", ()), leaf))
    rows = torch.tensor(np.concatenate([[0.5], words]).astype(np.float32))
    found = leaves_of(rows.expand(3, 4, -1), spec)
    assert found["eye"].dtype == torch.uint8
    assert np.array_equal(found["eye"][2, 3], picture)
    assert found["x"].shape == (3, 4)


def seen(rows=6, seed=0):
    """A space with pictures between numbers, samples of it, and their rows."""
    space = spaces.Dict(
        deep=spaces.Tuple([spaces.Box(0, 255, (5, 3, 1), np.uint8), spaces.Box(-1, 1, (2,))]),
        eye=spaces.Box(0, 255, (16, 17), np.uint8),
        gear=spaces.Discrete(4),
        high=spaces.Box(0, 255, (3, 3, 3), np.uint8),
    )
    space.seed(seed)
    samples = [space.sample() for _ in range(rows)]
    codec = hw.ObsCodec(space)
    return codec, samples, torch.tensor(np.stack([codec.flatten(one) for one in samples]))


def test_packed_leaves_come_back_to_the_byte_wherever_they_are():
    codec, samples, rows = seen()
    found = leaves_of(rows.view(2, 3, -1), codec.spec)
    for i, one in enumerate(samples):
        at = divmod(i, 3)
        assert np.array_equal(found["deep[0]"][at], one["deep"][0])
        assert np.array_equal(found["deep[1]"][at], one["deep"][1])
        assert np.array_equal(found["eye"][at], one["eye"])
        assert np.array_equal(found["high"][at], one["high"])
        assert found["gear"][at].argmax() == one["gear"]
    assert {name for name, x in found.items() if x.dtype == torch.uint8} == {
        "deep[0]", "eye", "high"
    }  # fmt: skip


def test_a_vector_has_a_number_for_each_byte_and_leaves_give_the_same():
    codec, samples, rows = seen()
    vector = vector_of(rows, codec.spec)
    assert vector.shape == (6, codec.spec.vector_size) == (6, 15 + 2 + 272 + 4 + 27)
    assert torch.equal(vector, vector_of(leaves_of(rows, codec.spec), codec.spec))
    for got, one in zip(vector, samples, strict=True):
        parts = [one["deep"][0] / 255, one["deep"][1], one["eye"] / 255, np.eye(4)[one["gear"]]]
        expected = np.concatenate([x.ravel() for x in [*parts, one["high"] / 255]])
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_rows_of_numbers_are_their_own_vector():
    rows = torch.rand(2, 7)
    assert vector_of(rows, hw.ObsSpec.flat(7)) is rows
