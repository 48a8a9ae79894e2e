"""From how much heads matter to their shares of the credit."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))

from by_hand import result, rows, ticks

from headwise.algorithms.ppo.credit import credit_weights, head_importance
from headwise.ops import HeadTable


def weights(importance, alpha, floor=0.0, in_use=None, *, signed=False):
    """Shares (B, H) of importance (B, H), so far on the way to the full ones."""
    clock = ticks(round(1000 * alpha))
    used = None if in_use is None else in_use[None, None]
    given = importance[None, None], clock, used
    settings = {"span": 1000.0, "floor": floor, "signed": signed}
    return result(credit_weights, *given, **settings)[0, 0]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("floor", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("scale", [0.0, 1e-6, 1.0, 1e6])
def test_weights_sum_to_one_whatever_the_importance(alpha, floor, scale):
    importance = scale * torch.rand(100, 4, generator=torch.Generator().manual_seed(0))
    importance[0] = 0.0  # an untrained critic
    importance[1, 1:] = 0.0
    weight = weights(importance, alpha, floor)
    torch.testing.assert_close(weight.sum(-1), torch.ones(100))
    assert (weight >= floor / 4 - 1e-6).all()


def test_by_hand():
    importance = torch.tensor([[1.0, 4.0]])
    for alpha, expected in ((1.0, [0.2, 0.8]), (0.5, [1 / 3, 2 / 3]), (0.0, [0.5, 0.5])):
        torch.testing.assert_close(weights(importance, alpha), torch.tensor([expected]))
    assert weights(torch.zeros(1, 4), 1.0).tolist() == [[0.25] * 4]  # no 0 / 0
    torch.testing.assert_close(weights(importance, 1.0, 0.5), torch.tensor([[0.35, 0.65]]))


def test_only_heads_in_use_share_the_credit():
    importance, in_use = torch.tensor([[4.0, 1.0, 1.0]]), torch.tensor([[1.0, 0.0, 1.0]])
    torch.testing.assert_close(
        weights(importance, 1.0, 0.0, in_use), torch.tensor([[0.8, 0.0, 0.2]])
    )
    half = weights(importance, 1.0, 0.5, in_use)  # 0.5 * 1/2 + 0.5 * weight
    torch.testing.assert_close(half, torch.tensor([[0.65, 0.0, 0.35]]))
    even = weights(importance, 0.0, 0.0, in_use)
    torch.testing.assert_close(even, torch.tensor([[0.5, 0.0, 0.5]]))


def test_signed_weights_by_hand():
    """The paper's Equation 8: shares divided by their sum, whatever their signs."""
    credit = torch.tensor([[1.0, -0.75]])
    for alpha, expected in ((1.0, [4.0, -3.0]), (0.5, [2.25, -1.25]), (0.0, [0.5, 0.5])):
        torch.testing.assert_close(weights(credit, alpha, signed=True), torch.tensor([expected]))
    half = weights(credit, 1.0, 0.5, signed=True)
    torch.testing.assert_close(half, torch.tensor([[2.25, -1.25]]))
    for none in ([0.0, 0.0], [2.0, -2.0]):  # no 0 / 0, and no 2 / 0
        assert weights(torch.tensor([none]), 1.0, signed=True).tolist() == [[0.5, 0.5]]
    used = torch.tensor([[1.0, 0.0, 1.0]])
    found = weights(torch.tensor([[3.0, 9.0, -1.0]]), 1.0, 0.0, used, signed=True)
    torch.testing.assert_close(found, torch.tensor([[1.5, 0.0, -0.5]]))


def test_a_head_of_less_importance_never_gets_more():
    importance = torch.rand(100, 5, generator=torch.Generator().manual_seed(1))
    assert torch.equal(weights(importance, 0.6).argsort(-1), importance.argsort(-1))


def test_annealing_begins_at_zero_and_ends_at_its_share():
    """Members by their own clocks: 40 updates of 48, each alpha from weights of (1, e)."""
    importance = torch.tensor([1.0, torch.e]).expand(4, 1, 1, 2)
    clock = ticks(0, 20, 40, 47)
    found = result(credit_weights, importance, clock, None, span=48 * 40 / 48, floor=0.0)
    alpha = (found[..., 1] / found[..., 0]).log().flatten()
    torch.testing.assert_close(alpha, torch.tensor([0.0, 0.5, 1.0, 1.0]))


# --- how much a head matters ----------------------------------------------------------------------

TABLE = HeadTable((3, 2), (None, None), ((0, 0), (0, 3)))


def importance(kind, mask=None, slope=None):
    """Of heads with advantages (1, 3, -1) and (0, 4) under (1/2, 1/4, 1/4) and (1/2, 1/2)."""
    y = rows((1.0, 3.0, -1.0, 0.0, 4.0))
    probs, chosen = rows((0.5, 0.25, 0.25, 0.5, 0.5)), rows((2.0, -2.0))
    found = result(head_importance, y, chosen, probs, mask, slope, table=TABLE, kind=kind)
    return found.flatten().tolist()


def test_spreads_and_gradients_by_hand():
    slope = rows((0.5, 3.0))
    assert importance("uniform") == [1.0, 1.0]
    assert importance("range") == importance("range", slope=slope) == [4.0, 4.0]
    assert importance("range_slope", slope=slope) == [2.0, 12.0]
    assert importance("state", slope=slope) == [2.0, 12.0]
    assert importance("grad") == [2.0, 2.0]
    assert importance("grad", slope=slope) == [1.0, 6.0]
    assert importance("signed") == [2.0, -2.0]
    assert importance("signed", slope=slope) == [1.0, -6.0]


def test_what_may_not_be_chosen_spreads_nothing():
    assert importance("range", mask=rows((1.0, 1.0, 0.0, 1.0, 1.0))) == [2.0, 4.0]
    assert importance("range", mask=rows((1.0, 0.0, 0.0, 0.0, 0.0))) == [0.0, 0.0]
