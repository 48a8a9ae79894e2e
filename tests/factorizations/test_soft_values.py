"""Soft values: brute force over options, gradients to real numbers, and what is drawn."""

import pytest
import torch
from built import (
    MEMBERS,
    SPECS,
    Part,
    all_actions,
    assert_near,
    buffer,
    observations,
    some_actions,
    some_mask,
    starts,
    uniforms,
)
from oracle import best_and_chosen, dueling, embedded, in_use, mixed, q_values, scores_of

from headwise import ActionSpec, Choice, Range
from headwise.factorizations.chain_values import ChainValue
from headwise.factorizations.independent_critics import IndependentCritics
from headwise.factorizations.mixing import MixedValue
from headwise.factorizations.plain import PlainValue
from headwise.factorizations.qplex import QPLEX
from headwise.ops import Buffer

BINNED = ActionSpec.of(aim=Choice(4, ordered=True), a=Choice(3), x=Range(-1, 1))
CASES = SPECS | {"binned": BINNED}
KINDS = {"qplex": QPLEX(mixer_width=16)}
CELLS = [
    (name, "twins", spec)
    for name in ("vdn", "qplex", "ar", "independent", "joint")
    for spec in ("discrete", "hybrid", "one_of", "parameters", "binned")
    if name != "joint" or spec in ("discrete", "one_of")
]
CELLS += [
    (name, what, spec)
    for name in ("vdn", "shared", "independent", "joint")
    for what in ("value", "plain_value")
    for spec in ("discrete", "one_of")
]
ROWS = 6


