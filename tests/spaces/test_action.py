import numpy as np
import pytest

from headwise import ActionSpec, Choice, Range, SpaceError
from headwise.spaces import Condition

SPEC = ActionSpec.of(grip=Choice(3), wrist=Range(-1, 1), light=Choice(2))


def test_shape_numbers():
    assert SPEC.num_heads == 3
    assert SPEC.cardinalities == (3, 0, 2)
    assert SPEC.max_options == 3
    assert SPEC.joint_size is None
    assert (SPEC.num_choices, SPEC.num_ranges) == (2, 1)
    np.testing.assert_array_equal(SPEC.option_mask, [[1, 1, 1], [0, 0, 0], [1, 1, 0]])
    np.testing.assert_array_equal(SPEC.low, [0, -1, 0])
    np.testing.assert_array_equal(SPEC.high, [2, 1, 1])


def test_joint_size_is_exact_however_large():
    spec = ActionSpec.of([Choice(11)] * 30)
    assert spec.joint_size == 11**30
    assert spec.names[:2] == ("head_0", "head_1")


def test_equal_specs_are_equal():
    assert ActionSpec.of(a=Choice(2)) == ActionSpec.of({"a": Choice(2)})
    assert ActionSpec.of(a=Choice(2)) != ActionSpec.of(a=Choice(3))


def test_str_reads_like_the_action():
    assert str(SPEC) == "grip: Choice(3), wrist: Range(-1, 1), light: Choice(2)"


def test_conditions_are_followed_through_levels():
    # head 0 chooses; head 1 counts under option 1; head 2 counts while head 1 counts and is 0
    spec = ActionSpec(
        ("kind", "sub", "dial"),
        (Choice(2), Choice(2), Range(0, 4)),
        (None, Condition(0, 1, 2), Condition(1, 0, 1)),
    )
    actions = np.array([[0, 0, 1.0], [1, 0, 1.0], [1, 1, 1.0]])
    expected = [[1, 0, 0], [1, 1, 1], [1, 1, 0]]
    np.testing.assert_array_equal(spec.active(actions), np.array(expected, dtype=bool))
    np.testing.assert_array_equal(
        spec.canonical([[0, 1, 3.0], [1, 1, 3.0]]), [[0, 0, 2.0], [1, 1, 2.0]]
    )
    assert spec.is_conditional
    assert not SPEC.is_conditional


def test_samples_fill_the_spec():
    rng = np.random.default_rng(0)
    values = SPEC.sample(rng, 2000)
    SPEC.check(values)
    np.testing.assert_allclose(np.bincount(values[:, 0].astype(int)) / 2000, 1 / 3, atol=0.04)
    assert values[:, 1].min() < -0.98
    assert values[:, 1].max() > 0.98
    assert SPEC.sample(rng).shape == (3,)


@pytest.mark.parametrize("head", [0, 1, 2])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1.5, 99])
def test_check_names_the_head_and_the_value(head, bad):
    actions = np.zeros((4, 3))
    actions[2, head] = bad
    with pytest.raises(SpaceError, match=f"{SPEC.names[head]!r} of action \\(2,\\)") as error:
        SPEC.check(actions)
    assert str(float(bad)) in str(error.value)


def test_check_wants_whole_options_and_the_right_shape():
    with pytest.raises(SpaceError, match=r"'grip'.*0\.5.*whole numbers from 0 to 2"):
        SPEC.check([0.5, 0, 0])
    with pytest.raises(SpaceError, match="grip, wrist, light"):
        SPEC.check([0, 0])
    with pytest.raises(SpaceError, match="must be numbers"):
        SPEC.check(["a", "b", "c"])


def test_a_float32_rounding_of_a_bound_is_that_bound():
    spec = ActionSpec.of(x=Range(-0.3, 0.3))
    rounded = np.float32(0.3)
    assert float(rounded) > 0.3
    assert spec.check(np.array([rounded], dtype=np.float32))[0] == 0.3
    with pytest.raises(SpaceError):
        spec.check([float(rounded)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Choice(0), "from 1 up"),
        (lambda: Choice(2.5), "got 2.5"),
        (lambda: Choice(True), "got True"),
        (lambda: Range(1, 1), "low < high"),
        (lambda: Range(2, 1), r"\[2, 1\]"),
        (lambda: Range(0, np.nan), "nan"),
        (lambda: Range(-np.inf, 0), "inf"),
        (lambda: Range(-1.7e308, 1.7e308), "finite distance"),
        (lambda: ActionSpec.of(), "at least one head"),
        (lambda: ActionSpec(("a", "a"), (Choice(2), Choice(2))), r"share a name; got \['a'\]"),
        (lambda: ActionSpec(("a",), (Choice(2), Choice(2))), "equally many"),
        (lambda: ActionSpec(("a",), ("b",)), "unknown kind"),
        (lambda: ActionSpec(("a",), (Choice(2),), (Condition(0, 0, 1),)), "an earlier head"),
    ],
)
def test_impossible_specs_are_refused(make, message):
    with pytest.raises(SpaceError, match=message):
        make()


def test_shared_arrays_cannot_be_changed_by_accident():
    with pytest.raises(ValueError, match="read-only"):
        SPEC.low[0] = 3


def test_equal_heads_of_an_array_are_told_as_one():
    names = [*(f"bus[{i}]" for i in range(57)), "redispatch[0]", "redispatch[1]", "redispatch[5]"]
    heads = [*[Choice(2)] * 57, Range(-5, 5), Range(-10, 10), Range(-15, 15)]
    told = "bus[0..56]: Choice(2), redispatch[0]: Range(-5, 5), redispatch[1]: Range(-10, 10)"
    assert str(ActionSpec(tuple(names), tuple(heads))) == f"{told}, redispatch[5]: Range(-15, 15)"


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("a[0] a[1] a[2]", "a[0] a[1] a[2]"),
        ("a[0] a[1] a[2] a[3]", "a[0..3]"),
        ("a[2] a[3] a[4] a[5] a[7]", "a[2..5] a[7]"),
        ("a[0] b[1] a[2] b[3]", "a[0] b[1] a[2] b[3]"),
        ("a[x] a[y] b c d e", "a[x] a[y] b c d e"),
    ],
)
def test_only_neighbors_are_told_together(names, told):
    spec = ActionSpec(tuple(names.split()), (Choice(2),) * len(names.split()))
    assert str(spec) == ", ".join(f"{name}: Choice(2)" for name in told.split())
