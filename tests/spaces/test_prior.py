"""What spaces say of the size of observations, leaf by leaf."""

import numpy as np
from gymnasium import spaces

from headwise.spaces import ObsCodec


def prior(space):
    found = ObsCodec(space).spec.prior
    assert all(len(x) == ObsCodec(space).spec.size for x in vars(found).values())
    return found


def test_bounds_are_the_middle_and_a_quarter_of_the_width():
    found = prior(spaces.Box(np.float32([-50, 0]), np.float32([50, 360])))
    assert found.learned.all()
    assert found.mean.tolist() == [0.0, 180.0]
    assert found.std.tolist() == [25.0, 90.0]
    assert found.rows.tolist() == [1000.0, 1000.0]


def test_bounds_that_say_nothing():
    low, high = np.float64([0, -np.inf, -1e6, -3.4e38, 4]), np.float64([np.inf, 5, 1e6, 3.4e38, 4])
    found = prior(spaces.Box(low, high, dtype=np.float64))
    assert found.learned.all()
    assert not found.rows.any()
    assert not found.mean.any()
    assert (found.std == 1.0).all()


def test_bytes_are_divided_by_255_and_switches_and_categories_by_nothing():
    space = spaces.Dict(
        image=spaces.Box(0, 255, (2,), np.uint8),
        lamp=spaces.MultiBinary(1),
        flag=spaces.Box(0, 1, (1,), np.bool_),
        gear=spaces.Discrete(3),
        level=spaces.Box(0, 8, (1,), np.uint8),
    )
    codec, found = ObsCodec(space), prior(space)
    told = {
        path: (found.learned[part].tolist(), found.std[part].tolist())
        for path, part in codec.spec.slices.items()
    }
    assert told == {
        "image": ([False] * 2, [255.0] * 2),
        "lamp": ([False], [1.0]),
        "flag": ([False], [1.0]),
        "gear": ([False] * 3, [1.0] * 3),
        "level": ([True], [2.0]),
    }
    assert not found.says_nothing


def test_categories_and_pictures_alone_say_nothing():
    """Nobody scales the words of a picture: whoever reads its bytes divides them."""
    assert prior(spaces.MultiDiscrete([3, 4])).says_nothing
    assert prior(spaces.Box(0, 255, (4, 4, 3), np.uint8)).says_nothing
    assert not prior(spaces.Box(0, 255, (48,), np.uint8)).says_nothing
    assert not prior(spaces.Box(0, 1, (4, 4, 3), np.uint8)).says_nothing
