"""Constraints by brute force: every action of small specs, under whatever is forbidden there."""

import numpy as np
import pytest
import torch
from built import MEMBERS, Part, buffer, observations, uniforms
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_constraints import Constrained, problems
from test_parents import graphs

from headwise import ActionSpec, Choice, Forbid, Given, ops
from headwise.errors import ConfigError
from headwise.factorizations.ar import AR
from headwise.factorizations.base import check_constraints
from headwise.factorizations.critics import option_probs
from headwise.factorizations.shared import Shared
from headwise.heads.blueprint import Actions
from headwise.heads.layout import Layout
from headwise.ops import Buffer
from headwise.spaces import Condition

SOME = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
TREES = ("shared", "independent", "vdn")


class Under:
    """A part of a factorization in one state of a problem, asked about all actions at once."""

    def __init__(self, problem, kind, what, **more):
        self.problem, self.actions = problem, problem.actions()
        rows = len(self.actions)
        self.part = Part(kind, what, problem.spec, rows=rows, scale=2.0, **more)
        layout = self.part.layout
        self.taken = layout.to_learner(torch.as_tensor(self.actions, dtype=torch.float32))
        self.taken = self.taken.expand(MEMBERS, rows, -1)
        self.mask = problem.mask(layout, MEMBERS, rows)
        self.x = observations(rows=1).expand(-1, rows, -1).contiguous()
        self.legal = torch.as_tensor([problem.is_legal(a) for a in self.actions])
        assert self.legal.any()

    def heads(self, action):
        """Actions of the learner in the spec's form, heads that are not in use at rest."""
        native = self.part.layout.from_learner(action).double().numpy()
        return self.problem.spec.canonical(native)

    def check_policy(self):
        part, x, mask = self.part, self.x, self.mask
        found = part.evaluate(x, self.taken, mask)
        log_prob = found.log_prob.double().sum(-1)
        probs = log_prob.exp()
        torch.testing.assert_close(probs.sum(-1), torch.ones(MEMBERS).double(), atol=1e-5, rtol=0)
        assert (probs[:, ~self.legal] == 0.0).all()
        assert (probs[:, self.legal] > 0.0).all()
        exact = -(probs * log_prob).masked_fill(~self.legal, 0.0).sum(-1)
        mean = (probs * found.entropy.double().sum(-1)).masked_fill(~self.legal, 0.0).sum(-1)
        torch.testing.assert_close(mean, exact, atol=2e-5, rtol=2e-5)
        self.check_divergence(log_prob)
        return log_prob

    def check_divergence(self, log_prob):
        it, part = self.part.it, self.part
        other = observations(rows=1, seed=9).expand(-1, len(self.actions), -1).contiguous()
        before = part.evaluate(other, self.taken, self.mask).log_prob.double().sum(-1)
        raw = buffer(self.taken)
        actions = Actions(raw, raw, buffer(self.mask))
        y, std = it.outputs(buffer(other), actions)
        old = Buffer(MEMBERS, len(self.actions), it.table.total)
        ops.distribution(y, std, it.legal(actions), table=it.table, out=old)
        kl = part.evaluate(self.x, self.taken, self.mask, old.tensor[:, 0].clone()).kl
        exact = before.exp() * (before - log_prob)
        exact = exact.masked_fill(~self.legal, 0.0).sum(-1)
        mean = (before.exp() * kl.double().sum(-1)).masked_fill(~self.legal, 0.0).sum(-1)
        torch.testing.assert_close(mean, exact, atol=5e-5, rtol=5e-5)

    def check_draws(self):
        """What is drawn is legal, and its log-probability is that of evaluating it."""
        part, rows = self.part, len(self.actions)
        uniform = uniforms(part.it.table.num_uniforms, rows)
        raw, _, drawn = part.sample(self.x, uniform, self.mask)
        torch.testing.assert_close(part.evaluate(self.x, raw, self.mask).log_prob, drawn)
        for action in (raw, part.mode(self.x, self.mask)[0]):
            assert all(map(self.problem.is_legal, self.heads(action).reshape(-1, action.shape[-1]
                if part.layout.joint is None else self.problem.spec.num_heads)))  # fmt: skip

    def check_value(self):
        """The greedy action is the best legal one, and the value of it what is said of it."""
        q = self.part.predict(self.x, self.taken, self.mask)[..., 0]
        highest = q.masked_fill(~self.legal, -torch.inf).max(-1)
        value = self.part.greedy_value(self.x, self.mask)[:, 0, 0]
        torch.testing.assert_close(value, highest.values, atol=2e-5, rtol=2e-5)
        chosen = self.heads(self.part.greedy(self.x, self.mask))[:, 0]
        for member in range(MEMBERS):
            found = (self.actions == chosen[member]).all(-1)
            assert self.legal[torch.as_tensor(found)].all()
            assert q[member, found] >= highest.values[member] - 2e-5


