"""Critics for policy gradients: a plain value, and the branching critic of VDN-PPO and PPO-MIX."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from headwise.checks import checked_count
from headwise.factorizations.base import Blueprint, Importance
from headwise.factorizations.parts.centring import Given, centred, fits
from headwise.factorizations.parts.heads import Heads, chosen
from headwise.factorizations.parts.layout import Layout
from headwise.nets import MLP, Dueling, Mixer
from headwise.nets.branches import by_way_of
from headwise.population import Linear
from headwise.spaces import ActionSpec, Choice, Condition


class ValueCritic(nn.Module):
    """V(s): the value path of the branching critic, so that all critics have equal capacity."""

    def __init__(self, blueprint: Blueprint, num_values: int = 1) -> None:
        super().__init__()
        copies = () if num_values == 1 else (num_values,)
        self.copies = copies
        gain = 2.0**0.5 if blueprint.orthogonal else None
        init, width, hidden = blueprint.init, blueprint.branch_width, blueprint.hidden
        self.encoder = MLP(
            init, blueprint.obs_size, hidden, blueprint.activation, copies=copies, gain=gain
        )
        self.embedding: Linear | None = None
        if width:
            self.embedding = Linear(init, hidden[-1], width, copies=copies, gain=gain)
        self.output = Linear(init, width or hidden[-1], 1, copies=copies)

    def value(self, obs: Tensor) -> Tensor:
        """(P, B, num_values)."""
        if self.copies:
            obs = obs.unsqueeze(-3).expand(*obs.shape[:-2], *self.copies, *obs.shape[-2:])
        columns = self._columns(obs)
        return columns.squeeze(-1).transpose(-1, -2) if self.copies else columns

    def _columns(self, obs: Tensor) -> Tensor:
        """The values (..., B, 1) of what the networks see."""
        if self.embedding is not None:
            return by_way_of(self.encoder, self.embedding, self.output, obs)
        columns: Tensor = self.encoder(obs, self.output)
        return columns


class BranchingCritic(nn.Module):
    """V(s) and A_h(s, a_h), policy-centred: Q = V + mixture of the advantages.

    A Range head is cut into equally wide bins; its advantage is constant on each.

    Args:
        blueprint: Sizes and first values.
        mixer_width: Hidden units of a monotonic mixer; 0 adds the advantages up.
        num_bins: Bins of each Range head.
    """

    def __init__(self, blueprint: Blueprint, mixer_width: int, num_bins: int) -> None:
        super().__init__()
        checked_count("branch_width of a branching critic", blueprint.branch_width)
        self.num_bins = num_bins
        self.layout = binned_layout(blueprint.layout, num_bins)
        self._source = blueprint.layout
        self.net = Dueling(
            blueprint.init,
            blueprint.obs_size,
            self.layout.total_options,
            blueprint.hidden,
            blueprint.branch_width,
            blueprint.activation,
            orthogonal=blueprint.orthogonal,
        )
        self.mixer: Mixer | None = None
        if mixer_width:
            self.mixer = Mixer(
                blueprint.init, self.layout.num_heads, blueprint.obs_size, mixer_width
            )

    def value(self, obs: Tensor) -> Tensor:
        """V, (P, B, 1)."""
        return self.net.value_alone(obs).unsqueeze(-1)

    def bins(self, unit: Tensor) -> Tensor:
        """Actions in the learner's form as options of the critic, indices (..., H)."""
        choices = ranges = None
        if self._source.num_choices:
            choices = self._source.choice_columns(unit)
        if self._source.num_ranges:
            values = self._source.range_columns(unit)
            ranges = ((values + 1.0) * (0.5 * self.num_bins)).long().clamp(0, self.num_bins - 1)
        return self._source.columns(choices, ranges)

    def masses(self, heads: Heads) -> Tensor:
        """How likely the policy is to choose each option of the critic, (..., H, K)."""
        width = self.layout.max_options
        parts = []
        if heads.log_probs is not None:
            parts.append(_widened(heads.log_probs.exp(), width))
        if heads.ranges is not None:
            parts.append(_widened(heads.masses(self.num_bins), width))
        joined = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)
        return joined if self._source.in_order else joined.index_select(-2, self._source.restore)

    def centred(self, obs: Tensor, masses: Tensor) -> tuple[Tensor, Tensor]:
        """V (..., B) and advantages (..., B, H, K) whose mean under the policy is zero."""
        value, flat = self.net(obs)
        return value, self._centred(flat, masses)

    def predict(self, obs: Tensor, bins: Tensor, masses: Tensor) -> Tensor:
        """Q of given actions, (P, B, 1): what is regressed on the return."""
        value, flat = self.net(obs)
        if fits(self.layout, flat) and not masses.requires_grad:
            in_use = self.layout.active(bins) if self.layout.is_conditional else None
            sums = self.mixer is None
            given = Given(self.layout, bins, sums=sums, masses=masses, in_use=in_use)
            if sums:
                return centred(value, flat, given)
            return self.mix(centred(None, flat, given), obs, value).unsqueeze(-1)
        taken = self._taken(self._centred(flat, masses), bins)
        return self.mix(taken, obs, value).unsqueeze(-1)

    def mix(self, advantage: Tensor, obs: Tensor, base: Tensor | None = None) -> Tensor:
        """The mixture (..., B) of chosen advantages (..., B, H), added to `base` if given."""
        if self.mixer is None:
            total = advantage.sum(-1)
            return total if base is None else base + total
        mixed: Tensor = self.mixer(advantage, obs, base=base)
        return mixed

    @torch.no_grad()
    def importance(
        self,
        advantage: Tensor,
        obs: Tensor,
        bins: Tensor,
        kind: Importance,
        legal: Tensor | None = None,
    ) -> Tensor:
        """How much each head matters, (..., B, H), not negative: from centred advantages.

        `range` is the spread of a head's advantages, `grad` the size of the first-order share of
        the mixture at the action taken, `range_slope` the spread times the mixer's slope there, and
        `state` the spread times the slope at zero, which depends on the state alone. The spread is
        that of the options which may be chosen, `legal` (..., B, D, K).
        """
        if kind == "uniform":
            return torch.ones(advantage.shape[:-1], device=advantage.device)
        spread = self._spread(advantage, legal)
        if kind == "range":
            return spread
        taken = self._taken(advantage, bins)
        if kind == "grad":
            return (taken * self._slope(taken, obs)).abs()
        at = taken if kind == "range_slope" else torch.zeros_like(taken)
        return spread * self._slope(at, obs)

    def expected_mixture(self, obs: Tensor, masses: Tensor) -> Tensor:
        """E[mixture] under the policy, (..., B), to second order: what V lacks of the true value.

        The mixture is convex, so it is not zero on average although each advantage is. With
        independent heads the second-order term is half the sum of curvature times variance.
        """
        if self.mixer is None:
            return torch.zeros(obs.shape[:-1], device=obs.device)
        with torch.no_grad():
            _, advantage = self.centred(obs, masses)
            variance = (masses * advantage.square()).sum(-1)
            step = variance.sqrt().clamp_min(1e-3)
            eye = torch.eye(self.layout.num_heads, device=obs.device)
            shifts = step.unsqueeze(-2) * eye  # (..., B, H, H): one head moved at a time
            state = obs.unsqueeze(-2).expand(*obs.shape[:-1], self.layout.num_heads, obs.shape[-1])
            flat_state, flat = state.flatten(-3, -2), shifts.flatten(-3, -2)
            both = self.mix(flat, flat_state) + self.mix(-flat, flat_state)
            curvature = both.view(*step.shape) / step.square()
            return (0.5 * curvature * variance).sum(-1)

    def _centred(self, flat: Tensor, masses: Tensor) -> Tensor:
        raw = self.layout.pad(flat)
        return raw - (masses * raw).sum(-1, keepdim=True)

    def _taken(self, advantage: Tensor, bins: Tensor) -> Tensor:
        """The advantages (..., B, H) of the options taken; a head not in use adds nothing."""
        taken = chosen(advantage, bins)
        if not self.layout.is_conditional:
            return taken
        return self.layout.used(taken, bins.to(advantage.dtype))

    def _spread(self, advantage: Tensor, legal: Tensor | None) -> Tensor:
        exists = self.layout.mask
        if legal is not None:
            exists = exists & self._with_bins(legal)
        high = advantage.masked_fill(~exists, -torch.inf).amax(-1)
        spread = high - advantage.masked_fill(~exists, torch.inf).amin(-1)
        # A head that is not in use may have no legal option at all.
        return spread if legal is None else spread.clamp_min(0.0)

    def _with_bins(self, legal: Tensor) -> Tensor:
        """Legal options of the Choices (..., D, K) beside the bins of Ranges, (..., H, K)."""
        may = _widened(legal, self.layout.max_options)
        bins = may.new_ones(*may.shape[:-2], self._source.num_ranges, may.shape[-1])
        joined = torch.cat([may, bins], dim=-2)
        return joined if self._source.in_order else joined.index_select(-2, self._source.restore)

    def _slope(self, advantage: Tensor, obs: Tensor) -> Tensor:
        """The derivative of the mixture by each advantage, (..., B, H)."""
        if self.mixer is None:
            return torch.ones_like(advantage)
        return self.mixer.slope(advantage, obs)


def binned_layout(layout: Layout, num_bins: int) -> Layout:
    """The layout of a spec whose Ranges are cut into bins."""
    spec = layout.spec
    heads = [h if isinstance(h, Choice) else Choice(num_bins, True) for h in spec.heads]
    conditions = tuple(
        c if c is None or isinstance(spec.heads[c.head], Choice) else _on_bins(c, num_bins)
        for c in spec.conditions
    )
    return Layout(ActionSpec(spec.names, tuple(heads), conditions), layout.device)


def _on_bins(condition: Condition, num_bins: int) -> Condition | None:
    """A condition on a Range as one on its bins: those whose centre meets it, or any if none."""

    def first_above(edge: float) -> float:
        return math.ceil((edge + 1.0) * num_bins / 2.0 - 0.5) if math.isfinite(edge) else edge

    low, high = first_above(condition.low), first_above(condition.high)
    return Condition(condition.head, low, high) if low < high else None


def _widened(masses: Tensor, width: int) -> Tensor:
    missing = width - masses.shape[-1]
    return torch.nn.functional.pad(masses, (0, missing)) if missing else masses
