"""Actors of SAC: what they draw, gradients through it, and how they learn options from critics."""

import math

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
    some_mask,
    starts,
    uniforms,
)
from oracle import in_use, q_values
from policy_oracle import Said

from headwise import ActionSpec, Choice, Range, View
from headwise.algorithms.sac.actor import ActionSampler, Counterfactual, StraightThrough
from headwise.factorizations.ar import AR
from headwise.factorizations.chain_actor import ChainActor
from headwise.ops import Buffer, Queries
from headwise.spaces import Condition

BINNED = ActionSpec.of(aim=Choice(4, ordered=True), a=Choice(3), x=Range(-1, 1))
CASES = SPECS | {
    "binned": BINNED,
    "driven by a number": View(SPECS["parameters"], "continuous").spec,
}
SETTINGS = {"state_std": True, "log_std": (-5.0, 1.0)}
KINDS = {
    "ar from the end": AR(order=("y", "x")),
    "ar": "ar",
    "ar without parents": AR(parents={}),
    "ar, a graph": AR(parents={"angle": ("power",)}),
}
SPEC_OF = {
    "ar from the end": ("continuous",),
    "ar without parents": ("continuous", "hybrid"),
    "ar, a graph": ("parameters",),
}
ACTORS = [
    (name, spec)
    for name in ("shared", "vdn", "independent", "ar", *SPEC_OF)
    for spec in SPEC_OF.get(name, tuple(CASES))
    if not (name != "shared" and not any(n == 0 for n in CASES[spec].cardinalities))
    and not (name == "vdn" and spec in ("continuous", "driven by a number"))
]


def normal_of(uniform):
    return torch.erfinv(2.0 * uniform.double() + 2.0**-24 - 1.0) * math.sqrt(2.0)


def drawn_by_hand(part, leaf, x, uniform, mask):
    """Unit actions and entropies of an actor's heads, (P, B, H), in float64 and with gradients."""
    it, (net,), state = part.it, part.networks(leaf), x.double().unsqueeze(1)
    table, chain = it.table, isinstance(it, ChainActor)
    heads, discrete = table.num_heads, len(table.discrete)
    unit, entropy = [None] * heads, [None] * heads
    seen = [torch.zeros_like(state[:, 0, :, 0]) for _ in range(heads)]
    use = [torch.ones_like(seen[0]) for _ in range(heads)]
    logs = {}
    for head in it.graph.order if chain else range(heads):
        y = net(state, torch.stack(seen, -1).unsqueeze(1)) if chain else net(state)
        copy, column = table.places[head]
        condition, n = table.conditions[head], table.options[head]
        if n:
            logits = y[:, copy, :, column : column + n]
            if mask is not None:
                start = starts(table.sizes)[head]
                logits = logits.masked_fill(mask[..., start : start + n] == 0.0, -1e30)
            logs[head] = logits.log_softmax(-1)
            below = logs[head].exp().cumsum(-1) <= uniform[..., head : head + 1]
            unit[head] = below.sum(-1).double()
            entropy[head] = -(logs[head].exp() * logs[head].clamp_min(-1e9)).sum(-1)
        else:
            mean, free = y[:, copy, :, column], y[:, copy, :, column + 1]
            std = (3.0 * torch.tanh(free) - 2.0).exp()  # between exp(-5) and exp(1)
            raw = mean + std * normal_of(uniform[..., head])
            unit[head] = torch.tanh(raw)
            density = torch.distributions.Normal(mean, std).log_prob(raw)
            slope = 2.0 * (math.log(2.0) - raw - torch.nn.functional.softplus(-2.0 * raw))
            entropy[head] = slope - density
        if condition is not None:
            value = unit[condition.head].detach()
            met = (condition.low <= value) & (value < condition.high)
            use[head] = use[condition.head] * met
        seen[head] = unit[head] * use[head]
    if table.is_conditional:  # exact where options decide, zero where a number is not in use
        likely = [torch.ones_like(use[0]) for _ in range(heads)]
        for head in table.order:
            condition = table.conditions[head]
            if condition is not None and condition.head < discrete:
                low, high = int(condition.low), int(condition.high)
                chance = logs[condition.head][..., low:high].exp().sum(-1)
                likely[head] = likely[condition.head] * chance
        entropy = [e * (likely[h] if h < discrete else use[h]) for h, e in enumerate(entropy)]
    return torch.stack(unit, -1), torch.stack(entropy, -1)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("name", "spec"), ACTORS)