class Softly:
    """A soft value of states whose real numbers are given, beside its formula."""

    def __init__(self, name, what, spec, *, masked=False, rows=ROWS):
        self.part = Part(KINDS.get(name, name), what, CASES[spec], rows=rows, scale=1.5)
        self.layout, self.it = self.part.layout, self.part.it
        self.obs = observations(rows=rows)
        self.mask = some_mask(self.layout, rows=rows) if masked else None
        heads = self.layout.num_heads
        self.alpha = torch.linspace(0.2, 0.7, heads).expand(MEMBERS, 1, heads).clone()
        action = some_actions(self.layout, rows=rows)
        action[..., : self.layout.num_discrete] = 0.0
        self.action = buffer(action, gradient=True)
        self.given = (
            buffer(self.obs), self.action, buffer(self.alpha),
            buffer(uniforms(self.layout.num_discrete, rows=rows)), buffer(self.mask),
        )  # fmt: skip
        self.soft = self.it.soft(*self.given)
        self.taken = self.action.tensor[:, 0].clone()

    def policies(self, leaf, numbers):
        """V, log-policies (P, N, B, n), gains of options, and what V is made of."""
        part, it, nets = self.part, self.it, self.part.networks(leaf)
        state, discrete = self.obs.double().unsqueeze(1), self.layout.num_discrete
        seen = [state] if it.__dict__.get("independent") or not self.layout.num_continuous else [
            state, numbers.unsqueeze(1)
        ]  # fmt: skip
        seen = [state] if isinstance(it, IndependentCritics) else seen
        slope, features = None, None
        stacked = isinstance(it, IndependentCritics | ChainValue) or it.independent
        if isinstance(it, PlainValue):
            value, y = None, nets[0](state)
        elif isinstance(it, ChainValue):
            use = in_use(part, self.taken)
            prefix = embedded(part, self.taken.double(), it.graph.order, use).unsqueeze(1)
            value, y = nets[0](*seen), nets[1](*seen, prefix)
        else:
            value, y, features = dueling(part, nets, seen)
        if isinstance(it, MixedValue):
            weights = nets[3](features.detach())
            zero = torch.zeros(*weights.shape[:-1], discrete, dtype=torch.float64)
            zero.requires_grad_()
            (slope,) = torch.autograd.grad(mixed(zero, weights).sum(), zero, retain_graph=True)
        scores = scores_of(part, y, it.copies, stacked=stacked)
        best, _ = best_and_chosen(part, scores, self.taken, self.mask)
        logs = []
        for h, own in enumerate(scores):
            centered = own - best[..., h : h + 1]
            scaled = centered if slope is None else (centered * slope[..., h : h + 1]).detach()
            scaled = scaled / self.alpha[:, None, :, h : h + 1].double()
            if self.mask is not None:
                start = starts(self.layout.sizes)[h]
                allowed = self.mask[:, None, :, start : start + own.shape[-1]] > 0.0
                scaled = scaled.masked_fill(~allowed, -1e30)
            logs.append(scaled.log_softmax(-1))
        return value, logs, scores, best, features

    def expected_heads(self, logs, scores, best):
        """Of each discrete head, summed over all joint options: what is gained, and the entropy.

        A joint option counts by how likely it is, and a head in it if it is in use.
        """
        spec = ActionSpec.of([Choice(n) for n in self.layout.sizes])
        gains = torch.zeros_like(best)
        entropy = torch.zeros_like(best)
        use = torch.zeros(*best.shape[:-1], self.layout.num_heads, dtype=torch.float64)
        for options in all_actions(spec):
            action = torch.zeros_like(self.taken)
            action[..., : self.layout.num_discrete] = options
            used = in_use(self.part, action).double()[:, None]
            if self.it.independent:
                used = torch.ones_like(used)
            own = [log[..., int(k)] for log, k in zip(logs, options, strict=True)]
            chance = torch.stack(own).sum(0).exp()
            use = use + chance.unsqueeze(-1) * used
            for h, k in enumerate(options):
                alpha = self.alpha[:, None, :, h].double()
                log = own[h].clamp_min(-1e9)
                weight = chance * used[..., h]
                gain = scores[h][..., int(k)] - best[..., h] - alpha * log
                gains[..., h] = gains[..., h] + torch.where(chance > 0, weight * gain, 0.0)
                entropy[..., h] = entropy[..., h] - torch.where(chance > 0, weight * log, 0.0)
        return gains, entropy, use


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("name", "what", "spec"), CELLS)
def test_soft_values_are_expected_over_all_options(name, what, spec, masked):
    case = Softly(name, what, spec, masked=masked)
    it, discrete = case.it, case.layout.num_discrete
    leaf = case.part.leaf()
    numbers = case.taken[..., discrete:].double().requires_grad_()
    value, logs, scores, best, features = case.policies(leaf, numbers)
    entropy_of = -torch.stack([(x.exp() * x.clamp_min(-1e9)).sum(-1) for x in logs], -1)
    alpha = case.alpha[:, None, :, :discrete].double()

    if isinstance(it, ChainValue):  # exact inside each head, along the prefix that was drawn
        used = in_use(case.part, case.taken)[:, None, :, :discrete]
        peaks = torch.stack([x.max(-1).values for x in logs], -1)
        soft = value + (-alpha * peaks * used).sum(-1, keepdim=True)
        entropy = entropy_of * used
    elif isinstance(it, MixedValue):  # of options that each copy has drawn
        drawn, _, _, _ = it._drawn(case.action)
        parts = []
        _, held, use = case.expected_heads([x.detach() for x in logs], scores, best)
        for copy in range(it.copies):
            own = [x[:, copy : copy + 1] for x in scores]
            top, chosen = best_and_chosen(case.part, own, drawn.tensor[:, copy], case.mask)
            action = torch.cat(
                [drawn.tensor[:, copy, :, :discrete], case.taken[..., discrete:]], -1
            )
            used = in_use(case.part, action)[:, None, :, :discrete]
            mixer = case.part.networks(leaf)[3](features.detach())[:, copy : copy + 1]
            parts.append(mixed((chosen - top) * used, mixer))
        soft = value + torch.cat(parts, 1) + (alpha * held).sum(-1, keepdim=True).detach()
        entropy = held
    else:
        gains, entropy, use = case.expected_heads(logs, scores, best)
        if isinstance(it, PlainValue):
            gains = gains + best
        adds_up = not isinstance(it, IndependentCritics) and it.adds_up
        soft = gains.sum(-1, keepdim=True) if adds_up else gains
        if value is not None:
            if value.shape[1] != it.copies:
                value = value.squeeze(-1).unflatten(1, (it.copies, discrete)).movedim(2, -1)
            soft = value + soft
    if isinstance(it, IndependentCritics) and case.layout.num_continuous:
        taken = torch.cat([case.taken[..., :discrete].double(), numbers], -1)
        soft = torch.cat([soft, q_values(case.part, leaf, case.obs, taken)[..., discrete:]], -1)
    assert_near(case.soft.value.tensor, soft, 5e-6)

    if isinstance(it, IndependentCritics) and case.layout.is_conditional:
        _, entropy, use = _with_use(case, logs, scores, best)
        assert_near(case.soft.use.tensor[:, 0], use[:, 0], 5e-6)
    assert_near(case.soft.entropy.tensor[:, 0], entropy[:, 0], 3e-5)
    if what == "twins" and case.layout.num_continuous:
        slope = torch.randn(soft.shape, generator=torch.Generator().manual_seed(6))
        case.soft.value.gradient.copy_(slope)
        if case.soft.use is not None and case.soft.use.has_gradient:
            case.soft.use.gradient.zero_()
        case.part.store.parameters.gradient.fill_(7.0)
        case.it.soft_backward(*case.given[:3], case.given[4])
        (wanted,) = torch.autograd.grad(soft, numbers, slope.double())
        assert (wanted != 0.0).any()
        assert_near(case.action.gradient[:, 0, :, discrete:], wanted, 1e-5)
        assert (case.part.store.parameters.gradient == 7.0).all()


