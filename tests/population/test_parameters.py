"""Where parameters begin and lie: every part in one buffer, every layer with numbers of its own."""

import math

import pytest
import torch
from torch import nn

from headwise import ConfigError
from headwise.ops import Layer, Network
from headwise.population import Free, Keys, Store


def made(inputs, outputs, members=3, copies=1, **layer):
    net = Network([inputs], [Layer(outputs, **layer)], members, 4, copies=copies)
    store = Store(Keys(range(members)), [net])
    ((weight, bias),) = net.weights(store.parameters.tensor)
    return store, weight, bias


@pytest.mark.parametrize(("inputs", "outputs"), [(9, 256), (256, 3), (64, 64)])
def test_layers_begin_like_those_of_torch(inputs, outputs):
    _, weight, bias = made(inputs, outputs, members=8)
    bound = 1 / math.sqrt(inputs)  # fan-in, not fan-out
    for x in (weight, bias):
        assert x.abs().max() <= bound
    assert weight.abs().max() > 0.98 * bound
    assert bias.std() > 0.4 * bound
    assert abs(weight.var().item() / (bound**2 / 3) - 1) < 0.1
    torch.manual_seed(0)
    assert abs((weight.std() / nn.Linear(inputs, outputs).weight.std()).item() - 1) < 0.1


@pytest.mark.parametrize(("inputs", "outputs"), [(6, 6), (9, 4), (4, 9)])
def test_a_layer_with_a_gain_begins_orthogonal(inputs, outputs):
    _, weights, bias = made(inputs, outputs, copies=2, gain=2.0)
    for weight in weights.flatten(0, 1):
        small = weight.T @ weight if inputs >= outputs else weight @ weight.T
        assert torch.allclose(small, 4.0 * torch.eye(min(inputs, outputs)), atol=1e-4)
    assert (bias == 0).all()


def test_a_layer_of_parts_begins_as_several():
    """Two hypernetworks in one layer are each what they would be alone."""
    _, whole, _ = made(6, 5, parts=(3, 2))
    _, first, _ = made(6, 3)
    assert torch.equal(whole[..., :3], first)
    bound = 1 / math.sqrt(6)
    assert (whole.abs() <= bound).all()
    assert not torch.equal(whole[..., 3:], whole[..., :2])


def test_members_copies_and_layers_begin_differently_and_the_same_again():
    def every():
        parts = [Network([4], [Layer(4), Layer(4)], 3, 4, copies=2) for _ in "ab"]
        store = Store(Keys(range(3)), parts)
        found, at = [], 0
        for part in parts:
            own = store.parameters.tensor[..., at : at + part.size]
            found += [w.flatten(0, 1) for w, _ in part.weights(own)]
            at += part.size
        return store, torch.cat(found)

    store, weights = every()
    assert len({tuple(w.flatten().tolist()) for w in weights}) == 24
    assert torch.equal(every()[1], weights)
    assert store.next == 4
    net = Network([4], [Layer(4)], 3, 4, copies=2)
    later = Store(Keys(range(3)), [net], first=store.next)
    new = net.weights(later.parameters.tensor)[0][0].flatten(0, 1)
    assert not any(torch.equal(w, x) for w in new for x in weights)


def test_a_member_begins_alone_as_in_company():
    together, _, _ = made(5, 7, copies=2)
    for p in range(3):
        net = Network([5], [Layer(7)], 1, 4, copies=2)
        assert torch.equal(Store(Keys([p]), [net]).rows()[0], together.rows()[p])


def test_what_pads_rows_is_zero_and_stays_so():
    store, weight, bias = made(5, 7)
    assert store.num_parameters == 5 * 7 + 7
    used = weight.abs().sum() + bias.abs().sum()
    torch.testing.assert_close(store.parameters.tensor.abs().sum(), used)


def test_parts_share_the_stores_memory_and_begin_where_vectors_do():
    parts = [Free(3, 0.25), Network([5], [Layer(7)], 3, 4), Network([2], [Layer(1)], 3, 4)]
    store = Store(Keys(range(3)), parts)
    assert [part.size % 16 for part in parts] == [0, 0, 0]
    assert store.num_parameters == 3 + 42 + 3
    store.parameters.tensor.fill_(3.0)
    for part in parts:
        own = part.buffer if isinstance(part, Free) else part.parameters
        assert (own.tensor == 3.0).all()
        assert own.tensor.data_ptr() % 64 == 0


def test_rows_and_back():
    store, weight, _ = made(5, 7)
    rows = store.rows()
    assert rows.shape == (3, store.parameters.width)
    store.parameters.tensor.zero_()
    assert (weight == 0.0).all()
    store.load_rows(rows)
    assert torch.equal(store.rows(), rows)
    with pytest.raises(ConfigError, match=r"do not fit the network; got \(2, .*allowed: \(3, "):
        store.load_rows(rows[:2])
    with pytest.raises(ConfigError, match="do not fit the network"):
        store.load_rows(rows[:, 1:])


def test_orthogonal_values_are_the_same_on_any_number_of_threads():
    def rows(threads):
        torch.set_num_threads(threads)
        net = Network([24], [Layer(40, "tanh", 1.0), Layer(96, None, 1.0)], 3, 1)
        found = Store(Keys([3, 1, 4]), [net]).rows()
        assert torch.get_num_threads() == threads
        return found.clone()

    before = torch.get_num_threads()
    try:
        one, *more = (rows(threads) for threads in (1, 2, 3))
    finally:
        torch.set_num_threads(before)
    assert one.std() > 0.05
    assert all(torch.equal(other, one) for other in more)
