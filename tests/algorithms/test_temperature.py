import math

import pytest
import torch

from headwise import ActionSpec, Choice, Range
from headwise.algorithms.base import ReplayBatch, Task
from headwise.algorithms.sac import SAC
from headwise.algorithms.temperature import RUNAWAY, Temperatures
from headwise.factorizations import factorizations
from headwise.factorizations.parts.layout import Layout
from headwise.population import Keys

SPEC = ActionSpec.of(x=Range(-1, 1), a=Choice(4), y=Range(0, 1), b=Choice(2))
LR = torch.tensor([0.1, 0.01])


def made(spec=SPEC, per_head=False, first=0.2):
    return Temperatures(Layout(spec), Keys((0, 1)), first, per_head=per_head, lr=LR)


def test_targets_by_hand():
    target = made().target(torch.tensor([0.5, 0.25]))
    expected = [[-1, 0.5 * math.log(4), -1, 0.5 * math.log(2)],
                [-1, 0.25 * math.log(4), -1, 0.25 * math.log(2)]]  # fmt: skip
    torch.testing.assert_close(target, torch.tensor(expected))


def test_targets_are_a_share_of_what_is_legal():
    """Two states: two and then four legal options of `a`, one and then two of `b`."""
    legal = torch.zeros(1, 2, 2, 4, dtype=torch.bool)
    legal[0, 0, 0, 1:3] = legal[0, 1, 0] = legal[0, 0, 1, 1:] = legal[0, 1, 1] = True
    most = Layout(SPEC).largest_entropy(legal)  # `b` has two options, so two of its four are none
    log2, log4 = math.log(2), math.log(4)
    torch.testing.assert_close(most, torch.tensor([[[0, log2, 0, 0], [0, log4, 0, log2]]]))
    temperatures, half = made(per_head=True), torch.tensor([0.5, 0.25])
    expected = torch.tensor([[-1, 0.75 * log2, -1, 0.25 * log2]])  # half the mean over states
    # A state that uses nothing but `x`: of the others' targets half is left.
    in_use = torch.tensor([[1.0, 1, 1, 1], [1, 0, 0, 0]]).expand(2, 2, 4)
    used = torch.tensor([[-1, 0.5 * log2, -0.5, 0]]) / torch.tensor([[1.0, 2, 1, 1]])
    for use, wanted in ((None, expected), (in_use, used)):
        entropy = torch.zeros(2, 2, 4)
        found = temperatures.update(entropy, half, use, most.expand(2, 2, 4))()
        torch.testing.assert_close(found["heads/target_entropy"][:1], wanted)
        assert found["heads/target_entropy"][1, 1] == 0.5 * wanted[0, 1]


def test_where_all_is_legal_nothing_changes():
    one, other = made(per_head=True), made(per_head=True)
    legal = torch.ones(2, 7, 2, 4, dtype=torch.bool)
    entropy, half = torch.rand(2, 7, 4, generator=torch.manual_seed(0)), torch.tensor([0.5, 0.25])
    one.update(entropy, half, None, Layout(SPEC).largest_entropy(legal))
    other.update(entropy, half)
    torch.testing.assert_close(one(), other())


def test_a_head_in_which_nothing_is_legal_has_no_entropy():
    legal = torch.zeros(1, 1, 2, 4, dtype=torch.bool)
    assert Layout(SPEC).largest_entropy(legal).tolist() == [[[0.0, 0.0, 0.0, 0.0]]]


@pytest.mark.parametrize(
    ("spec", "per_head", "groups"),
    [
        (SPEC, False, 2),
        (SPEC, True, 4),
        (ActionSpec.of(a=Choice(2), b=Choice(3)), False, 1),
        (ActionSpec.of(x=Range(0, 1)), False, 1),
    ],
)
def test_one_for_choices_and_one_for_ranges_or_one_each(spec, per_head, groups):
    temperatures = made(spec, per_head)
    assert temperatures.log_alpha.shape == (2, groups)
    torch.testing.assert_close(temperatures(), torch.full((2, spec.num_heads), 0.2))
    assert not temperatures().requires_grad


