"""Layers with products in bfloat16 on the CPU, against float32 and against rounding by hand."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from headwise import _core
from headwise.population import Initializer, Keys, Linear, bf16, straight_gradients
from headwise.population import bf16_network as at_once

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


def forward(x, weight, bias, then, **some):
    (out,) = at_once.through(x, [], [at_once.Piece(weight, bias, then, **some)])
    return out


def through(x, weight, bias, then, grad, **some):
    given = [x.detach().requires_grad_() for x in (x, weight, bias)]
    out = forward(*given, then, **some)
    out.backward(grad)
    return out.detach(), *(x.grad for x in given)


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
    out = forward(x, weight, torch.zeros(1, 1, 16), None)
    assert (out[0, 0] == 3.0).all()
    assert (out[0, 1] == 3.0 * (1.0 + 2.0**-7)).all()
    assert (out[0, 2:] == 0.0).all()
    # Sums are in float32: 256 + 2^-10 would be 256 in bfloat16.
    weight[0, 1], x[0, 0, 0], x[0, 0, 1] = 2.0**-10, 128.0, 1.0
    weight[0, 0] = 2.0
    assert (forward(x, weight, torch.zeros(1, 1, 16), None)[0, 0] == 256.0 + 2.0**-10).all()


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
    inputs, some, few = x[..., 5:45], weight[..., 8:32], bias[..., 8:32]
    assert not inputs.is_contiguous()
    plain = through(inputs.contiguous(), some.contiguous(), few.contiguous(), "relu", grad)
    found = through(inputs, weight, bias, "relu", grad, columns=(8, 24))
    assert torch.equal(found[0], plain[0])
    assert torch.equal(found[1], plain[1])
    for whole, part in zip(found[2:], plain[2:], strict=True):
        assert torch.equal(whole[..., 8:32], part)
        assert (whole[..., :8] == 0.0).all()
        assert (whole[..., 32:] == 0.0).all()


@needs_bf16
def test_what_is_not_a_number_stays_in_its_row():
    x, weight, bias = torch.ones(2, 9, 40), torch.ones(2, 40, 32), torch.zeros(2, 1, 32)
    x[0, 3, 5] = torch.nan
    for then in (None, "relu", "tanh"):
        for width in (1, 32):
            out = forward(x, weight, bias, then, columns=(0, width))
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
def test_networks_that_do_not_exist_are_refused():
    memory = np.zeros(4096, np.float32)
    at = memory.ctypes.data

    def layer(features, width, reads=0, then=0):
        return (at, at, 0, 0, features, width, reads, width, then, at, width, 32, 0, 0, 0, at, 0, 0)

    x = (at, 8, 9, 9, 1, 0, 0)
    _core.bf16_forward(2, x, [layer(9, 16)], [layer(16, 3)], 1)
    _core.bf16_backward(1, x, [], [layer(9, 16, then=3)], 0, 1)
    for inputs, trunk, leaves, why in (
        (x, [], [], "no such network"),
        (x, [], [layer(9, 16), layer(9, 16)], "no such network"),
        (x, [], [layer(8, 16)], "do not fit"),
        (x, [layer(8, 16)], [layer(16, 3)], "do not fit"),
        (x, [layer(9, 16)], [layer(16, 3, reads=16)], "do not fit"),
        (x, [layer(9, 16)], [layer(8, 3), layer(8, 3, reads=8)], "do not fit"),
        (x, [layer(9, 15)], [layer(15, 3)], "narrow"),
        (x, [], [layer(9, 16, then=4)], "no such activation"),
        (x, [], [layer(9, -1)], "do not fit"),
        ((at, -1, 9, 9, 1, 0, 0), [], [layer(9, 16)], "no such inputs"),
        ((at, 8, 9, 9, 0, 0, 0), [], [layer(9, 16)], "no such inputs"),
    ):
        with pytest.raises(ValueError, match=why):
            _core.bf16_forward(1, inputs, trunk, leaves, 1)
        with pytest.raises(ValueError, match=why):
            _core.bf16_backward(1, inputs, trunk, leaves, 0, 1)


@needs_bf16
def test_a_forked_child_makes_threads_of_its_own():
    """Those of the parent are not there; the child's may lie where they were remembered."""
    code = """
import os, signal, threading, torch
from headwise.population import bf16_network as at_once
from headwise.population import bf16
torch.set_num_threads(1)

def product():
    with bf16.threads_of_its_own(4):
        x = torch.ones(8, 16, 32)
        pieces = [at_once.Piece(torch.ones(8, 32, 32), torch.zeros(8, 1, 32), None)]
        return float(at_once.through(x, [], pieces)[0].mean())

product()
child = os.fork()
if child == 0:
    signal.alarm(60)
    others = [threading.Thread(target=str) for _ in range(30)]
    [other.start() for other in others]
    [other.join() for other in others]
    os._exit(int(product()))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), product())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["32", "32.0"], done.stderr
