"""Philox4x32-10 on devices other than the CPU: the same words as `cpp/core/rng.h`.

On CUDA it is one Triton kernel, which reads the step from the device's memory and so can be
captured in a CUDA graph. The same in tensor operations is for other devices, and the kernel's
oracle.
"""

from __future__ import annotations

import torch
from torch import Tensor

_FIRST_STREAM = 16  # learners draw from other counters than environments; see cpp/core/fill.h
_LOW = 0xFFFFFFFF
_BLOCK = 256


def fill_uniforms(out: Tensor, seeds: Tensor, stream: int, step: int | Tensor) -> None:
    """Fills rows (P, N) with numbers in [0, 1), by the members' seeds (P,), the bits of int64."""
    if out.device.type != "cuda":
        out.copy_(tensor_uniforms(seeds, out.shape[1], stream, step))
        return
    from headwise.population.kernels.philox import fill_uniforms as kernel

    clock = step if isinstance(step, Tensor) else torch.tensor(step, device=out.device)
    members, size = out.shape
    grid = (members, -(-size // (4 * _BLOCK)))
    kernel[grid](out, seeds, clock, size, _FIRST_STREAM + stream, BLOCK=_BLOCK)


def tensor_uniforms(seeds: Tensor, size: int, stream: int, step: int | Tensor) -> Tensor:
    """The numbers of `fill_uniforms`, (P, size), in tensor operations."""
    draw = torch.arange(-(-size // 4), device=seeds.device).unsqueeze(0)
    clock = torch.as_tensor(step, device=seeds.device)
    key0, key1 = seeds.unsqueeze(1) & _LOW, (seeds.unsqueeze(1) >> 32) & _LOW
    a = draw.expand(seeds.shape[0], -1)
    b, d = (half.expand_as(a) for half in (clock & _LOW, (clock >> 32) & _LOW))
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
