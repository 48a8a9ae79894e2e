"""Drawing actions from the heads' distributions, and evaluating given ones."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.ops.buffers import Buffer
from headwise.ops.distributions import pick, to_unit
from headwise.ops.heads import NEVER, HeadTable
from headwise.ops.linked import distribution_kept, distribution_of
from headwise.ops.operation import operation


def _is_gaussian(table: HeadTable) -> bool:
    return table.kind != "beta" and table.links is None


@operation(fits=_is_gaussian)
def sample(
    y: Tensor, free: Tensor | None, uniform: Tensor, mask: Tensor | None, *, table: HeadTable
) -> tuple[Tensor, Tensor, Tensor]:
    """Raw actions drawn, the same in unit form, and their log-probabilities, (P, 1, B, H) each.

    Args:
        y: The networks' outputs, (P, N, B, W).
        free: Free standard deviations where they are parameters, (P, 1, 1, C).
        uniform: Uniform numbers (P, 1, B, U): those of discrete heads, then of continuous ones.
        mask: Which options may be chosen, zeros and ones (P, 1, B, total); all if it is left out.
        table: The heads.
    """
    heads = distribution_of(table, y.detach(), None if free is None else free.detach(), mask)
    raw = heads.sample(uniform)
    return raw, to_unit(table, raw), heads.log_prob(raw)


@operation(fits=_is_gaussian)
def mode(
    y: Tensor, free: Tensor | None, mask: Tensor | None, *, table: HeadTable
) -> tuple[Tensor, Tensor]:
    """The greedy action, raw and in unit form: the most likely option, the mean; see `sample`."""
    heads = distribution_of(table, y.detach(), None if free is None else free.detach(), mask)
    raw = heads.mode()
    return raw, to_unit(table, raw)


@operation()
def explore(
    best: Tensor, uniform: Tensor, epsilon: Tensor, mask: Tensor | None, *, table: HeadTable
) -> Tensor:
    """The options given, but each head by chance any of its options, (P, 1, E, D).

    Args:
        best: The options, (P, 1, E, D).
        uniform: Uniform numbers (P, 1, 2 E, D): whether heads explore, then what they choose.
        epsilon: How often a head explores, (P, 1, 1, 1).
        mask: Which options may be chosen, (P, 1, E, total).
        table: The discrete heads.
    """
    coin, number = uniform.chunk(2, dim=-2)
    allowed = table.exists if mask is None else table.allowed(mask)
    none = torch.zeros(allowed.shape, dtype=best.dtype, device=best.device)
    equal = none.masked_fill(~allowed, NEVER).log_softmax(-1)
    anything = pick(equal.expand(*best.shape, -1), number)
    return torch.where(coin < epsilon, anything, best)


def _knows_use(table: HeadTable, given: bool) -> bool:
    """Whether the compiled way knows how likely heads are to be in use."""
    decided = {c.head for c in table.conditions if c is not None}
    here = table.kind != "beta" and table.links is None
    return here and (given or not decided & set(table.continuous))


@operation(fits=_knows_use)
def evaluate(
    y: Tensor, free: Tensor | None, raw: Tensor, mask: Tensor | None, old: Tensor | None,
    *, table: HeadTable, given: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Log-probabilities and entropies of given raw actions (`Evaluation`).

    Args:
        y: The networks' outputs, (P, N, B, W).
        free: Free standard deviations where they are parameters, (P, 1, 1, C).
        raw: The actions, (P, 1, B, H).
        mask: Which options might be chosen, (P, 1, B, total).
        old: The policy that acted, as `distribution` has it, if the divergence is wanted.
        table: The heads.
        given: Whether later heads depend on what earlier ones were, so that it is known which are
            in use.
    """
    heads = distribution_of(table, y, free, mask)
    prefix = raw if given else None
    result = heads.log_prob(raw), heads.entropy(prefix)
    if old is None:
        return result
    return *result, distribution_kept(table, old, mask).kl(heads, prefix)


