"""All joint actions in a row, and when there are too many of them."""

import pytest
import torch

from headwise import ActionSpec, Choice, ConfigError, Range, View
from headwise.factorizations.joint import Joint
from headwise.heads.joint_actions import JointActions
from headwise.heads.layout import Layout
from headwise.spaces import Condition

CPU = torch.device("cpu")
DISCRETE = ActionSpec.of(a=Choice(2), b=Choice(3), c=Choice(2))
HYBRID = ActionSpec.of(x=Range(-1, 1), a=Choice(3), y=Range(0, 5), b=Choice(2))
CONTINUOUS = ActionSpec.of(x=Range(-1, 1), y=Range(0, 5))
ONE_OF = ActionSpec(
    ("kind", "run", "jump", "spin"),
    (Choice(3), Choice(4), Choice(2), Choice(2)),
    (None, Condition(0, 0, 1), Condition(0, 1, 2), Condition(2, 1, 2)),
)


def all_actions(spec):
    return torch.cartesian_prod(*(torch.arange(float(n)) for n in spec.cardinalities))


def test_numbers_and_options_are_each_others_inverse():
    joint = JointActions(DISCRETE, CPU)
    actions = all_actions(DISCRETE)
    numbers = torch.arange(12.0).unsqueeze(-1)
    assert torch.equal(joint.to_joint(actions), numbers)  # the last head turns fastest
    assert torch.equal(joint.to_heads(numbers), actions)
    assert joint.to_joint(torch.tensor([1.0, 2.0, 0.0])).item() == 1 * 6 + 2 * 2 + 0


def test_the_same_action_twice_is_one_action():
    """3 x 4 x 2 x 2 rows, but `run` has 4, `jump` 1 + 2 and the third alternative 1: 8 actions."""
    joint = JointActions(ONE_OF, CPU)
    assert joint.legal.shape == (48,)
    assert joint.legal.sum() == 8
    assert torch.equal(joint.allowed(None), joint.legal)
    assert JointActions(DISCRETE, CPU).legal is None
    noisy = torch.tensor([2.0, 3.0, 1.0, 1.0])  # nothing but the alternative is in use
    assert joint.to_joint(noisy).item() == joint.to_joint(torch.tensor([2.0, 0, 0, 0])).item()


def test_whatever_an_action_says_of_idle_heads_it_is_one_of_the_eight():
    joint, actions = JointActions(ONE_OF, CPU), all_actions(ONE_OF)
    numbers = joint.to_joint(actions)
    assert set(numbers.flatten().tolist()) == set(joint.legal.nonzero().flatten().tolist())
    rested = torch.as_tensor(ONE_OF.canonical(actions.numpy()))
    assert torch.equal(joint.to_heads(numbers), rested)


def test_the_learner_sees_one_head_and_masks_what_is_the_same_as_another():
    layout = Layout(ONE_OF, joint=True)
    assert (layout.names, layout.options, layout.num_heads) == (("joint",), (48,), 1)
    assert layout.always_masks
    assert layout.mask(None).sum() == 8
    assert not layout.is_conditional  # joint actions are in use as a whole
    actions = all_actions(ONE_OF)
    there = layout.to_learner(actions)
    assert torch.equal(there, layout.joint.to_joint(actions))
    assert torch.equal(layout.from_learner(there), layout.joint.to_heads(there))
    assert not Layout(DISCRETE, joint=True).always_masks


def test_masks_of_options_become_masks_of_joint_actions():
    joint = JointActions(DISCRETE, CPU)
    legal = torch.ones(1, 1, 3, 3, dtype=torch.bool)
    legal[..., 0, 1] = False  # a = 1 is gone, and c = 0
    legal[..., 2, 0] = False
    allowed = joint.allowed(legal)[0, 0]
    actions = all_actions(DISCRETE)
    assert torch.equal(allowed, (actions[:, 0] == 0) & (actions[:, 2] == 1))


def test_what_is_legal_in_a_head_does_not_matter_to_actions_that_do_not_use_it():
    """With `run` 1 alone, and a `jump` that is 1: those, two spins, and the third kind are left."""
    joint = JointActions(ONE_OF, CPU)
    legal = torch.ones(1, 1, 4, 4, dtype=torch.bool)
    legal[..., 1, :] = torch.tensor([False, True, False, False])
    legal[..., 2, 0] = False
    allowed = joint.to_heads(torch.nonzero(joint.allowed(legal)[0, 0]).float())
    assert allowed.tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1], [2, 0, 0, 0]]


@pytest.mark.parametrize(
    ("spec", "settings", "message"),
    [
        (
            HYBRID,
            {},
            r"some are continuous .*; got .*Give a number of bins, or use .*'ar'",
        ),
        (CONTINUOUS, {}, "joint factorization needs discrete heads"),
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
