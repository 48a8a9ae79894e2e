import math

import pytest
import torch
from torch import nn

from headwise.population import (
    Initializer,
    Keys,
    LayerNorm,
    Linear,
    Packed,
    Stream,
    held_constant,
    lift,
    straight_gradients,
)


def initializer(members=3):
    return Initializer(Keys(range(members)))


@pytest.mark.parametrize(("inputs", "outputs"), [(5, 7), (9, 256), (4, 1)])
def test_linear_equals_vmapped_nn_linear(inputs, outputs):
    stacked = Linear(initializer(), inputs, outputs)

    def member(p):
        layer = nn.Linear(inputs, outputs)
        layer.weight.data = stacked.weight[p].detach().T.clone()
        layer.bias.data = stacked.bias[p, 0].detach().clone()
        return layer

    lifted = lift(member, 3)
    x = torch.randn(3, 11, inputs)
    assert torch.allclose(stacked(x), lifted(x), atol=1e-5)
    # and so do the gradients
    seed = torch.randn(3, 11, outputs)
    ours = torch.autograd.grad((stacked(x) * seed).sum(), stacked.weight)[0]
    theirs = torch.autograd.grad((lifted(x) * seed).sum(), lifted.stacked[0])[0]
    assert torch.allclose(ours, theirs.transpose(-1, -2), atol=1e-4)


def test_copies_are_one_more_stacked_axis():
    layer = Linear(initializer(), 5, 7, copies=(4,))
    x = torch.randn(3, 4, 6, 5)
    out = layer(x)
    assert out.shape == (3, 4, 6, 7)
    expected = torch.einsum("pcbi,pcio->pcbo", x, layer.weight) + layer.bias
    assert torch.allclose(out, expected, atol=1e-5)
    for copy in range(4):
        assert torch.allclose(layer.one(copy, x[:, copy]), out[:, copy], atol=1e-6)


@pytest.mark.parametrize(("inputs", "outputs"), [(9, 256), (256, 3), (64, 64)])
def test_default_initialisation_is_that_of_nn_linear(inputs, outputs):
    layer = Linear(initializer(8), inputs, outputs)
    bound = 1 / math.sqrt(inputs)  # fan-in, not fan-out
    for tensor in (layer.weight, layer.bias):
        assert tensor.abs().max() <= bound
    assert layer.weight.abs().max() > 0.98 * bound
    assert abs(layer.weight.detach().var().item() / (bound**2 / 3) - 1) < 0.1
    torch.manual_seed(0)
    theirs = nn.Linear(inputs, outputs).weight
    assert abs((layer.weight.std() / theirs.std()).item() - 1) < 0.1


@pytest.mark.parametrize(("inputs", "outputs"), [(6, 6), (9, 4), (4, 9)])
def test_orthogonal_initialisation(inputs, outputs):
    layer = Linear(initializer(), inputs, outputs, gain=2.0)
    for weight in layer.weight:
        small = weight.T @ weight if inputs >= outputs else weight @ weight.T
        assert torch.allclose(small, 4.0 * torch.eye(min(inputs, outputs)), atol=1e-4)
    assert (layer.bias == 0).all()


def test_members_copies_and_layers_begin_differently():
    init = initializer()
    first, second = Linear(init, 4, 4, copies=(2,)), Linear(init, 4, 4, copies=(2,))
    flat = torch.cat([first.weight.flatten(0, 1), second.weight.flatten(0, 1)])
    assert len({tuple(w.flatten().tolist()) for w in flat}) == 12
    again = Linear(initializer(), 4, 4, copies=(2,))
    assert torch.equal(again.weight, first.weight)


def test_layer_norm_equals_nn_layer_norm():
    layer = LayerNorm(initializer(), 6)
    layer.weight.data.uniform_()
    layer.bias.data.uniform_()
    x = torch.randn(3, 5, 6)
    for p in range(3):
        theirs = nn.functional.layer_norm(x[p], (6,), layer.weight[p, 0], layer.bias[p, 0])
        assert torch.allclose(layer(x)[p], theirs, atol=1e-6)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("batch", "inputs", "outputs"),
    [(16, 3, 64), (128, 64, 64), (256, 9, 256), (256, 256, 256), (128, 256, 23), (64, 256, 1)],
)
def test_a_member_computes_the_same_alone_and_in_company(threads, batch, inputs, outputs):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        together = Linear(initializer(5), inputs, outputs)
        x, seed = torch.randn(5, batch, inputs), torch.randn(5, batch, outputs)
        out = together(x)
        grad = torch.autograd.grad((out * seed).sum(), together.weight)[0]
        for p in range(5):
            alone = Linear(Initializer(Keys([p])), inputs, outputs)
            one = alone(x[p : p + 1])
            assert torch.equal(one[0], out[p])
            mine = torch.autograd.grad((one * seed[p : p + 1]).sum(), alone.weight)[0]
            assert torch.equal(mine[0], grad[p])
    finally:
        torch.set_num_threads(before)


# --- gradients that layers add up themselves ------------------------------------------------------


def some_network():
    init = initializer()
    sizes = ((5, 8, (2,)), (8, 20, (2,)), (20, 1, ()))
    layers = nn.ModuleList(Linear(init, a, b, copies=copies) for a, b, copies in sizes)
    return layers, Packed(layers)


def some_loss(layers, x):
    """By every way to call a layer: all copies, one of them, some outputs, a single output."""
    first = layers[0](x.unsqueeze(1).expand(-1, 2, -1, -1), "relu")
    second = layers[1](first, "tanh")
    one = layers[1].one(1, first[:, 0], "elu")
    few = layers[1].first(6, first, "tanh").square().sum()
    return layers[2](second[:, 1] + one).square().sum() + few


def test_layers_add_up_the_same_gradients_as_autograd():
    x = Keys(range(3)).uniform(Stream.ACT, 1, (7, 5))
    layers, packed = some_network()
    torch.autograd.backward(some_loss(layers, x))
    expected = packed.grads.clone()
    assert (expected != 0).any()
    packed.zero_grad()
    with straight_gradients():
        loss = some_loss(layers, x)
    torch.autograd.backward(loss)
    torch.testing.assert_close(packed.grads, expected, rtol=1e-5, atol=1e-6)
    with straight_gradients():  # they add up, like autograd's
        loss = some_loss(layers, x)
    torch.autograd.backward(loss)
    torch.testing.assert_close(packed.grads, 2 * expected, rtol=1e-5, atol=1e-6)


def test_outside_gradients_are_autograds_own():
    x = Keys(range(3)).uniform(Stream.ACT, 1, (7, 5))
    layers, packed = some_network()
    with straight_gradients(), straight_gradients():
        pass
    (grad,) = torch.autograd.grad(some_loss(layers, x), layers[0].weight)
    assert (grad != 0).any()
    assert (packed.grads == 0).all()


def test_what_is_held_constant_passes_gradients_on():
    x = Keys(range(3)).uniform(Stream.ACT, 1, (7, 5)).requires_grad_()
    layers, packed = some_network()
    (expected,) = torch.autograd.grad(some_loss(layers, x), x)
    with straight_gradients(), held_constant(packed):
        loss = some_loss(layers, x)
    torch.autograd.backward(loss)
    torch.testing.assert_close(x.grad, expected)
    assert (packed.grads == 0).all()
    assert all(parameter.requires_grad for parameter in packed.parameters)
