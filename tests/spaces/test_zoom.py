"""The zoom view: levels there and back, and what it does to masks, conditions and parents."""

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise import ActionSpec, Choice, ConfigError, Forbid, Range, SpaceError, View
from headwise.envs.foreign.codec import EnvCodec
from headwise.factorizations.ar import AR
from headwise.spaces.to_json import spec_from_json, spec_to_json
from headwise.spaces.zoom import parents_with_levels, with_levels

MIXED = ActionSpec.of(kind=Choice(3), x=Range(0, 1), y=Range(-2, 2))


def grid(spec):
    """Every action of heads that choose, one a row."""
    axes = np.meshgrid(*map(np.arange, spec.cardinalities), indexing="ij")
    return np.stack(axes, axis=-1).reshape(-1, spec.num_heads).astype(float)


def test_levels_by_hand():
    view = View(MIXED, "zoom", zoom_levels={"y": 2}, zoom_bins={"x": 2, "y": 3})
    assert view.spec.names == ("kind", "x[0]", "x[1]", "x[2]", "y[0]", "y[1]")
    assert view.spec.cardinalities == (3, 2, 2, 2, 3, 3)
    # x is 8 values from 0 to 1, and 101 in base 2 is 5; y is 9 from -2 to 2, and 21 in base 3 is 7
    np.testing.assert_allclose(view.to_native([1, 1, 0, 1, 2, 1]), [1, 5 / 7, 1.5])
    np.testing.assert_array_equal(view.from_native([1, 5 / 7, 1.5]), [1, 1, 0, 1, 2, 1])
    assert View(MIXED, "zoom").spec.cardinalities == (3, *[5] * 6)


@settings(max_examples=40, deadline=None)
@given(
    levels=st.integers(1, 4),
    bins=st.integers(2, 7),
    low=st.floats(-100, 100),
    width=st.floats(0.01, 100),
    rule=st.sampled_from(["endpoints", "centers"]),
)
def test_every_action_of_the_grid_comes_back(levels, bins, low, width, rule):
    native = ActionSpec.of(kind=Choice(2), aim=Range(low, low + width))
    view = View(native, "zoom", zoom_levels=levels, zoom_bins=bins, rule=rule)
    every = grid(view.spec)
    there = view.to_native(every)
    np.testing.assert_array_equal(view.from_native(there), every)
    count = bins**levels
    aims = there[:count, 1]  # in the order of their digits, so that finer levels are within coarser
    assert (np.diff(aims) > 0).all()
    if rule == "endpoints":
        np.testing.assert_array_equal(aims[[0, -1]], [native.low[1], native.high[1]])
    else:
        middles = low + (np.arange(count) + 0.5) * width / count
        np.testing.assert_allclose(aims, middles, atol=1e-9 * (abs(low) + width))


def test_a_native_action_comes_back_to_within_half_a_bin():
    view = View(MIXED, "zoom")
    native = MIXED.sample(np.random.default_rng(0), 1000)
    again = view.to_native(view.from_native(native))
    np.testing.assert_array_equal(again[:, 0], native[:, 0])
    assert (np.abs(again - native)[:, 1:] <= np.array([1, 4]) / 124).all()


def one_of():
    return spaces.OneOf([spaces.Box(-1, 1, (1,), np.float32), spaces.Discrete(3)])


def test_parameters_of_a_one_of_stay_under_their_alternative():
    codec = EnvCodec(spaces.Box(0, 1, (2,)), one_of(), view="zoom", zoom_levels=2)
    _, *levels, _ = codec.spec.names
    assert [name[-3:] for name in levels] == ["[0]", "[1]"]
    in_use = codec.spec.active([[0, 4, 4, 0], [1, 0, 0, 2]])
    np.testing.assert_array_equal(in_use, [[1, 1, 1, 0], [1, 0, 0, 1]])
    which, value = codec.to_env([0, 4, 4, 0])
    assert which == 0
    np.testing.assert_array_equal(value, [1.0])
    assert codec.to_env([1, 0, 0, 2]) == (1, 2)