@SOME
@given(problems())
def test_joint_policies_and_values(problem):
    under = Under(problem, "joint", "policy")
    log_prob = under.check_policy()
    under.check_draws()
    best = under.heads(under.part.mode(under.x, under.mask)[0])[:, 0]
    assert (best == under.actions[log_prob.argmax(-1)]).all()
    for what in ("value", "plain_value"):
        Under(problem, "joint", what).check_value()


@SOME
@given(problems())
def test_chains(problem):
    under = Under(problem, "ar", "policy")
    under.check_policy()
    under.check_draws()
    Under(problem, "ar", "value").check_value()


@SOME
@given(problems(), st.data())
def test_graphs(problem, data):
    """Heads look at others, or do not; what limits them is heeded all the same."""
    parents = data.draw(graphs(problem.spec.names))
    kind = AR(parents=parents)
    try:
        kind.check(problem.spec)
    except ConfigError:  # with tables and conditions it goes around
        return
    under = Under(problem, kind, "policy")
    under.check_policy()
    under.check_draws()
    Under(problem, kind, "value").check_value()


@pytest.mark.parametrize("name", TREES)
@SOME
@given(problem=problems(trees=True))
def test_heads_that_are_drawn_after_their_parents(name, problem):
    under = Under(problem, name, "policy")
    log_prob = under.check_policy()
    under.check_draws()
    best = under.heads(under.part.mode(under.x, under.mask)[0])[:, 0]
    for member, action in enumerate(best):
        found = torch.as_tensor((under.actions == action).all(-1))
        assert log_prob[member, found] >= log_prob[member].max() - 1e-5


@pytest.mark.parametrize("what", ["value", "plain_value"])
@SOME
@given(problem=problems(trees=True))
def test_values_that_add_up(what, problem):
    Under(problem, "vdn", what).check_value()


@SOME
@given(problems())
def test_a_chain_is_as_one_whose_masks_say_the_same(problem):
    """Values, gradients and soft values: those of tests/factorizations/test_values.py hold here."""
    under = Under(problem, "ar", "value")
    free = Part("ar", "value", _free(problem.spec), rows=len(under.actions), scale=2.0)
    if free.it.graph.order != under.part.it.graph.order:
        return
    links = under.part.layout.links
    taken = under.taken[:, under.legal]
    x, mask = under.x[:, under.legal].contiguous(), under.mask[:, under.legal]
    seen = ops.legal_options.definition(taken.unsqueeze(1), mask.unsqueeze(1), links=links)[:, 0]
    assert torch.equal(under.part.predict(x, taken, mask), free.predict(x, taken, seen))
    slope = torch.ones_like(under.part.predict(x, taken, mask)).unsqueeze(1)
    ours, theirs = (
        part.gradients(x, taken, slope, m)[0] for part, m in ((under.part, mask), (free, seen))
    )
    assert torch.equal(ours, theirs)
    soft = {}
    for name, spec in (("linked", problem.spec), ("free", _free(problem.spec))):
        part = Part("ar", "twins", spec, rows=taken.shape[1], scale=2.0)
        action = buffer(torch.zeros_like(taken))
        alpha = buffer(torch.full((MEMBERS, 1, spec.num_heads), 0.7))
        uniform = buffer(uniforms(spec.num_heads, taken.shape[1]))
        if name == "free":
            drawn = soft["linked"][1]
            mask = ops.legal_options.definition(drawn.unsqueeze(1), mask.unsqueeze(1), links=links)
            mask = mask[:, 0]
        value = part.it.soft(buffer(x), action, alpha, uniform, buffer(mask)).value
        soft[name] = value.tensor.clone(), action.tensor[:, 0].clone()
    for one, other in zip(soft["linked"], soft["free"], strict=True):
        assert torch.equal(one, other)
    drawn = problem.spec.canonical(under.part.layout.from_learner(soft["linked"][1]).numpy())
    assert all(map(problem.is_legal, drawn.reshape(-1, problem.spec.num_heads)))


