"""Errors of values: gradients are derivatives of the losses that are reported."""

import pytest
import torch
from by_hand import column, one, played, result, rows

from headwise.ops import clipped_value_error, munchausen, shares_in_use, td_target, value_error

LOSS = rows((1.0, 0.0, 0.0))


@pytest.mark.parametrize("huber", [False, True])
def test_the_gradient_is_the_derivative_of_the_loss(huber):
    random = torch.Generator().manual_seed(0)
    predicted, target, weight = 2.0 * torch.randn(3, 3, 1, 5, 2, generator=random)
    wide = predicted.double().requires_grad_()
    loss = torch.nn.functional.huber_loss if huber else torch.nn.functional.mse_loss
    each = loss(wide, target.double(), reduction="none") * weight
    known = torch.autograd.grad(each.sum(), wide)[0] * 0.7
    found, slope = played(
        value_error, predicted, target, weight, coef=0.7, huber=huber, learns=(0,),
        slope=LOSS.expand(3, 1, 1, 3),
    )  # fmt: skip
    torch.testing.assert_close(found[..., 0].flatten(), 0.7 * each.sum((1, 2, 3)).float())
    torch.testing.assert_close(slope, known.float())
    assert (known != 0).any()


def test_numbers_by_hand():
    """Rewards 1 and 2, discounts 1/2 and 0, values that follow -2 and 7: targets 0 and 2."""
    reward, discount, after = column(1.0, 2.0), column(0.5, 0.0), column(-2.0, 7.0)
    target = result(td_target, reward, discount, after, None, None)
    assert target.flatten().tolist() == [0.0, 2.0]
    given = column(3.0, 1.0), target, column(0.5, 0.5)
    found, slope = played(value_error, *given, coef=1.0, huber=False, learns=(0,), slope=LOSS)
    assert slope.flatten().tolist() == [3.0, -1.0]  # errors 3 and -1, each counts one half
    assert found.flatten().tolist() == [5.0, 2.0, 2.0]  # (9 + 1) / 2, the mean size, the mean value


def test_columns_share_the_weight_of_their_row():
    """Errors 1 and -3 in the columns of a row that counts half, and 2 and 0 in one that counts 1.

    Member 0: (1 + 9) / 2 + 4 = 9; twice the error times the weight is the gradient. Member 1 has no
    row that counts.
    """
    error = rows((1.0, -3.0), (2.0, 0.0)).repeat(2, 1, 1, 1)
    target = torch.full((2, 1, 2, 2), 7.0)
    weight = torch.cat([column(0.5, 1.0), column(0.0, 0.0)])
    found, slope = played(
        value_error, target + error, target, weight, coef=1.0, huber=False, learns=(0,),
        slope=LOSS.expand(2, 1, 1, 3),
    )  # fmt: skip
    assert found[..., 0].flatten().tolist() == [9.0, 0.0]
    assert slope[:, 0].tolist() == [[[1.0, -3.0], [4.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]


def test_each_twin_has_its_own_loss():
    given = torch.cat([column(3.0), column(5.0)], dim=1), column(4.0), column(1.0)
    found = result(value_error, *given, coef=1.0, huber=False)
    assert found[0, :, 0].tolist() == [[1.0, 1.0, 3.0], [1.0, 1.0, 5.0]]


# --- clipped --------------------------------------------------------------------------------------


def clipped(predicted, old, target, **settings):
    given = column(*predicted), column(*target), column(*old)
    weight = column(*[1.0 / len(predicted)] * len(predicted))
    return played(
        clipped_value_error, *given, weight, **{"coef": 1.0, "clip": 0.5} | settings, learns=(0,),
        slope=LOSS,
    )  # fmt: skip


def test_a_value_that_has_moved_too_far_is_held_where_that_costs_more():
    # 2 above the old value and 3 below the target; held at 0.5 above, it is 4.5 below.
    found, slope = clipped([0.0], [-2.0], [3.0])
    assert (found[..., 0].item(), slope.item()) == (20.25, 0.0)
    # Above the target it is the other way round: 3 squared, and not 1.5.
    found, slope = clipped([0.0], [-2.0], [-3.0])
    assert (found[..., 0].item(), slope.item()) == (9.0, 6.0)


def test_the_larger_of_two_means_and_not_the_mean_of_the_larger():
    """The rule of the paper's package; PPO2 takes the mean of the larger, SB3 the held ones."""
    # Errors 1 and 0.5 as they are; held 0.5 above the old values, 0 and 1.
    given = [1.0, 1.0], [-0.5, -1.0], [0.0, 0.5]
    found, slope = clipped(*given)
    free, held = (1.0 + 0.25) / 2, (0.0 + 1.0) / 2
    assert found[..., 0].item() == max(free, held) != (1.0 + 1.0) / 2
    assert slope.flatten().tolist() == [1.0, 0.5]
    assert clipped(*given, coef=0.5)[0][..., 0].item() == 0.5 * free


# --- what counts ----------------------------------------------------------------------------------


def test_heads_count_over_the_rows_that_use_them():
    use = rows((1.0, 1.0), (1.0, 0.0), (1.0, 0.0), (1.0, 0.0))
    apart = result(shares_in_use, use, scale=1.0, by_head=True)
    assert apart[0, 0].tolist() == [[0.25, 1.0], [0.25, 0.0], [0.25, 0.0], [0.25, 0.0]]
    together = result(shares_in_use, use, scale=2.0, by_head=False)
    torch.testing.assert_close(together, use * 2.0 / 5.0)
    nobody = result(shares_in_use, torch.zeros(1, 1, 4, 2), scale=1.0, by_head=True)
    assert (nobody == 0.0).all()


# --- targets --------------------------------------------------------------------------------------


def test_targets_take_the_lesser_twin_and_pay_entropy_above_what_is_expected():
    twins = torch.cat([column(4.0, 1.0), column(3.0, 2.0)], dim=1)
    given = column(1.0, 1.0), column(0.5, 0.5), twins
    assert result(td_target, *given, None, None).flatten().tolist() == [2.5, 1.5]
    found = result(td_target, *given, column(2.0, 4.0), one(1.0))
    assert found.flatten().tolist() == [3.0, 3.0]


def test_munchausens_bonus_by_hand():
    """Log-policies times temperature of two heads; the second is idle in the second row."""
    reward, sure = column(1.0, 1.0), rows((-0.25, -0.5), (-0.25, -0.5))
    use, settings = rows((1.0, 1.0), (1.0, 0.0)), {"weight": 2.0, "floor": -0.5}
    found = result(munchausen, reward, sure, use, **settings, adds_up=True)
    assert found.flatten().tolist() == [1.0 - 2 * 0.5, 1.0 - 2 * 0.25]  # -0.75 is held at the floor
    each = result(munchausen, reward, sure, use, **settings, adds_up=False)
    assert each[0, 0].tolist() == [[0.5, 0.0], [0.5, 1.0]]
