"""Distributions over the heads of an action, as the definitions of operations have them.

A continuous head has a raw form, which is drawn, kept and evaluated, and a unit form in [-1, 1],
which goes to the environment: no log-probability goes through an inverse that loses digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from headwise.ops.functions import constant, normal_of, softplus
from headwise.ops.heads import NEVER, HeadTable

_LOG_ROOT_TAU = 0.5 * math.log(2.0 * math.pi)


class Distribution:
    """The distribution of an action, from a network's outputs: every head by itself.

    Args:
        y: The outputs, (P, N * stack, B, W).
        free: Free standard deviations (P, 1, 1, C) where they are parameters.
        mask: Which options may be chosen, zeros and ones (P, 1, B, total).
    """

    def __init__(
        self, table: HeadTable, y: Tensor, free: Tensor | None = None, mask: Tensor | None = None
    ) -> None:
        self.table = table
        self.log_probs: Tensor | None = None
        """Log-probabilities of the options, (P, N, B, D, K)."""
        self.first = self.second = torch.empty(0)
        """The parameters of continuous heads, (P, N, B, C): mean and logarithm of the standard
        deviation, or both shapes."""
        if table.discrete:
            self.log_probs = table.masked(table.scores(y), mask).log_softmax(-1)
        if table.continuous:
            width = 2 if table.state_std else 1
            own = torch.stack([table.outputs_of(y, h, width) for h in table.continuous], dim=-2)
            first = own[..., 0]
            second = own[..., 1] if table.state_std else free
            assert second is not None
            if table.kind == "beta":
                self.first, self.second = 1.0 + softplus(first), 1.0 + softplus(second)
            else:
                low, high = table.log_std
                half = 0.5 * (high - low)
                log_std = torch.tanh(second) * half + (low + half)
                self.first, self.second = first, log_std.expand_as(first)

    @classmethod
    def kept(cls, table: HeadTable, x: Tensor) -> Distribution:
        """The distribution that `parameters` are of."""
        made = cls.__new__(cls)
        made.table = table
        widths = [table.total, len(table.continuous), len(table.continuous)]
        log_probs, made.first, made.second = torch.split(x, widths, dim=-1)
        made.log_probs = None
        if table.discrete:
            made.log_probs = table.pad(log_probs).masked_fill(~table.exists, NEVER)
        return made

    @classmethod
    def of_options(cls, table: HeadTable, log_probs: Tensor) -> Distribution:
        """The distribution of discrete heads whose log-probabilities (P, N, B, D, K) are known.

        Continuous heads may follow them, of which nothing is known.
        """
        made = cls.__new__(cls)
        made.table, made.log_probs = table, log_probs
        made.first = made.second = log_probs[..., :0, 0]
        return made

    def parameters(self) -> Tensor:
        """All of it in a row (P, N, B, total + 2 C), to be kept."""
        parts = [] if self.log_probs is None else [self.table.flatten(self.log_probs)]
        return torch.cat(
            [*parts, *([self.first, self.second] if self.table.continuous else [])], -1
        )

    # --- actions --------------------------------------------------------------------------------

    def sample(self, uniform: Tensor) -> Tensor:
        """Raw actions (P, N, B, H) by inverting distribution functions; see `num_uniforms`."""
        table, discrete, continuous = self.table, None, None
        if self.log_probs is not None:
            discrete = self._options(uniform[..., : len(table.discrete)])
        if table.continuous:
            rest = uniform[..., len(table.discrete) :]
            rest = rest.reshape(*rest.shape[:-1], len(table.continuous), -1)
            if table.kind == "beta":
                continuous = _sample_beta(self.first.detach(), self.second.detach(), rest)
            else:
                continuous = self.first + self.second.exp() * normal_of(rest.squeeze(-1))
        return table.join(discrete, continuous)

    def mode(self) -> Tensor:
        """The raw action to take without chance, (P, N, B, H)."""
        discrete = None if self.log_probs is None else self._likeliest().to(self._kind)
        continuous = None
        if self.table.continuous:
            continuous = self.first
            if self.table.kind == "beta":
                total = self.first + self.second - 2.0
                # Both shapes at 1 are uniform: the center stands for all of it.
                continuous = torch.where(
                    total > 1e-6, (self.first - 1.0) / total.clamp_min(1e-6), 0.5
                )
        return self.table.join(discrete, continuous)

    def _options(self, uniform: Tensor) -> Tensor:
        """Options drawn, (P, N, B, D)."""
        assert self.log_probs is not None
        return pick(self.log_probs, uniform)

    def _likeliest(self) -> Tensor:
        """The most likely options, (P, N, B, D)."""
        assert self.log_probs is not None
        return self.log_probs.argmax(-1)

    def option_probs(self) -> Tensor:
        """The probabilities of all options, (P, N, B, D, K), of each head by itself."""
        assert self.log_probs is not None
        return self.log_probs.exp()

    @property
    def _kind(self) -> torch.dtype:
        assert self.log_probs is not None
        return self.log_probs.dtype

    # --- numbers of heads, (P, N, B, H) ---------------------------------------------------------

    def log_prob(self, raw: Tensor) -> Tensor:
        """The log-probability or log-density of each head; zero where it is not in use."""
        discrete = continuous = None
        if self.log_probs is not None:
            discrete = chosen(self.log_probs, self.table.split(raw)[0])
        if self.table.continuous:
            continuous = self.log_density(self.table.split(raw)[1])
        return self._used(self.table.join(discrete, continuous), raw)

    def entropy(self, raw: Tensor | None = None) -> Tensor:
        """The entropy of each head (of a squashed Gaussian, that before squashing).

        It is weighted with how likely the head is to be in use; with whether it is in use where an
        action is given, because later heads depend on it.
        """
        discrete = continuous = None
        if self.log_probs is not None:
            discrete = -(self.log_probs.exp() * self.log_probs).sum(-1)
        if self.table.continuous:
            continuous = self._own_entropy()
        return self._weighted(self.table.join(discrete, continuous), raw)

    def kl(self, other: Distribution, raw: Tensor | None = None) -> Tensor:
        """The divergence of another distribution from this one, weighted as `entropy` is."""
        discrete = continuous = None
        if self.log_probs is not None and other.log_probs is not None:
            discrete = (self.log_probs.exp() * (self.log_probs - other.log_probs)).sum(-1)
        if self.table.continuous:
            continuous = self._own_kl(other)
        return self._weighted(self.table.join(discrete, continuous), raw)

    def activity(self) -> Tensor | None:
        """How likely each head is to be in use; None where all always are."""
        if not self.table.is_conditional:
            return None
        some = self.first if self.log_probs is None else self.log_probs[..., 0]
        parts = [torch.ones_like(some[..., 0])] * self.table.num_heads
        for head in self.table.order:
            condition = self.table.conditions[head]
            if condition is not None:
                parts[head] = parts[condition.head] * self.chance(*condition)
        return torch.stack(parts, dim=-1)

    def chance(self, head: int, low: float, high: float) -> Tensor:
        """How likely a head's value is to lie in [low, high)."""
        table = self.table
        if head in table.discrete:
            assert self.log_probs is not None
            first, last = max(math.ceil(low), 0), int(min(math.ceil(high), table.widest))
            return self.log_probs[..., head, first:last].exp().sum(-1)
        if not self.first.shape[-1]:  # nothing is known of real numbers: the condition is met
            return torch.ones_like(self.first.sum(-1))
        place = head - len(table.discrete)
        edges = tuple(min(max(edge, -0.999999), 0.999999) for edge in (low, high))
        below = self.cdf(constant(edges, self.first))[..., place, :]
        upper = below[..., 1] if high < 1.0 else torch.ones_like(below[..., 1])
        return upper - below[..., 0] if low > -1.0 else upper

    def bin_probs(self, count: int) -> Tensor:
        """The probability of each of equally wide bins of continuous heads, (P, N, B, C, count)."""
        edges = tuple(2.0 * k / count - 1.0 for k in range(1, count))
        below = self.cdf(constant(edges, self.first))
        none = torch.zeros_like(self.first).unsqueeze(-1)  # one bin has no edge
        return torch.cat([none, below, none + 1.0], dim=-1).diff(dim=-1)

    def cdf(self, unit: Tensor) -> Tensor:
        """The probability of at most the unit values given (edges,), (P, N, B, C, edges)."""
        if self.table.kind == "beta":
            return _beta_cdf(self.first, self.second, unit)
        edges = torch.atanh(unit) if self.table.kind == "squashed" else unit
        standard = (edges - self.first.unsqueeze(-1)) * (-self.second).exp().unsqueeze(-1)
        probability: Tensor = torch.special.ndtr(standard)
        return probability

    def _used(self, columns: Tensor, raw: Tensor) -> Tensor:
        if not self.table.is_conditional:
            return columns
        return columns * self.table.in_use(to_unit(self.table, raw))

    def _weighted(self, columns: Tensor, raw: Tensor | None) -> Tensor:
        if raw is not None:
            return self._used(columns, raw)
        activity = self.activity()
        return columns if activity is None else columns * activity

    # --- continuous heads, (P, N, B, C) ---------------------------------------------------------

    def log_density(self, raw: Tensor) -> Tensor:
        """The log-density of the unit values that raw ones (P, N, B, C) stand for."""
        if self.table.kind == "beta":
            return _beta_log_density(self.first, self.second, raw)
        standard = (raw - self.first) * (-self.second).exp()
        density = -0.5 * standard.square() - self.second - _LOG_ROOT_TAU
        return density - log_tanh_slope(raw) if self.table.kind == "squashed" else density

    def _own_entropy(self) -> Tensor:
        if self.table.kind != "beta":
            return 0.5 + _LOG_ROOT_TAU + self.second
        a, b, total = self.first, self.second, self.first + self.second
        digammas = (a - 1.0) * a.digamma() + (b - 1.0) * b.digamma()
        return _log_beta(a, b) - digammas + (total - 2.0) * total.digamma() + math.log(2.0)

    def _own_kl(self, other: Distribution) -> Tensor:
        if self.table.kind != "beta":
            ratio = (2.0 * (self.second - other.second)).exp()
            apart = ((self.first - other.first) * (-other.second).exp()).square()
            return 0.5 * (ratio + apart - 1.0) - (self.second - other.second)
        a, b, total = self.first, self.second, self.first + self.second
        other_total = other.first + other.second
        return (
            _log_beta(other.first, other.second)
            - _log_beta(a, b)
            + (a - other.first) * a.digamma()
            + (b - other.second) * b.digamma()
            + (other_total - total) * total.digamma()
        )


