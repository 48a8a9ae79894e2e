"""All joint actions in a row, and when there are too many of them."""

import pytest
import torch
from cases import CONTINUOUS, DISCRETE, HYBRID, ONE_OF, all_actions

from headwise import ActionSpec, Choice, ConfigError, View
from headwise.factorizations.joint import Joint
from headwise.factorizations.parts.joint_actions import JointActions
from headwise.factorizations.parts.layout import Layout


def test_numbers_and_options_are_each_others_inverse():
    joint = JointActions(Layout(DISCRETE))
    actions = all_actions(DISCRETE)
    numbers = torch.arange(12.0).unsqueeze(-1)
    assert torch.equal(joint.to_joint(actions), numbers)  # the last head turns fastest
    assert torch.equal(joint.to_heads(numbers), actions)
    assert joint.to_joint(torch.tensor([1.0, 2.0, 0.0])).item() == 1 * 6 + 2 * 2 + 0


def test_the_same_action_twice_is_one_action():
    """3 x 4 x 2 x 2 rows, but `run` has 4, `jump` 1 + 2 and the third alternative 1: 8 actions."""
    joint = JointActions(Layout(ONE_OF))
    legal = joint.legal(None)
    assert legal.shape == (1, 1, 1, 48)
    assert legal.sum() == 8
    noisy = torch.tensor([2.0, 3.0, 1.0, 1.0])  # nothing but the alternative is in use
    assert joint.to_joint(noisy).item() == joint.to_joint(torch.tensor([2.0, 0, 0, 0])).item()


def test_masks_of_options_become_masks_of_joint_actions():
    joint = JointActions(Layout(DISCRETE))
    legal = torch.ones(1, 1, 3, 3, dtype=torch.bool)
    legal[..., 0, 1] = False  # a = 1 is gone, and c = 0
    legal[..., 2, 0] = False
    allowed = joint.legal(legal)[0, 0, 0]
    actions = all_actions(DISCRETE)
    assert torch.equal(allowed, (actions[:, 0] == 0) & (actions[:, 2] == 1))


def test_what_is_legal_in_a_head_does_not_matter_to_actions_that_do_not_use_it():
    """With `run` 1 alone, and a `jump` that is 1: those, two spins, and the third kind are left."""
    joint = JointActions(Layout(ONE_OF))
    legal = torch.ones(1, 1, 4, 4, dtype=torch.bool)
    legal[..., 1, :] = torch.tensor([False, True, False, False])
    legal[..., 2, 0] = False
    allowed = joint.to_heads(torch.nonzero(joint.legal(legal)[0, 0, 0]).float())
    assert allowed.tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1], [2, 0, 0, 0]]


@pytest.mark.parametrize(
    ("spec", "settings", "message"),
    [
        (HYBRID, {}, r"some heads are Ranges; got .*Give a number of bins, or use .*'ar'"),
        (CONTINUOUS, {}, "joint factorization needs options"),
        (
            ActionSpec.of([Choice(100), Choice(101)]),
            {},
            r"got 10,100 = 100 x 101; allowed: at most 10,000.*Raise max_joint",
        ),
        (DISCRETE, {"max_joint": 11}, r"got 12 = 2 x 3 x 2; allowed: at most 11"),
        (ActionSpec.of([Choice(100)] * 30), {}, "too many joint actions"),
    ],
)
def test_what_is_refused(spec, settings, message):
    with pytest.raises(ConfigError, match=message):
        Joint(**settings).check(spec)


def test_what_is_not():
    Joint().check(ActionSpec.of([Choice(100), Choice(100)]))  # 10,000 exactly
    Joint(max_joint=10_100).check(ActionSpec.of([Choice(100), Choice(101)]))
    Joint().check(View(CONTINUOUS, "discrete", bins=100).spec)  # binned Ranges