def _with_use(case, logs, scores, best):
    """As a head's own learner is not paid for what it does when it is not in use."""
    before, case.it.independent = case.it.independent, False
    try:
        return case.expected_heads(logs, scores, best)
    finally:
        case.it.independent = before


@pytest.mark.parametrize("spec", ["parameters"])
@pytest.mark.parametrize("name", ["vdn"])
def test_how_likely_heads_are_to_be_in_use_has_a_gradient_too(name, spec):
    """An actor is paid for its entropy as often as its heads are in use, which critics decide."""
    case = Softly(name, "twins", spec)
    numbers = case.taken[..., case.layout.num_discrete :].double().requires_grad_()
    _, logs, scores, best, _ = case.policies(case.part.leaf(), numbers)
    _, _, use = case.expected_heads(logs, scores, best)
    assert_near(case.soft.use.tensor[:, 0], use[:, 0], 5e-6)
    slope = torch.randn(case.soft.use.tensor.shape, generator=torch.Generator().manual_seed(6))
    case.soft.value.gradient.zero_()
    case.soft.use.gradient.copy_(slope)
    case.it.soft_backward(*case.given[:3], case.given[4])
    (wanted,) = torch.autograd.grad(use[:, :1], numbers, slope.double())
    assert (wanted != 0.0).any()
    found = case.action.gradient[:, 0, :, case.layout.num_discrete :]
    assert_near(found, wanted, 1e-5)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("name", "what", "spec"), [c for c in CELLS if c[1] == "twins"])
