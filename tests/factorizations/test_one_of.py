"""Parameters that are not in use get no log-probability, no entropy and no credit."""

import math

import numpy as np
import pytest
import torch
from cases import (
    ONE_OF,
    PARAMETERS,
    SPECS,
    all_actions,
    blueprint,
    for_all_rows,
    make,
    observations,
    offers,
)

from headwise import View
from headwise.algorithms.importance import importance_weights
from headwise.algorithms.temperature import Temperatures
from headwise.factorizations.parts.heads import Heads
from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.parts.prefix import Prefix
from headwise.factorizations.parts.ranges import BetaUnit, ClippedGaussian, SquashedGaussian
from headwise.factorizations.qplex import QPLEX
from headwise.population import Keys, Stream

BY_HEAD = [p for p in offers("policy", ("one_of", "parameters")) if p[0] != "joint"]


def in_use(spec, action):
    return torch.as_tensor(spec.active(action.double().numpy()))


def drawn_by(policy, rows=400):
    obs = observations(rows=rows)
    uniform = Keys((0, 1, 2)).uniform(Stream.ACT, 0, (rows, policy.num_uniforms))
    with torch.no_grad():
        raw, judged = policy.sample(obs, uniform)
    return obs, raw, judged


@pytest.mark.parametrize(("name", "spec"), BY_HEAD)
def test_no_log_prob(name, spec):
    policy = make(name, "policy", SPECS[spec])
    _, raw, judged = drawn_by(policy)
    used = in_use(SPECS[spec], policy.to_unit(raw))
    assert 0 < used.float().mean() < 1
    assert (judged.log_prob[~used] == 0).all()
    assert (judged.log_prob[used] != 0).all()


@pytest.mark.parametrize("name", [n for n, s in BY_HEAD if s == "one_of"])
@pytest.mark.parametrize("gain", [1.0, 8.0])
def test_entropy_is_that_of_the_joint_action(name, gain):
    """Summed over all actions with their probabilities, heads' entropies are the joint entropy."""
    policy, obs = make(name, "policy", ONE_OF, policy_gain=gain), observations()
    exact, mean = torch.zeros(3, 5), torch.zeros(3, 5)
    with torch.no_grad():
        for action in for_all_rows(all_actions(ONE_OF)):
            if (ONE_OF.canonical(action.numpy()) != action.numpy()).any():
                continue
            judged = policy.judge(obs, action)
            log_prob = judged.log_prob.sum(-1)
            exact -= log_prob.exp() * log_prob
            mean += log_prob.exp() * judged.entropy.sum(-1)
    torch.testing.assert_close(mean, exact, atol=1e-5, rtol=1e-5)


def test_entropy_by_hand():
    # kind: 1/2, 1/4, 1/4; `power` is in use with 1/2, `gear` with 1/4, `angle` with 1/2
    layout = Layout(PARAMETERS)
    logits = torch.tensor([[0.5, 0.25, 0.25], [0.5, 0.5, 1.0]]).log()
    heads = Heads.from_logits(layout, logits, SquashedGaussian(torch.zeros(2), torch.zeros(2)))
    gauss = 0.5 * math.log(2 * math.pi * math.e)
    expected = [1.5 * math.log(2), 0.5 * gauss, 0.25 * math.log(2), 0.5 * gauss]
    torch.testing.assert_close(heads.entropy(), torch.tensor(expected))
    torch.testing.assert_close(heads.activity(), torch.tensor([1.0, 0.5, 0.25, 0.5]))
    # given an action, heads are in use or not
    known = heads.entropy(torch.tensor([1.0, 0.0, 0.0, 0.0]))
    expected = [1.5 * math.log(2), 0.0, math.log(2), gauss]
    torch.testing.assert_close(known, torch.tensor(expected))


