"""Value and advantages as one kernel, against layer by layer: equal to what TF32 rounds."""

from dataclasses import dataclass

import pytest
import torch

from headwise.nets import Dueling
from headwise.nets.branches import (
    _MANY_PROGRAMS,
    _MANY_ROWS,
    branch,
    fits_branches,
    second_half,
    two_branches,
)
from headwise.population import Initializer, Keys, Packed, held_constant, straight_gradients

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

STACKS = {(): None, (2,): 1, (3,): None, (2, 3): 1}
"""Axes of copies, and which of them the features have in common, if any."""
USES = ("both", "value", "advantages")


@dataclass
class Dimensions:
    features: int = 256
    width: int = 128
    outputs: int = 7


def near(one, other):
    """Whether numbers differ by no more than what rounding to TF32 does to them."""
    return (one - other).abs().max() <= 1e-2 * other.abs().max()


@pytest.fixture
def tf32():
    before = torch.get_float32_matmul_precision()
    yield lambda name: torch.set_float32_matmul_precision(name)
    torch.set_float32_matmul_precision(before)


def made(size, copies=()):
    init = Initializer(Keys(range(5), "cuda"))
    net = Dueling(init, 6, size.outputs, (size.features,), size.width, "relu", copies=copies)
    for bias in (net.embedding.bias, net.value.bias, net.advantage.bias):
        torch.nn.init.normal_(bias, std=0.3)
    return net, Packed(net)


