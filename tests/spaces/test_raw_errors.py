"""Heads, specs and codecs made or asked in ways that once ended in an error of NumPy or Python."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from headwise.errors import HeadwiseError, SpaceError
from headwise.spaces import ActionCodec, ActionSpec, Choice, ObsCodec, Range, View

SPEC = ActionSpec(("a", "b"), (Choice(3), Range(0, 1)))
GRADIENTS = torch.zeros(2, requires_grad=True)


@pytest.mark.parametrize(
    "bad",
    [("a", "b"), (None, 1), ([0], [1]), (np.zeros(2), np.ones(2)), (0, 10**400), (np.nan, 1)],
)
def test_a_range_needs_two_numbers(bad):
    with pytest.raises(SpaceError, match="two finite bounds"):
        Range(*bad)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("a", Choice(2)), "names must be a list"),
        ((["a"], None), "heads must be a list"),
        ((["a"], Choice(2)), r"heads must be a list.*ActionSpec\.of\("),
        ((["a"], [Choice(2)], None), "conditions must be a list"),
        ((["a", "b"], [Choice(2), Range(0, 1)], [None, 5]), "condition of head 'b' .*; got 5"),
    ],
)
def test_a_spec_is_made_of_lists(given, said):
    with pytest.raises(SpaceError, match=said):
        ActionSpec(*given)


@pytest.mark.parametrize("bad", [GRADIENTS, [[1, 0.5], [1]], None, "ab"])
def test_head_values_are_numbers(bad):
    with pytest.raises(SpaceError, match="head values must be numbers"):
        SPEC.check(bad)


@pytest.mark.parametrize("bad", [np.array(["discrete", "hybrid"]), ["discrete"], 5, None])
def test_a_view_is_a_word(bad):
    with pytest.raises(HeadwiseError, match="unknown view"):
        View(SPEC, bad)


def test_a_codec_refuses_what_is_no_array():
    codec = ActionCodec(gym.spaces.Box(-1, 1, (2,)))
    with pytest.raises(SpaceError, match="numbers"):
        codec.to_env(GRADIENTS)
    with pytest.raises(SpaceError, match="an array of numbers"):
        codec.to_heads(GRADIENTS)
    with pytest.raises(SpaceError, match="of the wrong type"):
        ObsCodec(gym.spaces.Box(-1, 1, (2,))).flatten(GRADIENTS)


@pytest.mark.parametrize("bounds", [np.zeros((2, 2)), np.array([-1, 1]), 5, {"x": 1, 5: 2}])
def test_bounds_without_a_box(bounds):
    with pytest.raises(SpaceError, match=r"(?s)for places that are no Box; .*no Box"):
        ActionCodec(gym.spaces.Discrete(2), bounds=bounds)


def test_more_options_than_a_network_could_have():
    with pytest.raises(SpaceError, match=r"'action' cannot be a head: .* to 16,777,216"):
        ActionCodec(gym.spaces.Discrete(10**12))
    with pytest.raises(SpaceError, match=r"too many options .* got 1,000,000,000,000; .*a Box"):
        ObsCodec(gym.spaces.Discrete(10**12))
