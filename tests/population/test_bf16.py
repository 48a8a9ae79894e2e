"""Layers with products in bfloat16 on the CPU, against float32 and against rounding by hand."""

import numpy as np
import pytest
import torch

from headwise import _core
from headwise.population import Initializer, Keys, Linear, bf16, straight_gradients

needs_bf16 = pytest.mark.skipif(not _core.has_bf16(), reason="the processor has no AVX512-BF16")
SHAPES = [
    # members, rows, in, out
    (3, 256, 256, 256),
    (2, 8, 8, 16),
    (2, 1, 3, 64),
    (1, 17, 9, 33),
    (2, 33, 70, 17),
    (2, 9, 31, 48),
    (1, 300, 40, 100),
]
NARROW = [(3, 256, 256, 1), (2, 1, 1, 2), (2, 17, 33, 6), (1, 8, 40, 15), (2, 9, 20, 4)]


@pytest.fixture
def medium():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    yield
    torch.set_float32_matmul_precision(before)


def rounded(x):
    return x.bfloat16().double()


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def by_hand(x, weight, bias, then, grad, round_):
    """What comes out and all gradients in double precision, with rounded factors."""
    out = round_(x) @ round_(weight) + bias.double()
    if then == "relu":
        out = out.relu()
    elif then == "tanh":
        out = out.tanh()
    slope = {
        None: lambda: torch.ones_like(out),
        "relu": lambda: (out > 0).double(),
        "tanh": lambda: 1.0 - out.square(),
    }[then]()
    before = (grad.double() * slope).float()
    to_x = round_(before) @ round_(weight).transpose(-1, -2)
    to_weight = round_(x).transpose(-1, -2) @ round_(before)
    return out, to_x, to_weight, before.double().sum(-2, keepdim=True)


def through(x, weight, bias, then, grad):
    out = bf16.forward(x, weight, bias, then)
    to_weight, to_bias = torch.ones_like(weight), torch.ones_like(bias)
    to_x = bf16.backward(grad, out, x, weight, to_weight, to_bias, then, need_x=True)
    return out, to_x, to_weight - 1.0, to_bias - 1.0


@needs_bf16
@pytest.mark.parametrize("then", [None, "relu", "tanh"])
@pytest.mark.parametrize("shape", SHAPES + NARROW)
def test_only_factors_are_rounded(shape, then):
    members, rows, features, width = shape
    x, grad = numbers(members, rows, features), numbers(members, rows, width, seed=1)
    weight = numbers(members, features, width, seed=2) / features**0.5
    bias = numbers(members, 1, width, seed=3)
    round_ = torch.Tensor.double if shape in NARROW else rounded
    found = through(x, weight, bias, then, grad)
    for ours, oracle in zip(found, by_hand(x, weight, bias, then, grad, round_), strict=True):
        error = (ours.double() - oracle).abs().max() / oracle.abs().max()
        # A gradient near the middle of two bfloat16 numbers may be rounded to the other one, where
        # the activation is a little different; nothing else is as large as float32's own error.
        assert error < (3e-4 if then == "tanh" else 3e-6)


@needs_bf16
def test_rounding_is_to_the_nearest_number_of_bfloat16():
    # 1 + 2^-8 lies between 1 and 1 + 2^-7: to the even one, 1. A little more goes up.
    x = torch.zeros(1, 8, 8)
    x[0, 0, 0], x[0, 1, 0] = 1.0 + 2.0**-8, 1.0 + 2.0**-8 + 2.0**-16
    weight = torch.zeros(1, 8, 16)
    weight[0, 0] = 3.0
    out = bf16.forward(x, weight, torch.zeros(1, 1, 16), None)
    assert (out[0, 0] == 3.0).all()
    assert (out[0, 1] == 3.0 * (1.0 + 2.0**-7)).all()
    assert (out[0, 2:] == 0.0).all()
    # Sums are in float32: 256 + 2^-10 would be 256 in bfloat16.
    weight[0, 1], x[0, 0, 0], x[0, 0, 1] = 2.0**-10, 128.0, 1.0
    weight[0, 0] = 2.0
    assert (bf16.forward(x, weight, torch.zeros(1, 1, 16), None)[0, 0] == 256.0 + 2.0**-10).all()


@needs_bf16
@pytest.mark.parametrize("shape", SHAPES + NARROW)
def test_a_matrix_alone_equals_itself_in_a_stack_with_any_number_of_threads(shape):
    _, rows, features, width = shape
    x, grad = numbers(5, rows, features), numbers(5, rows, width, seed=1)
    weight, bias = numbers(5, features, width, seed=2), numbers(5, 1, width, seed=3)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        together = through(x, weight, bias, "tanh", grad)
        torch.set_num_threads(1)
        for k in range(5):
            own = slice(k, k + 1)
            alone = through(x[own], weight[own], bias[own], "tanh", grad[own])
            assert all(torch.equal(a, b[own]) for a, b in zip(alone, together, strict=True))
    finally:
        torch.set_num_threads(before)


