"""Epsilon-greedy choice: how often, and among what."""

import pytest
import torch

from headwise import ActionSpec, Choice
from headwise.algorithms.exploring import Exploring
from headwise.factorizations.parts.layout import Layout

LAYOUT = Layout(ActionSpec.of(a=Choice(2), b=Choice(4)))


def exploring(start=1.0, end=1.0, span=0.0):
    return Exploring(LAYOUT, torch.tensor([start]), torch.tensor([end]), span)


def uniforms(coins, options):
    return torch.tensor([[coins, options]])


def test_the_schedule_by_hand():
    one = exploring(0.9, 0.1, 100.0)
    assert one.epsilon.item() == pytest.approx(0.9)
    one.steps.advance(25)
    assert one.epsilon.item() == pytest.approx(0.7)  # a quarter of the way from 0.9 to 0.1
    one.steps.advance(1000)
    assert one.epsilon.item() == pytest.approx(0.1)


def test_a_head_explores_if_its_coin_is_below_epsilon():
    one = exploring(0.5, 0.5)
    best = torch.tensor([[[1.0, 3.0], [1.0, 3.0]]])
    uniform = uniforms([[0.4, 0.6], [0.5, 0.4]], [[0.0, 0.0], [0.0, 0.0]])
    assert one.choose(best, uniform).tolist() == [[[0.0, 3.0], [1.0, 0.0]]]


def test_all_options_are_as_likely():
    numbers = [[0.0, 0.0], [0.49, 0.24], [0.5, 0.25], [0.51, 0.5], [0.99, 0.74], [0.99, 0.75]]
    best = torch.full((1, 6, 2), -1.0)
    found = exploring().choose(best, uniforms([[0.0, 0.0]] * 6, numbers))
    assert found.tolist() == [[[0, 0], [0, 0], [1, 1], [1, 2], [1, 2], [1, 3]]]


def test_only_legal_options_are_taken():
    legal = torch.tensor([[[[0, 1, 0, 0], [1, 0, 0, 1]]]]).bool().expand(1, 3, 2, 4)
    best = torch.full((1, 3, 2), -1.0)
    numbers = uniforms([[0.0, 0.0]] * 3, [[0.0, 0.49], [0.5, 0.5], [0.99, 0.99]])
    assert exploring().choose(best, numbers, legal).tolist() == [[[1, 0], [1, 3], [1, 3]]]


def test_the_chances_that_kernels_use_are_those_of_the_tensor_operations():
    one = exploring()
    assert torch.equal(one._chances[2], one._equal[0].exp()[0])
    assert torch.equal(one._chances[4], one._equal[1].exp()[0])
    torch.testing.assert_close(one._chances[1:], torch.tensor([1.0, 1 / 2, 1 / 3, 1 / 4]))