def to_unit(table: HeadTable, raw: Tensor) -> Tensor:
    """Raw actions (..., H) in unit form: options as they are, real numbers in [-1, 1]."""
    if not table.continuous:
        return raw
    squash: Callable[[Tensor], Tensor] = {
        "squashed": torch.tanh,
        "clipped": lambda x: x.clamp(-1.0, 1.0),
        "beta": lambda x: 2.0 * x - 1.0,
    }[table.kind]
    discrete, continuous = table.split(raw)
    return torch.cat([discrete, squash(continuous)], dim=-1)


def pick(log_probs: Tensor, uniform: Tensor) -> Tensor:
    """The first option whose cumulative probability exceeds the uniform number, (..., D)."""
    cumulative = log_probs.exp().cumsum(-1)
    # Rounding may leave the total a little below 1; a share of the total is never beyond it.
    threshold = uniform.unsqueeze(-1) * cumulative[..., -1:]
    return (cumulative <= threshold).sum(-1).to(log_probs.dtype)


def chosen(numbers: Tensor, options: Tensor) -> Tensor:
    """The numbers (..., D, K) of given options (..., D)."""
    index = options.long().expand(numbers.shape[:-1]).unsqueeze(-1)
    return numbers.gather(-1, index).squeeze(-1)


def log_tanh_slope(raw: Tensor) -> Tensor:
    """log(1 - tanh(raw)^2), without losing digits far out."""
    return 2.0 * (math.log(2.0) - raw - softplus(-2.0 * raw))