@pytest.mark.parametrize(
    "driver",
    [
        lambda x: SquashedGaussian(x, torch.zeros_like(x) - 0.5),
        lambda x: ClippedGaussian(x, torch.zeros_like(x) - 0.5),
        lambda x: BetaUnit(1.5 + x.abs(), 2.0 + x.abs()),
    ],
)
def test_activity_under_a_number_that_drives_the_alternative(driver):
    """In the continuous view a Range chooses the alternative: its mass says who is in use."""
    spec = View(PARAMETERS, "continuous").spec
    layout = Layout(spec)
    distribution = driver(torch.tensor([0.3, 0.0, 0.0, 0.0]))
    heads = Heads(layout, None, distribution)
    uniform = torch.rand(200_000, 4, distribution.num_uniforms, generator=torch.manual_seed(0))
    unit = distribution.to_unit(distribution.draw(uniform))
    frequency = torch.as_tensor(spec.active(unit.double().numpy())).float().mean(0)
    assert frequency[1:].min() > 0.05
    torch.testing.assert_close(heads.activity(), frequency, atol=0.006, rtol=0)


# --- values and critics ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n, _ in offers("value", ("one_of",))])
def test_an_unused_option_does_not_change_a_value(name):
    value, obs = make(name, "value", ONE_OF), observations()
    columns = value.num_columns
    for action in for_all_rows(all_actions(ONE_OF)):
        rested = torch.as_tensor(ONE_OF.canonical(action.numpy())).float()
        ours, same = value.predict(obs, action), value.predict(obs, rested)
        if columns > 1:  # a column for each head: those in use
            used = in_use(ONE_OF, action)
            ours, same = ours[used], same[used]
        torch.testing.assert_close(ours, same)


@pytest.mark.parametrize("name", ["vdn", "qplex"])
@pytest.mark.parametrize("spec", ["one_of", "parameters"])
@pytest.mark.parametrize("kind", ["uniform", "range", "range_slope", "grad", "state"])
def test_credit_goes_to_heads_in_use(name, spec, kind):
    policy, critic = (make(name, what, SPECS[spec]) for what in ("policy", "critic"))
    obs, raw, judged = drawn_by(policy)
    unit = policy.to_unit(raw)
    bins, masses = critic.bins(unit), critic.masses(judged.heads)
    used = in_use(SPECS[spec], unit).float()
    _, advantage = critic.centred(obs, masses)
    importance = critic.importance(advantage, obs, bins, kind)
    for floor in (0.0, 0.3):
        weight = importance_weights(importance, 0.7, floor, used)
        assert (weight[used == 0] == 0).all()
        assert (weight[used == 1] > 0).all()
        torch.testing.assert_close(weight.sum(-1), torch.ones(3, 400))
    # and a head that is not in use adds nothing to Q
    other = torch.where(used == 1, bins, torch.zeros_like(bins))
    with torch.no_grad():
        same = critic.predict(obs, other, masses)
        torch.testing.assert_close(critic.predict(obs, bins, masses), same)


def test_conditions_on_a_cut_up_range_hold_for_the_bins_whose_centre_meets_them():
    # three alternatives driven by a number; five bins have centres -.8, -.4, 0, .4, .8
    critic = make("vdn", "critic", View(PARAMETERS, "continuous").spec)
    bins = torch.tensor([[b, 0, 0, 0] for b in range(5)], dtype=torch.float32)
    assert critic.layout.active(bins)[:, 1:].tolist() == [
        [1, 0, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1], [0, 0, 1],
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["paper", "qplex"])
def test_a_mixer_does_not_see_heads_that_are_not_in_use(kind):
    """The same action, whatever is said for heads that it does not use, has one value."""
    value = QPLEX(mixer=kind, mixer_width=16).value(blueprint(ONE_OF))
    obs, known = observations(), {}
    with torch.no_grad():
        for action in all_actions(ONE_OF):
            rested = tuple(ONE_OF.canonical(action.numpy()).tolist())
            found = value.predict(obs, action.expand(3, 5, 4))
            assert torch.equal(known.setdefault(rested, found), found)
    assert len(known) == 8


