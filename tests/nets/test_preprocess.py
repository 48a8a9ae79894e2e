"""Rows of words as leaves in the shapes of their space."""

import numpy as np
import torch
from gymnasium import spaces

import headwise as hw
from headwise.nets.preprocess import leaves_of
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
