"""The mixture by hand, and where numbers are extreme; the contract has its values and gradients."""

import math

import pytest
import torch

from headwise.ops import Buffer, mix, mix_gradient, weigh


def buffers(*numbers, learns=True):
    """Each (P, B, W) in a buffer."""
    found = []
    for x in numbers:
        made = Buffer(x.shape[0], x.shape[1], x.shape[2], gradient=learns)
        made.tensor[:, 0] = x
        found.append(made)
    return found


def randoms(rows, heads, width, scale=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    sizes = (3, rows, heads), (3, rows, (heads + 1) * width)
    return [scale * torch.randn(size, generator=generator) for size in sizes]


PAPER = {"relu": False, "soft": False}
BENDS = [{"relu": relu, "soft": soft} for soft in (False, True) for relu in (False, True)]


def mixture(advantage, weights, bends=PAPER):
    advantage, weights = buffers(advantage, weights)
    out = Buffer(advantage.members, advantage.num_rows, gradient=True)
    mix(None, advantage, weights, **bends, out=out)
    return out.tensor[:, 0, :, 0].clone()


def slopes(advantage, weights, out_slope=1.0, operation=mix, bends=PAPER):
    advantage, weights = buffers(advantage, weights)
    value, out = (Buffer(advantage.members, advantage.num_rows, gradient=True) for _ in "ab")
    given = (None if operation is mix else value), advantage, weights
    bends = bends if operation is mix else {}
    operation(*given, **bends, out=out)
    out.gradient[:] = out_slope
    operation.backward(*given, **bends, out=out)
    return advantage.gradient[:, 0].clone()


def test_the_papers_rule_by_hand():
    # |W1| = [[1, 2], [3, 0.5]] for heads by units, |W2| = [1, 4]; signs must not matter
    weights = torch.tensor([-1.0, 2.0, 3.0, -0.5, 1.0, -4.0]).expand(1, 1, 6)
    # units: -1*1 + 0.5*3 = 0.5 and -1*2 + 0.5*0.5 = -1.75; ELU of the second: exp(-1.75) - 1
    mixed = mixture(torch.tensor([[[-1.0, 0.5]]]), weights)
    assert mixed.item() == pytest.approx(0.5 + 4 * (math.exp(-1.75) - 1), rel=1e-6)
    zero, given = buffers(torch.zeros(1, 1, 2), weights)
    slope = Buffer(1, 1, 2)
    mix_gradient(zero, given, **PAPER, out=slope)
    assert slope.tensor.flatten().tolist() == [9.0, 5.0]  # 1*1 + 2*4 and 3*1 + 0.5*4


def test_a_relu_and_positive_weights_by_softplus_by_hand():
    weights = torch.tensor([-1.0, 2.0, 3.0, -0.5, 1.0, -4.0]).expand(1, 1, 6)
    advantage = torch.tensor([[[-1.0, 0.5]]])  # units 0.5 and -1.75 by size, as above
    relu, soft = {"relu": True, "soft": False}, {"relu": True, "soft": True}
    assert mixture(advantage, weights, relu).item() == 0.5
    assert slopes(advantage, weights, bends=relu).flatten().tolist() == [1.0, 3.0]

    def plus(x):
        return math.log(1.0 + math.exp(x))

    units = 0.5 * plus(3.0) - plus(-1.0), 0.5 * plus(-0.5) - plus(2.0)  # 1.21 and -1.89
    expected = units[0] * plus(1.0)
    assert mixture(advantage, weights, soft).item() == pytest.approx(expected, rel=1e-6)
    elu = {"relu": False, "soft": True}
    expected += (math.exp(units[1]) - 1.0) * plus(-4.0)
    assert mixture(advantage, weights, elu).item() == pytest.approx(expected, rel=1e-6)
    found = slopes(advantage, weights, bends=soft).flatten()
    assert found.tolist() == pytest.approx([plus(-1.0) * plus(1.0), plus(3.0) * plus(1.0)])


def test_at_zero_a_relu_is_as_steep_as_an_elu():
    """So that slopes there, by which some weigh heads, do not depend on the bend."""
    _, weights = randoms(20, 3, 16)
    for soft in (False, True):
        both = []
        for relu in (False, True):
            zero, given = buffers(torch.zeros(3, 20, 3), weights)
            out = Buffer(3, 20, 3)
            mix_gradient(zero, given, relu=relu, soft=soft, out=out)
            found = slopes(torch.zeros(3, 20, 3), weights, bends={"relu": relu, "soft": soft})
            torch.testing.assert_close(found, out.tensor[:, 0])
            both.append(found)
        torch.testing.assert_close(*both)
        assert (both[0] > 0.0).all()


def test_qplexs_own_rule_by_hand():
    value, advantage, weights = buffers(
        torch.tensor([[[10.0]]]), torch.tensor([[[-1.0, -2.0]]]), torch.tensor([[[0.0, 1.0]]])
    )
    out = Buffer(1)
    weigh(value, advantage, weights, out=out)
    expected = 10.0 - (math.log(2.0) + 1e-3) - 2.0 * (math.log(1.0 + math.e) + 1e-3)
    assert out.tensor.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("bends", BENDS)
def test_no_kind_of_mixer_ever_falls(bends):
    advantage, weights = randoms(200, 3, 21, scale=3.0)
    assert (slopes(advantage, 0.1 * weights, bends=bends) >= 0).all()
    more = advantage + torch.rand(advantage.shape, generator=torch.Generator().manual_seed(1))
    assert (mixture(more, weights, bends) >= mixture(advantage, weights, bends)).all()


@pytest.mark.parametrize("operation", [mix, weigh])
@pytest.mark.parametrize("sign", [-1.0, 1.0, None])
def test_monotonic_in_every_advantage(operation, sign):
    advantage, weights = randoms(200, 3, 16, scale=3.0)
    weights = weights[..., :3] if operation is weigh else 0.1 * weights  # no slope underflows
    advantage = advantage if sign is None else sign * advantage.abs()
    assert (slopes(advantage, weights, operation=operation) > 0).all()


@pytest.mark.parametrize("bends", BENDS)
def test_zero_at_zero(bends):
    advantage, weights = randoms(20, 3, 16)
    assert (mixture(torch.zeros_like(advantage), weights, bends) == 0).all()


@pytest.mark.parametrize("soft", [False, True])
def test_a_relu_lets_nothing_of_max_centered_advantages_through(soft):
    """They are never above zero: Q would be V whatever is done, and stay so."""
    advantage, weights = randoms(50, 3, 16)
    relu = {"relu": True, "soft": soft}
    below = -advantage.abs() - 1e-3
    assert (mixture(below, weights, relu) == 0.0).all()
    assert (slopes(below, weights, bends=relu) == 0.0).all()


def test_small_advantages_keep_their_digits():
    """exp(x) - 1 in single precision would lose all digits of x = -1e-9."""
    advantage = torch.tensor([-1e-9, -1e-3, -30.0, -1000.0]).view(1, 4, 1)
    mixed = mixture(advantage, torch.ones(1, 4, 2))
    expected = torch.expm1(advantage.double()).flatten()
    torch.testing.assert_close(mixed.flatten().double(), expected, rtol=3e-7, atol=0)


def test_a_row_is_the_same_wherever_it_stands():
    advantage, weights = randoms(40, 3, 50)
    whole, slope = mixture(advantage, weights), slopes(advantage, weights)
    for row in range(40):
        alone = advantage[:, row : row + 1], weights[:, row : row + 1]
        assert torch.equal(mixture(*alone), whole[:, row : row + 1])
        assert torch.equal(slopes(*alone), slope[:, row : row + 1])


@pytest.mark.parametrize("which", [0, 1])
def test_what_is_not_a_number_stays_in_its_row(which):
    numbers = randoms(3, 2, 20)
    numbers[which][0, 1, 0] = torch.nan
    mixed = mixture(*numbers)
    assert mixed.isnan().tolist() == [[False, True, False], [False] * 3, [False] * 3]
    found = slopes(*numbers).isnan().any(-1)
    assert not found[1:].any()
    assert not found[0, [0, 2]].any()