@needs_bf16
def test_parts_of_larger_matrices_are_read_and_written_in_place():
    x, weight, bias = numbers(2, 20, 50), numbers(2, 40, 64, seed=1), numbers(2, 1, 64, seed=2)
    grad = numbers(2, 20, 24, seed=3)
    inputs, some, few = x[..., 5:45], weight[..., :24], bias[..., :24]
    assert not inputs.is_contiguous()
    plain = through(inputs.contiguous(), some.contiguous(), few.contiguous(), "relu", grad)
    out = bf16.forward(inputs, some, few, "relu")
    to_weight, to_bias = torch.zeros(2, 40, 64), torch.zeros(2, 1, 64)
    to_x = bf16.backward(
        grad, out, inputs, some, to_weight[..., :24], to_bias[..., :24], "relu", need_x=True
    )
    assert torch.equal(out, plain[0])
    assert torch.equal(to_x, plain[1])
    torch.testing.assert_close(to_weight[..., :24], plain[2])
    torch.testing.assert_close(to_bias[..., :24], plain[3])
    assert (to_weight[..., 24:] == 0.0).all()
    assert (to_bias[..., 24:] == 0.0).all()


@needs_bf16
def test_what_is_not_a_number_stays_in_its_row():
    x, weight, bias = torch.ones(2, 9, 40), torch.ones(2, 40, 32), torch.zeros(2, 1, 32)
    x[0, 3, 5] = torch.nan
    for then in (None, "relu", "tanh"):
        for width in (1, 32):
            out = bf16.forward(x, weight[..., :width], bias[..., :width], then)
            assert out[0, 3].isnan().all()
            assert out.isfinite().sum() == 17 * width


@needs_bf16
@pytest.mark.parametrize("then", [None, "relu", "tanh", "elu"])
@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("width", [1, 6, 64])
def test_a_layer_takes_them_where_torch_says_medium(medium, then, straight, width):
    def run():
        layer = Linear(Initializer(Keys([0, 1], "cpu")), 40, width, copies=(2,))
        for parameter in layer.parameters():
            parameter.grad = torch.zeros_like(parameter)
        x = numbers(2, 2, 32, 40).requires_grad_()
        if straight:
            with straight_gradients():
                out = layer(x, then)
        else:
            out = layer(x, then)
        out.backward(numbers(2, 2, 32, width, seed=1))
        return out.detach(), x.grad, layer.weight.grad, layer.bias.grad

    ours = run()
    for word in ("high", "highest"):
        torch.set_float32_matmul_precision(word)
        theirs = run()
        for a, b in zip(ours, theirs, strict=True):
            error = (a - b).norm() / b.norm()
            assert error < 0.05  # a relu near zero may be on the other side of it
            if width > 15 and a is not ours[3]:
                assert error > 1e-4, "nothing was rounded"
    torch.set_float32_matmul_precision("medium")
    assert all(torch.equal(a, b) for a, b in zip(ours, run(), strict=True))


def test_others_are_left_as_they_are(medium, monkeypatch):
    x = torch.zeros(1, 64, 64)
    monkeypatch.setattr(bf16, "has_bf16", lambda: True)
    assert bf16.fits(x)
    assert not bf16.fits(x.double())
    assert not bf16.fits(x.to("meta"))
    for word in ("high", "highest"):
        torch.set_float32_matmul_precision(word)
        assert not bf16.fits(x)
    torch.set_float32_matmul_precision("medium")
    monkeypatch.setattr(bf16, "has_bf16", lambda: False)
    assert not bf16.fits(x)


def test_the_module_knows_the_processor():
    assert _core.has_bf16() == (torch.cpu._is_avx512_bf16_supported() and _isa() == "avx512")


def _isa():
    import os

    return os.environ.get("HEADWISE_ISA", "avx512")


@needs_bf16
def test_arrays_that_do_not_fit_are_refused():
    def zeros(*shape):
        return np.zeros(shape, np.float32)

    good = [zeros(2, 8, 9), zeros(2, 9, 16), zeros(2, 1, 16), zeros(2, 8, 16)]
    _core.bf16_forward(*good, None, 1)
    for place, bad in (
        (0, zeros(1, 8, 9)),
        (1, zeros(2, 8, 16)),
        (2, zeros(2, 1, 15)),
        (3, zeros(2, 7, 16)),
        (1, zeros(2, 16, 9).transpose(0, 2, 1)),
    ):
        with pytest.raises(ValueError, match=r"fit|contiguous|row"):
            _core.bf16_forward(*good[:place], bad, *good[place + 1 :], None, 1)
    with pytest.raises(ValueError, match="must be relu, tanh, elu or None; got 'gelu'"):
        _core.bf16_forward(*good, "gelu", 1)
    x, weight, bias, out = good
    _core.bf16_backward(out, out, x, weight, None, None, None, "elu", 1)
    for gradients in ((zeros(2, 8, 8), None, None), (None, zeros(2, 9, 15), None)):
        with pytest.raises(ValueError, match=r"fit|input"):
            _core.bf16_backward(out, out, x, weight, *gradients, None, 1)
    with pytest.raises(ValueError, match="output"):
        _core.bf16_backward(zeros(2, 8, 15), out, x, weight, None, None, bias, None, 1)
