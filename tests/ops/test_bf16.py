"""Networks with products in bfloat16: factors are rounded, sums are float32."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest
import torch
from torch import Tensor

from headwise.ops import Buffer, Layer, Network, Recorded
from headwise.ops.core import core, has_bf16, isa

needs_bf16 = pytest.mark.skipif(not has_bf16(), reason="the processor has no AVX512-BF16")
ROWS = (1, 16, 37)
WIDTHS = (16, 17, 33, 70, 256)


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    yield
    torch.set_float32_matmul_precision(before)


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Made:
    """A network with parameters and inputs of some members of three, and what it makes of them."""

    def __init__(
        self,
        leaves: Sequence[int],
        layers: Sequence[Layer],
        rows: int,
        members: Sequence[int] = (0, 1, 2),
        copies: int = 1,
    ) -> None:
        count, some = len(members), list(members)
        self.net = Network(leaves, layers, count, rows, copies=copies)
        self.parameters = Buffer(count, 1, self.net.size, gradient=True)
        self.net.place(self.parameters)
        places = self.net.weights(self.parameters.tensor)
        for k, pair in enumerate(places):
            for x in pair:
                x.copy_(numbers(3, *x.shape[1:], seed=k)[some] * max(x.shape[-2], 4) ** -0.5)
        self.x = [Buffer(count, rows, width, gradient=True) for width in leaves]
        for k, x in enumerate(self.x):
            x.tensor.copy_(numbers(3, *x.tensor.shape[1:], seed=50 + k)[some])
        self.slope = numbers(3, *self.net.out.gradient.shape[1:], seed=99)[some]

    def update(self) -> None:
        self.net.forward(self.x)
        self.net.out.gradient.copy_(self.slope)
        self.net.backward(self.x)

    @property
    def found(self) -> list[Tensor]:
        gradients = [x.gradient for x in (self.parameters, *self.x)]
        return [x.clone() for x in (self.net.out.tensor, *gradients)]

    def run(self) -> list[Tensor]:
        self.update()
        return self.found


def assert_same(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> None:
    for x, y in zip(found, wanted, strict=True):
        assert torch.equal(x, y)


def rounded(x: Tensor) -> Tensor:
    return x.bfloat16().double()


@needs_bf16
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("inputs", "outputs"), list(itertools.product(WIDTHS, WIDTHS)))
def test_a_layer_is_that_of_rounded_factors_in_float64(
    inputs: int, outputs: int, rows: int
) -> None:
    made = Made([inputs], [Layer(outputs)], rows)
    out, _, by_input = made.run()
    (weight, bias), (by_weight, by_bias) = (
        made.net.weights(x)[0] for x in (made.parameters.tensor, made.parameters.gradient)
    )
    x, w, slope = (rounded(t) for t in (made.x[0].tensor, weight, made.slope))
    wanted = x @ w + bias.double(), x.mT @ slope, slope @ w.mT
    for found, y in zip((out, by_weight, by_input), wanted, strict=True):
        assert (found - y).abs().max() < 4e-6 * y.abs().max()
    # A bias is added up as it is.
    assert torch.allclose(by_bias, made.slope.sum(-2, keepdim=True), rtol=1e-5, atol=1e-5)


@needs_bf16
@pytest.mark.parametrize(
    ("inputs", "outputs", "rounds"), [(15, 64, False), (64, 15, False), (16, 16, True)]
)
def test_layers_of_few_inputs_or_outputs_are_not_rounded(
    inputs: int, outputs: int, rounds: bool
) -> None:
    made = Made([inputs], [Layer(outputs)], 37)
    found = made.run()
    torch.set_float32_matmul_precision("highest")
    same = [torch.equal(x, y) for x, y in zip(found, made.run(), strict=True)]
    assert same == [not rounds] * 3


@needs_bf16
@pytest.mark.parametrize("activation", ["relu", "tanh", "elu"])
def test_a_network_is_near_that_of_float32(activation: str) -> None:
    layers = [Layer(70, activation), Layer(33, "tanh"), Layer(23)]
    made = Made([20, 17], layers, 37, copies=2)
    found = made.run()
    torch.set_float32_matmul_precision("highest")
    for x, y in zip(found, made.run(), strict=True):
        error = (x - y).norm() / y.norm()
        assert 1e-4 < error < 0.05  # a relu near zero may be on the other side of it


@needs_bf16
def test_a_member_is_the_same_alone_and_among_others_and_on_threads() -> None:
    layers, recorded = [Layer(70, "tanh"), Layer(33, "relu"), Layer(17)], {}
    for members in ((0, 1, 2), (2, 0), (1,)):
        for threads in (1, 3):
            made = Made([20, 17], layers, 37, members)
            forward = Recorded(lambda made=made: made.net.forward(made.x) and None, "cpu")
            forward(3, threads)
            made.net.out.gradient.copy_(made.slope)
            backward = Recorded(lambda made=made: made.net.backward(made.x), "cpu")
            backward(3, threads)
            for member, *own in zip(members, *made.found, strict=True):
                assert_same(own, recorded.setdefault(member, own))
    assert not torch.equal(recorded[0][0], recorded[1][0])
    assert_same(Made([20, 17], layers, 37).run(), [torch.stack(x) for x in zip(
        *(recorded[member] for member in range(3)), strict=True)])  # fmt: skip


@needs_bf16
def test_what_was_recorded_follows_the_setting() -> None:
    made = Made([20], [Layer(33, "tanh"), Layer(17)], 37)
    plain = {}
    for word in ("medium", "highest"):
        torch.set_float32_matmul_precision(word)
        plain[word] = made.run()
    recorded = Recorded(lambda: made.net.forward(made.x) and None, "cpu")
    for word in ("highest", "highest", "medium", "medium", "highest"):
        torch.set_float32_matmul_precision(word)
        made.net.out.tensor.zero_()
        recorded()
        assert torch.equal(made.net.out.tensor, plain[word][0])
    assert not torch.equal(plain["medium"][0], plain["highest"][0])


@needs_bf16
@pytest.mark.parametrize("word", ["high", "highest"])
def test_nothing_is_rounded_where_torch_says_so(word: str) -> None:
    made = Made([40], [Layer(33)], 37)
    torch.set_float32_matmul_precision(word)
    out = made.run()[0]
    weight, bias = (x.double() for x in made.net.weights(made.parameters.tensor)[0])
    wanted = made.x[0].tensor.double() @ weight + bias
    assert (out - wanted).abs().max() < 2e-6 * wanted.abs().max()


@needs_bf16
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_is_not_finite_stays_in_its_row(bad: float) -> None:
    made = Made([20], [Layer(33), Layer(17)], 37)
    made.x[0].tensor[0, 0, 3, 5] = bad
    out = made.run()[0]
    assert not out[0, 0, 3].isfinite().any()
    out[0, 0, 3] = 0.0
    assert out.isfinite().all()


def test_the_module_knows_the_processor() -> None:
    assert has_bf16() == (torch.cpu._is_avx512_bf16_supported() and isa == "avx512")


@pytest.mark.skipif(has_bf16(), reason="this processor has them")
def test_without_the_instruction_nothing_is_rounded_and_asking_is_refused() -> None:
    made = Made([20], [Layer(33)], 37)
    found = made.run()
    torch.set_float32_matmul_precision("highest")
    assert_same(found, made.run())
    with pytest.raises(ValueError, match="no products in bfloat16"):
        made.net._core.forward([made.x[0].core], [], 0, True)
    with pytest.raises(ValueError, match="no products in bfloat16"):
        made.net._core.backward([made.x[0].core], [], True, False, True)


@pytest.mark.skipif(not has_bf16(), reason="the tests run without the instruction anyway")
def test_other_builds_of_the_module_have_none() -> None:
    name = "test_without_the_instruction_nothing_is_rounded_and_asking_is_refused"
    command = [sys.executable, "-m", "pytest", "-q", f"{__file__}::{name}"]
    environment = os.environ | {"HEADWISE_ISA": "avx2"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert core.has_bf16()
