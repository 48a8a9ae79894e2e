"""Advantages of a rollout by hand, and against a loop over time."""

import pytest
import torch
from by_hand import column, one, result, rows

from headwise.ops import discount_of, gae, row_shares, standardize, td_target

HALF = one(0.5)


def test_gae_by_hand_with_both_kinds_of_end():
    # gamma = 0.5, lambda = 0.5, so the trace factor is 0.25.
    # t:           0      1 (terminated)  2 (truncated)   3
    reward = column(1.0, 2.0, 3.0, 4.0)
    value = column(0.5, 1.0, 1.5, 2.0)
    after = column(1.0, 9.0, 4.0, 6.0)  # true successors; the 9 must not be used
    terminated, truncated = column(0, 1, 0, 0), column(0, 0, 1, 0)
    given = reward, value, after, terminated, truncated
    # delta: 1 + .5*1 - .5 = 1;  2 - 1 = 1;  3 + .5*4 - 1.5 = 3.5;  4 + .5*6 - 2 = 5
    residuals = result(gae, *given, None, HALF, one(0.0), num_envs=1)
    assert residuals.flatten().tolist() == [1, 1, 3.5, 5]
    # advantage: 5; 3.5 (no trace over the cut); 1 (no trace over the end); 1 + .25*1 = 1.25
    advantage = result(gae, *given, None, HALF, HALF, num_envs=1)
    assert advantage.flatten().tolist() == [1.25, 1.0, 3.5, 5.0]
    # one step: the terminated step has no successor, the truncated one has
    discount = result(discount_of, terminated, HALF)
    target = result(td_target, reward, discount, after, None, None)
    assert target.flatten().tolist() == [1.5, 2.0, 5.0, 7.0]
    # weights of two heads share out every residual: head 0 has .25, 1, 1.75, 0, and with the trace
    # .25 + .25 * 1 = .5, then 1, 1.75, 0
    weight = rows((0.25, 0.75), (1.0, 0.0), (0.5, 0.5), (0.0, 1.0))
    by_head = result(gae, *given, weight, HALF, HALF, num_envs=1)
    assert by_head[0, 0].tolist() == [[0.5, 0.75], [1.0, 0.0], [1.75, 1.75], [0.0, 5.0]]


def test_lambda_one_is_the_return():
    reward, value = column(1.0, 1.0, 1.0), column(0.3, 0.2, 0.1)
    after, no = column(0.2, 0.1, 0.7), column(0, 0, 0)
    full = result(gae, reward, value, after, no, no, None, one(0.9), one(1.0), num_envs=1)
    # 1 + .9 + .81 + .729 * .7 - .3
    assert full.flatten()[0].item() == pytest.approx(1 + 0.9 + 0.81 + 0.729 * 0.7 - 0.3)


def rollout(length, envs, columns=1):
    """Random numbers of two members: rewards, values, successors' values, and both kinds of end."""
    random = torch.Generator().manual_seed(length)

    def normal(width):
        return torch.randn(2, 1, length * envs, width, generator=random)

    reward, value, after = normal(1), normal(columns), normal(columns)
    terminated = (normal(1) < -1.3).float()
    truncated = (1.0 - terminated) * (normal(1) < -1.3).float()
    return reward, value, after, terminated, truncated


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 100, 128])
@pytest.mark.parametrize("weighted", [False, True])
def test_gae_is_the_loop_over_time(length, weighted):
    """Of three copies, with their steps one after another, in float64; each member by its own."""
    envs, heads = 3, 4
    given = rollout(length, envs)
    weight = torch.rand(2, 1, length * envs, heads) if weighted else None
    gamma, decay = (torch.tensor(x).view(2, 1, 1, 1) for x in ((0.97, 0.5), (0.9, 1.0)))
    reward, value, after, terminated, truncated = (x.double().view(2, length, envs) for x in given)
    share = torch.ones(2, length, envs, 1) if weight is None else weight
    share = share.view(2, length, envs, -1).double()
    expected = torch.zeros_like(share)
    for member in range(2):
        g, trace = gamma[member].item(), gamma[member].item() * decay[member].item()
        later = torch.zeros(envs, share.shape[-1], dtype=torch.float64)
        for t in reversed(range(length)):
            now = reward[member, t] + g * after[member, t] * (1 - terminated[member, t])
            delta = share[member, t] * (now - value[member, t]).unsqueeze(-1)
            goes_on = (1 - terminated[member, t]) * (1 - truncated[member, t])
            later = delta + trace * goes_on.unsqueeze(-1) * later
            expected[member, t] = later
    found = result(gae, *given, weight, gamma, decay, num_envs=envs)
    wanted = expected.view(2, 1, length * envs, -1)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-5)
    wide = [None if x is None else x.double() for x in (*given, weight, gamma, decay)]
    torch.testing.assert_close(gae.definition(*wide, num_envs=envs), wanted)


def test_importance_weighted_gae_sums_to_the_plain_one():
    given, rest = rollout(20, 3), (one(0.97).repeat(2, 1, 1, 1), one(0.9).repeat(2, 1, 1, 1))
    weight = torch.rand(2, 1, 60, 4).softmax(-1)
    by_head = result(gae, *given, weight, *rest, num_envs=3)
    plain = result(gae, *given, None, *rest, num_envs=3)
    torch.testing.assert_close(by_head.sum(-1, keepdim=True), plain)


# --- standardizing --------------------------------------------------------------------------------


def standardized(x, valid):
    return result(standardize, x, result(row_shares, valid))


def test_standardizing_counts_what_is_valid_and_stays_within_a_member():
    x = torch.cat([column(1.0, 3.0, 99.0), column(10.0, 30.0, 50.0)])
    valid = torch.cat([column(1, 1, 0), column(1, 1, 1)])
    found = standardized(x, valid)[..., 0]
    torch.testing.assert_close(found[0, 0, :2], torch.tensor([-1.0, 1.0]))
    torch.testing.assert_close(found[1, 0], torch.tensor([-1.5, 0.0, 1.5]).mul((2 / 3) ** 0.5))
    assert torch.equal(standardized(x[1:], valid[1:])[0, ..., 0], found[1])


def test_equal_advantages_do_not_explode():
    assert (standardized(torch.full((1, 1, 8, 1), 3.0), torch.ones(1, 1, 8, 1)) == 0).all()


def test_all_heads_are_standardized_together():
    """One mean and one deviation: (9, 1) and (-9, -1) have a variance of 41."""
    found = standardized(rows((9.0, 1.0), (-9.0, -1.0)), column(1, 1))
    torch.testing.assert_close(found, rows((9.0, 1.0), (-9.0, -1.0)) / 41**0.5)


def test_shares_of_rows_are_of_their_members():
    valid = torch.cat([column(1, 0, 1, 1), column(0, 0, 0, 0)])
    assert result(row_shares, valid)[..., 0].tolist() == [
        [[torch.tensor(1 / 3).item(), 0.0, *[torch.tensor(1 / 3).item()] * 2]], [[0.0] * 4],
    ]  # fmt: skip
