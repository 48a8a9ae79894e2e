"""Adam on a store: torch's own member by member, clipped, and frozen where a member diverged."""

import pytest
import torch

from headwise.ops import Layer, Network
from headwise.ops.buffers import Buffer
from headwise.population import Adam, Free, Keys, Store, settings

RATES = (1e-2, 1e-3, 5e-2)


def store_of(seeds=(0, 1, 2), leaves=(4,), width=3):
    net = Network(leaves, [Layer(width)], len(seeds), 8)
    return Store(Keys(seeds), [net])


def population(seeds=(0, 1, 2), **given):
    store = store_of(seeds)
    rates = settings(store.keys, RATES[: len(seeds)], "lr")
    return store, Adam(store, rates, **given)


def slope(store, seed, scale=1.0):
    """A gradient, none of it in what pads rows; a member's own follows from its seed."""
    store.parameters.gradient.zero_()
    for weight, bias in store.parts[0].weights(store.parameters.gradient):
        for x in (weight, bias):
            for p, own in enumerate(store.keys.seeds):
                generator = torch.manual_seed(1000 * seed + own)
                x[p] = scale * torch.randn(x[p].shape, generator=generator)


@pytest.fixture(params=[True, False], ids=["compiled", "definition"])
def either(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(Buffer, "is_compiled", property(lambda _: False))


@pytest.mark.usefixtures("either")
def test_equals_torch_adam_member_by_member():
    store, adam = population(max_norm=0.7)
    copies = []
    for p, lr in enumerate(RATES):
        parameter = torch.nn.Parameter(store.parameters.tensor[p].clone())
        copies.append((parameter, torch.optim.Adam([parameter], lr=lr)))
    for k in range(20):
        slope(store, k, scale=0.1 * (1 + k))
        for p, (parameter, theirs) in enumerate(copies):
            parameter.grad = store.parameters.gradient[p].clone()
            norm = torch.nn.utils.clip_grad_norm_([parameter], 0.7)
            theirs.step()
            copies[p] = parameter, theirs
            copies[p][1].last_norm = norm
        adam.step()
        for p, (_, theirs) in enumerate(copies):
            torch.testing.assert_close(
                adam.norm.tensor[p].squeeze(), theirs.last_norm, rtol=1e-4, atol=0
            )
    for p, (parameter, _) in enumerate(copies):
        torch.testing.assert_close(store.parameters.tensor[p], parameter.data, atol=2e-6, rtol=0)


def test_the_compiled_step_equals_the_definition(monkeypatch):
    (store, compiled), (other, defined) = (population(max_norm=0.5) for _ in "ab")
    behind, following = store_of((10, 11, 12)), store_of((10, 11, 12))
    for k in range(10):
        slope(store, k)
        slope(other, k)
        compiled.step(behind, 0.25)
        with monkeypatch.context() as patch:
            patch.setattr(Buffer, "is_compiled", property(lambda _: False))
            defined.step(following, 0.25)
    for x, y in ((store, other), (behind, following)):
        torch.testing.assert_close(x.parameters.tensor, y.parameters.tensor, atol=1e-6, rtol=0)
    for name in ("mean", "square", "norm"):
        x, y = (getattr(adam, name).tensor for adam in (compiled, defined))
        torch.testing.assert_close(x, y, atol=1e-6, rtol=1e-5)
    assert torch.equal(compiled.count.longs, defined.count.longs)
    assert (compiled.count.longs == 10).all()


@pytest.mark.usefixtures("either")
def test_a_diverged_member_is_frozen_and_the_others_never_notice():
    def run(poisoned):
        store, adam = population()
        behind, frozen = store_of((10, 11, 12)), None
        for k in range(6):
            slope(store, k)
            if poisoned is not None and k == 2:
                store.parameters.gradient[1, 0, 0, 0] = poisoned
                frozen = [x.parameters.tensor[1].clone() for x in (store, behind)]
            adam.step(behind, 0.25)
        return store, behind, adam, frozen

    clean, clean_behind, clean_adam, _ = run(None)
    assert (clean_adam.alive.tensor == 1.0).all()
    for poison in (torch.nan, torch.inf):
        sick, sick_behind, adam, frozen = run(poison)
        assert adam.alive.tensor.flatten().tolist() == [1.0, 0.0, 1.0]
        assert torch.equal(sick.parameters.tensor[1], frozen[0])
        assert torch.equal(sick_behind.parameters.tensor[1], frozen[1])
        for p in (0, 2):
            assert torch.equal(sick.parameters.tensor[p], clean.parameters.tensor[p])
            assert torch.equal(sick_behind.parameters.tensor[p], clean_behind.parameters.tensor[p])
        for name in ("values", "mean", "square"):
            assert torch.isfinite(adam.state_dict()[name]).all()


@pytest.mark.usefixtures("either")
def test_a_member_alone_is_itself_in_company():
    def run(seeds, rates):
        store = store_of(seeds)
        adam = Adam(store, settings(store.keys, rates, "lr"), max_norm=0.5)
        for k in range(5):
            slope(store, k)
            adam.step()
        return store.rows()

    together = run((0, 1, 2), RATES)
    for p, rate in enumerate(RATES):
        assert torch.equal(run((p,), (rate,))[0], together[p])


def test_state_goes_into_a_fresh_optimizer():
    store, adam = population(max_norm=1.0)
    for k in range(4):
        slope(store, k)
        adam.step()
    state = {name: tensor.clone() for name, tensor in adam.state_dict().items()}
    for k in range(4, 8):
        slope(store, k)
        adam.step()
    other, fresh = population(max_norm=1.0)
    fresh.load_state_dict(state)
    for k in range(4, 8):
        slope(other, k)
        fresh.step()
    assert torch.equal(other.parameters.tensor, store.parameters.tensor)
    assert all(x.shape[0] == 3 for x in state.values())  # members first
    assert all(not torch.equal(state[n], adam.state_dict()[n]) for n in ("values", "mean", "count"))


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("rate", [0.0, 0.25, 1.0])
def test_a_follower_moves_a_part_of_the_way_to_the_new_values(rate):
    store, adam = population()
    behind = store_of((10, 11, 12))
    before = behind.parameters.tensor.clone()
    slope(store, 0)
    adam.step(behind, rate)
    expected = before + rate * (store.parameters.tensor - before)
    torch.testing.assert_close(behind.parameters.tensor, expected)
    if rate == 0.0:
        assert torch.equal(behind.parameters.tensor, before)


@pytest.mark.usefixtures("either")
def test_a_member_that_diverged_in_one_optimizer_has_in_all_that_share_its_fate():
    store, adam = population()
    other = store_of()
    beside = Adam(other, 0.1, alive=adam.alive)
    slope(store, 0)
    store.parameters.gradient[1, 0, 0, 0] = torch.nan
    adam.step()
    before = other.parameters.tensor.clone()
    slope(other, 1)
    beside.step()
    assert torch.equal(other.parameters.tensor[1], before[1])
    assert (other.parameters.tensor[[0, 2]] != before[[0, 2]]).any()
    slope(other, 2)
    other.parameters.gradient[2, 0, 0, 0] = torch.nan
    beside.step()
    assert adam.alive.tensor.flatten().tolist() == [1.0, 0.0, 0.0]


@pytest.mark.usefixtures("either")
def test_a_gradient_beyond_the_maximum_is_shortened_and_no_other():
    small, large = population(max_norm=1.0), population(max_norm=1e6)
    for store, adam in (small, large):
        slope(store, 0, scale=1e-3)
        adam.step()
    assert torch.equal(small[0].parameters.tensor, large[0].parameters.tensor)
    store, adam = population(max_norm=0.5)
    slope(store, 0, scale=10.0)
    length = store.parameters.gradient.flatten(1).norm(dim=-1)
    adam.step()
    torch.testing.assert_close(adam.norm.tensor.flatten(), length, rtol=1e-5, atol=0)
    first = 0.1 * 0.5 / length.view(-1, 1, 1, 1) * store.parameters.gradient
    torch.testing.assert_close(adam.mean.tensor, first, rtol=1e-4, atol=1e-7)


def test_numbers_that_belong_to_no_network_learn_as_well():
    store = Store(Keys((0, 1)), [Free(3, -0.5)])
    assert store.num_parameters == 3
    adam, free = Adam(store, 0.1), store.parts[0]
    assert (free.buffer.tensor == -0.5).all()
    store.parameters.gradient.zero_()
    free.buffer.gradient[..., 1] = 2.0
    adam.step()
    expected = torch.tensor([-0.5, -0.6, -0.5]).expand(2, 1, 1, 3)
    torch.testing.assert_close(free.buffer.tensor, expected)
    assert (store.parameters.tensor[..., 3:] == 0.0).all()