def test_draws_and_their_gradients(name, spec, masked):
    part = Part(KINDS.get(name, name), "actor", CASES[spec], rows=9, scale=1.5, **SETTINGS)
    table, x = part.it.table, observations(rows=9)
    mask = some_mask(part.layout, rows=9) if masked and table.discrete else None
    uniform = uniforms(table.num_uniforms, rows=9)
    found, leaf = part.rsample(x, uniform, mask), part.leaf()
    unit, entropy = drawn_by_hand(part, leaf, x, uniform, mask)
    assert_near(found.unit, unit, 5e-6)
    assert_near(found.entropy, entropy, 1e-5)
    of_unit, of_entropy = (
        torch.randn(unit.shape, generator=torch.Generator().manual_seed(k)) for k in (0, 1)
    )
    pairs = [(entropy, of_entropy), *([(unit, of_unit)] if table.continuous else [])]
    (wanted,) = torch.autograd.grad(
        [y for y, _ in pairs], leaf, [slope.double() for _, slope in pairs]
    )
    assert_near(found.gradient(of_unit, of_entropy), wanted.flatten(1), 1e-5)
    raw, same, _ = part.sample(x, uniform, mask)
    torch.testing.assert_close(same, found.unit)
    assert torch.equal(raw[..., table.discrete], same[..., table.discrete])


@pytest.mark.parametrize(
    ("name", "spec"), [c for c in ACTORS if c[1] in ("one_of", "parameters", "driven by a number")]
)
def test_an_actor_knows_how_likely_its_heads_are_to_be_in_use(name, spec):
    """By its own distribution, or for certain where later heads know; apart it does not ask."""
    part = Part(KINDS.get(name, name), "actor", CASES[spec], rows=9, scale=1.5, **SETTINGS)
    x, uniform = observations(rows=9), uniforms(part.it.table.num_uniforms, rows=9)
    found = part.rsample(x, uniform)
    if name != "shared" and (name == "independent" or spec != "driven by a number"):
        assert found.out.activity is None  # nothing that it draws decides
        return
    activity = found.out.activity.tensor[:, 0]
    assert (activity < 1.0).any()
    if name == "ar":
        assert torch.equal(activity, in_use(part, found.unit))
    else:
        said = Said(part, part.leaf(), x, found.unit)
        assert_near(activity, said.weight(), 1e-5)


@pytest.mark.parametrize(("name", "spec"), ACTORS)
def test_the_greedy_action_is_what_is_drawn_in_the_middle(name, spec):
    part = Part(KINDS.get(name, name), "actor", CASES[spec], scale=1.5, **SETTINGS)
    x, table = observations(), part.it.table
    _, unit = part.mode(x)
    _, middle, _ = part.sample(x, torch.full((MEMBERS, 5, table.num_uniforms), 0.5 - 2.0**-25))
    torch.testing.assert_close(unit[..., table.continuous], middle[..., table.continuous])


# --- options learned from critics -----------------------------------------------------------------


class Learning:
    """An actor of whole actions that learns from twin critics which are sure of themselves."""

    def __init__(self, spec, *, rows=12, mask=None, straight=False, obs=None):
        self.actor = Part("shared", "actor", spec, rows=rows, **SETTINGS)
        self.layout = layout = self.actor.layout
        queries = Queries(layout.bare_table(), rows)
        size = max(rows, queries.count)
        self.critic = Part("shared", "twins", spec, rows=size, seeds=(3, 4, 5), scale=2.0)
        self.obs = observations(rows=rows) if obs is None else obs
        extra = layout.num_discrete * max(layout.sizes) if straight else 0
        self.drawn = ActionSampler(
            layout, MEMBERS, rows, self.actor.it, 0, independent=False, extra=extra
        )  # fmt: skip
        self.drawn.noise.tensor[:, 0] = uniforms(self.drawn.noise.width, rows=rows)
        self.alpha = torch.linspace(0.2, 0.5, layout.num_heads).expand(MEMBERS, 1, -1).clone()
        if straight:
            softness = Buffer(MEMBERS)
            softness.tensor.fill_(0.5)
            self.it = StraightThrough(self.critic.it, self.drawn, layout, softness)
        else:
            self.it = Counterfactual(self.critic.it, self.drawn, layout, queries)
        self.mask = mask
        self.actor.expect_writers()
        self.critic.store.parameters.gradient.fill_(7.0)
        seen = buffer(self.obs)
        self.it.gradient(seen, seen, buffer(mask), buffer(self.alpha))
        assert (self.critic.store.parameters.gradient == 7.0).all()  # critics are constants
        self.gradient = self.actor.store.parameters.gradient.flatten(1).clone()

    def q(self, action):
        """The lesser of the twins, (P, B), in float64."""
        obs = self.obs[:, : action.shape[1]]
        return q_values(self.critic, self.critic.leaf().detach(), obs, action).amin(1).squeeze(-1)

    def of_options(self):
        """The gradient of the last layer's bias of each option, (P, total); numbers come first."""
        bias = self.actor.it.net.weights(self.actor.store.parameters.gradient)[-1][1]
        return bias[:, 0, 0, -self.layout.total :]


