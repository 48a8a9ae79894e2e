"""Two layers as one kernel, against layer by layer in float32: equal to what TF32 rounds."""

import pytest
import torch

from headwise.nets import MLP
from headwise.nets.two_layers import fits_output, fits_two_layers
from headwise.population import (
    Initializer,
    Keys,
    Linear,
    Packed,
    held_constant,
    straight_gradients,
)

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

STACKS = {(): None, (2,): 1, (3,): None, (2, 3): 1}
"""Axes of copies, and which of them the inputs have in common, if any."""


def near(one, other, activation):
    """Whether numbers differ by no more than what rounding to TF32 does to them.

    A relu that has just crossed zero passes its whole gradient on, or nothing; so there single
    numbers may be far apart, but not many.
    """
    error = one - other
    if activation == "relu":
        return error.norm() < 0.05 * other.norm()
    return error.abs().max() < 1e-2 * other.abs().max()


@pytest.fixture
def tf32():
    before = torch.get_float32_matmul_precision()
    yield lambda name: torch.set_float32_matmul_precision(name)
    torch.set_float32_matmul_precision(before)


def made(hidden, features, activation, copies):
    init = Initializer(Keys(range(5), "cuda"))
    return MLP(init, features, hidden, activation, copies=copies)


def made_output(features, outputs, copies):
    init = Initializer(Keys(range(5), "cuda"), first=10)
    return Linear(init, features, outputs, copies=copies) if outputs else None


def inputs(features, rows, copies, shared):
    shape = [5, *copies, rows, features]
    x = torch.randn([1 if shared == i else n for i, n in enumerate(shape)], device="cuda")
    return x.expand(shape)


@pytest.mark.parametrize("copies", STACKS)
@pytest.mark.parametrize(
    ("hidden", "features"), [((256, 256), 24), ((128, 128), 8), ((32, 64), 70)]
)
@pytest.mark.parametrize("rows", [16, 100, 256])
@pytest.mark.parametrize("activation", ["relu", "tanh", "elu"])
@pytest.mark.parametrize("outputs", [0, 1, 7, 40])
def test_both_ways(tf32, copies, hidden, features, rows, activation, outputs):
    torch.manual_seed(0)
    net = made(hidden, features, activation, copies)
    output = made_output(hidden[-1], outputs, copies)
    packed = Packed(net) if output is None else Packed(net, output)
    x = inputs(features, rows, copies, STACKS[copies]).clone().requires_grad_()
    slope = torch.randn(*x.shape[:-1], outputs or hidden[-1], device="cuda")
    found = []
    for precision in ("high", "highest"):
        tf32(precision)
        parts = [layer.part() for layer in net.layers]
        packed.zero_grad()
        x.grad = None
        with straight_gradients():
            out = net(x, output)
        torch.autograd.backward(out, slope)
        with torch.no_grad():
            torch.testing.assert_close(net(x, output), out.detach())
            assert fits_two_layers(x, *parts) == (precision == "high")
        found.append((out.detach(), x.grad.clone(), packed.grads.clone()))
    for one, other in zip(*found, strict=True):
        assert near(one, other, activation)


@pytest.mark.parametrize("copies", STACKS)
def test_strided_inputs_one_copy_and_constant_weights(tf32, copies):
    torch.manual_seed(0)
    net = made((256, 256), 20, "relu", copies)
    output = made_output(256, 3, copies)
    packed = Packed(net, output)
    wide = torch.randn(5, *copies, 64, 50, device="cuda", requires_grad=True)
    found = []
    for precision in ("high", "highest"):
        tf32(precision)
        wide.grad = None
        packed.zero_grad()
        with straight_gradients(), held_constant(packed):
            net(wide[..., 7:27], output).square().sum().backward()
        assert not packed.grads.any()
        one = (0,) * len(copies)
        alone = net.one(one, wide[(slice(None), *one)][..., :20], output)
        found.append((wide.grad.clone(), alone.detach()))
    for one, other in zip(*found, strict=True):
        assert near(one, other, "relu")


def test_without_straight_gradients_it_is_layer_by_layer(tf32):
    tf32("high")
    net = made((32, 32), 4, "relu", ())
    parts = [layer.part() for layer in net.layers]
    x = torch.randn(5, 8, 4, device="cuda")
    assert not fits_two_layers(x, *parts)
    with torch.no_grad():
        assert fits_two_layers(x, *parts)


def test_more_outputs_than_fit_follow_as_a_layer_of_their_own(tf32):
    tf32("high")
    net, output = made((32, 32), 4, "relu", ()), made_output(32, 200, ())
    x = torch.randn(5, 8, 4, device="cuda")
    with torch.no_grad():
        assert not fits_output(output.part())
        torch.testing.assert_close(net(x, output), output(net(x)))
