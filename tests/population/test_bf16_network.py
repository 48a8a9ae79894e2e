"""Networks as one call with products in bfloat16: the same to the bit as layer after layer."""

import pytest
import torch
from headwise.population.bf16_network import Piece, fits_at_once, through

from headwise import _core
from headwise.nets import MLP, Dueling
from headwise.population import (
    Initializer,
    Keys,
    Linear,
    Packed,
    bf16,
    held_constant,
    straight_gradients,
)

pytestmark = pytest.mark.skipif(not _core.has_bf16(), reason="the processor has no AVX512-BF16")
SHAPES = [
    # in, hidden layers, outputs, rows
    (9, (256, 256), 23, 256),
    (32, (256, 256), 1, 100),
    (9, (64,), 6, 33),
    (70, (33, 48, 100), 17, 17),
    (3, (16, 31), 2, 1),
    (40, (20, 17, 65), 40, 9),
]


@pytest.fixture(autouse=True)
def medium():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    yield
    torch.set_float32_matmul_precision(before)


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def layer_by_layer(monkeypatch):
    for module in ("headwise.nets.mlp", "headwise.nets.dueling"):
        monkeypatch.setattr(f"{module}.fits_at_once", lambda trunk, leaves: False)


def found(call, modules, x, *, straight=True, seed=5):
    """What comes out of a network, and the gradients of its inputs and parameters."""
    packed = Packed(*modules)
    x = x.detach().requires_grad_()
    if straight:
        with straight_gradients():
            outs = call(x)
    else:
        outs = call(x)
    outs = outs if isinstance(outs, tuple) else (outs,)
    learned = [out for out in outs if out.requires_grad]
    torch.autograd.backward(
        learned, [numbers(*out.shape, seed=seed + i) for i, out in enumerate(learned)]
    )
    return [*(out.detach().clone() for out in outs), x.grad.clone(), packed.grads.clone()]


def assert_equal(ones, others):
    for one, other in zip(ones, others, strict=True):
        assert one.shape == other.shape
        assert torch.equal(one, other)


def counted(monkeypatch):
    """How many compiled calls forward there have been."""
    calls = []
    forward = _core.bf16_forward
    monkeypatch.setattr(_core, "bf16_forward", lambda *a: (calls.append(len(a[2])), forward(*a)))
    return calls


@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("copies", [(), (2,), (2, 3)])
@pytest.mark.parametrize("then", ["relu", "tanh"])
@pytest.mark.parametrize("shape", SHAPES)
def test_an_mlp_is_that_of_layer_after_layer(shape, then, copies, straight, monkeypatch):
    features, hidden, width, rows = shape
    init = Initializer(Keys([0, 1], "cpu"))
    net = MLP(init, features, hidden, then, copies=copies)
    output = Linear(init, hidden[-1], width, copies=copies)
    x = numbers(2, *copies, rows, features)

    def all_ways():
        yield found(lambda x: net(x, output), [net, output], x, straight=straight)
        yield found(net, [net], x, straight=straight)
        with torch.no_grad():
            yield [net(x, output), net(x)]

    ours = list(all_ways())
    layer_by_layer(monkeypatch)
    for one, other in zip(ours, all_ways(), strict=True):
        assert_equal(one, other)


@pytest.mark.parametrize("copy", [(0, 1), (1, 2)])
def test_one_of_the_copies_is_that_copy(copy, monkeypatch):
    init = Initializer(Keys([0, 1, 2], "cpu"))
    net, output = MLP(init, 9, (40, 33), "tanh", copies=(2, 3)), Linear(init, 33, 5, copies=(2, 3))
    x = numbers(3, 20, 9)

    def one():
        return found(lambda x: net.one(copy, x, output), [net, output], x)

    ours = one()
    with torch.no_grad():
        everywhere = net(x[:, None, None].expand(3, 2, 3, 20, 9), output)
    assert torch.equal(ours[0], everywhere[:, copy[0], copy[1]])
    layer_by_layer(monkeypatch)
    assert_equal(ours, one())


@pytest.mark.parametrize("branch_width", [32, 64, 40])
@pytest.mark.parametrize("copies", [(), (2,)])
def test_a_dueling_network_is_that_of_layer_after_layer(copies, branch_width, monkeypatch):
    net = Dueling(
        Initializer(Keys([0, 1], "cpu")), 9, 23, (48, 70), branch_width, "relu", copies=copies
    )
    x = numbers(2, *copies, 37, 9)

    def all_ways():
        for call in (net, net.with_embedding, net.value_alone, net.advantages_alone):
            yield found(call, [net], x)
            with torch.no_grad():
                outs = call(x)
            yield list(outs) if isinstance(outs, tuple) else [outs]

    ours = list(all_ways())
    layer_by_layer(monkeypatch)
    for one, other in zip(ours, all_ways(), strict=True):
        assert_equal(one, other)


