"""Distributions over Range heads.

Each has a raw form that is drawn, kept and judged, and a unit form in [-1, 1] that goes to the
environment, so that no log-probability is computed through an inverse that loses digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor

from headwise.population import even_rows, softplus
from headwise.population.keys import to_normal

RangeKind: TypeAlias = Literal["squashed", "clipped", "beta"]

_BLOCK = 256  # of the kernels
_LOG_ROOT_TAU = 0.5 * math.log(2.0 * math.pi)


class RangeDistribution(Protocol):
    """A distribution over C numbers in [-1, 1], each by itself; tensors are (..., C)."""

    num_uniforms: ClassVar[int]
    """Uniform numbers that one draw of one head takes."""

    def draw(self, uniform: Tensor) -> Tensor:
        """Raw values from uniforms (..., C, num_uniforms)."""

    def draw_judged(self, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """Raw values and their `log_prob`."""

    def to_unit(self, raw: Tensor) -> Tensor:
        """Raw values as numbers in [-1, 1]."""

    def log_prob(self, raw: Tensor) -> Tensor:
        """The log-density of the unit value that a raw one stands for."""

    def entropy(self) -> Tensor:
        """The entropy in nats; of the raw form, where that of the unit form has no closed form."""

    def mode(self) -> Tensor:
        """The raw value to take when chance is not wanted."""

    def kl(self, other: RangeDistribution) -> Tensor:
        """The divergence of another distribution of the same kind from this one."""

    def cdf(self, unit: Tensor) -> Tensor:
        """The probability of at most the unit values given, (..., C, edges), inside (-1, 1)."""

    def tensors(self) -> tuple[Tensor, Tensor]:
        """The two parameters of each head, (..., C): what `rebuilt` makes it from again."""

    def rebuilt(self, first: Tensor, second: Tensor) -> RangeDistribution:
        """A distribution of the same kind with other parameters."""


class _Drawn:
    """Draws first and judges then."""

    def draw_judged(self: RangeDistribution, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """Raw values and their `log_prob`."""
        raw = self.draw(uniform)
        return raw, self.log_prob(raw)


@dataclass(frozen=True)
class SquashedGaussian:
    """tanh of a Gaussian: raw is the Gaussian's value."""

    mean: Tensor
    log_std: Tensor
    num_uniforms: ClassVar[int] = 1

    def draw(self, uniform: Tensor) -> Tensor:
        """Raw values; gradients flow to mean and spread."""
        return self.mean + self.log_std.exp() * to_normal(uniform.squeeze(-1))

    def draw_judged(self, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """Raw values and their `log_prob`; gradients flow to mean and spread through both."""
        drawn: tuple[Tensor, Tensor] = _DrawSquashed.apply(  # type: ignore[no-untyped-call]
            self.mean, self.log_std, uniform.squeeze(-1)
        )
        return drawn

    def to_unit(self, raw: Tensor) -> Tensor:
        """Raw values as numbers in [-1, 1]."""
        return torch.tanh(raw)

    def log_prob(self, raw: Tensor) -> Tensor:
        """The log-density of tanh(raw)."""
        return _gaussian_log_prob(self, raw) - log_tanh_slope(raw)

    def entropy(self) -> Tensor:
        """The entropy of the Gaussian before squashing."""
        return 0.5 + _LOG_ROOT_TAU + self.log_std.expand_as(self.mean)

    def mode(self) -> Tensor:
        """The mean of the Gaussian."""
        return self.mean

    def kl(self, other: RangeDistribution) -> Tensor:
        """The divergence of the Gaussians, which squashing does not change."""
        assert isinstance(other, SquashedGaussian)
        return _gaussian_kl(self, other)

    def cdf(self, unit: Tensor) -> Tensor:
        """The probability of at most the unit values given."""
        return _gaussian_cdf(self, torch.atanh(unit))

    def tensors(self) -> tuple[Tensor, Tensor]:
        """The two parameters."""
        return self.mean, self.log_std

    def rebuilt(self, first: Tensor, second: Tensor) -> SquashedGaussian:
        """The same kind with other parameters."""
        return SquashedGaussian(first, second)


@dataclass(frozen=True)
class ClippedGaussian(_Drawn):
    """A Gaussian whose value is clipped on the way to the environment: raw is the value drawn."""

    mean: Tensor
    log_std: Tensor
    num_uniforms: ClassVar[int] = 1

    def draw(self, uniform: Tensor) -> Tensor:
        """Raw values; gradients flow to mean and spread."""
        return self.mean + self.log_std.exp() * to_normal(uniform.squeeze(-1))

    def to_unit(self, raw: Tensor) -> Tensor:
        """Raw values clipped to [-1, 1]."""
        return raw.clamp(-1.0, 1.0)

    def log_prob(self, raw: Tensor) -> Tensor:
        """The log-density of the value before clipping."""
        return _gaussian_log_prob(self, raw)

    def entropy(self) -> Tensor:
        """The entropy of the Gaussian."""
        return 0.5 + _LOG_ROOT_TAU + self.log_std.expand_as(self.mean)

    def mode(self) -> Tensor:
        """The mean."""
        return self.mean

    def kl(self, other: RangeDistribution) -> Tensor:
        """The divergence of the Gaussians."""
        assert isinstance(other, ClippedGaussian)
        return _gaussian_kl(self, other)

    def cdf(self, unit: Tensor) -> Tensor:
        """The probability of at most the unit values given, inside the interval."""
        return _gaussian_cdf(self, unit)

    def tensors(self) -> tuple[Tensor, Tensor]:
        """The two parameters."""
        return self.mean, self.log_std

    def rebuilt(self, first: Tensor, second: Tensor) -> ClippedGaussian:
        """The same kind with other parameters."""
        return ClippedGaussian(first, second)


@dataclass(frozen=True)
class BetaUnit(_Drawn):
    """A Beta distribution stretched to [-1, 1], with both shapes above 1: raw is in (0, 1)."""

    first: Tensor
    second: Tensor
    num_uniforms: ClassVar[int] = 16

    def draw(self, uniform: Tensor) -> Tensor:
        """Raw values, as the share of two Gamma variates; no gradient flows."""
        half = self.num_uniforms // 2
        with torch.no_grad():
            first = _draw_gamma(self.first, uniform[..., :half])
            second = _draw_gamma(self.second, uniform[..., half:])
            return (first / (first + second)).clamp(1e-6, 1.0 - 1e-6)

    def to_unit(self, raw: Tensor) -> Tensor:
        """Raw values as numbers in [-1, 1]."""
        return 2.0 * raw - 1.0

    def log_prob(self, raw: Tensor) -> Tensor:
        """The log-density of the unit value; the density is half of the raw one's."""
        log_beta = self.first.lgamma() + self.second.lgamma() - (self.first + self.second).lgamma()
        powers = (self.first - 1.0) * raw.log() + (self.second - 1.0) * torch.log1p(-raw)
        return powers - log_beta - math.log(2.0)

    def entropy(self) -> Tensor:
        """The entropy of the unit value."""
        a, b, total = self.first, self.second, self.first + self.second
        log_beta = a.lgamma() + b.lgamma() - total.lgamma()
        digammas = (a - 1.0) * a.digamma() + (b - 1.0) * b.digamma()
        return log_beta - digammas + (total - 2.0) * total.digamma() + math.log(2.0)

    def mode(self) -> Tensor:
        """The most likely raw value."""
        return (self.first - 1.0) / (self.first + self.second - 2.0).clamp_min(1e-6)

    def kl(self, other: RangeDistribution) -> Tensor:
        """The divergence in closed form."""
        assert isinstance(other, BetaUnit)
        a, b, total = self.first, self.second, self.first + self.second
        log_beta = a.lgamma() + b.lgamma() - total.lgamma()
        other_total = other.first + other.second
        other_log_beta = other.first.lgamma() + other.second.lgamma() - other_total.lgamma()
        return (
            other_log_beta
            - log_beta
            + (a - other.first) * a.digamma()
            + (b - other.second) * b.digamma()
            + (other_total - total) * total.digamma()
        )

    def cdf(self, unit: Tensor) -> Tensor:
        """The probability of at most the unit values given, by Gauss-Legendre quadrature."""
        # No closed form exists in torch. Nearly all mass lies within eight deviations of the mean,
        # so 32 nodes on the part of that below each edge are good to 3e-4 for any shapes.
        nodes, weights = _legendre(unit.device)
        a, b = self.first[..., None, None], self.second[..., None, None]
        mean = a / (a + b)
        reach = 8.0 * (mean * (1.0 - mean) / (a + b + 1.0)).sqrt()
        low, high = (mean - reach).clamp_min(0.0), (mean + reach).clamp_max(1.0)
        edge = ((unit + 1.0) / 2.0).unsqueeze(-1)
        width = torch.minimum(torch.maximum(edge, low), high) - low
        x = (low + width * nodes).clamp(1e-7, 1.0 - 1e-7)
        density = (BetaUnit(a, b).log_prob(x) + math.log(2.0)).exp()
        return ((density * weights).sum(-1) * width.squeeze(-1)).clamp(0.0, 1.0)

    def tensors(self) -> tuple[Tensor, Tensor]:
        """The two parameters."""
        return self.first, self.second

    def rebuilt(self, first: Tensor, second: Tensor) -> BetaUnit:
        """The same kind with other parameters."""
        return BetaUnit(first, second)


def make_range(kind: RangeKind, first: Tensor, second: Tensor) -> RangeDistribution:
    """A distribution from the two numbers that a network gives for each head."""
    if kind == "squashed":
        return SquashedGaussian(first, second)
    if kind == "clipped":
        return ClippedGaussian(first, second)
    return BetaUnit(1.0 + softplus(first), 1.0 + softplus(second))


def bounded_log_std(free: Tensor, low: float, high: float) -> Tensor:
    """A free number as a log standard deviation between two bounds."""
    half = 0.5 * (high - low)
    return torch.tanh(free) * half + (low + half)


def log_tanh_slope(raw: Tensor) -> Tensor:
    """log(1 - tanh(raw)^2), without losing digits far out."""
    return 2.0 * (math.log(2.0) - raw - softplus(-2.0 * raw))


class _DrawSquashed(torch.autograd.Function):
    """A draw and its log-density, with the gradients that their formulas have together.

    The density's own slopes by mean and spread cancel out along a draw; what is left is the slope
    of the squashing. Left to autograd this is some thirty operations, and as many kernels.
    """

    @staticmethod
    def forward(ctx: Any, mean: Tensor, log_std: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
        if mean.device.type == "cuda":
            raw, log_prob, spread = _draw_kernel(mean, log_std, uniform)
        else:
            normal = to_normal(uniform)
            spread = log_std.exp() * normal
            raw = mean + spread
            log_prob = -0.5 * normal.square() - log_std - _LOG_ROOT_TAU - log_tanh_slope(raw)
        ctx.save_for_backward(raw, spread)
        return raw, log_prob

    @staticmethod
    def backward(ctx: Any, to_raw: Tensor, to_log_prob: Tensor) -> tuple[Tensor, Tensor, None]:
        raw, spread = ctx.saved_tensors
        if raw.device.type == "cuda":
            return *_back_kernel(to_raw, to_log_prob, raw, spread), None
        to_mean = to_raw + to_log_prob * (2.0 * torch.tanh(raw))
        return to_mean, to_mean * spread - to_log_prob, None


def _draw_kernel(mean: Tensor, log_std: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    from headwise.factorizations.kernels.ranges import draw_squashed

    mean, log_std, uniform = even_rows(mean), even_rows(log_std), even_rows(uniform)
    if uniform.stride(-1) != 1:
        uniform = uniform.contiguous()
    raw, log_prob, spread = torch.empty((3, *mean.shape), device=mean.device).unbind(0)
    draw_squashed[(-(-raw.numel() // _BLOCK),)](
        mean, log_std, uniform, mean.stride(-2), mean.stride(-1), log_std.stride(-2),
        log_std.stride(-1), uniform.stride(-2), raw, log_prob, spread, raw.numel(), raw.shape[-1],
        BLOCK=_BLOCK,
    )  # fmt: skip
    return raw, log_prob, spread


def _back_kernel(
    to_raw: Tensor, to_log_prob: Tensor, raw: Tensor, spread: Tensor
) -> tuple[Tensor, Tensor]:
    from headwise.factorizations.kernels.ranges import squashed_back

    to_mean, to_std = torch.empty((2, *raw.shape), device=raw.device).unbind(0)
    squashed_back[(-(-raw.numel() // _BLOCK),)](
        to_raw.contiguous(), to_log_prob.contiguous(), raw, spread, to_mean, to_std, raw.numel(),
        BLOCK=_BLOCK,
    )  # fmt: skip
    return to_mean, to_std


def _gaussian_log_prob(d: SquashedGaussian | ClippedGaussian, raw: Tensor) -> Tensor:
    standard = (raw - d.mean) * (-d.log_std).exp()
    return -0.5 * standard.square() - d.log_std - _LOG_ROOT_TAU


def _gaussian_kl(
    d: SquashedGaussian | ClippedGaussian, other: SquashedGaussian | ClippedGaussian
) -> Tensor:
    ratio = (2.0 * (d.log_std - other.log_std)).exp()
    apart = ((d.mean - other.mean) * (-other.log_std).exp()).square()
    return 0.5 * (ratio + apart - 1.0) - (d.log_std - other.log_std)


def _gaussian_cdf(d: SquashedGaussian | ClippedGaussian, edges: Tensor) -> Tensor:
    standard = (edges - d.mean.unsqueeze(-1)) * (-d.log_std).exp().unsqueeze(-1)
    probability: Tensor = torch.special.ndtr(standard)
    return probability


def _draw_gamma(shape: Tensor, uniform: Tensor) -> Tensor:
    """Gamma variates of shape at least 1 (Marsaglia and Tsang), four tries drawn at once.

    A try succeeds at least 95 times in 100; if all four fail, the mean is taken.
    """
    d = (shape - 1.0 / 3.0).unsqueeze(-1)
    tries = uniform.view(*uniform.shape[:-1], -1, 2)
    normal = to_normal(tries[..., 0])
    v = (1.0 + normal / (3.0 * d.sqrt())).pow(3)
    bound = 0.5 * normal.square() + d * (1.0 - v + v.clamp_min(1e-12).log())
    good = (v > 0.0) & (tries[..., 1].clamp_min(1e-12).log() < bound)
    first = torch.argmax(good.float(), dim=-1, keepdim=True)
    drawn = (d * v).gather(-1, first).squeeze(-1)
    return torch.where(good.any(-1), drawn, shape)


def _legendre(device: torch.device) -> tuple[Tensor, Tensor]:
    nodes, weights = np.polynomial.legendre.leggauss(32)
    return (
        torch.tensor((nodes + 1.0) / 2.0, dtype=torch.float32, device=device),
        torch.tensor(weights / 2.0, dtype=torch.float32, device=device),
    )
