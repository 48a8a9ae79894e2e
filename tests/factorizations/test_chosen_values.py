"""V and centred advantages of chosen options, and the best ones; in tensor operations."""

import pytest
import torch

from headwise import ActionSpec, Choice
from headwise.factorizations.parts.layout import NEVER, Layout
from headwise.factorizations.parts.values import (
    best_options,
    chosen_centred,
    chosen_values,
    with_best,
)

LAYOUT = Layout(ActionSpec.of(a=Choice(2), b=Choice(3)))
# One member, two rows; options of head a, then those of head b.
FLAT = torch.tensor([[[1.0, 4.0, 0.0, 5.0, 2.0], [3.0, 3.0, -1.0, -2.0, -3.0]]])
# The same as each head's own network would give it, with a column that no option stands for.
STACKED = torch.tensor(
    [[[[1.0, 4.0, 9.0], [3.0, 3.0, 9.0]], [[0.0, 5.0, 2.0], [-1.0, -2.0, -3.0]]]]
)
ACTION = torch.tensor([[[0.0, 2.0], [1.0, 1.0]]])
# Row 0: 1 - 4 and 2 - 5; row 1: 3 - 3 and -2 - -1.
CENTRED = torch.tensor([[[-3.0, -3.0], [0.0, -1.0]]])
VALUE = torch.tensor([[10.0, 20.0]])
IN_USE = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
LEGAL = torch.tensor([[[[1, 0, 0], [1, 0, 1]], [[0, 1, 0], [0, 1, 1]]]]).bool()


def test_chosen_advantages_by_hand():
    for options in (ACTION, ACTION.long()):
        assert torch.equal(chosen_centred(LAYOUT, FLAT, options), CENTRED)
    assert torch.equal(chosen_centred(LAYOUT, FLAT, ACTION, in_use=IN_USE), CENTRED * IN_USE)
    # Of what is legal: 1 - 1 and 2 - 2; 3 - 3 and -2 - -2.
    assert (chosen_centred(LAYOUT, FLAT, ACTION, LEGAL) == 0).all()
    # An option that is not legal is far below all that are: option 1 of head a in row 0.
    other = chosen_centred(LAYOUT, FLAT, torch.ones_like(ACTION), LEGAL)
    assert other[0, 0, 0] < 0.5 * NEVER


@pytest.mark.parametrize(("stacked", "advantage"), [(False, FLAT), (True, STACKED)])
def test_sums_by_hand(stacked, advantage):
    found = chosen_values(LAYOUT, VALUE, advantage, ACTION, stacked=stacked)
    assert found.tolist() == [[[10.0 - 6.0], [20.0 - 1.0]]]
    found = chosen_values(LAYOUT, VALUE, advantage, ACTION, stacked=stacked, in_use=IN_USE)
    assert found.tolist() == [[[10.0 - 3.0], [20.0 - 1.0]]]


def test_each_by_hand():
    found = chosen_values(LAYOUT, VALUE, FLAT, ACTION, sums=False)
    assert found.tolist() == [[[7.0, 7.0], [20.0, 19.0]]]
    own = torch.tensor([[[10.0, 20.0], [30.0, 40.0]]])  # head by head, then row by row
    found = chosen_values(LAYOUT, own, STACKED, ACTION, stacked=True, sums=False)
    assert found.tolist() == [[[7.0, 27.0], [20.0, 39.0]]]


@pytest.mark.parametrize(("stacked", "advantage"), [(False, FLAT), (True, STACKED)])
def test_best_options_by_hand(stacked, advantage):
    assert best_options(LAYOUT, advantage, stacked=stacked).tolist() == [[[1.0, 1.0], [0.0, 0.0]]]
    legal = best_options(LAYOUT, advantage, LEGAL, stacked=stacked)
    assert legal.tolist() == [[[0.0, 2.0], [1.0, 1.0]]]


def test_head_by_head_is_the_same():
    for legal in (None, LEGAL):
        action = torch.full((1, 2, 2), 7.0)
        for head in (1, 0):
            before = action.clone()
            action = with_best(LAYOUT, head, STACKED[:, head], legal, action)
            assert torch.equal(action[..., 1 - head], before[..., 1 - head])
        assert torch.equal(action, best_options(LAYOUT, STACKED, legal, stacked=True))
