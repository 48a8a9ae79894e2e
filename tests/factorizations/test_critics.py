"""Critics of PPO: float64 oracles, and which heads matter to one that branches."""

import math

import pytest
import torch
from built import (
    DISCRETE,
    HYBRID,
    MEMBERS,
    ONE_OF,
    SPECS,
    Part,
    assert_near,
    buffer,
    observations,
    room,
    uniforms,
)
from oracle import dueling, mixed

from headwise import ActionSpec, Choice, View
from headwise.algorithms.ppo.credit import credit_weights, expected_mixture, head_importance
from headwise.factorizations.critics import critic_options, option_probs
from headwise.factorizations.qplex import QPLEX
from headwise.factorizations.vdn import VDN
from headwise.heads.blueprint import Actions
from headwise.ops import Buffer, in_use

BRANCHING = {"vdn": VDN(critic_bins=5), "qplex": QPLEX(mixer_width=16)}
IMPORTANCE = ("uniform", "range", "range_slope", "grad", "state")


class Judged:
    """A branching critic of what a policy does in some states."""

    def __init__(self, name, spec, mask=None, rows=5, scale=2.0):
        self.policy = Part(name, "policy", spec, rows=rows, state_std=True)
        self.critic = Part(BRANCHING[name], "critic", spec, rows=rows, scale=scale)
        self.layout, it = self.policy.layout, self.critic.it
        self.table, self.obs = it.table, observations(rows=rows)
        self.x, actor = buffer(self.obs), self.policy.it
        self.raw, self.unit, _ = self.policy.sample(
            self.obs, uniforms(actor.table.num_uniforms, rows=rows), mask
        )
        self.mask = buffer(mask)
        self.option = room(rows, self.layout.num_heads)
        critic_options(buffer(self.unit), table=actor.table, bins=it.num_bins, out=self.option)
        self.probs = room(rows, self.table.total)
        y, free = actor.outputs(self.x, Actions(buffer(self.raw), buffer(self.unit)))
        option_probs(y, free, self.mask, table=actor.table, bins=it.num_bins, out=self.probs)
        self.use = None
        if self.layout.is_conditional:
            self.use = room(rows, self.layout.num_heads)
            in_use(self.option, table=self.table, out=self.use)

    def taken(self, option=None):
        return Actions(
            self.option, self.option, None, None, option or self.option, self.probs, self.use
        )

    def predict(self, option=None):
        return self.critic.it.predict(self.x, self.taken(option)).tensor[:, 0].clone()

    def importance(self, kind, mask=None):
        it, out = self.critic.it, room(self.obs.shape[1], self.layout.num_heads)
        _, y, _ = it.net.forward([self.x])
        chosen, slope = it.chosen(y, self.taken()), None
        if kind not in ("uniform", "range"):
            slope = it.q_gradient(self.x, None if kind == "state" else chosen)
        given = y, chosen, self.probs, buffer(mask), slope
        head_importance(*given, table=self.table, kind=kind, out=out)
        return out.tensor[:, 0].clone()

    def centered(self):
        """All advantages of each head, with mean zero, by the definition of it."""
        _, y, _ = self.critic.it.net.forward([self.x])
        found = []
        for own, probs in zip(
            y.tensor[:, 0].split(self.table.sizes, -1),
            self.probs.tensor[:, 0].split(self.table.sizes, -1),
            strict=True,
        ):
            found.append(own - (own * probs).sum(-1, keepdim=True))
        return found


def full(layout, rows=5):
    return torch.ones(MEMBERS, rows, layout.total)


@pytest.mark.parametrize("spec", list(SPECS))
@pytest.mark.parametrize("name", list(BRANCHING))
def test_predictions_and_gradients_are_those_of_the_formula(name, spec):
    judged = Judged(name, SPECS[spec], rows=7)
    part, sizes = judged.critic, judged.table.sizes
    leaf = part.leaf()
    nets, x = part.networks(leaf), judged.obs.double().unsqueeze(1)
    value, y, _ = dueling(part, nets, [x])
    chosen = []
    for h, (own, probs) in enumerate(
        zip(y.split(sizes, -1), judged.probs.tensor.double().split(sizes, -1), strict=True)
    ):
        taken = own.gather(-1, judged.option.tensor[..., h : h + 1].long())
        chosen.append(taken - (own * probs).sum(-1, keepdim=True))
    advantage = torch.cat(chosen, -1)
    if judged.use is not None:
        assert (judged.use.tensor == 0.0).any()
        advantage = advantage * judged.use.tensor
    mixer = nets[3](x) if name == "qplex" else None
    q = value + (advantage.sum(-1, True) if mixer is None else mixed(advantage, mixer))
    assert_near(judged.predict(), q[:, 0])
    out = part.it.predict(judged.x, judged.taken())
    out.gradient.copy_(torch.randn(out.tensor.shape, generator=torch.Generator().manual_seed(1)))
    part.expect_writers()
    part.it.backward(judged.x, judged.taken())
    (wanted,) = torch.autograd.grad(q, leaf, out.gradient.double())
    assert_near(part.store.parameters.gradient.flatten(1), wanted.flatten(1), 1e-5)
    assert_near(part.it.value(judged.x).tensor, value)


