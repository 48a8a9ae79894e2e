"""The dueling network: the same value and advantages whichever way they are asked for."""

import pytest
import torch

from headwise import ActionSpec, Choice
from headwise.heads.blueprint import Blueprint
from headwise.heads.layout import Layout
from headwise.nets.dueling import Dueling
from headwise.ops import Buffer
from headwise.ops.network import definition
from headwise.population import Keys, Store

ROWS, WIDTH = 11, 8


def made(copies=1, leaves=(6,)):
    plan = Blueprint(
        layout=Layout(ActionSpec.of(a=Choice(5))), members=3, features=6, rows=20,
        device=torch.device("cpu"), net_arch=(16, 12), branch_width=WIDTH,
    )  # fmt: skip
    net = Dueling(plan, leaves, 5, copies)
    return net, Store(Keys(range(3)), net.parts)


def inputs(*leaves, seed=0):
    found = []
    for k, width in enumerate(leaves):
        found.append(Buffer(3, ROWS, width, gradient=True))
        found[-1].tensor.normal_(generator=torch.manual_seed(seed + k))
    return found


@pytest.mark.parametrize("copies", [1, 2, 6])
def test_every_way_to_ask_gives_the_same(copies):
    net, _ = made(copies)
    x = inputs(6)
    value, advantages, features = (y.tensor.clone() for y in net.forward(x))
    assert value.shape == (3, copies, ROWS, 1)
    assert advantages.shape == (3, copies, ROWS, 5)
    assert features.shape == (3, copies, ROWS, 2 * WIDTH)
    assert torch.equal(net.value(x).tensor, value)
    assert torch.equal(net.advantages(x).tensor, advantages)
    for copy in range(copies):
        net.rows(ROWS)[0].tensor.zero_()
        found, some, _ = net.forward(x, [copy])
        assert torch.equal(found.tensor[:, copy], value[:, copy])
        assert torch.equal(some.tensor[:, copy], advantages[:, copy])
        assert torch.equal(net.advantages(x, [copy]).tensor[:, copy], advantages[:, copy])
        others = [c for c in range(copies) if c != copy]
        assert (found.tensor[:, others] == 0.0).all()


@pytest.mark.parametrize("leaves", [(6,), (6, 2)])
@pytest.mark.parametrize("copies", [1, 2])
def test_values_and_gradients(copies, leaves):
    """The first half of the last hidden layer is for the value, the second for advantages."""
    net, store = made(copies, leaves)
    x = inputs(*leaves)
    flat = store.parameters.tensor.double().requires_grad_()
    given, parts, at = [b.tensor.double().requires_grad_() for b in x], [], 0
    for part in net.parts:
        parts.append(flat[..., at : at + part.size])
        at += part.size
    features = definition(net.parts[0], parts[0], given)[-1]
    value = definition(net.parts[1], parts[1], [features[..., :WIDTH]])[-1]
    advantages = definition(net.parts[2], parts[2], [features[..., WIDTH:]])[-1]

    found = net.forward(x)
    torch.testing.assert_close(found[0].tensor.double(), value, atol=2e-6, rtol=2e-6)
    torch.testing.assert_close(found[1].tensor.double(), advantages, atol=2e-6, rtol=2e-6)
    slopes = [torch.randn(y.tensor.shape, generator=torch.manual_seed(9)) for y in found[:2]]
    for y, slope in zip(net.rows(ROWS), slopes, strict=True):
        y.gradient.copy_(slope)
    store.parameters.gradient.fill_(torch.nan)
    net.backward(x)
    wanted = torch.autograd.grad([value, advantages], [flat, *given], [s.double() for s in slopes])
    ours = [store.parameters.gradient, *(b.gradient for b in x)]
    for mine, exact in zip(ours, wanted, strict=True):
        size = exact.abs().max()
        assert (mine.double() - exact).abs().max() < 3e-6 * size
    store.parameters.gradient.fill_(7.0)
    net.backward(x, weights=False, add=True)
    assert (store.parameters.gradient == 7.0).all()
    for b, exact in zip(x, wanted[1:], strict=True):
        torch.testing.assert_close(b.gradient.double(), 2.0 * exact, atol=1e-5, rtol=1e-5)
