"""The Triton kernels of `ranges.py`. Imported only where there is a CUDA device."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def draw_squashed(
    mean, log_std, uniform, mean_row, mean_column, std_row, std_column, uniform_row,
    raw, log_prob, spread, size, columns, BLOCK: tl.constexpr,
):  # fmt: skip
    """Raw values of squashed Gaussians, their log-densities, and how far they are from the mean."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < size
    row, column = lane // columns, lane % columns
    u = tl.load(uniform + row * uniform_row + column, mask=inside, other=0.5)
    normal = libdevice.erfinv(u * 2.0 + (5.9604644775390625e-08 - 1.0)) * 1.4142135623730951
    wide = tl.load(log_std + row * std_row + column * std_column, mask=inside, other=0.0)
    far = tl.exp(wide) * normal
    x = tl.load(mean + row * mean_row + column * mean_column, mask=inside, other=0.0) + far
    # log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2 x))
    softplus = tl.maximum(-2.0 * x, 0.0) + libdevice.log1p(tl.exp(-tl.abs(2.0 * x)))
    slope = 2.0 * (0.6931471805599453 - x - softplus)
    density = -0.5 * normal * normal - wide - 0.9189385332046727 - slope
    tl.store(raw + lane, x, mask=inside)
    tl.store(log_prob + lane, density, mask=inside)
    tl.store(spread + lane, far, mask=inside)


@triton.jit
def squashed_back(to_raw, to_log_prob, raw, spread, to_mean, to_std, size, BLOCK: tl.constexpr):
    """The gradients by mean and log standard deviation."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < size
    by_density = tl.load(to_log_prob + lane, mask=inside, other=0.0)
    x = tl.load(raw + lane, mask=inside, other=0.0)
    by_mean = tl.load(to_raw + lane, mask=inside, other=0.0)
    by_mean += by_density * 2.0 * libdevice.tanh(x)
    far = tl.load(spread + lane, mask=inside, other=0.0)
    tl.store(to_mean + lane, by_mean, mask=inside)
    tl.store(to_std + lane, by_mean * far - by_density, mask=inside)
