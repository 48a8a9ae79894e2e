"""The Triton kernel of `philox.py`. Imported only where there is a CUDA device."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def fill_uniforms(out, seeds, clock, size, stream, BLOCK: tl.constexpr):
    """Fills a row for each member (axis 0) with numbers in [0, 1), four to a draw."""
    member = tl.program_id(0)
    draw = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    step = tl.load(clock)
    seed = tl.load(seeds + member)
    zero = draw.to(tl.uint64) * 0
    a = draw.to(tl.uint64)
    b = zero + (step & 0xFFFFFFFF).to(tl.uint64)
    c = zero + stream.to(tl.uint64)
    d = zero + ((step >> 32) & 0xFFFFFFFF).to(tl.uint64)
    key0 = (seed & 0xFFFFFFFF).to(tl.uint64)
    key1 = ((seed >> 32) & 0xFFFFFFFF).to(tl.uint64)
    for _ in tl.static_range(10):
        product0 = a * 0xD2511F53
        product1 = c * 0xCD9E8D57
        a = ((product1 >> 32) ^ b ^ key0) & 0xFFFFFFFF
        b = product1 & 0xFFFFFFFF
        c = ((product0 >> 32) ^ d ^ key1) & 0xFFFFFFFF
        d = product0 & 0xFFFFFFFF
        key0 = (key0 + 0x9E3779B9) & 0xFFFFFFFF
        key1 = (key1 + 0xBB67AE85) & 0xFFFFFFFF
    row = out + member * size + 4 * draw
    inside = 4 * draw
    tl.store(row, (a >> 8).to(tl.float32) * 5.9604644775390625e-08, mask=inside < size)
    tl.store(row + 1, (b >> 8).to(tl.float32) * 5.9604644775390625e-08, mask=inside + 1 < size)
    tl.store(row + 2, (c >> 8).to(tl.float32) * 5.9604644775390625e-08, mask=inside + 2 < size)
    tl.store(row + 3, (d >> 8).to(tl.float32) * 5.9604644775390625e-08, mask=inside + 3 < size)