def test_options_are_drawn_from_the_first_copys_softmax(name, what, spec, masked):
    rows = 3000
    case = Softly(name, what, spec, masked=masked, rows=rows)
    one = case.obs[:, :1].expand(-1, rows, -1)
    case.obs = one.contiguous()
    action = case.taken.clone()
    action[..., case.layout.num_discrete :] = action[:, :1, case.layout.num_discrete :]
    mask = None if case.mask is None else case.mask[:, :1].expand(-1, rows, -1).contiguous()
    case.mask, drawn = mask, buffer(action)
    _, _, alpha, uniform, _ = case.given
    case.it.draw(buffer(case.obs), drawn, alpha, uniform, buffer(mask))
    case.taken = drawn.tensor[:, 0].clone()
    numbers = case.taken[..., case.layout.num_discrete :].double()
    assert torch.equal(numbers, action[..., case.layout.num_discrete :].double())
    logs = case.policies(case.part.leaf(), numbers)[1]
    for h, log in enumerate(logs):
        options = case.taken[..., h].long()
        frequency = torch.nn.functional.one_hot(options, log.shape[-1]).double().mean(1)
        expected = log[:, 0].exp().mean(1)  # given each draw's own prefix
        assert (frequency - expected).abs().max() < 4.5 * 0.5 / rows**0.5
        assert ((expected > 0.0) | (frequency == 0.0)).all()


@pytest.mark.parametrize(("name", "spec"), [("vdn", "discrete"), ("joint", "one_of")])
def test_a_soft_value_of_dqn_is_at_least_that_of_the_best_action(name, spec):
    case = Softly(name, "value", spec)
    best = case.part.greedy_value(case.obs)
    assert (case.soft.value.tensor[:, 0] >= best - 1e-6).all()
    warm = case.soft.value.tensor.clone()
    cold = case.it.soft(
        case.given[0], case.action, buffer(torch.full_like(case.alpha, 1e-4)), None, None
    )
    torch.testing.assert_close(cold.value.tensor[:, 0], best, atol=1e-3, rtol=0)
    assert not torch.equal(warm, cold.value.tensor)


@pytest.mark.parametrize("what", ["value", "plain_value"])
def test_soft_values_that_add_up_are_those_of_all_joint_actions(what):
    """At one temperature: alpha log of the sum over all actions of exp(Q / alpha)."""
    part, x = Part("vdn", what, SPECS["discrete"], scale=1.5), observations()
    alpha = Buffer(MEMBERS, 1, 3)
    alpha.tensor.fill_(0.4)
    soft = part.it.soft(buffer(x), buffer(torch.zeros(MEMBERS, 5, 3)), alpha, None, None)
    soft = soft.value.tensor[:, 0].clone()
    actions = all_actions(SPECS["discrete"])
    table = torch.stack([part.predict(x, a.expand(MEMBERS, 5, -1)) for a in actions]) / 0.4
    torch.testing.assert_close(soft, 0.4 * table.logsumexp(0))
    for action, expected in zip(actions, table.log_softmax(0), strict=True):
        taken = buffer(action.expand(MEMBERS, 5, -1))
        found = part.it.log_policy(buffer(x), taken, alpha, None).tensor[:, 0]
        torch.testing.assert_close(
            found.sum(-1, keepdim=True), 0.4 * expected, atol=1e-5, rtol=1e-5
        )


def test_the_embedding_gets_no_gradient_through_the_mixer():
    """`test_values.py` holds it constant in its formula; here it would change the gradient."""
    part = Part(KINDS["qplex"], "value", SPECS["discrete"])
    x, action = observations(), some_actions(part.layout)
    mixer, trunk = part.it.parts[3], part.it.parts[0]
    part.gradients(x, action, torch.ones(MEMBERS, 1, 5, 1))
    before = trunk.out.gradient.clone()
    leaf = part.leaf()
    nets = part.networks(leaf)
    value, y, features = dueling(part, nets, [x.double().unsqueeze(1)])
    features.retain_grad()
    best, chosen = best_and_chosen(part, scores_of(part, y, 1, stacked=False), action, None)
    q = value + mixed(chosen - best, nets[3](features))  # not held constant
    (through,) = torch.autograd.grad(q.sum(), features)
    assert mixer.size
    assert (before - through).abs().max() > 1e-3
