"""Epsilon-greedy choice: how often, and among what."""

import pytest
import torch
from learners import as_buffer

from headwise import ActionSpec, Choice
from headwise.algorithms.dqn.exploration import EpsilonGreedy
from headwise.heads.layout import Layout
from headwise.ops import Buffer, explore
from headwise.population import Keys

LAYOUT = Layout(ActionSpec.of(a=Choice(2), b=Choice(4)))
TABLE = LAYOUT.table(LAYOUT.side_by_side())


def chosen(best, coins, options, epsilon=1.0, mask=None):
    """What one member does in copies of the environment with these uniform numbers."""
    given = as_buffer(torch.tensor([best])), as_buffer(torch.tensor([coins + options]))
    often, out = Buffer(1), Buffer(1, len(best), 2)
    often.tensor.fill_(epsilon)
    allowed = None if mask is None else as_buffer(torch.tensor([mask] * len(best)).float()[None])
    explore(*given, often, allowed, table=TABLE, out=out)
    return out.tensor[0, 0].tolist()


def test_the_schedule_by_hand():
    start, end = torch.tensor([0.9, 0.5]), torch.tensor([0.1, 0.5])
    one, clock = EpsilonGreedy(LAYOUT, Keys((0, 1)), 2, start, end), Buffer(2, 1, 2)
    one.span = 100.0
    for ticks, expected in ((0, 0.9), (25, 0.7), (100, 0.1), (1025, 0.1)):
        clock.longs.fill_(ticks)
        assert one.epsilon(clock).tolist() == pytest.approx([expected, 0.5])


def test_a_head_explores_if_its_coin_is_below_epsilon():
    best, nothing = [[1.0, 3.0], [1.0, 3.0]], [[0.0, 0.0], [0.0, 0.0]]
    found = chosen(best, [[0.4, 0.6], [0.5, 0.4]], nothing, epsilon=0.5)
    assert found == [[0.0, 3.0], [1.0, 0.0]]


def test_all_options_are_as_likely():
    numbers = [[0.0, 0.0], [0.49, 0.24], [0.5, 0.25], [0.51, 0.5], [0.99, 0.74], [0.99, 0.75]]
    found = chosen([[-1.0, -1.0]] * 6, [[0.0, 0.0]] * 6, numbers)
    assert found == [[0, 0], [0, 0], [1, 1], [1, 2], [1, 2], [1, 3]]


def test_only_legal_options_are_taken():
    mask, numbers = [0, 1, 1, 0, 0, 1], [[0.0, 0.49], [0.5, 0.5], [0.99, 0.99]]
    found = chosen([[-1.0, -1.0]] * 3, [[0.0, 0.0]] * 3, numbers, mask=mask)
    assert found == [[1, 0], [1, 3], [1, 3]]