@pytest.mark.parametrize("name", ["ar", "shared", "independent"])
def test_the_divergence_of_two_policies_is_the_mean_of_what_is_said_along_actions(name):
    one, other = (
        make(name, "policy", ONE_OF, seeds, policy_gain=3.0) for seeds in ((0, 1, 2), (5, 6, 7))
    )
    obs, exact, found = observations(), torch.zeros(3, 5), torch.zeros(3, 5)
    with torch.no_grad():
        for action in for_all_rows(all_actions(ONE_OF)):
            if (ONE_OF.canonical(action.numpy()) != action.numpy()).any():
                continue
            ours, theirs = one.judge(obs, action), other.judge(obs, action)
            log_prob = ours.log_prob.sum(-1)
            exact += log_prob.exp() * (log_prob - theirs.log_prob.sum(-1))
            by_head = ours.heads.kl(theirs.heads, ours.given)
            found += log_prob.exp() * by_head.sum(-1)
    torch.testing.assert_close(found, exact)


# --- SAC ------------------------------------------------------------------------------------------


def sees_heads_in_use_only(name, spec):
    """Of those with one value for all heads, only `shared` can tell: with the others numbers are
    chosen before options, and every critic sees them."""
    alone = make(name, "soft", SPECS[spec], state_std=True).num_columns > 1
    return alone or not SPECS[spec].num_ranges or name == "shared"


@pytest.mark.parametrize(
    ("name", "spec"),
    [p for p in offers("soft", ("one_of", "parameters")) if sees_heads_in_use_only(*p)],
)
def test_sac_values_see_heads_in_use_only(name, spec):
    soft = make(name, "soft", SPECS[spec], state_std=True)
    critic, obs = soft.make_critic(), observations(rows=200)
    alpha = torch.full((3, SPECS[spec].num_heads), 0.3)
    uniform = Keys((0, 1, 2)).uniform(Stream.ACT, 0, (200, soft.num_uniforms))
    with torch.no_grad():
        action = soft.sample(critic, obs, uniform, alpha, None)
        used = in_use(SPECS[spec], action)
        rested = torch.where(used, action, 0.0)  # option 0, and the middle of a range
        ours, same = (soft.predict(critic, obs, a) for a in (action, rested))
        if soft.num_columns > 1:
            both = used.unsqueeze(1).expand_as(ours)
            ours, same = ours[both], same[both]
        torch.testing.assert_close(ours, same, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "spec"), [p for p in offers("soft", ("one_of", "parameters")) if p[0] != "joint"]
)
def test_sac_entropy_of_a_head_that_is_never_in_use_is_zero(name, spec):
    """With the first alternative made certain, the parameters of the others drop out."""
    soft = make(name, "soft", SPECS[spec], state_std=True)
    critic, obs = soft.make_critic(), observations(rows=50)
    heads = SPECS[spec].num_heads
    alpha = torch.full((3, heads), 0.3)
    legal = torch.ones(3, 50, SPECS[spec].num_choices, max(SPECS[spec].cardinalities), dtype=bool)
    legal[..., 0, 1:] = False  # the alternative is the first Choice
    noise = Keys((0, 1, 2)).uniform(Stream.ACTOR, 0, (50, soft.num_noise))
    loss = soft.actor_loss(critic, obs, noise, alpha, torch.tensor(1.0), legal)
    assert (loss.entropy[..., 2:] == 0).all()
    assert (loss.entropy[..., 1] != 0).all()
    torch.testing.assert_close(loss.in_use, torch.tensor([1.0, 1.0, 0.0, 0.0]).expand(3, 50, 4))