WITH_OPTIONS = [name for name, spec in CASES.items() if any(spec.cardinalities)]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_the_loss_is_that_of_a_loop_over_heads_and_options(name, masked):
    spec, rows = CASES[name], 12
    mask = some_mask(Part("shared", "actor", spec, **SETTINGS).layout, rows=rows)
    case = Learning(spec, rows=rows, mask=mask if masked else None)
    layout, leaf = case.layout, case.actor.leaf()
    discrete, alpha = layout.num_discrete, case.alpha.double()
    given = case.actor, leaf, case.obs, case.drawn.uniform.tensor[:, 0], case.mask
    unit, entropy = drawn_by_hand(*given)
    said = Said(case.actor, leaf, case.obs, unit.detach().float(), case.mask)
    gain = case.q(unit) if layout.num_continuous else 0.0
    neg_log_prob = _densities(case, leaf)
    for head in range(discrete):
        mine = torch.arange(rows) % discrete == head  # the states that are asked about it
        mine &= torch.arange(rows) < rows // discrete * discrete
        for option in range(layout.options[head]):
            action = unit.detach().clone()
            action[..., head] = option
            value = case.q(action)
            if layout.is_conditional and layout.num_continuous:
                # An option may put numbers in use, which are random.
                used = in_use(case.actor, action.float())[..., discrete:]
                value = value + (alpha[..., discrete:] * neg_log_prob * used).sum(-1)
            value = (value * mine * (rows / mine.sum())).detach()
            gain = gain + said.heads[head].probs[..., option] * value
    expected = -(gain + (alpha * entropy).sum(-1)).mean(-1)
    assert_near(case.it.loss.tensor.flatten(1), expected.unsqueeze(-1), 1e-5)
    (wanted,) = torch.autograd.grad(expected.sum(), leaf)
    assert_near(case.gradient, wanted.flatten(1), 2e-5)


def _densities(case, leaf):
    """Minus the log-density of each number drawn, in use or not, (P, B, C), without gradients."""
    plain = ActionSpec.of([Choice(n) if n else Range(-1, 1) for n in case.layout.options])
    free = Part("shared", "actor", plain, rows=case.obs.shape[1], **SETTINGS)
    uniform = case.drawn.uniform.tensor[:, 0]
    _, entropy = drawn_by_hand(free, leaf.detach(), case.obs, uniform, None)
    return entropy[..., case.layout.num_discrete :]


def exact_gradient(case, spec):
    """Of minus the value expected and the entropy, by brute force over all joint actions."""
    leaf = case.actor.leaf()
    obs = case.obs[:, :1]
    said = Said(case.actor, leaf, obs, torch.zeros(MEMBERS, 1, case.layout.num_heads))
    value = torch.zeros(MEMBERS, 1, dtype=torch.float64)
    for action in all_actions(spec):
        taken = action.expand(MEMBERS, 1, -1)
        chance = torch.ones_like(value)
        for head, option in zip(said.heads, action, strict=True):
            chance = chance * head.probs[..., int(option)]
        value = value + chance * case.q(taken)
    gain = value + (case.alpha.double() * said.entropy()).sum(-1)
    (gradient,) = torch.autograd.grad(-gain.sum(), leaf)
    return gradient.flatten(1)


def distance(spec, *, straight):
    """How far the gradient of the expectation is missed on average over draws, as a share."""
    draws = 80_000
    obs = observations(rows=1).expand(MEMBERS, draws, -1).contiguous()
    case = Learning(spec, rows=draws, straight=straight, obs=obs)
    exact = exact_gradient(case, spec)
    return (case.gradient - exact).norm(dim=-1) / exact.norm(dim=-1)


