"""Names, shapes and units: what goes in and what comes out, against the numpy codecs."""

from collections import OrderedDict

import numpy as np
import pytest
import torch
from gymnasium import spaces

from headwise import ActionCodec, ObsCodec, SpaceError, View
from headwise.export.actions import NamedActions
from headwise.export.observations import NamedObservations

OBSERVATIONS = spaces.Dict(
    camera=spaces.Box(0, 1, (2, 3)),
    gear=spaces.Discrete(3, start=-1),
    inner=spaces.Dict(grid=spaces.MultiDiscrete([[2, 3], [4, 2]]), on=spaces.MultiBinary(2)),
)
ACTIONS = spaces.Dict(
    OrderedDict(
        arm=spaces.Box(-2, 3, (2, 2)),
        gear=spaces.Discrete(3, start=5),
        buttons=spaces.MultiBinary(2),
        level=spaces.Box(-3, 4, (2,), dtype=np.int32),
        count=spaces.Box(0, 1000, (), dtype=np.int64),
        pixel=spaces.Box(0, 255, (1,), dtype=np.uint8),
        exact=spaces.Box(0, 1, (1,), dtype=np.float64),
        kind=spaces.OneOf([spaces.Box(0, 1, (1,)), spaces.Discrete(2)]),
    )
)


def flat_leaves(batch, kinds):
    """A batch in Gymnasium's form as arrays by path, the OneOf by what each row chose."""
    rows = batch.pop("kind")
    return batch | {
        "kind": np.array([row[0] for row in rows]),
        "kind:0": [row[1] if row[0] == 0 else None for row in rows],
        "kind:1": [row[1] if row[0] == 1 else None for row in rows],
    }


def to_units(spec, heads):
    """Head vectors as a learner has them."""
    unit = 2.0 * (heads - spec.low) / (spec.high - spec.low) - 1.0
    return torch.tensor(np.where(spec.is_choice, heads, unit), dtype=torch.float64)


def test_observations_become_the_vector_of_the_codec():
    codec = ObsCodec(OBSERVATIONS)
    named = NamedObservations(codec)
    assert list(named.leaves) == [
        "observation/camera", "observation/gear", "observation/inner/grid", "observation/inner/on",
    ]  # fmt: skip
    OBSERVATIONS.seed(0)
    samples = [OBSERVATIONS.sample() for _ in range(50)]
    batch = {
        "observation/camera": np.stack([s["camera"] for s in samples]),
        "observation/gear": np.stack([s["gear"] for s in samples]),
        "observation/inner/grid": np.stack([s["inner"]["grid"] for s in samples]),
        "observation/inner/on": np.stack([s["inner"]["on"] for s in samples]).astype(np.float32),
    }
    example = named.example(50)
    tensors = {name: torch.from_numpy(x) for name, x in batch.items()}
    assert {n: (x.shape, x.dtype) for n, x in example.items()} == {
        n: (x.shape, x.dtype) for n, x in tensors.items()
    }
    expected = np.stack([codec.flatten(sample) for sample in samples])
    np.testing.assert_array_equal(named(tensors).numpy(), expected)


def test_lone_observations_and_those_of_a_tuple_have_short_names():
    assert list(NamedObservations(ObsCodec(spaces.Box(0, 1, (2,)))).leaves) == ["observation"]
    pair = spaces.Tuple([spaces.Box(0, 1, (2,)), spaces.Discrete(2)])
    assert list(NamedObservations(ObsCodec(pair)).leaves) == ["observation[0]", "observation[1]"]


def test_an_option_out_of_range_is_no_option():
    named = NamedObservations(ObsCodec(spaces.MultiDiscrete([2, 3])))
    got = named({"observation": torch.tensor([[1, 2], [2, -1]])})
    assert got.tolist() == [[0, 1, 0, 0, 1], [0, 0, 0, 0, 0]]


def test_actions_come_out_in_the_units_types_and_structure_of_the_space():
    codec = ActionCodec(ACTIONS)
    named = NamedActions(codec.spec, codec)
    heads = codec.spec.sample(np.random.default_rng(0), 300)
    got = named(to_units(codec.spec, heads))
    expected = flat_leaves(codec.to_env_batch(heads), got)
    assert list(got) == [
        "arm", "gear", "buttons", "level", "count", "pixel", "exact", "kind", "kind:0", "kind:1",
    ]  # fmt: skip
    for name in list(got)[:8]:
        assert got[name].numpy().dtype == expected[name].dtype, name
        np.testing.assert_allclose(got[name].numpy(), expected[name], rtol=1e-6, atol=1e-7)
    for name in ("kind:0", "kind:1"):
        for ours, theirs in zip(got[name].numpy(), expected[name], strict=True):
            assert theirs is None or np.allclose(ours, theirs)


def test_elements_with_one_value_are_filled_in():
    low = np.array([[-1, 3, 0], [2, -4, 7]], np.float32)
    wide = np.array([[2, 0, 0], [0, 8, 0]], np.float32)
    boxes = {"some": (low, low + wide), "all": (low, low)}
    parts = {name: spaces.Box(*x) for name, x in boxes.items()}
    space = spaces.Dict(**parts, gear=spaces.Discrete(3))
    codec = ActionCodec(space)
    heads = codec.spec.sample(np.random.default_rng(0), 50)
    got = NamedActions(codec.spec, codec)(to_units(codec.spec, heads))
    expected = codec.to_env_batch(heads)
    assert got["all"].shape == (50, 2, 3)
    for name, values in got.items():
        np.testing.assert_allclose(values.numpy(), expected[name], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", ["discrete", "hybrid", "continuous"])
def test_views_are_undone_inside(kind):
    space = spaces.Dict(OrderedDict(grip=spaces.Discrete(3), arm=spaces.Box(-2, 3, (2,))))
    codec = ActionCodec(space)
    view = View(codec.spec, kind, bins=5)
    named = NamedActions(view.spec, codec, view)
    heads = view.spec.sample(np.random.default_rng(1), 500)
    got = named(to_units(view.spec, heads))
    expected = codec.to_env_batch(view.to_native(heads))
    np.testing.assert_array_equal(got["grip"].numpy(), expected["grip"])
    np.testing.assert_allclose(got["arm"].numpy(), expected["arm"], atol=1e-6)


def test_units_at_and_beyond_the_ends_stay_within_the_bounds():
    codec = ActionCodec(spaces.Box(-2, 3, (1,)))
    units = torch.tensor([[-1.0], [0.0], [1.0], [1.0000001]])
    assert NamedActions(codec.spec, codec)(units)["action"].tolist() == [[-2], [0.5], [3], [3]]


def test_a_space_with_other_heads_is_refused():
    spec = ActionCodec(spaces.Discrete(3)).spec
    with pytest.raises(SpaceError, match="has other heads; got action: Choice"):
        NamedActions(spec, ActionCodec(spaces.Discrete(4)))
