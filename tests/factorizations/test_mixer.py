"""The monotonic mixer: the paper's rule and that of QPLEX itself."""

import math

import pytest
import torch
from cases import DISCRETE, all_actions, blueprint, for_all_rows, make, observations

from headwise.factorizations.parts.critics import BranchingCritic
from headwise.factorizations.qplex import QPLEX
from headwise.nets import Mixer


def mixer(kind="paper", heads=3, width=16):
    return Mixer(blueprint(DISCRETE).init, heads, 4, width, kind, action_size=6)


def randoms(*shape, seed=0, scale=1.0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", ["paper", "qplex"])
@pytest.mark.parametrize("sign", [-1.0, 1.0, None])
def test_monotonic_in_every_advantage(kind, sign):
    state, action = observations(rows=200), randoms(3, 200, 6).abs()
    advantage = randoms(3, 200, 3, scale=3.0)
    advantage = (advantage if sign is None else sign * advantage.abs()).requires_grad_()
    (slope,) = torch.autograd.grad(mixer(kind)(advantage, state, action).sum(), advantage)
    assert (slope > 0).all()


@pytest.mark.parametrize("kind", ["paper", "qplex"])
def test_zero_at_zero(kind):
    action = randoms(3, 5, 6)
    assert (mixer(kind)(torch.zeros(3, 5, 3), observations(), action) == 0).all()


def test_the_papers_rule_by_hand():
    one = mixer(heads=2, width=2)
    with torch.no_grad():
        for layer in (one.first, one.second):
            layer.weight.zero_()
        # |W1| = [[1, 2], [3, 0.5]] for heads by units, |W2| = [1, 4]; signs must not matter
        one.first.bias[:] = torch.tensor([-1.0, 2.0, 3.0, -0.5])
        one.second.bias[:] = torch.tensor([1.0, -4.0])
        # units: -1*1 + 0.5*3 = 0.5 and -1*2 + 0.5*0.5 = -1.75; ELU of the second: exp(-1.75) - 1
        mixed = one(torch.tensor([-1.0, 0.5]).expand(3, 1, 2), torch.zeros(3, 1, 4))
        slope = one.slope_at_zero(torch.zeros(3, 1, 4))
    expected = 0.5 + 4 * (math.exp(-1.75) - 1)
    torch.testing.assert_close(mixed, torch.full((3, 1), expected))
    # 1*1 + 2*4 and 3*1 + 0.5*4
    torch.testing.assert_close(slope, torch.tensor([9.0, 5.0]).expand(3, 1, 2))


def test_slope_at_zero_is_the_derivative_there():
    one, state = mixer(), observations()
    zero = torch.zeros(3, 5, 3, requires_grad=True)
    (slope,) = torch.autograd.grad(one(zero, state).sum(), zero)
    torch.testing.assert_close(one.slope_at_zero(state), slope)


def test_hypernetworks_are_linear_and_see_the_state():
    one = mixer()
    assert [name for name, _ in one.named_parameters()] == [
        "first.weight", "first.bias", "second.weight", "second.bias",
    ]  # fmt: skip
    advantage = torch.full((3, 5, 3), -0.5)
    mixed = one(advantage, observations())
    assert mixed.std(-1).min() > 1e-3


def test_true_qplex_weights_see_the_joint_action():
    """A weight for each advantage that other heads' options change: more than QMIX can say."""
    value = QPLEX(mixer="qplex", mixer_width=16).value(blueprint(DISCRETE))
    paper = QPLEX(mixer="paper", mixer_width=16).value(blueprint(DISCRETE))
    obs = observations()
    _, _, embedding = value.branches(obs)
    advantage, zero = torch.full((3, 5, 3), -1.0), torch.zeros(3, 5)
    with torch.no_grad():
        a, b = (torch.tensor(x).expand(3, 5, 3) for x in ([0.0, 0.0, 0.0], [1.0, 2.0, 1.0]))
        ours = [value.mixed(zero, advantage, embedding, x) for x in (a, b)]
        theirs = [paper.mixed(zero, advantage, embedding, x) for x in (a, b)]
    assert (ours[0] - ours[1]).abs().min() > 1e-4
    assert torch.equal(*theirs)


@pytest.mark.parametrize("kind", ["paper", "qplex"])
def test_greedy_is_the_joint_maximum_for_both_rules(kind):
    value, obs = QPLEX(mixer=kind, mixer_width=16).value(blueprint(DISCRETE)), observations()
    with torch.no_grad():
        table = [value.joint(obs, action) for action in for_all_rows(all_actions(DISCRETE))]
        best, columns = value.best(obs), value.best_value(obs)
        torch.testing.assert_close(value.joint(obs, best), torch.stack(table).amax(0))
        torch.testing.assert_close(columns.squeeze(-1), torch.stack(table).amax(0))


def test_the_embedding_gets_no_gradient_through_the_mixer():
    value, obs = make("qplex", "value", DISCRETE), observations()
    _, _, embedding = value.branches(obs)
    embedding = embedding.detach().requires_grad_()
    mixed = value.mixed(torch.zeros(3, 5), -torch.ones(3, 5, 3), embedding, torch.zeros(3, 5, 3))
    assert mixed.requires_grad  # to the mixer's own parameters
    assert torch.autograd.grad(mixed.sum(), embedding, allow_unused=True) == (None,)


def test_what_the_mixture_is_worth_on_average_by_hand():
    """A = +2 or -2 with probability one half: E[ELU(A)] = (2 + exp(-2) - 1) / 2 = 0.568."""
    from headwise import ActionSpec, Choice

    critic = BranchingCritic(blueprint(ActionSpec.of(a=Choice(2))), 1, 5)
    with torch.no_grad():
        for parameter in critic.parameters():
            parameter.zero_()
        critic.net.advantage.bias[:] = torch.tensor([2.0, -2.0])
        critic.mixer.first.bias.fill_(1.0)
        critic.mixer.second.bias.fill_(1.0)
    obs = observations()
    masses = torch.full((3, 5, 1, 2), 0.5)
    expected = torch.full((3, 5), (2 + math.exp(-2) - 1) / 2)
    torch.testing.assert_close(critic.expected_mixture(obs, masses), expected)
    assert expected[0, 0].item() == pytest.approx(0.568, abs=1e-3)
