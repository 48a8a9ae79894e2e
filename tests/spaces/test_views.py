import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise import ActionSpec, Choice, ConfigError, Range, SpaceError, View
from headwise.spaces import Condition, bin_index, bin_values

MIXED = ActionSpec.of(kind=Choice(3), x=Range(0, 1), y=Range(-2, 2))


def test_bins_by_hand():
    np.testing.assert_allclose(bin_values(0, 1, 3), [0, 0.5, 1])
    np.testing.assert_allclose(bin_values(0, 1, 2, "centers"), [0.25, 0.75])
    # four bins of width 0.5 on [-1, 1]; the upper end belongs to the last bin
    np.testing.assert_array_equal(
        bin_index([-1, -0.51, -0.5, 0.0, 0.99, 1.0], -1, 1, 4), [0, 0, 1, 2, 3, 3]
    )


@given(
    bins=st.integers(2, 200),
    low=st.floats(-100, 100),
    width=st.floats(0.01, 100),
    rule=st.sampled_from(["endpoints", "centers"]),
)
def test_a_bin_falls_into_itself(bins, low, width, rule):
    values = bin_values(low, low + width, bins, rule)
    np.testing.assert_array_equal(bin_index(values, low, low + width, bins), np.arange(bins))


def test_discrete_view():
    view = View(MIXED, "discrete", bins={"x": 10, "y": 3})
    assert view.spec.cardinalities == (3, 10, 3)
    assert view.spec.heads[1] == Choice(10, ordered=True)
    np.testing.assert_allclose(view.to_native([2, 9, 1]), [2, 1.0, 0.0])
    np.testing.assert_array_equal(view.from_native([2, 0.35, 2.0]), [2, 3, 2])
    assert View(MIXED, "discrete").spec.cardinalities == (3, 11, 11)


def test_continuous_view_drives_options_by_the_floor_rule():
    view = View(MIXED, "continuous")
    assert view.spec.heads == (Range(-1, 1), Range(0, 1), Range(-2, 2))
    u = np.array([-1, -0.34, -0.33, 0.33, 0.34, 1])
    native = view.to_native(np.stack([u, np.zeros(6), np.ones(6)], axis=1))
    np.testing.assert_array_equal(native[:, 0], [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(native[:, 1:], [[0, 1]] * 6)


def test_hybrid_view():
    assert View(MIXED, "hybrid").spec == MIXED
    two = View(MIXED, "hybrid", discrete_heads=2, bins=5)
    assert two.spec.heads == (Choice(3), Choice(5, ordered=True), Range(-2, 2))
    dials = ActionSpec.of([Range(-1, 1)] * 4)
    assert View(dials, "hybrid", bins=3).spec.cardinalities == (3, 3, 0, 0)
    buttons = ActionSpec.of([Choice(4)] * 2)
    assert View(buttons, "hybrid").spec.heads == (Choice(4), Range(-1, 1))


@pytest.mark.parametrize("kind", ["discrete", "hybrid", "continuous"])
def test_every_view_reaches_back(kind):
    view = View(MIXED, kind, bins=7)
    actions = view.spec.sample(np.random.default_rng(0), 200)
    native = view.to_native(actions)
    again = view.to_native(view.from_native(native))
    np.testing.assert_allclose(again, native)
    np.testing.assert_array_equal(again[:, 0], native[:, 0])


def test_conditions_follow_their_head_into_the_continuous_view():
    native = ActionSpec(
        ("kind", "a", "b"),
        (Choice(3), Range(0, 1), Range(0, 1)),
        (None, Condition(0, 0, 1), Condition(0, 2, 3)),
    )
    view = View(native, "continuous")
    actions = view.spec.sample(np.random.default_rng(1), 500)
    actions[:2, 0] = [-1, 1]
    np.testing.assert_array_equal(view.spec.active(actions), native.active(view.to_native(actions)))


@pytest.mark.parametrize("options", range(2, 60))
def test_at_the_edges_of_options_too(options):
    """The number 2 k / n - 1 rounds to either side of option k; so may those next to it."""
    names = tuple(f"head_{i}" for i in range(options + 1))
    conditions = (None, *(Condition(0, k, k + 1) for k in range(options)))
    native = ActionSpec(names, (Choice(options), *[Range(0, 1)] * options), conditions)
    view = View(native, "continuous")
    edges = 2.0 * np.arange(options + 1) / options - 1.0
    near = [edges, edges.astype(np.float32), *(np.nextafter(edges, end) for end in (-2, 2))]
    actions = np.zeros((4 * (options + 1), options + 1))
    actions[:, 0] = np.concatenate(near).clip(-1.0, 1.0)
    np.testing.assert_array_equal(view.spec.active(actions), native.active(view.to_native(actions)))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: View(MIXED, "discrite"), ConfigError, "Did you mean 'discrete'"),
        (lambda: View(MIXED, "discrete", rule="middle"), ConfigError, "unknown bin rule"),
        (lambda: View(MIXED, "discrete", bins=0), SpaceError, "needs a number of bins; got 0"),
        (lambda: View(MIXED, "discrete", bins=1), SpaceError, "2 bins or more"),
        (lambda: View(MIXED, "discrete", bins={"z": 3}), ConfigError, "unknown head"),
        (lambda: View(MIXED, "discrete", discrete_heads=1), SpaceError, "ask for the hybrid"),
        (lambda: View(MIXED, "hybrid", discrete_heads=3), SpaceError, "allowed: 1 to 2"),
        (lambda: View(MIXED, "hybrid", discrete_heads=0), SpaceError, "got 0 discrete"),
        (lambda: View(ActionSpec.of(a=Range(0, 1)), "hybrid"), SpaceError, "one head"),
    ],
)
def test_impossible_views_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_actions_of_a_view_are_checked():
    with pytest.raises(SpaceError, match="'x' is out of range; got 11"):
        View(MIXED, "discrete").to_native([0, 11, 0])
    with pytest.raises(SpaceError, match="'kind' is out of range; got 3"):
        View(MIXED, "discrete").from_native([3, 0, 0])
