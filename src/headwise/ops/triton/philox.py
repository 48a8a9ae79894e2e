"""Uniform numbers on a GPU as one kernel, which reads the members' clocks from its memory."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 256


@triton.jit
def fill(out, seeds, clocks, stride, size, stream, BLOCK: tl.constexpr):
    """Fills the rows of each member (axis 0) with numbers in [0, 1), four to a draw."""
    member = tl.program_id(0)
    draw = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    step, seed = tl.load(clocks + member), tl.load(seeds + member)
    zero = draw.to(tl.uint32) * 0
    a, b = draw.to(tl.uint32), zero + step.to(tl.uint32)
    c, d = zero + stream, zero + (step >> 32).to(tl.uint32)
    key0, key1 = zero + seed.to(tl.uint32), zero + (seed >> 32).to(tl.uint32)
    mul0, mul1 = zero + 0xD2511F53, zero + 0xCD9E8D57
    weyl0, weyl1 = zero + 0x9E3779B9, zero + 0xBB67AE85
    for _ in tl.static_range(10):
        high0, low0 = tl.umulhi(a, mul0), a * mul0
        high1, low1 = tl.umulhi(c, mul1), c * mul1
        a, b, c, d = high1 ^ b ^ key0, low1, high0 ^ d ^ key1, low0
        key0, key1 = key0 + weyl0, key1 + weyl1
    row, first = out + member.to(tl.int64) * stride + 4 * draw, 4 * draw
    unit = 5.9604644775390625e-08
    tl.store(row, (a >> 8).to(tl.float32) * unit, mask=first < size)
    tl.store(row + 1, (b >> 8).to(tl.float32) * unit, mask=first + 1 < size)
    tl.store(row + 2, (c >> 8).to(tl.float32) * unit, mask=first + 2 < size)
    tl.store(row + 3, (d >> 8).to(tl.float32) * unit, mask=first + 3 < size)


def fill_uniforms(out: Tensor, seeds: Tensor, clocks: Tensor, stream: int) -> None:
    """Fills whole rows (P, 1, R, W) by seeds and clocks, (P, 1, 1, 1) each, one after another."""
    size = out[0].numel()
    assert out[0].is_contiguous()
    fill[(len(out), -(-size // (4 * _BLOCK)))](
        out, seeds.contiguous(), clocks.contiguous(), out.stride(0), size, stream, BLOCK=_BLOCK
    )
