import pytest
import torch

from headwise.population import Adam, Initializer, Keys, Linear, Packed


def population(members=3, lr=(1e-2, 1e-3, 5e-2), **settings):
    layer = Linear(Initializer(Keys(range(members))), 4, 3)
    return layer, Adam(Packed(layer), torch.tensor(lr[:members]), **settings)


def step(layer, adam, x):
    loss = layer(x).square().sum((-1, -2))
    loss.sum().backward()
    adam.step()


def test_packing_shares_memory_with_the_layers():
    layer, adam = population()
    packed = adam.packed
    packed.values.zero_()
    assert (layer.weight == 0).all()
    step(layer, adam, torch.randn(3, 5, 4))
    assert layer.weight.grad.data_ptr() == packed.grads.data_ptr()
    assert layer.weight.is_contiguous()
    assert packed.num_parameters == 4 * 3 + 3


def test_rows_and_back():
    layer, adam = population()
    packed = adam.packed
    rows = packed.rows(packed.values)
    assert rows.shape == (3, 15)
    assert torch.equal(rows[1], torch.cat([layer.weight[1].flatten(), layer.bias[1].flatten()]))
    changed = torch.randn_like(rows)
    packed.load_rows(packed.values, changed)
    assert torch.equal(packed.rows(packed.values), changed)


def test_equals_torch_adam_member_by_member():
    layer, adam = population(max_norm=0.7)
    copies = []
    for p, lr in enumerate((1e-2, 1e-3, 5e-2)):
        weight = torch.nn.Parameter(layer.weight[p].detach().clone())
        bias = torch.nn.Parameter(layer.bias[p].detach().clone())
        copies.append((weight, bias, torch.optim.Adam([weight, bias], lr=lr)))
    for k in range(20):
        x = torch.randn(3, 5, 4) * (1 + k)
        step(layer, adam, x)
        for p, (weight, bias, theirs) in enumerate(copies):
            theirs.zero_grad()
            (x[p] @ weight + bias).square().sum().backward()
            norm = torch.nn.utils.clip_grad_norm_([weight, bias], 0.7)
            assert torch.allclose(adam.norm[p], norm, rtol=1e-4)
            theirs.step()
    for p, (weight, bias, _) in enumerate(copies):
        assert torch.allclose(layer.weight[p], weight, atol=2e-6)
        assert torch.allclose(layer.bias[p], bias, atol=2e-6)


def test_the_compiled_step_equals_the_tensor_step():
    (layer, compiled), (other, tensors) = population(max_norm=0.5), population(max_norm=0.5)
    for _ in range(10):
        x = torch.randn(3, 5, 4)
        step(layer, compiled, x)
        other(x).square().sum().backward()
        tensors.clock.advance()
        tensors._step_tensors()
        tensors.packed.zero_grad()
    assert torch.allclose(layer.weight, other.weight, atol=1e-6)
    assert torch.allclose(compiled.mean, tensors.mean, atol=1e-6)
    assert torch.allclose(compiled.norm, tensors.norm, rtol=1e-5)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_diverged_member_is_frozen_and_the_others_never_notice(compiled):
    def run(poisoned):
        layer, adam = population()
        generator = torch.Generator().manual_seed(0)
        for k in range(6):
            x = torch.randn(3, 5, 4, generator=generator)
            if poisoned and k == 2:
                x[1, 0, 0] = torch.nan
            loss = layer(x).square().sum((-1, -2))
            loss.sum().backward()
            if compiled:
                adam.step()
            else:
                adam.clock.advance()
                adam._step_tensors()
                adam.packed.zero_grad()
            if poisoned and k == 2:
                frozen = layer.weight[1].detach().clone()
        return layer, adam, frozen if poisoned else None

    clean, clean_adam, _ = run(poisoned=False)
    sick, sick_adam, frozen = run(poisoned=True)
    assert clean_adam.alive.tolist() == [True, True, True]
    assert sick_adam.alive.tolist() == [True, False, True]
    assert torch.isfinite(sick.weight).all()
    assert torch.equal(sick.weight[1], frozen)
    for p in (0, 2):
        assert torch.equal(sick.weight[p], clean.weight[p])


