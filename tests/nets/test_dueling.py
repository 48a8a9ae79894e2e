"""The dueling network: the same value and advantages whichever way they are asked for."""

from types import SimpleNamespace

import pytest
import torch

from headwise.nets import Dueling
from headwise.nets.branches import fits_branches, second_half
from headwise.population import Initializer, Keys, Packed, straight_gradients


def made(copies=()):
    init = Initializer(Keys(range(3)))
    return Dueling(init, 6, 5, (32, 32), 32, "relu", copies=copies)


@pytest.mark.parametrize("copies", [(), (2,), (2, 3)])
def test_every_way_to_ask_gives_the_same(copies):
    net = made(copies)
    x = torch.randn(3, *copies, 11, 6, generator=torch.Generator().manual_seed(0))
    value, advantages = net(x)
    assert value.shape == (3, *copies, 11)
    assert advantages.shape == (3, *copies, 11, 5)
    found = net.with_embedding(x)
    assert torch.equal(found[0], value)
    assert torch.equal(found[1], advantages)
    torch.testing.assert_close(net.value_alone(x), value)
    torch.testing.assert_close(net.advantages_alone(x), advantages)
    half = found[2][..., 32:]
    torch.testing.assert_close(net.advantage(half), advantages)


def test_the_embedding_passes_no_gradient_on():
    net = made()
    value, advantages, embedding = net.with_embedding(torch.ones(3, 4, 6))
    assert embedding.shape == (3, 4, net.embedding_size)
    assert value.requires_grad
    assert advantages.requires_grad
    assert not embedding.requires_grad


def test_the_second_half_has_its_own_gradients():
    net = made((2,))
    Packed(net)
    with straight_gradients():
        embedding = net.embedding.part()
        part = second_half(embedding)
    for whole, cut in zip(embedding, part, strict=True):
        assert torch.equal(whole[..., 32:], cut)
        assert cut.data_ptr() == whole.data_ptr() + 32 * 4
    assert second_half(net.embedding.part()).to_weight is None


def test_without_a_gpu_it_is_layer_by_layer():
    net, before = made(), torch.get_float32_matmul_precision()
    parts = net.embedding.part(), net.value.part(), net.advantage.part()
    torch.set_float32_matmul_precision("high")
    try:
        with torch.no_grad():
            assert not fits_branches(torch.ones(3, 4, 32), *parts)
            there = SimpleNamespace(device=torch.device("cuda"))
            assert fits_branches(there, *parts)  # so that nothing but the device is missing
    finally:
        torch.set_float32_matmul_precision(before)
