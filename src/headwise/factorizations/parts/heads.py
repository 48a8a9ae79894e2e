"""A distribution over all heads of an action, each head by itself."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.parts.ranges import RangeDistribution
from headwise.population import even_rows

_BLOCK = 128  # of the kernel: rows at a time

FEW = 64
"""Options that one thread of a kernel may go through, one after the other."""


@dataclass(frozen=True)
class Heads:
    """Independent distributions for every head: categorical for a Choice, continuous for a Range.

    Actions here are raw, (..., H): the number of an option, and the raw value of a Range.
    """

    layout: Layout
    log_probs: Tensor | None
    """Log-probabilities of the options, normalised and masked, (..., D, K)."""
    ranges: RangeDistribution | None
    """The distribution of the Range heads."""

    @classmethod
    def from_logits(
        cls,
        layout: Layout,
        logits: Tensor | None,
        ranges: RangeDistribution | None,
        legal: Tensor | None = None,
    ) -> Heads:
        """From padded logits (..., D, K); `legal` (..., D, K) says which options may be chosen."""
        log_probs = None
        if logits is not None:
            log_probs = torch.log_softmax(layout.masked(logits, legal), dim=-1)
        return cls(layout, log_probs, ranges)

    def sample(self, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """Raw actions from uniforms (..., num_uniforms), by inverting distribution functions.

        The second is their `log_prob`.
        """
        split = self.layout.num_choices
        choices = raw = of_choices = of_raw = None
        if self.log_probs is not None:
            choices, of_choices = _pick_judged(self.log_probs, uniform[..., :split])
        if self.ranges is not None:
            rest = uniform[..., split:]
            rest = rest.view(*rest.shape[:-1], self.layout.num_ranges, -1)
            raw, of_raw = self.ranges.draw_judged(rest)
        drawn = self.layout.columns(choices, raw)
        return drawn, self._in_use(self.layout.columns(of_choices, of_raw), drawn)

    def log_prob(self, raw: Tensor) -> Tensor:
        """The log-probability or log-density of each head, (..., H); zero for heads not in use."""
        choices = reals = None
        if self.log_probs is not None:
            choices = chosen(self.log_probs, self.layout.choice_columns(raw))
        if self.ranges is not None:
            reals = self.ranges.log_prob(self.layout.range_columns(raw))
        return self._in_use(self.layout.columns(choices, reals), raw)

    def entropy(self, raw: Tensor | None = None) -> Tensor:
        """The entropy of each head, (..., H), weighted with how likely the head is to be in use.

        Where later heads depend on what earlier ones were, that is known: give the raw actions, and
        the weight is one or zero.
        """
        choices = reals = None
        if self.log_probs is not None:
            choices = self.option_entropy()
        if self.ranges is not None:
            reals = self.ranges.entropy()
        columns = self.layout.columns(choices, reals)
        return self._likely(columns) if raw is None else self._in_use(columns, raw)

    def option_entropy(self) -> Tensor:
        """The entropy of each Choice head by itself, (..., D)."""
        assert self.log_probs is not None
        return -(self.log_probs.exp() * self.log_probs).sum(-1)

    def mode(self) -> Tensor:
        """The raw action to take when chance is not wanted, (..., H)."""
        choices = reals = None
        if self.log_probs is not None:
            choices = self.log_probs.argmax(-1).float()
        if self.ranges is not None:
            reals = self.ranges.mode()
        return self.layout.columns(choices, reals)

    def kl(self, other: Heads, raw: Tensor | None = None) -> Tensor:
        """The divergence of another distribution from this one, head by head, (..., H).

        Weighted as `entropy` is: with how likely a head is to be in use, or whether it is in the
        raw actions given.
        """
        choices = reals = None
        if self.log_probs is not None:
            assert other.log_probs is not None
            choices = (self.log_probs.exp() * (self.log_probs - other.log_probs)).sum(-1)
        if self.ranges is not None:
            assert other.ranges is not None
            reals = self.ranges.kl(other.ranges)
        columns = self.layout.columns(choices, reals)
        return self._likely(columns) if raw is None else self._in_use(columns, raw)

    def to_unit(self, raw: Tensor) -> Tensor:
        """Raw actions in the learner's form: options as they are, ranges in [-1, 1]."""
        if self.ranges is None:
            return raw
        choices = None
        if self.layout.num_choices:
            choices = self.layout.choice_numbers(raw)
        return self.layout.columns(choices, self.ranges.to_unit(self.layout.range_columns(raw)))

    def masses(self, num_bins: int) -> Tensor:
        """The probability of each of equally wide bins of each Range head, (..., C, num_bins)."""
        assert self.ranges is not None
        edges = torch.linspace(-1.0, 1.0, num_bins + 1, device=self.layout.device)[1:-1]
        below = self.ranges.cdf(edges)
        none = torch.zeros(*below.shape[:-1], 1, device=below.device)
        return torch.cat([none, below, none + 1.0], dim=-1).diff(dim=-1)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors of the distribution, (..., B, ...): rows of them make it for those rows."""
        parts = {} if self.log_probs is None else {"log_probs": self.log_probs}
        if self.ranges is not None:
            first, second = self.ranges.tensors()
            parts |= {"range_first": first, "range_second": second}
        return parts

    def rebuilt(self, tensors: dict[str, Tensor]) -> Heads:
        """A distribution of the same kind from other tensors."""
        ranges = self.ranges
        if ranges is not None:
            ranges = ranges.rebuilt(tensors["range_first"], tensors["range_second"])
        return Heads(self.layout, tensors.get("log_probs"), ranges)

    def detached(self) -> Heads:
        """The same distribution, through which no gradient flows."""
        return self.rebuilt({name: x.detach() for name, x in self.tensors().items()})

    def _in_use(self, columns: Tensor, raw: Tensor) -> Tensor:
        if not self.layout.is_conditional:
            return columns
        return columns * self.layout.active(self.to_unit(raw))

    def activity(self) -> Tensor | None:
        """How likely each head is to be in use, (..., H); None where all always are."""
        return self.layout.activity(self.log_probs, self.ranges)

    def _likely(self, columns: Tensor) -> Tensor:
        likely = self.activity()
        return columns if likely is None else columns * likely


def chosen(numbers: Tensor, options: Tensor) -> Tensor:
    """The numbers (..., D, K) of given options (..., D)."""
    return numbers.gather(-1, options.unsqueeze(-1)).squeeze(-1)


def pick_options(log_probs: Tensor, uniform: Tensor) -> Tensor:
    """The first option whose cumulative probability exceeds the uniform number, as float."""
    if log_probs.device.type == "cuda" and log_probs.shape[-1] <= FEW:
        return _pick_kernel(log_probs, uniform)[0]
    cumulative = log_probs.exp().cumsum(-1)
    # Rounding may leave the total a little below 1; a share of the total is never beyond it.
    threshold = uniform.unsqueeze(-1) * cumulative[..., -1:]
    return (cumulative <= threshold).sum(-1).float()


def _pick_judged(log_probs: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Options drawn, and their log-probabilities."""
    if log_probs.device.type == "cuda" and log_probs.shape[-1] <= FEW:
        drawn, log_prob = _pick_kernel(log_probs, uniform)
        if not log_probs.requires_grad:  # the kernel's own has no gradient
            return drawn, log_prob
    else:
        drawn = pick_options(log_probs, uniform)
    return drawn, chosen(log_probs, drawn.long())


def _pick_kernel(log_probs: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """`_pick_judged` as one kernel."""
    from headwise.factorizations.kernels.heads import pick

    uniform = even_rows(uniform)
    if uniform.stride(-1) != 1:
        uniform = uniform.contiguous()
    out, judged = torch.empty((2, *log_probs.shape[:-1]), device=log_probs.device).unbind(0)
    heads, options = log_probs.shape[-2:]
    pick[(-(-out.numel() // _BLOCK),)](
        log_probs.contiguous(), uniform, uniform.stride(-2), out, judged, out.numel(), heads,
        options, BLOCK=_BLOCK,
    )  # fmt: skip
    return out, judged