def test_state_goes_into_a_fresh_optimiser():
    layer, adam = population(max_norm=1.0)
    data = [torch.randn(3, 5, 4) for _ in range(8)]
    for x in data[:4]:
        step(layer, adam, x)
    state = {name: tensor.clone() for name, tensor in adam.state_dict().items()}
    for x in data[4:]:
        step(layer, adam, x)
    other, fresh = population(max_norm=1.0)
    fresh.load_state_dict(state)
    for x in data[4:]:
        step(other, fresh, x)
    assert torch.equal(other.weight, layer.weight)


def test_a_follower_moves_a_part_of_the_way_to_the_new_values():
    layer, adam = population()
    behind = Packed(Linear(Initializer(Keys(range(10, 13))), 4, 3))
    before = behind.values.clone()
    layer(torch.randn(3, 5, 4)).square().sum().backward()
    adam.step(behind, 0.25)
    expected = before + 0.25 * (adam.packed.values - before)
    torch.testing.assert_close(behind.values, expected)


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"),
    reason="where torch has no fused multiply-add, it rounds twice",
)
@pytest.mark.parametrize("rate", [0.0, 0.005, 0.5, 0.7, 1.0])
def test_a_follower_moves_as_torch_would_move_it_to_the_bit(rate):
    layer = Linear(Initializer(Keys(range(3))), 37, 41)
    packed = Packed(layer)
    adam = Adam(packed, torch.full((3,), 1e-2))
    behind = Packed(Linear(Initializer(Keys(range(10, 13))), 37, 41))
    alone = behind.values.clone()
    for _ in range(3):
        packed.grads.normal_(generator=torch.Generator().manual_seed(0))
        adam.step(behind, rate)
        alone.lerp_(packed.values, rate)
        assert torch.equal(behind.values, alone)


@pytest.mark.parametrize("compiled", [True, False])
def test_who_follows_the_dead_stays_as_well(compiled):
    layer, adam = population()
    behind = Packed(Linear(Initializer(Keys(range(10, 13))), 4, 3))
    before = behind.rows(behind.values).clone()
    adam.packed.grads.fill_(1.0)
    layer.weight.grad[1, 0, 0] = torch.inf
    if compiled:
        adam.step(behind, 0.25)
    else:
        adam.clock.advance()
        adam._step_tensors(behind, 0.25)
    expected = before + 0.25 * (adam.packed.rows(adam.packed.values) - before)
    expected[1] = before[1]
    torch.testing.assert_close(behind.rows(behind.values), expected)
    assert adam.alive.tolist() == [True, False, True]


def test_a_member_that_is_dead_to_one_optimiser_is_dead_to_all_that_share_its_fate():
    layer, adam = population()
    other = Linear(Initializer(Keys(range(3))), 4, 3)
    beside = Adam(Packed(other), torch.full((3,), 0.1), alive=adam.alive)
    layer.weight.grad[1, 0, 0] = torch.nan
    adam.step()
    before = other.weight.detach().clone()
    other.weight.grad.fill_(1.0)
    beside.step()
    assert (other.weight[1] == before[1]).all()
    assert (other.weight[[0, 2]] != before[[0, 2]]).all()
    other.weight.grad[2, 0, 0] = torch.nan
    beside.step()
    assert adam.alive.tolist() == beside.alive.tolist() == [True, False, False]


def test_parameters_begin_where_whole_vectors_do():
    packed = Packed(Linear(Initializer(Keys(range(3))), 7, 5))
    assert all(p.data_ptr() % 64 == 0 for p in packed.parameters)
    assert packed.num_parameters == 7 * 5 + 5


def test_gradients_are_forgotten_even_those_of_the_dead():
    layer = Linear(Initializer(Keys([0, 1])), 3, 5)
    packed = Packed(layer)
    adam = Adam(packed, torch.full((2,), 1e-3))
    packed.grads.fill_(1.0)
    layer.weight.grad[1] = torch.nan
    adam.step()
    assert adam.alive.tolist() == [True, False]
    for parameter in layer.parameters():
        assert (parameter.grad == 0.0).all()