@pytest.mark.parametrize("name", ["ar", "joint"])
def test_a_table_by_a_head_that_is_not_in_use_says_nothing(name):
    kind = ActionSpec(
        ("kind", "tool", "target"),
        (Choice(2), Choice(2), Choice(3)),
        (None, Condition(0, 0, 1), None),
    )
    spec = kind.constrained(Given(target="tool"))
    table = np.array([[True, False, False], [False, True, True]])
    problem = Constrained(spec, [], {2: ((1,), table)}, [np.ones(n, bool) for n in (2, 2, 3)])
    under = Under(problem, name, "policy")
    assert under.legal.sum() == 3 + 3
    under.check_policy()
    under.check_draws()
    Under(problem, name, "value").check_value()
    with pytest.raises(ConfigError, match="one other head at most"):
        check_constraints(Shared(), Layout(spec), spec, "policy", "ppo")


def _free(spec):
    from dataclasses import replace

    return replace(spec, constraints=())


def logits_of(part, leaf, x):
    """What a policy or a value says of each head's options, (P, B, options), in float64."""
    net = part.networks(leaf)[-1](x.double().unsqueeze(1))
    sizes = part.layout.sizes
    if net.shape[1] > 1:
        return [net[:, h, :, :n] for h, n in enumerate(sizes)]
    return list(net[:, 0].split(list(sizes), -1))


@pytest.mark.parametrize("name", ["shared", "independent"])
@SOME
@given(problem=problems(trees=True))
def test_gradients_of_trees_are_those_of_the_enumeration(name, problem):
    """Each action's probability by the words of the constraints; entropy summed over all."""
    under = Under(problem, name, "policy")
    part, leaf, links = under.part, under.part.leaf(), under.part.layout.links
    logits = logits_of(part, leaf, under.x)
    rows = ops.legal_options.definition(
        under.taken.unsqueeze(1), under.mask.unsqueeze(1), links=links
    )[:, 0].split(list(part.layout.sizes), -1)
    used = torch.as_tensor(problem.spec.active(under.actions))[:, : part.layout.num_heads]
    used = part.layout.to_learner(used.double())
    columns = [
        own.masked_fill(row == 0.0, -1e30).log_softmax(-1).gather(
            -1, under.taken[..., h : h + 1].long()
        )[..., 0] * used[:, h]
        for h, (own, row) in enumerate(zip(logits, rows, strict=True))
    ]  # fmt: skip
    log_prob = torch.stack(columns, -1)[:, under.legal]
    joint = log_prob.sum(-1)
    entropy = -(joint.exp() * joint).sum(-1)
    taken = under.taken[:, under.legal]
    x, mask = under.x[:, under.legal].contiguous(), under.mask[:, under.legal]
    found = part.evaluate(x, taken, mask)
    torch.testing.assert_close(found.log_prob.double(), log_prob.detach(), atol=2e-5, rtol=2e-5)
    slope = torch.linspace(-1.0, 1.0, taken.shape[1] * taken.shape[2]).view(1, *taken.shape[1:])
    slope = slope.expand_as(taken)
    none = torch.zeros_like(slope)
    once = none.clone()
    once[:, 0] = 1.0  # every row says the same entropies
    pairs = (
        ((slope, none), (log_prob * slope.double()).sum()),
        ((none, once), entropy.sum()),
    )
    for slopes, target in pairs:
        (wanted,) = torch.autograd.grad(target, leaf, retain_graph=True)
        gradient = found.gradient(*slopes).double()
        size = wanted.abs().amax().clamp_min(1e-3)
        assert ((gradient - wanted.flatten(1)).abs() / size).max() < 2e-4
        found = part.evaluate(x, taken, mask)