def test_too_little_entropy_raises_and_too_much_lowers():
    temperatures = made(per_head=True)
    target = temperatures.target(torch.tensor([0.5, 0.5]))
    entropy = (target + torch.tensor([0.3, -0.3, -0.1, 0.1])).unsqueeze(-2).expand(2, 7, 4)
    temperatures.update(entropy, torch.tensor([0.5, 0.5]))
    change = temperatures() - 0.2
    assert (change.sign() == torch.tensor([-1.0, 1.0, 1.0, -1.0])).all()
    # the first step of Adam is the step size, in log space: 0.2 exp(0.1) for the first member
    assert temperatures()[0, 1].item() == pytest.approx(0.2 * math.exp(0.1), rel=1e-5)
    assert temperatures()[1, 1].item() == pytest.approx(0.2 * math.exp(0.01), rel=1e-5)


def test_heads_of_a_group_count_together():
    temperatures = made()
    target = temperatures.target(torch.tensor([0.5, 0.5]))
    # one choice 0.3 too low, the other 0.2 too high: 0.1 too low together
    entropy = (target + torch.tensor([0.0, -0.3, 0.0, 0.2])).unsqueeze(-2)
    temperatures.update(entropy, torch.tensor([0.5, 0.5]))
    assert (temperatures()[:, [1, 3]] > 0.2).all()
    torch.testing.assert_close(temperatures()[:, [0, 2]], torch.full((2, 2), 0.2))


def test_a_runaway_is_reported():
    low, high = made(first=1.0), made(first=RUNAWAY * 1.5)
    entropy, half = torch.zeros(2, 1, 4), torch.tensor([0.5, 0.5])
    assert low.update(entropy, half)()["warn/temperature"].tolist() == [0.0, 0.0]
    metrics = high.update(entropy, half)()
    assert metrics["warn/temperature"].tolist() == [1.0, 1.0]
    assert metrics["heads/alpha"].shape == metrics["heads/entropy"].shape == (2, 4)


def joint_sac(sizes):
    """SAC over joint actions with a temperature for every head asked for, after one update."""
    spec = ActionSpec.of(**{f"h{i}": Choice(n) for i, n in enumerate(sizes)})
    task = Task(
        spec=spec, obs_size=3, num_slots=1, total_steps=10,
        factorization=factorizations.get("joint")(), keys=Keys((0, 1)),
    )  # fmt: skip
    learner = SAC(hidden=(8,), lr=0.1, target_entropy=0.0, per_head_temperature=True).build(task)
    obs, action = torch.zeros(2, 4, 3), torch.zeros(2, 4, len(sizes))
    zeros = torch.zeros(2, 4)
    learner.update(ReplayBatch(obs, action, zeros, obs, zeros, None, None), task.keys.at(0))
    return learner


@pytest.mark.parametrize("sizes", [(1, 6), (6, 1), (2, 3)])
def test_a_joint_action_has_one_temperature(sizes):
    """Also if the first head has one option only, and so no entropy to tune it by."""
    found = joint_sac(sizes).temperatures()
    # Any entropy is above a target of zero, so Adam's first step, which is the step size, goes
    # down: 0.2 exp(-0.1) for all heads.
    torch.testing.assert_close(found, torch.full((2, 2), 0.2 * math.exp(-0.1)))


def test_other_factorizations_have_one_for_every_head_if_asked_to():
    task = Task(
        spec=SPEC, obs_size=3, num_slots=1, total_steps=10,
        factorization=factorizations.get("vdn")(), keys=Keys((0, 1)),
    )  # fmt: skip
    assert SAC(per_head_temperature=True).build(task).temperatures.log_alpha.shape == (2, 4)
    assert SAC().build(task).temperatures.log_alpha.shape == (2, 2)