@pytest.mark.parametrize("name", ["discrete", "one_of"])
def test_the_gradient_is_that_of_the_expected_value(name):
    """Also with alternatives: an option is judged with the parameters that it puts in use."""
    assert (distance(CASES[name], straight=False) < 0.03).all()
    # The other one is off by far more, however many draws there are.
    assert (distance(CASES[name], straight=True) > 0.1).all()


def test_an_option_is_worth_the_randomness_of_the_numbers_it_puts_in_use():
    """With critics that say nothing, options learn from the entropies of numbers alone."""
    spec = ActionSpec(
        ("kind", "power", "angle"),
        (Choice(3), Range(-1, 1), Range(0, 5)),
        (None, Condition(0, 0, 1), Condition(0, 1, 3)),
    )
    case = Learning(spec, rows=40)
    case.critic.store.parameters.tensor.zero_()
    case.alpha[..., 0] = 0.0  # not paid for its own
    obs = buffer(case.obs)
    case.it.gradient(obs, obs, None, buffer(case.alpha))
    leaf = case.actor.leaf()
    unit, _ = drawn_by_hand(case.actor, leaf, case.obs, case.drawn.uniform.tensor[:, 0], None)
    said = Said(case.actor, leaf, case.obs, unit.float())
    worth = case.alpha[..., 1:].double() * _densities(case, leaf)
    # The first option puts `power` in use, both others `angle`.
    gain = said.heads[0].probs[..., 0] * worth[..., 0]
    gain = gain + said.heads[0].probs[..., 1:].sum(-1) * worth[..., 1]
    (wanted,) = torch.autograd.grad(-gain.mean(-1).sum(), leaf)
    net = case.actor.it.net
    exact = net.weights(wanted)[-1][1][:, 0, 0, -3:]
    assert_near(case.of_options(), exact, 1e-5)


@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_options_that_may_not_be_chosen_learn_nothing(name, straight):
    spec, rows = CASES[name], 40
    layout = Part("shared", "actor", spec, **SETTINGS).layout
    mask = some_mask(layout, rows=1).expand(-1, rows, -1).clone()  # the same in every row
    case = Learning(spec, rows=rows, mask=mask, straight=straight)
    found, may = case.of_options(), mask[:, 0] > 0.0
    assert torch.isfinite(found).all()
    assert (found[~may] == 0).all()
    alone = torch.cat(
        [(own.sum(-1, keepdim=True) == 1).expand_as(own) for own in may.split(layout.sizes, -1)], -1
    )
    assert (found[may & ~alone] != 0).any()


def test_parameters_of_an_alternative_that_is_never_taken_learn_nothing():
    spec = SPECS["one_of"]  # 3 kinds; `run` of 4 with the first, `jump` with the next
    mask = torch.ones(MEMBERS, 40, 11)
    mask[..., 1:3] = 0.0
    found = Learning(spec, rows=40, mask=mask).of_options()
    assert (found[:, 3:7] != 0).all()
    assert (found[:, 7:].abs() < 1e-7).all()  # the same value for every option: rounding only


def test_the_cost_is_that_of_one_head():
    rows, seen = 10, []
    case = Learning(SPECS["hybrid"], rows=rows)  # 3 and 2 options
    predict = case.critic.it.predict
    case.critic.it.predict = lambda x, *rest: seen.append(x.num_rows) or predict(x, *rest)
    obs = buffer(case.obs)
    case.it.gradient(obs, obs, None, buffer(case.alpha))
    assert sorted(seen) == [10, 5 * 3 + 5 * 2]
    assert case.drawn.noise.width == case.actor.it.table.num_uniforms
    straight = Learning(SPECS["hybrid"], rows=rows, straight=True)
    assert straight.drawn.noise.width == case.drawn.noise.width + 2 * 3


def test_relaxed_options_say_themselves_what_is_in_use():
    """They are drawn anew, apart from the actor's: what critics see hangs together."""
    rows = 60
    case = Learning(SPECS["one_of"], rows=rows, straight=True)
    action = case.drawn.action.tensor[:, 0].clone()
    options = case.it._options.tensor[:, 0]
    for h, own in enumerate(options.split(case.layout.sizes, -1)):
        assert torch.equal(own.argmax(-1).float(), action[..., h])
        assert (own.sum(-1) == 1.0).all()
    assert case.critic.it.use_room(case.drawn.action) is not None
    found = case.critic.it.predict_relaxed(buffer(case.obs), case.drawn.action, case.it._options)
    assert_near(found.tensor.amin(1).squeeze(-1), case.q(action), 5e-6)
