"""Perceptrons of every member against torch in float64, and that nothing crosses members.

Run as a program it prints a digest of what the compiled way makes of all cases.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from headwise.ops import Buffer, Layer, Network, Recorded
from headwise.ops.network import definition, network
from headwise.population import Keys, Store

SHAPES = {  # leaves, layers, copies
    "one layer": ((5,), (Layer(7),), 1),
    "narrow": ((3,), (Layer(64, "relu"), Layer(1)), 1),
    "odd": ((9, 2), (Layer(33, "tanh"), Layer(17, "elu"), Layer(5)), 1),
    "wide": ((70,), (Layer(256, "relu"), Layer(130, "tanh"), Layer(23)), 1),
    "copies": ((4, 3), (Layer(20, "elu"), Layer(6)), 3),
}
ROWS = (1, 37)


class Case:
    """A network with inputs, and what torch says of it in float64."""

    def __init__(self, shape, rows, seeds=(0, 1, 2), sees=None):
        leaves, layers, self.copies = SHAPES[shape]
        self.net = Network(leaves, layers, len(seeds), max(rows, 40), copies=self.copies, sees=sees)
        self.store = Store(Keys(seeds), [self.net])
        numbers = [
            torch.stack([torch.randn(rows, w, generator=torch.manual_seed(100 + s)) for s in seeds])
            for w in leaves
        ]
        self.x = [Buffer(len(seeds), rows, w, gradient=True) for w in leaves]
        for buffer, x in zip(self.x, numbers, strict=True):
            buffer.tensor[:, 0] = x
        slope = [
            torch.randn(self.copies, rows, layers[-1].width, generator=torch.manual_seed(200 + s))
            for s in seeds
        ]
        self.slope = torch.stack(slope)

    def play(self, copies=(), *, weights=True, add=False):
        rows = self.x[0].num_rows
        y = self.net.forward(self.x, copies).tensor.clone()
        self.net.rows(rows).gradient.copy_(self.slope)
        self.net.backward(self.x, copies, weights=weights, add=add)
        return y

    def exact(self):
        """Outputs and gradients by torch.nn.functional, layer after layer, member by member."""
        flat = self.store.parameters.tensor.double().requires_grad_()
        given = [x.tensor.double().requires_grad_() for x in self.x]
        found = []
        functions = {None: lambda x: x, "relu": torch.relu, "tanh": torch.tanh}
        functions["elu"] = torch.nn.functional.elu
        for p in range(flat.shape[0]):
            own = []
            for c in range(self.copies):
                h = torch.cat([x[p, 0] for x in given], -1)
                layers = zip(self.net.weights(flat), self.net.layers, strict=True)
                for (weight, bias), layer in layers:
                    h = torch.nn.functional.linear(h, weight[p, c].T, bias[p, c, 0])
                    h = functions[layer.activation](h)
                own.append(h)
            found.append(torch.stack(own))
        y = torch.stack(found)
        gradients = torch.autograd.grad(y, [flat, *given], self.slope.double())
        return y, gradients

    def gradients(self):
        return [self.store.parameters.gradient.clone(), *(x.gradient.clone() for x in self.x)]


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


def test_all_instruction_sets_compute_the_same():
    digests = set()
    for isa in ("avx512", "avx2", "baseline"):
        environment = os.environ | {"HEADWISE_ISA": isa, "OMP_NUM_THREADS": "1"}
        program = [sys.executable, str(Path(__file__))]
        played = subprocess.run(program, env=environment, check=True, capture_output=True)
        digests.add(played.stdout)
    assert len(digests) == 1
    assert len(digests.pop()) > 60


def digest():
    found = hashlib.sha256()
    for shape in SHAPES:
        for rows in ROWS:
            case = Case(shape, rows)
            for x in (case.play(), *case.gradients()):
                found.update(x.contiguous().numpy().tobytes())
    return found.hexdigest()


def test_the_definition_says_what_every_layer_gives():
    case = Case("odd", 11)
    given = [x.tensor.double() for x in case.x]
    layers = definition(case.net, case.store.parameters.tensor.double(), given)
    assert [y.shape[-1] for y in layers] == [33, 17, 5]
    assert_near(case.play(), layers[-1])


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(digest())
