"""Perceptrons of every member against torch in float64, and that nothing crosses members.

That all instruction sets compute the same is in `test_operations.py`.
"""

import pytest
import torch
from network_cases import ROWS, SHAPES, Case

from headwise.ops import Recorded
from headwise.ops.network import definition, network


def assert_near(found, wanted, error=3e-6):
    size = wanted.abs().amax().clamp_min(1e-3)
    assert ((found.double() - wanted).abs().amax() / size) < error  # NaN is not less


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_gradients(shape, rows, compiled, monkeypatch):
    monkeypatch.setattr(network, "switched_off", not compiled)
    case = Case(shape, rows)
    case.store.parameters.gradient.zero_()  # of what pads rows, which nobody writes
    y, exact = case.exact()
    assert_near(case.play(), y)
    for found, wanted in zip(case.gradients(), exact, strict=True):
        assert_near(found, wanted)
    case.play(add=True, weights=False)  # inputs once more, parameters as they were
    for k, (found, wanted) in enumerate(zip(case.gradients(), exact, strict=True)):
        assert_near(found, wanted if k == 0 else 2.0 * wanted)


@pytest.mark.parametrize("compiled", [True, False])
def test_some_copies_leave_the_others_as_they_were(compiled, monkeypatch):
    monkeypatch.setattr(network, "switched_off", not compiled)
    case = Case("copies", 11)
    whole = case.play()
    every, through = case.gradients()[0].clone(), [x.gradient.clone() for x in case.x]
    case.net.rows(11).tensor.fill_(9.0)
    case.store.parameters.gradient.fill_(7.0)
    for x in case.x:
        x.gradient.zero_()
    for copy in (2, 0, 1):
        y = case.play((copy,), add=True)
        assert torch.equal(y[:, copy], whole[:, copy])
        if copy == 2:
            assert (y[:, :2] == 9.0).all()
            own = case.store.parameters.gradient.view(3, 3, -1)
            assert (own[:, :2] == 7.0).all()
    torch.testing.assert_close(case.store.parameters.gradient, every)
    for x, expected in zip(case.x, through, strict=True):
        torch.testing.assert_close(x.gradient, expected)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_copy_sees_what_it_is_let_see(compiled, monkeypatch):
    monkeypatch.setattr(network, "switched_off", not compiled)
    sees = [[[(0, 4)], [(1, 2)], []], [[], [(0, 1), (2, 1)], [(0, 3)]]]
    case = Case("copies", 11, sees=sees)
    before = case.play()
    gradients = case.gradients()[1:]
    weight = case.net.weights(case.store.parameters.tensor)[0][0]
    visible = torch.zeros(3, 7)
    for leaf, start in zip(sees, (0, 4), strict=True):
        for copy, runs in enumerate(leaf):
            for first, count in runs:
                visible[copy, start + first : start + first + count] = 1.0
    weight.masked_fill_(visible[None, :, :, None] == 0.0, 5.0)  # as if they were not there
    assert torch.equal(case.play(), before)
    for x, gradient in zip(case.x, gradients, strict=True):
        assert torch.equal(x.gradient, gradient)
    weight.masked_fill_(visible[None, :, :, None] == 0.0, 0.0)
    y, exact = case.exact()
    assert_near(before, y)
    for found, wanted in zip(gradients, exact[1:], strict=True):
        assert_near(found, wanted)


def test_the_first_outputs_alone_are_the_same():
    case = Case("odd", 11)
    whole = case.net.forward(case.x).tensor.clone()
    for columns in (1, 3):
        case.net.out.tensor.fill_(9.0)
        some = case.net.forward(case.x, columns=columns).tensor
        assert torch.equal(some[..., :columns], whole[..., :columns])


def test_a_way_back_of_other_inputs_is_refused():
    case, other = Case("odd", 11), Case("odd", 11)
    case.play()
    with pytest.raises(ValueError, match="other inputs than those of the last forward"):
        case.net.backward(other.x)
    with pytest.raises(ValueError, match="other inputs"):
        case.net.backward(case.x[:1])


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_member_computes_the_same_alone_in_company_recorded_and_on_any_threads(shape, rows):
    together = Case(shape, rows)
    y = together.play()
    for p, seed in enumerate((0, 1, 2)):
        alone = Case(shape, rows, seeds=(seed,))
        assert torch.equal(alone.play()[0], y[p])
        for mine, all_of_us in zip(alone.gradients(), together.gradients(), strict=True):
            assert torch.equal(mine[0], all_of_us[p])
    before = together.gradients()
    recorded = Case(shape, rows)
    given = recorded.net.rows(rows)

    def body():
        recorded.net.forward(recorded.x)
        recorded.net.backward(recorded.x)

    program = Recorded(body, torch.device("cpu"))
    for threads in (1, 2, 3):
        given.gradient.copy_(recorded.slope)
        recorded.store.parameters.gradient.zero_()
        program(1, threads)
        assert torch.equal(given.tensor, y)
        for found, wanted in zip(recorded.gradients(), before, strict=True):
            assert torch.equal(found, wanted)


def test_a_row_is_the_same_wherever_it_stands():
    case = Case("odd", 37)
    whole = case.play()
    for first, count in ((0, 1), (16, 16), (30, 7), (36, 1)):
        some = [x.rows(first, count) for x in case.x]
        assert torch.equal(case.net.forward(some).tensor, whole[:, :, first : first + count])


def test_a_network_does_not_read_what_pads_its_rows():
    case = Case("odd", 11)
    before = case.play()
    for layer, out in zip(case.net.layers, case.net.outputs, strict=True):
        assert out.tensor.shape[-1] == layer.width
    flat = case.store.parameters.tensor
    kept = [(w.clone(), b.clone()) for w, b in case.net.weights(flat)]
    flat.fill_(3.0)
    for (w, b), (weight, bias) in zip(case.net.weights(flat), kept, strict=True):
        w.copy_(weight)
        b.copy_(bias)
    assert torch.equal(case.play(), before)


def test_what_is_not_a_number_stays_in_its_member_and_row():
    case = Case("odd", 11)
    case.x[0].tensor[1, 0, 4, 0] = torch.nan
    y = case.play()
    bad = y.isnan().any(-1)[:, 0]
    assert bad.nonzero().tolist() == [[1, 4]]
    gradient = case.store.parameters.gradient.isnan().flatten(1).any(-1)
    assert gradient.tolist() == [False, True, False]


def test_the_definition_says_what_every_layer_gives():
    case = Case("odd", 11)
    given = [x.tensor.double() for x in case.x]
    layers = definition(case.net, case.store.parameters.tensor.double(), given)
    assert [y.shape[-1] for y in layers] == [33, 17, 5]
    assert_near(case.play(), layers[-1])
