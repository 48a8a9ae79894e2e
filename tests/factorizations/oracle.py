"""What values of actions are, by the papers' formulas in float64."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from built import Part, starts
from torch import Tensor
from torch.nn.functional import elu, one_hot, relu, softplus

from headwise.factorizations.action_critic import ActionCritic
from headwise.factorizations.chain_values import ChainValue
from headwise.factorizations.independent_critics import IndependentCritics
from headwise.factorizations.mixing import MixedValue, WeighedValue
from headwise.factorizations.plain import PlainValue
from headwise.factorizations.values import BranchingValue


def in_use(part: Part, action: Tensor) -> Tensor:
    """Which heads actions use, (P, B, H), by the spec itself."""
    layout = part.layout
    if layout.joint is not None:
        return torch.ones_like(action)
    used = layout.spec.active(layout.from_learner(action.detach()).double().numpy())
    return layout.to_learner(torch.as_tensor(used)).to(action.dtype)


def embedded(part: Part, action: Tensor, order: Sequence[int], use: Tensor) -> Tensor:
    """Heads one after another: one-hot, the number of a bin, or a real number; zeros if unused."""
    columns = []
    for head in order:
        n, own = part.layout.options[head], action[..., head]
        if n and part.layout.ordered[head]:
            own = (own * (2.0 / (n - 1.0)) - 1.0).unsqueeze(-1)
        else:
            own = one_hot(own.long(), n).double() if n else own.unsqueeze(-1)
        columns.append(own * use[..., head : head + 1])
    return torch.cat(columns, dim=-1)


def scores_of(part: Part, y: Tensor, networks: int, *, stacked: bool) -> list[Tensor]:
    """The outputs (P, N, B, options) that each discrete head has."""
    sizes, found = part.layout.sizes, []
    for h, (n, start) in enumerate(zip(sizes, starts(sizes), strict=True)):
        own = y[:, h :: len(sizes), :, :n] if stacked else y[..., start : start + n]
        assert own.shape[1] == networks
        found.append(own)
    return found


def best_and_chosen(
    part: Part, scores: list[Tensor], action: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The best allowed outputs, and those of the options taken, (P, N, B, D) each."""
    best, chosen = [], []
    for h, (own, start) in enumerate(zip(scores, starts(part.layout.sizes), strict=True)):
        taken = action[:, None, :, h : h + 1].long().expand(*own.shape[:-1], 1)
        chosen.append(own.gather(-1, taken).squeeze(-1))
        if mask is not None:
            allowed = mask[:, None, :, start : start + own.shape[-1]] > 0.0
            own = own.masked_fill(~allowed, -1e30)
        best.append(own.max(-1).values)
    return torch.stack(best, -1), torch.stack(chosen, -1)


def mean_of_allowed(part: Part, scores: list[Tensor], mask: Tensor | None) -> Tensor:
    """The mean of the allowed outputs of each head, (P, N, B, D)."""
    found = []
    for own, start in zip(scores, starts(part.layout.sizes), strict=True):
        may = torch.ones_like(own)
        if mask is not None:
            may = mask[:, None, :, start : start + own.shape[-1]].double().expand_as(own)
        found.append((own * may).sum(-1) / may.sum(-1))
    return torch.stack(found, -1)


def mixed(advantage: Tensor, weights: Tensor, bend: str = "elu", kind: str = "abs") -> Tensor:
    """ELU(A |W1|) |W2|, one hidden unit after another."""
    bent, sized = {"elu": elu, "relu": relu}[bend], {"abs": torch.abs, "softplus": softplus}[kind]
    heads = advantage.shape[-1]
    width = weights.shape[-1] // (heads + 1)
    second = sized(weights[..., heads * width :])
    found = torch.zeros_like(advantage[..., :1])
    for unit in range(width):
        inner = torch.zeros_like(advantage[..., 0])
        for h in range(heads):
            inner = inner + advantage[..., h] * sized(weights[..., h * width + unit])
        found = found + (bent(inner) * second[..., unit]).unsqueeze(-1)
    return found


def dueling(part: Part, nets: list, inputs: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """V, advantages of all options, and what they are made of."""
    features = nets[0](*inputs)
    width = part.plan.branch_width
    return nets[1](features[..., :width]), nets[2](features[..., width:]), features


def q_values(
    part: Part, leaf: Tensor, x: Tensor, action: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Q of actions (P, B, H), (P, N, B, G); `action` may be in float64, and learn."""
    it, layout, nets = part.it, part.layout, part.networks(leaf)
    discrete, copies = layout.num_discrete, it.copies
    use, state = in_use(part, action), x.double().unsqueeze(1)
    numbers = action[:, None, :, discrete:]
    inputs = [state, numbers] if layout.num_continuous else [state]
    used = use[:, None, :, :discrete]

    if isinstance(it, ActionCritic):
        heads = range(layout.num_heads)
        return nets[0](state, embedded(part, action, heads, use).unsqueeze(1))
    if isinstance(it, IndependentCritics):
        columns = []
        if discrete:
            value, y, _ = dueling(part, nets, [state])
            scores = scores_of(part, y, copies, stacked=True)
            best, chosen = best_and_chosen(part, scores, action, mask)
            own = value.squeeze(-1).unflatten(1, (copies, discrete)).movedim(2, -1)
            columns.append(own + chosen - best)
        if layout.num_continuous:
            y = nets[-1](*inputs).squeeze(-1).unflatten(1, (copies, layout.num_continuous))
            columns.append(y.movedim(2, -1))
        return torch.cat(columns, dim=-1)
    if isinstance(it, PlainValue):
        scores = scores_of(part, nets[0](state), 1, stacked=it.independent)
        best, chosen = best_and_chosen(part, scores, action, mask)
        if not it.independent:  # a learner of its own does not ask whether it is in use
            chosen = torch.where(used > 0.0, chosen, best)
        return chosen.sum(-1, keepdim=True) if it.adds_up else chosen
    if isinstance(it, ChainValue):
        prefix = embedded(part, action, it.graph.order, use).unsqueeze(1)
        scores = scores_of(part, nets[1](*inputs, prefix), copies, stacked=True)
        best, chosen = best_and_chosen(part, scores, action, mask)
        return nets[0](*inputs) + ((chosen - best) * used).sum(-1, keepdim=True)

    assert isinstance(it, BranchingValue)
    if it.independent:
        inputs, used = [state], torch.ones_like(used)
    value, y, features = dueling(part, nets, inputs)
    scores = scores_of(part, y, copies, stacked=it.independent)
    best, chosen = best_and_chosen(part, scores, action, mask)
    center = getattr(part.factorization, "center", "max")
    if center != "max":
        best = mean_of_allowed(part, scores, mask) if center == "mean" else torch.zeros_like(best)
    advantage = (chosen - best) * used
    if isinstance(it, WeighedValue):
        options = embedded(part, action, range(discrete), use).unsqueeze(1)
        weights = softplus(nets[3](features.detach(), options)) + 1e-3
        return value + (weights * advantage).sum(-1, keepdim=True)
    if isinstance(it, MixedValue):
        kinds = part.factorization.mixer_bend, part.factorization.mixer_weights
        return value + mixed(advantage, nets[3](features.detach()), *kinds)
    if it.independent:
        value = value.squeeze(-1).unflatten(1, (copies, discrete)).movedim(2, -1)
    return value + (advantage.sum(-1, keepdim=True) if it.adds_up else advantage)