# --- Beta distributions -------------------------------------------------------------------------


def _log_beta(a: Tensor, b: Tensor) -> Tensor:
    return a.lgamma() + b.lgamma() - (a + b).lgamma()


def _beta_log_density(a: Tensor, b: Tensor, raw: Tensor) -> Tensor:
    """Of the unit value; the density is half of the raw one's."""
    powers = (a - 1.0) * raw.log() + (b - 1.0) * torch.log1p(-raw)
    return powers - _log_beta(a, b) - math.log(2.0)


def _beta_cdf(a: Tensor, b: Tensor, unit: Tensor) -> Tensor:
    """By Gauss-Legendre quadrature: torch has no closed form.

    Nearly all mass lies within 8 standard deviations of the mean, so 32 nodes on the part of that
    below each edge are good to 3e-4 for any shapes.
    """
    nodes, weights = (constant(x, a) for x in _LEGENDRE)
    a, b = a[..., None, None], b[..., None, None]
    mean = a / (a + b)
    reach = 8.0 * (mean * (1.0 - mean) / (a + b + 1.0)).sqrt()
    low, high = (mean - reach).clamp_min(0.0), (mean + reach).clamp_max(1.0)
    edge = ((unit + 1.0) / 2.0).unsqueeze(-1)
    width = torch.minimum(torch.maximum(edge, low), high) - low
    x = (low + width * nodes).clamp(1e-7, 1.0 - 1e-7)
    density = (_beta_log_density(a, b, x) + math.log(2.0)).exp()
    return ((density * weights).sum(-1) * width.squeeze(-1)).clamp(0.0, 1.0)


