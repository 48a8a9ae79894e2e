import math

import pytest
import torch

from headwise import ActionSpec, Choice, Range
from headwise.algorithms.temperature import RUNAWAY, Temperatures
from headwise.factorizations.layout import Layout
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