def test_masks_are_of_the_heads_that_choose_anyway():
    space = spaces.Dict(a=spaces.Discrete(3), b=spaces.Box(0, 1, ()), c=spaces.Discrete(2))
    codec = EnvCodec(spaces.Box(0, 1, (2,)), space, view="zoom", zoom_levels=2, zoom_bins=4)
    assert codec.spec.names == ("a", "b[0]", "b[1]", "c")
    expected = np.array([[1, 0, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 0, 0]], dtype=bool)
    mask = {"a": np.array([1, 0, 1]), "c": np.array([0, 1])}
    np.testing.assert_array_equal(codec.legal(mask), expected)
    batch = np.empty((2, 4, 4), dtype=bool)
    codec.legal_batch([mask, mask], np.array([True, False]), batch)
    np.testing.assert_array_equal(batch[0], expected)
    np.testing.assert_array_equal(batch[1], codec.all_legal)


def test_constraints_go_along_with_their_heads():
    native = ActionSpec.of(x=Range(0, 1), fire=Choice(2), reload=Choice(2))
    view = View(native.constrained(Forbid(fire=1, reload=1)), "zoom", zoom_levels=2)
    assert view.spec.names == ("x[0]", "x[1]", "fire", "reload")
    (link,) = view.spec.links
    assert {view.spec.names[link.child], *(view.spec.names[p] for p in link.parents)} == {
        "fire",
        "reload",
    }


def test_a_level_sees_those_before_it_and_what_its_head_sees():
    spec = View(MIXED, "zoom", zoom_levels={"x": 3, "y": 2}).spec
    assert parents_with_levels(spec, {"x": ("kind",), "y": ("x",)}) == {
        "x[0]": ("kind",),
        "x[1]": ("kind", "x[0]"),
        "x[2]": ("kind", "x[0]", "x[1]"),
        "y[0]": ("x[0]", "x[1]", "x[2]"),
        "y[1]": ("x[0]", "x[1]", "x[2]", "y[0]"),
    }
    assert parents_with_levels(spec, {"y[1]": ("kind",)})["y[1]"] == ("kind", "y[0]")
    assert with_levels(spec, ("y", "kind")) == ("y[0]", "y[1]", "kind")
    AR(parents={"x": ("kind",), "y": ("x",)}).check(spec)
    AR(order=("y", "x", "kind")).check(spec)
    with pytest.raises(ConfigError, match="go around in a circle"):
        AR(parents={"x": ("y",), "y": ("x",)}).check(spec)
    with pytest.raises(ConfigError, match=r"unknown head.*'z'"):
        AR(parents={"x": ("z",)}).check(spec)


def test_levels_are_kept_in_files():
    spec = View(MIXED, "zoom").spec
    assert spec_from_json(spec_to_json(spec)) == spec
    assert "level" not in spec_to_json(MIXED)["heads"][0]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: View(MIXED, "zoom", zoom_levels=0), SpaceError, "zoom_levels.*got 0"),
        (lambda: View(MIXED, "zoom", zoom_levels=2.5), SpaceError, "zoom_levels.*got 2.5"),
        (lambda: View(MIXED, "zoom", zoom_bins=1), SpaceError, "zoom_bins.*got 1.*from 2 up"),
        (lambda: View(MIXED, "zoom", zoom_bins={"z": 3}), ConfigError, "unknown continuous head"),
        (lambda: View(MIXED, "zoom", zoom_bins={"kind": 3}), ConfigError, "continuous head"),
        (lambda: View(MIXED, "zoom", zoom_levels=9), SpaceError, "9 levels of 5 bins.*65,536"),
        (lambda: View(MIXED, "zoom", zoom_levels=60_000), SpaceError, "60000 levels"),
        (lambda: View(MIXED, "discrete", zoom_levels=2), SpaceError, "ask for the zoom view"),
        (lambda: View(MIXED, "zoom", discrete_heads=1), SpaceError, "zoom view has no number of"),
        (lambda: View(ActionSpec.of(a=Choice(2)), "zoom"), SpaceError, "has none"),
    ],
)
def test_impossible_zooms_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"zoom_bins": 4}, 'zoom_bins without a view.*view="zoom"'),
        ({"zoom_levels": 4}, "zoom_levels without a view"),
        ({"view": "zoom", "bins": 4}, "zoom view has bins of its own.*zoom_bins=4"),
    ],
)
def test_settings_of_another_view_are_refused(said, message):
    with pytest.raises(ConfigError, match=message):
        EnvCodec(spaces.Box(0, 1, (2,)), spaces.Box(0, 1, (2,)), **said)