@pytest.mark.parametrize("name", ["independent", "shared", "ar"])
def test_sac_over_numbers_alone_knows_how_often_a_head_is_in_use(name):
    """The alternative is a number here, of which each third stands for one."""
    spec = View(PARAMETERS, "continuous").spec
    soft = make(name, "soft", spec, state_std=True)
    critic, obs = soft.make_critic(), observations(rows=1).expand(3, 4000, -1)
    alpha = torch.full((3, 4), 0.3)
    noise = Keys((0, 1, 2)).uniform(Stream.ACTOR, 0, (4000, soft.num_noise))
    with torch.no_grad():
        loss = soft.actor_loss(critic, obs, noise, alpha, torch.tensor(1.0), None)
        used = in_use(spec, soft.sample(critic, obs, noise, alpha, None)).float()
    assert loss.in_use.shape == loss.entropy.shape == (3, 4000, 4)
    torch.testing.assert_close(loss.in_use.mean(-2), used.mean(-2), atol=0.03, rtol=0.0)
    # With the first alternative made certain, the parameters of the others drop out.
    with torch.no_grad():
        biases = {
            "independent": lambda actor: actor.output.bias[:, 0],
            "shared": lambda actor: actor.output.bias,
            "ar": lambda actor: actor.stack.output.bias[:, 0],
        }
        biases[name](soft.actor)[..., 0].fill_(-100.0)  # of the mean of `kind`
        loss = soft.actor_loss(critic, obs, noise, alpha, torch.tensor(1.0), None)
    torch.testing.assert_close(loss.in_use, torch.tensor([1.0, 1, 0, 0]).expand(3, 4000, 4))
    assert (loss.entropy[..., 2:] == 0).all()
    assert (loss.entropy[..., 1] != 0).all()
    if name == "independent":
        assert (loss.gain[..., 2:] == 0).all()
        assert (loss.gain[..., :2] != 0).all()


def test_the_target_entropy_of_a_head_is_weighted_with_its_use():
    keys, layout = Keys((0,)), Layout(ONE_OF)
    lr = torch.tensor([0.1])
    temperatures = Temperatures(layout, keys, 0.2, per_head=True, lr=lr)
    used = torch.tensor([1.0, 0.5, 0.25, 0.0]).expand(1, 6, 4)
    logs = torch.tensor([math.log(n) for n in (3, 4, 2, 2)])
    reached = 0.5 * logs * used  # each head has exactly half of the entropy it could have
    metrics = temperatures.update(reached, torch.tensor([0.5]), used)()
    torch.testing.assert_close(metrics["heads/target_entropy"], 0.5 * logs * used[:, 0])
    torch.testing.assert_close(temperatures(), torch.full((1, 4), 0.2))  # nothing to change


def test_the_largest_entropy_of_a_joint_action_counts_what_does_the_same_once():
    """At a high temperature all eight actions are as likely; 48 are what options could say."""
    soft = make("joint", "soft", ONE_OF)
    critic, obs, alpha = soft.make_critic(), observations(), torch.full((3, 4), 1e6)
    noise = torch.zeros(*obs.shape[:-1], soft.num_noise)
    loss = soft.actor_loss(critic, obs, noise, alpha, torch.tensor(1.0), None)
    most = soft.largest_entropy(None)
    assert most.shape == (4,)
    assert most.sum().item() == pytest.approx(math.log(8))
    assert loss.in_use is None
    torch.testing.assert_close(loss.entropy, most.expand_as(loss.entropy))


def test_the_largest_entropy_of_a_joint_action_counts_what_is_legal():
    """Without the third kind and two of the four that go with the first, 8 - 1 - 2 are left."""
    legal = torch.ones(1, 1, 4, 4, dtype=torch.bool)
    legal[..., 0, 2] = legal[..., 1, 2:] = False
    most = make("joint", "soft", ONE_OF).largest_entropy(legal)
    assert most.shape == (1, 1, 4)
    assert most.sum().item() == pytest.approx(math.log(5))


def test_later_heads_do_not_see_what_is_not_in_use():
    prefix = Prefix(Layout(ONE_OF))
    action = torch.tensor([1.0, 3.0, 1.0, 0.0])  # `run` is not in use with alternative 1
    # kind one-hot of 3, run of 4, jump of 2, spin of 2
    assert prefix.embed(action).tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0]
    assert np.isclose(float(prefix.embed(torch.tensor([0.0, 3.0, 1.0, 1.0])).sum()), 2.0)