@SOME
@given(problem=problems(trees=True))
def test_gradients_of_values_that_add_up(problem):
    """V plus what an action has more than the best legal one, found by looking at all."""
    under = Under(problem, "vdn", "value")
    part, leaf = under.part, under.part.leaf()
    nets, x = part.networks(leaf), under.x.double().unsqueeze(1)
    features = nets[0](x)
    width = part.plan.branch_width
    value, y = nets[1](features[..., :width]), nets[2](features[..., width:])[:, 0]
    used = part.layout.to_learner(torch.as_tensor(problem.spec.active(under.actions)).double())
    total = torch.zeros(MEMBERS, len(under.actions), dtype=torch.double)
    for h, own in enumerate(y.split(list(part.layout.sizes), -1)):
        start = sum(part.layout.sizes[:h])
        allowed = under.mask[..., start : start + own.shape[-1]] > 0.0
        highest = own.masked_fill(~allowed, -1e30).max(-1).values
        total = (
            total
            + (own.gather(-1, under.taken[..., h : h + 1].long())[..., 0] - highest) * used[:, h]
        )
    best = total.masked_fill(~under.legal, -torch.inf).max(-1, keepdim=True).values
    wanted = value[:, 0, :, 0] + total - best
    found = part.predict(under.x, under.taken, under.mask)[..., 0]
    torch.testing.assert_close(found.double(), wanted.detach(), atol=2e-5, rtol=2e-5)
    slope = torch.linspace(-1.0, 1.0, wanted.shape[1]).expand_as(wanted)
    (gradient,) = torch.autograd.grad((wanted * slope).sum(), leaf)
    ours, _ = part.gradients(
        under.x, under.taken, slope.float()[:, None, :, None].contiguous(), under.mask
    )
    size = gradient.abs().amax().clamp_min(1e-3)
    assert ((ours.double() - gradient.flatten(1)).abs() / size).max() < 2e-4


@SOME
@given(problem=problems(trees=True))
def test_a_branching_critic_is_centered_under_the_policy(problem):
    """On average over what the policy does, advantages are zero: V is the value of the policy."""
    under = Under(problem, "vdn", "policy")
    probs = under.part.evaluate(under.x, under.taken, under.mask).log_prob.double().sum(-1).exp()
    it, raw = under.part.it, buffer(under.taken)
    y, std = it.outputs(buffer(under.x), Actions(raw, raw, buffer(under.mask)))
    critic = Part("vdn", "critic", problem.spec, rows=len(under.actions), scale=2.0)
    chances = Buffer(MEMBERS, len(under.actions), critic.it.table.total)
    option_probs(y, std, buffer(under.mask), table=it.table, bins=5, out=chances)
    use = torch.as_tensor(problem.spec.active(under.actions)).float().expand_as(under.taken)
    use = under.part.layout.to_learner(use)
    actions = Actions(raw, raw, None, None, raw, chances, buffer(use))
    q = critic.it.predict(buffer(under.x), actions).tensor[:, 0, :, 0].double()
    value = critic.it.value(buffer(under.x)).tensor[:, 0, 0, 0].double()
    mean = (probs * q).masked_fill(~under.legal, 0.0).sum(-1)
    torch.testing.assert_close(mean, value, atol=5e-5, rtol=5e-5)


@pytest.mark.parametrize("name", ["ar", "joint", "shared", "independent"])
def test_a_million_draws_are_legal(name):
    """Each under a table of its own, which leaves half of the options or less."""
    spec = ActionSpec.of(target=Choice(5), verb=Choice(4), mode=Choice(3)).constrained(
        Given(target="verb"), Forbid(verb=3, mode=(0, 1)), Forbid(verb=1, mode=2)
    )
    rows, random, count = 20_000, torch.Generator().manual_seed(0), 0
    part = Part(name, "policy", spec, rows=rows, scale=3.0)
    x = observations(rows=rows, seed=1)
    for time in range(17):
        table = torch.rand(MEMBERS, rows, 4, 5, generator=random) < 0.4
        table[..., 0] |= ~table.any(-1)
        heads = torch.zeros(MEMBERS, rows, 3, 5, dtype=torch.bool)
        heads[..., 0, :] = True
        heads[..., 1, :4] = torch.rand(MEMBERS, rows, 4, generator=random) < 0.6
        heads[..., 1, 0] |= ~heads[..., 1, :].any(-1)
        heads[..., 2, :3] = True
        mask = part.layout.mask(torch.cat([heads, table], -2))
        uniform = uniforms(part.it.table.num_uniforms, rows, seed=time)
        raw = part.sample(x, uniform, mask)[0]
        target, verb, mode = part.layout.from_learner(raw).long().unbind(-1)
        count += verb.numel()
        assert heads[..., 1, :].gather(-1, verb.unsqueeze(-1)).all()
        row = table.gather(-2, verb[..., None, None].expand(*verb.shape, 1, 5))[..., 0, :]
        assert row.gather(-1, target.unsqueeze(-1)).all()
        assert not ((verb == 3) & (mode < 2)).any()
        assert not ((verb == 1) & (mode == 2)).any()
    assert count >= 1_000_000