class Evaluation(list[Buffer]):
    """What `evaluate` writes, each (P, 1, B, H) with room for a gradient.

    Args:
        kl: Whether the divergence from the policy that acted is wanted.
    """

    def __init__(
        self,
        members: int,
        rows: int,
        heads: int,
        *,
        kl: bool = False,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(
            Buffer(members, rows, heads, gradient=True, device=device) for _ in range(2 + kl)
        )
        self.log_prob, self.entropy = self[:2]
        """The log-probability of each head, zero where it is not in use; and the entropy, weighted
        with how likely it is to be in use."""
        self.kl = self[2] if kl else None
        """The divergence of each head from the policy that acted."""


@operation(compiled=False)
def distribution(
    y: Tensor, free: Tensor | None, mask: Tensor | None, *, table: HeadTable
) -> Tensor:
    """All parameters of the heads' distributions, (P, 1, B, total + 2 C), to be kept."""
    return distribution_of(table, y, free, mask).parameters().detach()


@operation(compiled=False)
def mean_penalty(y: Tensor, *, table: HeadTable, coef: float) -> Tensor:
    """The mean of squared means of continuous heads beyond 4 in size, weighted, (P, 1, 1, 1)."""
    width = 2 if table.state_std else 1
    mean = torch.stack([table.outputs_of(y, h, width)[..., 0] for h in table.continuous], dim=-1)
    far = torch.where(mean.abs() > 4.0, mean.square(), 0.0)
    return coef * far.mean((-2, -1), keepdim=True)


def _is_squashed(table: HeadTable) -> bool:
    return table.kind == "squashed" and table.state_std and not table.is_conditional


@operation(fits=_is_squashed)
def rsample(
    y: Tensor, free: Tensor | None, uniform: Tensor, mask: Tensor | None, *, table: HeadTable
) -> tuple[Tensor, ...]:
    """Actions drawn so that gradients flow back through them (`Draw`); see `sample`."""
    heads = distribution_of(table, y, free, mask)
    raw = heads.sample(uniform)
    discrete, numbers = table.split(raw)
    unit, entropy = to_unit(table, raw), heads.entropy()
    if table.continuous:
        exact, drawn = table.split(entropy)[0], -table.split(heads.log_prob(raw))[1]
        entropy = torch.cat([exact, drawn], dim=-1)
    result = [unit, entropy]
    if heads.log_probs is not None:
        result.append(table.flatten(heads.log_probs))
    activity = heads.activity()
    if activity is not None:
        own = -heads.log_density(numbers) if table.continuous else numbers
        result += [activity, torch.cat([torch.zeros_like(discrete), own], dim=-1)]
    return tuple(result)


class Draw(list[Buffer]):
    """What `rsample` writes, (P, 1, B, ...).

    Args:
        unit: Where the actions go, and
        entropy: their entropies, where those are parts of something larger.
    """

    def __init__(
        self,
        table: HeadTable,
        members: int,
        rows: int,
        *,
        unit: Buffer | None = None,
        entropy: Buffer | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        def made(width: int, *, gradient: bool = True) -> Buffer:
            return Buffer(members, rows, width, gradient=gradient, device=device)

        self.unit = unit or made(table.num_heads)
        """The actions in unit form, (P, 1, B, H); gradients flow through real numbers."""
        self.entropy = entropy or made(table.num_heads)
        """Of each head: exact for a discrete one, minus the log-density drawn for a continuous one;
        weighted with how likely the head is to be in use, or zero where a number is not."""
        self.log_probs = made(table.total) if table.discrete else None
        """Log-probabilities of all options, (P, 1, B, total)."""
        self.activity = made(table.num_heads, gradient=False) if table.is_conditional else None
        """How likely each head is to be in use, where not all always are."""
        self.neg_log_prob = made(table.num_heads, gradient=False) if self.activity else None
        """Minus the log-density of each number drawn, in use or not; zero for a discrete head."""
        some = (self.unit, self.entropy, self.log_probs, self.activity, self.neg_log_prob)
        super().__init__(x for x in some if x is not None)
