"""Philox4x32-10 on devices other than the CPU: the same words as `cpp/core/rng.h`."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.ops.core import triton

_FIRST_STREAM = 16  # learners draw from other counters than environments; see cpp/ops/rows.h
_LOW = 0xFFFFFFFF


def uniforms(out: Tensor, seeds: Tensor, clock: Tensor, stream: int) -> None:
    """Fills (P, 1, R, W) with numbers in [0, 1) by seeds and clocks (P, 1, 1, 1)."""
    if out.device.type == "cuda":
        triton("philox").fill_uniforms(out, seeds, clock, _FIRST_STREAM + stream)
        return
    size = out[0].numel()
    out.copy_(tensor_uniforms(seeds.view(-1), clock.view(-1), size, stream).view(out.shape))


def tensor_uniforms(seeds: Tensor, clock: Tensor, size: int, stream: int) -> Tensor:
    """The numbers (P, size) in tensor operations."""
    a = torch.arange(-(-size // 4), device=seeds.device).expand(seeds.shape[0], -1)
    b, d = ((half & _LOW).unsqueeze(1).expand_as(a) for half in (clock, clock >> 32))
    key0, key1 = seeds.unsqueeze(1) & _LOW, (seeds.unsqueeze(1) >> 32) & _LOW
    c = torch.full_like(a, _FIRST_STREAM + stream)
    for _ in range(10):
        high0, low0 = _product(0xD2511F53, a)
        high1, low1 = _product(0xCD9E8D57, c)
        a, b, c, d = high1 ^ b ^ key0, low1, high0 ^ d ^ key1, low0
        key0, key1 = (key0 + 0x9E3779B9) & _LOW, (key1 + 0xBB67AE85) & _LOW
    words = torch.stack([a, b, c, d], dim=-1).flatten(1)[:, :size]
    return (words >> 8).to(torch.float32) * 2.0**-24


def _product(factor: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """The high and the low half of a product of two 32-bit numbers; int64 would overflow."""
    low = (factor & 0xFFFF) * x
    high = (factor >> 16) * x + (low >> 16)
    return high >> 16, ((high & 0xFFFF) << 16) | (low & 0xFFFF)