@pytest.mark.parametrize("branch_width", [0, 8])
@pytest.mark.parametrize("name", ["shared", "independent", "ar", "joint"])
def test_a_plain_critic_is_a_value_of_the_state_or_of_each_head(name, branch_width):
    part = Part(name, "critic", DISCRETE, rows=7, scale=2.0, branch_width=branch_width)
    x = buffer(observations(rows=7))
    leaf = part.leaf()
    v = part.networks(leaf)[0](x.tensor.double()).squeeze(-1).movedim(1, -1)
    assert v.shape[-1] == part.it.num_values == (3 if name == "independent" else 1)
    out = part.it.predict(x, None)
    assert_near(out.tensor[:, 0], v)
    out.gradient.copy_(torch.randn(out.tensor.shape, generator=torch.Generator().manual_seed(1)))
    part.expect_writers()
    part.it.backward(x, None)
    (wanted,) = torch.autograd.grad(v, leaf, out.gradient[:, 0].double())
    assert_near(part.store.parameters.gradient.flatten(1), wanted.flatten(1), 5e-6)


def test_advantages_have_mean_zero_under_the_policy():
    judged = Judged("vdn", HYBRID)
    for probs in judged.probs.tensor.split(judged.table.sizes, -1):
        torch.testing.assert_close(probs.sum(-1), torch.ones(MEMBERS, 1, 5))
    total, value = torch.zeros(MEMBERS, 5, 1), judged.critic.it.value(judged.x).tensor[:, 0].clone()
    sizes = judged.table.sizes
    for options in torch.cartesian_prod(*(torch.arange(n) for n in sizes)):
        chance = torch.ones(MEMBERS, 5, 1)
        for h, probs in enumerate(judged.probs.tensor[:, 0].split(sizes, -1)):
            chance = chance * probs[..., options[h] : options[h] + 1]
        every = buffer(options.float().expand(MEMBERS, 5, -1))
        total += chance * judged.predict(every)
    torch.testing.assert_close(total, value, atol=1e-5, rtol=1e-5)


# --- which heads matter ---------------------------------------------------------------------------


def test_the_range_of_a_head_is_that_of_its_legal_options():
    """Of the three options of `b` one, two or none is legal; `a` and `c` may do anything."""
    judged = Judged("vdn", DISCRETE)
    legal = full(judged.layout)
    legal[:, 0, 3:5] = legal[:, 1, 3] = 0.0  # `b` has columns 2, 3 and 4
    legal[:, 2, 2:5] = 0.0
    found, others = judged.importance("range", legal), judged.importance("range")
    of_b = judged.centered()[1]
    assert (found[:, [0, 2], 1] == 0).all()
    torch.testing.assert_close(found[:, 1, 1], (of_b[:, 1, 0] - of_b[:, 1, 2]).abs())
    torch.testing.assert_close(found[:, 3:, 1], of_b[:, 3:].amax(-1) - of_b[:, 3:].amin(-1))
    assert torch.equal(found[..., [0, 2]], others[..., [0, 2]])
    assert (others[..., 1] > 0).all()


@pytest.mark.parametrize("kind", ["range", "range_slope", "state"])
@pytest.mark.parametrize("name", list(BRANCHING))
def test_a_head_without_a_choice_does_not_matter(name, kind):
    """Continuous heads come behind the discrete ones, and have bins that all may be chosen."""
    judged = Judged(name, HYBRID)
    legal = full(judged.layout)  # `a` of three options, `b` of two
    legal[..., 4] = 0.0
    found, others = judged.importance(kind, legal), judged.importance(kind)
    assert (found[..., 1] == 0).all()
    assert (others[..., 1] > 0).all()
    assert torch.equal(found[..., [0, 2, 3]], others[..., [0, 2, 3]])