def _legendre() -> tuple[tuple[float, ...], tuple[float, ...]]:
    nodes, weights = np.polynomial.legendre.leggauss(32)
    return tuple(((nodes + 1.0) / 2.0).tolist()), tuple((weights / 2.0).tolist())


_LEGENDRE = _legendre()


def _sample_beta(a: Tensor, b: Tensor, uniform: Tensor) -> Tensor:
    """Raw values as the share of two Gamma variates; no gradient flows."""
    half = uniform.shape[-1] // 2
    first, second = (_gamma(x, u) for x, u in ((a, uniform[..., :half]), (b, uniform[..., half:])))
    return (first / (first + second)).clamp(1e-6, 1.0 - 1e-6)


def _gamma(shape: Tensor, uniform: Tensor) -> Tensor:
    """Gamma variates of shape at least 1 (Marsaglia and Tsang), four tries drawn at once.

    A try succeeds at least 95 times in 100; if all four fail, the mean is taken.
    """
    d = (shape - 1.0 / 3.0).unsqueeze(-1)
    tries = uniform.reshape(*uniform.shape[:-1], -1, 2)
    normal = normal_of(tries[..., 0])
    v = (1.0 + normal / (3.0 * d.sqrt())).pow(3)
    bound = 0.5 * normal.square() + d * (1.0 - v + v.clamp_min(1e-12).log())
    good = (v > 0.0) & (tries[..., 1].clamp_min(1e-12).log() < bound)
    first = torch.argmax(good.float(), dim=-1, keepdim=True)
    drawn = (d * v).gather(-1, first).squeeze(-1)
    return torch.where(good.any(-1), drawn, shape)
