"""Hypothesis strategies for nested Gymnasium spaces, up to four levels deep."""

import numpy as np
from gymnasium import spaces
from hypothesis import strategies as st

names = st.text("abcxyz_", min_size=1, max_size=4)
seeds = st.integers(0, 2**31 - 1)
shapes = st.sampled_from([(), (1,), (3,), (2, 2)])
dtypes = st.sampled_from(["float16", "float32", "float64", "uint8", "int32", "bool"])


@st.composite
def discrete(draw):
    return spaces.Discrete(draw(st.integers(1, 6)), start=draw(st.integers(-3, 3)))


@st.composite
def multi_discrete(draw):
    shape = draw(st.sampled_from([(1,), (3,), (2, 2)]))
    size = int(np.prod(shape))
    counts = draw(st.lists(st.integers(1, 5), min_size=size, max_size=size))
    starts = draw(st.lists(st.integers(-2, 2), min_size=size, max_size=size))
    return spaces.MultiDiscrete(
        np.array(counts).reshape(shape), start=np.array(starts).reshape(shape)
    )


@st.composite
def multi_binary(draw):
    return spaces.MultiBinary(draw(st.sampled_from([1, 3, (2, 2)])))


@st.composite
def box(draw):
    dtype = np.dtype(draw(dtypes))
    shape = draw(shapes)
    size = int(np.prod(shape))
    if dtype.kind == "b":
        return spaces.Box(0, 1, shape, dtype=dtype.type)
    lowest = 0 if dtype.kind == "u" else -20
    low = np.array(draw(st.lists(st.integers(lowest, 20), min_size=size, max_size=size)))
    width = np.array(draw(st.lists(st.sampled_from([1, 2, 7, 200]), min_size=size, max_size=size)))
    if dtype.name == "int32":
        width = width * 100  # some wide enough to be a Range
    low, high = (bound.reshape(shape).astype(dtype) for bound in (low, low + width))
    return spaces.Box(low, high, dtype=dtype.type)


leaves = discrete() | multi_discrete() | multi_binary() | box()


def _branches(children, with_one_of):
    options = [
        st.lists(children, min_size=1, max_size=3).map(spaces.Tuple),
        st.dictionaries(names, children, min_size=1, max_size=3).map(spaces.Dict),
    ]
    if with_one_of:
        options.append(st.lists(children, min_size=1, max_size=3).map(spaces.OneOf))
    return st.one_of(options)


def nested(depth=4, with_one_of=True):
    """Spaces of at most the given depth."""
    if depth == 1:
        return leaves
    inner = nested(depth - 1, with_one_of)
    return leaves | _branches(inner, with_one_of)


def equal(left, right):
    """Whether two samples are the same, to the bit, structure and types included."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(left[k], right[k]) for k in left)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    return np.asarray(left).dtype == np.asarray(right).dtype and np.array_equal(left, right)