def test_a_network_is_one_call(monkeypatch):
    init = Initializer(Keys([0, 1], "cpu"))
    x, calls = numbers(2, 8, 9), counted(monkeypatch)
    net = Dueling(init, 9, 5, (32, 32), 32, "relu")
    for call in (net, net.with_embedding, net.value_alone, net.advantages_alone):
        call(x)
        assert calls.pop() == 3
        assert not calls
    mlp, output = MLP(init, 9, (32, 32), "tanh"), Linear(init, 32, 1)
    mlp(x, output)
    mlp(x)
    assert calls == [2, 1]
    calls.clear()
    MLP(init, 9, (32, 8, 32), "tanh")(x)  # a narrow layer is not rounded, and not part of a trunk
    assert calls == [0, 0, 0]
    calls.clear()
    MLP(init, 9, (32, 32), "elu")(x)
    assert calls == [0, 0]
    assert MLP(init, 9, (), "tanh")(x) is x


def test_inputs_may_be_columns_of_longer_rows_and_the_same_for_several_copies():
    init = Initializer(Keys([0, 1], "cpu"))
    net = MLP(init, 9, (40, 33), "relu", copies=(3,))
    rows = numbers(2, 20, 30)
    for x in (
        rows[:, None, :, 4:13].expand(2, 3, 20, 9),
        rows[:, :9].mT[:, None].expand(2, 3, 30, 9),
        numbers(3, 2, 20, 30)[..., 1:10].transpose(0, 1),
    ):
        assert not x.is_contiguous()
        assert_equal(found(net, [net], x), found(net, [net], x.contiguous()))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_member_alone_equals_itself_in_a_population(threads):
    def run(seeds):
        init = Initializer(Keys(seeds, "cpu"))
        net = Dueling(init, 9, 23, (40, 33), 32, "tanh", copies=(2,))
        x = torch.stack([numbers(2, 19, 9, seed=seed) for seed in seeds])
        packed = Packed(net)
        with straight_gradients():
            value, advantages = net(x)
        torch.autograd.backward([value, advantages], [value.detach() - 1, advantages.detach()])
        return value.detach(), advantages.detach(), packed.rows(packed.grads)

    with bf16.threads_of_its_own(threads):
        together = run([3, 1, 4])
    for member, seed in enumerate([3, 1, 4]):
        assert_equal(run([seed]), [part[member : member + 1] for part in together])


def test_gradients_pass_through_what_is_held_constant(monkeypatch):
    init = Initializer(Keys([0, 1], "cpu"))
    net, output = MLP(init, 9, (40, 33), "tanh"), Linear(init, 33, 1)
    packed, x = Packed(net, output), numbers(2, 20, 9).requires_grad_()

    def slope():
        with straight_gradients(), held_constant(packed):
            out = net(x, output)
        (grad,) = torch.autograd.grad(out, x, torch.ones_like(out))
        return grad

    ours = slope()
    assert ours.abs().sum() > 0
    assert (packed.grads == 0).all()
    layer_by_layer(monkeypatch)
    assert torch.equal(ours, slope())


def test_a_leaf_that_nobody_asks_about_has_no_gradient():
    net = Dueling(Initializer(Keys([0], "cpu")), 9, 5, (32,), 32, "relu")
    value, _ = net(numbers(1, 20, 9))
    value.sum().backward()
    assert net.value.weight.grad.abs().sum() > 0
    assert net.advantage.weight.grad.abs().sum() == 0
    assert (net.embedding.weight.grad[..., 32:] == 0).all()


def test_parameters_that_move_are_found_again():
    init = Initializer(Keys([0, 1], "cpu"))
    net, x = MLP(init, 9, (40, 33), "tanh"), numbers(2, 20, 9)
    before = net(x).detach()
    old = [parameter.detach() for parameter in net.parameters()]
    packed = Packed(net)
    for parameter in old:
        parameter.zero_()
    assert torch.equal(net(x), before)
    packed.load_rows(packed.values, torch.zeros_like(packed.rows(packed.values)))
    assert (net(x) == 0).all()


def test_what_is_not_a_number_stays_in_its_row():
    net = MLP(Initializer(Keys([0], "cpu")), 9, (33, 40), "relu")
    x = numbers(1, 11, 9)
    x[0, 3, 2] = torch.nan
    found = net(x).detach()
    assert found[0, 3].isnan().all()
    assert found.isfinite().sum() == 10 * 40


def test_layers_that_do_not_fit_are_refused():
    weight, bias = torch.zeros(1, 9, 32), torch.zeros(1, 1, 32)
    wide = Piece(weight, bias, "tanh")
    assert fits_at_once([wide], [wide])
    assert fits_at_once([], [wide._replace(then="elu")])
    assert not fits_at_once([wide._replace(then="elu")], [wide])
    assert not fits_at_once([wide._replace(columns=(0, 15))], [wide])
    assert not fits_at_once([wide], [wide._replace(reads=8)])
    x = torch.zeros(1, 8, 9)
    value = Piece(torch.zeros(1, 16, 1), torch.zeros(1, 1, 1))
    for trunk, leaves in (
        ([], []),
        ([wide], [value]),
        ([wide], [value, value._replace(reads=16)]),
        ([], [wide, wide]),
        ([], [wide._replace(weight=weight[:, :8].contiguous())]),
        ([wide], [wide._replace(reads=32)]),
        ([wide._replace(columns=(0, 8))], [wide]),
    ):
        with pytest.raises(ValueError, match=r"fit|network|narrow"):
            through(x, trunk, leaves)
    for other in (wide._replace(bias=bias[..., :31]), wide._replace(columns=(30, 3)), wide):
        with pytest.raises(AssertionError):
            through(torch.zeros(2 if other is wide else 1, 8, 9), [], [other])
