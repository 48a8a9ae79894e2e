"""The mixture of the compiled module, against tensor operations in double precision."""

import pytest
import torch

from headwise import _core
from headwise.errors import EnvError
from headwise.nets.mixture import mixture, mixture_slope, tensor_mixture, tensor_slope

SHAPES = [((2, 5), 3, 16), ((1, 1), 1, 1), ((3, 2, 7), 2, 33), ((2, 4), 5, 128), ((2, 3), 4, 15)]


def inputs(stack, heads, width, seed=0, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    sizes = ((*stack, heads), (*stack, heads * width), (*stack, width))
    return [scale * torch.randn(size, generator=generator) for size in sizes]


@pytest.mark.parametrize(("stack", "heads", "width"), SHAPES)
@pytest.mark.parametrize("scale", [0.01, 1.0, 5.0])
def test_values_and_gradients(stack, heads, width, scale):
    ours = [x.requires_grad_() for x in inputs(stack, heads, width, scale=scale)]
    exact = [x.detach().double().requires_grad_() for x in ours]
    found, expected = mixture(*ours), tensor_mixture(*exact)
    size = expected.abs().max().item()
    torch.testing.assert_close(found.double(), expected, rtol=2e-6, atol=2e-6 * size)
    weight = torch.randn(stack, generator=torch.Generator().manual_seed(1))
    grads = torch.autograd.grad(found, ours, weight)
    known = torch.autograd.grad(expected, exact, weight.double())
    for grad, true in zip(grads, known, strict=True):
        size = true.abs().max().item()
        torch.testing.assert_close(grad.double(), true, rtol=2e-6, atol=2e-6 * size)
    with torch.no_grad():
        assert torch.equal(mixture(*ours), found)


@pytest.mark.parametrize(("stack", "heads", "width"), SHAPES)
def test_slopes_are_the_derivatives(stack, heads, width):
    advantage, first, second = inputs(stack, heads, width)
    exact = [x.double() for x in (advantage, first, second)]
    exact[0].requires_grad_()
    (known,) = torch.autograd.grad(tensor_mixture(*exact).sum(), exact[0])
    for slope in (mixture_slope, tensor_slope):
        found = slope(advantage, first, second)
        torch.testing.assert_close(found.double(), known, rtol=2e-6, atol=1e-6)


def test_tensor_operations_have_the_right_gradient():
    numbers = [x.double().requires_grad_() for x in inputs((2, 2), 2, 3)]
    assert torch.autograd.gradcheck(mixture, numbers)


def test_small_advantages_keep_their_digits():
    """exp(x) - 1 in single precision would lose all digits of x = -1e-9."""
    advantage = torch.tensor([[-1e-9], [-1e-3], [-30.0], [-1000.0]])
    mixed = mixture(advantage, torch.ones(4, 1), torch.ones(4, 1))
    expected = torch.expm1(advantage.double()).squeeze(-1)
    torch.testing.assert_close(mixed.double(), expected, rtol=3e-7, atol=0)


def test_a_row_is_the_same_wherever_it_stands():
    numbers = inputs((1, 40), 3, 50)
    whole, slope = mixture(*numbers), mixture_slope(*numbers)
    for row in range(40):
        alone = [x[:, row : row + 1] for x in numbers]
        assert torch.equal(mixture(*alone), whole[:, row : row + 1])
        assert torch.equal(mixture_slope(*alone), slope[:, row : row + 1])


def test_strides_do_not_matter():
    advantage, first, second = inputs((2, 6), 2, 8)
    turned = advantage.transpose(-1, -2).contiguous().transpose(-1, -2)
    assert torch.equal(mixture(turned, first, second), mixture(advantage, first, second))


@pytest.mark.parametrize("which", [0, 1, 2])
def test_what_is_not_a_number_stays_in_its_row(which):
    numbers = inputs((1, 3), 2, 20)
    numbers[which][0, 1, 0] = torch.nan
    advantage = numbers[0].requires_grad_()
    mixed = mixture(*numbers)
    assert mixed.isnan().tolist() == [[False, True, False]]
    (grad,) = torch.autograd.grad(mixed, advantage, torch.where(mixed.isnan(), torch.nan, 1.0))
    assert grad.isnan().any(-1).tolist() == [[False, True, False]]


def test_arrays_that_do_not_fit_are_refused():
    advantage, first, second = (x[0].numpy() for x in inputs((1, 4), 2, 8))
    hidden, mixed = second.copy(), second[:, 0].copy()
    with pytest.raises(EnvError, match="do not fit the advantages"):
        _core.mix(advantage, first[:, :-1].copy(), second, hidden, mixed)
    with pytest.raises(EnvError, match="do not fit the advantages"):
        _core.mix(advantage, first, second, hidden[:-1], mixed)
    with pytest.raises(EnvError, match="one mixture for each row"):
        _core.mix(advantage, first, second, hidden, mixed[:-1])
    with pytest.raises(EnvError, match="gradients of other shapes"):
        _core.mix_backward(
            advantage, first, second, hidden, mixed, advantage.copy(), first.copy(), hidden[:-1]
        )
    with pytest.raises(EnvError, match="one slope for each advantage"):
        _core.mix_slope(advantage, first, second, hidden, advantage[:-1].copy())


def test_a_mixture_may_be_added_to_something():
    numbers = [x.requires_grad_() for x in inputs((2, 5), 3, 16)]
    base = torch.randn(2, 5, generator=torch.Generator().manual_seed(2)).requires_grad_()
    found, alone = mixture(*numbers, base), mixture(*numbers)
    assert torch.equal(found, base + alone)
    (grad,) = torch.autograd.grad(found.sum(), base)
    assert (grad == 1).all()
