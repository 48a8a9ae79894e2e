"""The action as a learner has it: discrete heads first, masks side by side, and the way back."""

import re
from pathlib import Path

import pytest
import torch

from headwise import ActionSpec, Choice, Range
from headwise.heads.layout import Layout
from headwise.ops import NEVER, When
from headwise.spaces import Condition

HEADERS = Path(__file__).parents[2] / "cpp/ops"
MIXED = ActionSpec.of(x=Range(-1, 1), a=Choice(4), y=Range(0, 1), b=Choice(2, ordered=True))
TREE = ActionSpec(  # a number decides on an option, and that on another number
    ("x", "a", "y", "b"),
    (Range(-1, 1), Choice(4), Range(0, 1), Choice(2)),
    (None, Condition(0, -0.5, 2.0), Condition(1, 1, 3), Condition(1, 0, 2)),
)


def test_compiled_operations_have_the_same_number_for_what_may_not_be_chosen():
    texts = [path.read_text() for path in HEADERS.glob("*.h")]
    numbers = {float(found) for text in texts for found in re.findall(r"= (-\d+e\d+)f", text)}
    assert numbers == {NEVER}


def test_discrete_heads_come_first_and_go_back():
    layout = Layout(MIXED)
    assert layout.names == ("a", "b", "x", "y")
    assert (layout.options, layout.sizes, layout.total) == ((4, 2, 0, 0), (4, 2), 6)
    assert (layout.num_discrete, layout.num_continuous) == (2, 2)
    assert layout.ordered == (False, True, False, False)
    action = torch.tensor([[0.5, 3.0, -0.25, 1.0]])
    assert layout.to_learner(action).tolist() == [[3.0, 1.0, 0.5, -0.25]]
    assert torch.equal(layout.from_learner(layout.to_learner(action)), action)
    assert layout.heads_in_order(torch.tensor([1.0, 2.0, 3.0, 4.0])).tolist() == [3, 1, 4, 2]


def test_an_action_in_order_is_not_copied():
    layout, action = Layout(ActionSpec.of(a=Choice(2), x=Range(-1, 1))), torch.rand(3, 2)
    assert layout.to_learner(action) is action
    assert layout.from_learner(action) is action


def test_masks_have_the_options_that_exist_side_by_side():
    layout = Layout(MIXED)
    legal = torch.tensor([[[1, 0, 1, 1], [0, 1, 1, 1]]]).bool()  # the last two of `b` do not exist
    assert layout.mask(legal).tolist() == [[1, 0, 1, 1, 0, 1]]
    assert layout.mask(None) is None
    assert layout.side_by_side(start=3) == [(0, 3), (0, 7)]


def test_conditions_follow_the_heads_to_their_places():
    layout = Layout(TREE)  # a, b, x, y
    assert layout.conditions == (When(2, -0.5, 2.0), When(0, 0, 2), None, When(0, 1, 3))
    every = layout.table([(0, 0)] * 4)
    action = torch.tensor([[1.0, 0.0, 0.0, 0.3], [1.0, 0.0, -0.9, 0.3], [3.0, 1.0, 0.9, 0.3]])
    expected = TREE.active(layout.from_learner(action).double().numpy())
    assert every.in_use(action).tolist() == layout.to_learner(torch.as_tensor(expected)).tolist()
    assert every.in_use(action).tolist() == [[1, 1, 1, 1], [0, 0, 1, 0], [1, 0, 1, 0]]


@pytest.mark.parametrize(("which", "expected"), [
    ("discrete", (None, When(0, 0, 2))), ("continuous", (None, None)),
])  # fmt: skip
def test_a_table_of_one_kind_has_its_own_conditions_only(which, expected):
    table = Layout(TREE).table([(0, 0)] * 2, which)
    assert table.conditions == expected
    assert not Layout(TREE).table([(0, 0)] * 2, which, conditional=False).is_conditional


def test_padding_options_and_the_way_back():
    table = Layout(MIXED).table([(0, 0), (0, 4), (0, 6), (0, 7)])
    flat = torch.arange(6.0)
    padded = table.pad(flat)
    assert padded[0].tolist() == [0, 1, 2, 3]
    assert padded[1, :2].tolist() == [4, 5]
    assert table.exists.tolist() == [[True] * 4, [True, True, False, False]]
    assert torch.equal(table.flatten(padded), flat)
    masked = table.masked(padded, torch.tensor([1.0, 0, 0, 1, 1, 0]))
    assert (masked == NEVER).tolist() == [[False, True, True, False], [False, True, True, True]]


def test_a_head_comes_after_the_one_that_it_depends_on():
    layout = Layout(TREE)
    order = layout.table([(0, 0)] * 4).order
    assert sorted(order) == [0, 1, 2, 3]
    for head, condition in enumerate(layout.conditions):
        if condition is not None:
            assert order.index(condition.head) < order.index(head)