@pytest.mark.parametrize("name", list(BRANCHING))
def test_importance_is_the_spread_or_the_share_times_the_slope_of_the_mixture(name):
    judged = Judged(name, HYBRID)
    centered = judged.centered()
    spread = torch.stack([own.amax(-1) - own.amin(-1) for own in centered], -1)
    chosen = torch.stack(
        [own.gather(-1, judged.option.tensor[:, 0, :, h : h + 1].long()).squeeze(-1)
         for h, own in enumerate(centered)], -1,
    ).double()  # fmt: skip
    at_chosen = at_zero = torch.ones_like(chosen)
    if name == "qplex":
        weights = judged.critic.networks(judged.critic.leaf())[3](judged.x.tensor.double())[:, 0]
        slopes = []
        for at in (chosen, torch.zeros_like(chosen)):
            at = at.clone().requires_grad_()
            slopes += torch.autograd.grad(mixed(at, weights.detach()).sum(), at)
        at_chosen, at_zero = slopes
    expected = {
        "uniform": torch.ones_like(chosen),
        "range": spread.double(),
        "grad": (chosen * at_chosen).abs(),
        "signed": chosen * at_chosen,
        "range_slope": spread * at_chosen,
        "state": spread * at_zero,
    }
    for kind, wanted in expected.items():
        assert_near(judged.importance(kind), wanted, 1e-5)


@pytest.mark.parametrize("name", list(BRANCHING))
@pytest.mark.parametrize("spec", ["one_of", "parameters"])
@pytest.mark.parametrize("kind", IMPORTANCE)
def test_credit_goes_to_heads_in_use(name, spec, kind):
    judged = Judged(name, SPECS[spec], rows=400)
    used = SPECS[spec].active(judged.layout.from_learner(judged.unit).double().numpy())
    used = judged.layout.to_learner(torch.as_tensor(used)).float()
    assert torch.equal(judged.use.tensor[:, 0], used)
    importance, clock = buffer(judged.importance(kind)), Buffer(MEMBERS, 1, 2)
    for step in (0, 7, 100):
        clock.longs.fill_(step)
        for floor in (0.0, 0.3):
            weight = room(400, 4)
            credit_weights(importance, clock, judged.use, span=10.0, floor=floor, out=weight)
            weight = weight.tensor[:, 0]
            assert (weight[used == 0] == 0).all()
            assert (weight[used == 1] > 0).all()
            torch.testing.assert_close(weight.sum(-1), torch.ones(MEMBERS, 400))
    # and a head that is not in use adds nothing to Q
    other = buffer(torch.where(used == 1, judged.option.tensor[:, 0], 0.0))
    assert not torch.equal(other.tensor, judged.option.tensor)
    assert torch.equal(judged.predict(), judged.predict(other))


def test_conditions_on_a_cut_up_range_hold_for_the_bins_whose_center_meets_them():
    # three alternatives driven by a number; five bins have centers -.8, -.4, 0, .4, .8
    part = Part("vdn", "critic", View(SPECS["parameters"], "continuous").spec)
    bins = torch.tensor([[b, 0, 0, 0] for b in range(5)], dtype=torch.float32)
    assert part.it.table.in_use(bins)[:, 1:].tolist() == [
        [1, 0, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1], [0, 0, 1],
    ]  # fmt: skip


def test_numbers_fall_into_equally_wide_bins():
    part = Part("vdn", "policy", HYBRID)
    unit = torch.tensor([[1.0, 0.0, -1.0, -0.61], [2.0, 1.0, 0.999, 1.0], [0.0, 1.0, -0.2, 0.19]])
    out = room(3, 4, members=1)
    critic_options(buffer(unit.unsqueeze(0)), table=part.it.table, bins=5, out=out)
    assert out.tensor[0, 0].tolist() == [[1, 0, 0, 0], [2, 1, 4, 4], [0, 1, 2, 2]]


def test_what_the_mixture_is_worth_on_average_by_hand():
    """A = +2 or -2 with probability one half: E[ELU(A)] = (2 + exp(-2) - 1) / 2 = 0.568."""
    judged = Judged("qplex", ActionSpec.of(a=Choice(2)))
    table, out = judged.table, room(5, 1)
    y = buffer(torch.tensor([2.0, -2.0]).expand(MEMBERS, 5, 2))
    probs, weights = buffer(torch.full((MEMBERS, 5, 2), 0.5)), buffer(torch.ones(MEMBERS, 5, 2))
    expected_mixture(y, probs, weights, table=table, relu=False, soft=False, out=out)
    expected = (2 + math.exp(-2) - 1) / 2
    torch.testing.assert_close(out.tensor, torch.full((MEMBERS, 1, 5, 1), expected))
    assert expected == pytest.approx(0.568, abs=1e-3)


def test_one_bin_of_a_number_says_nothing_about_it():
    """It has the probability one, and so the advantage zero."""
    part, spec = Part(VDN(critic_bins=1), "critic", HYBRID), HYBRID
    policy, x = Part("vdn", "policy", spec), buffer(observations())
    probs = room(5, part.it.table.total)
    y, free = policy.it.outputs(x, None)
    option_probs(y, free, None, table=policy.it.table, bins=1, out=probs)
    assert (probs.tensor[..., 5:] == 1.0).all()
    assert part.it.table.sizes == [3, 2, 1, 1]


def test_one_of_specs_have_idle_heads_here():
    assert 0 < Judged("vdn", ONE_OF, rows=50).use.tensor.mean() < 1
