import pytest
import torch

from headwise.algorithms.advantages import estimate_advantages, standardised
from headwise.algorithms.base import RolloutBatch
from headwise.algorithms.importance import importance_weights

HALF = torch.tensor([0.5])


def batch_of(reward, terminated, truncated, valid=None):
    """One member, one slot."""

    def grid(x):
        return torch.tensor(x).view(1, -1, 1)

    nothing = torch.zeros(1, len(reward), 1, 1)
    valid = [True] * len(reward) if valid is None else valid
    return RolloutBatch(
        obs=nothing,
        action=nothing,
        reward=grid(reward),
        next_obs=nothing,
        terminated=grid(terminated),
        truncated=grid(truncated),
        valid=grid(valid),
        legal=None,
        extra={},
    )


def columns(*values):
    return torch.tensor(values).view(1, -1, 1, 1)


BATCH = batch_of([1.0, 2.0, 3.0, 4.0], [False, True, False, False], [False, False, True, False])
VALUE, AFTER = columns(0.5, 1.0, 1.5, 2.0), columns(1.0, 9.0, 4.0, 6.0)


def estimate(**more):
    settings = {"gamma": HALF, "gae_lambda": HALF, "normalise": False} | more
    return estimate_advantages(BATCH, VALUE, AFTER, **settings)


def test_lambda_returns_by_hand():
    # residuals 1, 1, 3.5, 5; the trace (0.25) is cut at both ends: advantages 1.25, 1, 3.5, 5
    found = estimate()
    assert found.advantage.flatten().tolist() == [1.25, 1.0, 3.5, 5.0]
    assert torch.equal(found.plain, found.advantage)
    # value + advantage
    assert found.target.flatten().tolist() == [1.75, 2.0, 5.0, 7.0]
    assert torch.equal(found.value, VALUE)


def test_one_step_targets_by_hand():
    # r + 0.5 V(s'), without V(s') after the task's own end and with it after a cut
    found = estimate(critic_target="one_step")
    assert found.target.flatten().tolist() == [1.5, 2.0, 5.0, 7.0]
    assert found.advantage.flatten().tolist() == [1.25, 1.0, 3.5, 5.0]  # the same as ever


def test_credit_by_hand_inside_and_outside_the_trace():
    weights = torch.tensor([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]).view(1, 4, 1, 2)
    inside = estimate(weights=weights).advantage[0, :, 0]
    # head 0: residuals .25, 1, 1.75, 0; with the trace: .25 + .25 * 1 = .5, then 1, 1.75, 0
    assert inside[:, 0].tolist() == [0.5, 1.0, 1.75, 0.0]
    assert inside[:, 1].tolist() == [0.75, 0.0, 1.75, 5.0]
    outside = estimate(weights=weights, weight_place="outside").advantage[0, :, 0]
    # the whole estimate (1.25, 1, 3.5, 5) by the weight of its own state
    assert outside[:, 0].tolist() == [0.3125, 1.0, 1.75, 0.0]


@pytest.mark.parametrize("place", ["inside", "outside"])
def test_credit_summed_over_heads_is_the_plain_estimate(place):
    importance = torch.rand(1, 4, 1, 5, generator=torch.Generator().manual_seed(0))
    found = estimate(weights=importance_weights(importance, 0.8), weight_place=place)
    torch.testing.assert_close(found.advantage.sum(-1, keepdim=True), found.plain)


def test_members_discount_by_their_own():
    two = RolloutBatch(*(x if x is None or x == {} else x.repeat(2, *[1] * (x.dim() - 1))
                         for x in BATCH))  # fmt: skip
    rates = torch.tensor([0.5, 0.0])
    found = estimate_advantages(
        two, VALUE.repeat(2, 1, 1, 1), AFTER.repeat(2, 1, 1, 1),
        gamma=rates, gae_lambda=torch.tensor([0.5, 0.5]), normalise=False,
    )  # fmt: skip
    assert found.advantage[0].flatten().tolist() == [1.25, 1.0, 3.5, 5.0]
    assert found.advantage[1].flatten().tolist() == [0.5, 1.0, 1.5, 2.0]  # r - V


def test_standardising_counts_what_is_valid_and_stays_within_a_member():
    x = torch.tensor([[1.0, 3.0, 99.0], [10.0, 30.0, 50.0]]).unsqueeze(-1)
    valid = torch.tensor([[True, True, False], [True, True, True]]).unsqueeze(-1)
    found = standardised(x, valid)
    torch.testing.assert_close(found[0, :2, 0], torch.tensor([-1.0, 1.0]))
    assert abs(float(found[1].mean())) < 1e-6
    assert float(found[1].square().mean()) == pytest.approx(1.0, abs=1e-5)
    alone = standardised(x[1:], valid[1:])
    assert torch.equal(alone[0], found[1])


def test_equal_advantages_do_not_explode():
    found = standardised(torch.full((1, 8, 1), 3.0), torch.ones(1, 8, 1, dtype=torch.bool))
    assert (found == 0).all()


def test_all_heads_are_standardised_together():
    """One mean and one deviation: a head with little credit keeps little credit."""
    weights = torch.tensor([0.9, 0.1]).expand(1, 4, 1, 2)
    found = estimate(weights=weights, weight_place="outside", normalise=True).advantage
    assert found[..., 0].std() > 5 * found[..., 1].std()
    assert abs(float(found.mean())) < 1e-6