def parts(net, use):
    """The layers above the encoder that a use of the network needs."""
    if use == "both":
        return net.embedding.part(), net.value.part(), net.advantage.part()
    if use == "value":
        return net.embedding.part(net.embedding_size // 2), net.value.part()
    return second_half(net.embedding.part()), net.advantage.part()


def fused(net, features, use):
    layers = parts(net, use)
    assert fits_branches(features, *layers)
    if use == "both":
        return two_branches(features, *layers, keep=True)
    return (branch(features, *layers),)


def by_layers(net, features, use):
    embedding = net.embedding(features, "tanh")
    for_value, for_advantages = embedding.chunk(2, dim=-1)
    if use == "both":
        value, advantages = net.value(for_value).squeeze(-1), net.advantage(for_advantages)
        return value, advantages, embedding.detach()
    return (net.value(for_value) if use == "value" else net.advantage(for_advantages),)


def compare(tf32, net, packed, x, use, missing=None):
    """Outputs and gradients of both ways; gradients are added to what is there."""
    found = []
    slopes = None
    for way, precision in ((fused, "high"), (by_layers, "highest")):
        tf32(precision)
        packed.grads.fill_(0.25)
        x.grad = None
        with straight_gradients():
            outputs = way(net, x, use)
        live = [y for i, y in enumerate(outputs) if y.requires_grad and i != missing]
        slopes = slopes or [torch.randn_like(y) for y in live]
        torch.autograd.backward(live, slopes)
        by_parameters = [p.grad - 0.25 for p in packed.parameters]
        found.append([y.detach() for y in outputs] + [x.grad.clone(), *by_parameters])
    for one, other in zip(*found, strict=True):
        assert one.shape == other.shape
        assert near(one, other)


@pytest.mark.parametrize("copies", STACKS)
@pytest.mark.parametrize(("features", "width"), [(256, 128), (64, 32)])
@pytest.mark.parametrize("rows", [16, 100, 256])
@pytest.mark.parametrize("outputs", [1, 7, 40])
@pytest.mark.parametrize("use", USES)
def test_both_ways(tf32, copies, features, width, rows, outputs, use):
    torch.manual_seed(0)
    net, packed = made(Dimensions(features, width, outputs), copies)
    shape, shared = [5, *copies, rows, features], STACKS[copies]
    x = torch.randn([1 if i == shared else n for i, n in enumerate(shape)], device="cuda")
    x = x.expand(shape).requires_grad_()
    compare(tf32, net, packed, x, use)
    with torch.no_grad():
        tf32("high")
        outputs = fused(net, x, use)
        tf32("highest")
        for one, other in zip(outputs, by_layers(net, x, use), strict=True):
            assert near(one, other)


@pytest.mark.parametrize(("features", "width"), [(256, 128), (64, 32)])
@pytest.mark.parametrize("use", USES)
def test_many_networks_take_more_rows_at_a_time(tf32, features, width, use):
    torch.manual_seed(0)
    net, packed = made(Dimensions(features, width), (7,))
    x = torch.randn(5, 7, 250, features, device="cuda", requires_grad=True)
    assert x[..., 0].numel() >= _MANY_PROGRAMS * _MANY_ROWS
    compare(tf32, net, packed, x, use)


@pytest.mark.parametrize("missing", [0, 1])
def test_an_output_without_a_gradient_adds_nothing(tf32, missing):
    torch.manual_seed(0)
    net, packed = made(Dimensions())
    x = torch.randn(5, 100, 256, device="cuda", requires_grad=True)
    compare(tf32, net, packed, x, "both", missing)


@pytest.mark.parametrize("use", USES)
def test_constant_weights_pass_gradients_on(tf32, use):
    torch.manual_seed(0)
    net, packed = made(Dimensions(), (2,))
    x = torch.randn(5, 2, 64, 256, device="cuda", requires_grad=True)
    found = []
    for way, precision in ((fused, "high"), (by_layers, "highest")):
        tf32(precision)
        x.grad = None
        packed.zero_grad()
        with straight_gradients(), held_constant(packed):
            outputs = way(net, x, use)
        sum(y.square().sum() for y in outputs[:2]).backward()
        assert not packed.grads.any()
        found.append(x.grad.clone())
    assert near(*found)


@pytest.mark.parametrize("copies", STACKS)
@pytest.mark.parametrize("outputs", [7, 200])
def test_a_dueling_network_is_the_same_both_ways(tf32, copies, outputs):
    """Also where it has too many outputs for the kernel."""
    torch.manual_seed(0)
    net, packed = made(Dimensions(outputs=outputs), copies)
    x = torch.randn(5, *copies, 100, 6, device="cuda")
    found = []
    for precision in ("high", "highest"):
        tf32(precision)
        packed.zero_grad()
        with straight_gradients():
            value, advantages = net(x)
            same_value, same_advantages, embedding = net.with_embedding(x)
            alone, others = net.value_alone(x), net.advantages_alone(x)
        assert not embedding.requires_grad
        assert torch.equal(same_value, value)
        assert torch.equal(same_advantages, advantages)
        total = value.square().sum() + advantages.square().sum()
        (total + alone.square().sum() + others.square().sum()).backward()
        numbers = (value, advantages, embedding, alone, others)
        found.append([y.detach() for y in numbers] + [p.grad.clone() for p in packed.parameters])
    for one, other in zip(*found, strict=True):
        assert (one - other).norm() < 0.05 * other.norm()  # a relu may have crossed zero


def test_one_copy_alone(tf32):
    torch.manual_seed(0)
    net, packed = made(Dimensions(), (2, 3))
    x = torch.randn(5, 40, 256, device="cuda", requires_grad=True)
    found = []
    for precision in ("high", "highest"):
        tf32(precision)
        packed.zero_grad()
        x.grad = None
        with straight_gradients():
            embedding, output = second_half(net.embedding.part_of((1, 2))), net.advantage
            if precision == "high":
                y = branch(x, embedding, output.part_of((1, 2)))
            else:
                y = output.one((1, 2), net.embedding.one((1, 2), x, "tanh")[..., 128:])
        y.square().sum().backward()
        found.append([y.detach(), x.grad.clone(), *(p.grad.clone() for p in packed.parameters)])
    for one, other in zip(*found, strict=True):
        assert near(one, other)


def test_what_it_does_not_fit(tf32):
    net, _ = made(Dimensions(outputs=64))
    x = torch.randn(5, 8, 256, device="cuda")
    tf32("high")
    assert not fits_branches(x, *parts(net, "both"))  # nobody adds its gradients up
    with torch.no_grad():
        assert all(fits_branches(x, *parts(net, use)) for use in USES)
        many, _ = made(Dimensions(outputs=65))
        assert not fits_branches(x, *parts(many, "advantages"))
        assert fits_branches(x, *parts(many, "value"))
        odd, _ = made(Dimensions(width=48))
        assert not any(fits_branches(x, *parts(odd, use)) for use in USES)
        tf32("highest")
        assert not fits_branches(x, *parts(net, "both"))
