"""SAC whose actor learns from the critics' value of every option of a head."""

import pytest
import torch
from cases import HYBRID, ONE_OF, SPECS, all_actions, blueprint, observations

from headwise import ActionSpec, Choice, Range
from headwise.algorithms import algorithms
from headwise.algorithms.sac import SAC
from headwise.envs.native.vec_env import NativeVecEnv
from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.shared import Shared
from headwise.factorizations.soft.counterfactual import Questions
from headwise.factorizations.soft.worth import lesser
from headwise.population import Keys, Stream
from headwise.spaces import Condition
from headwise.training.build import make_loop

MEMBERS = 3
BINNED = ActionSpec.of(aim=Choice(4, ordered=True), a=Choice(3), x=Range(-1, 1))
CASES = SPECS | {"binned": BINNED}
WITH_OPTIONS = [name for name, spec in CASES.items() if spec.num_choices]
DISCRETE = [name for name in WITH_OPTIONS if not CASES[name].num_ranges]


def built(spec, gradient="counterfactual"):
    """The learner's parts, with critics that are sure of themselves."""
    plan = blueprint(spec, state_std=True, log_std_bounds=(-5.0, 1.0), actor_gradient=gradient)
    soft = Shared().soft(plan)
    critic = soft.make_critic()
    with torch.no_grad():
        critic.output.weight *= 4.0
    critic.requires_grad_(False)
    return soft, critic, torch.linspace(0.2, 0.5, spec.num_heads).expand(MEMBERS, -1).clone()


def actor_loss(soft, critic, alpha, obs, legal=None):
    noise = Keys((0, 1, 2)).uniform(Stream.ACTOR, 0, (obs.shape[1], soft.num_noise))
    return soft.actor_loss(critic, obs, noise, alpha, torch.tensor(0.5), legal)


def gradient_of(loss, actor):
    """Of each member, a row of everything."""
    grads = torch.autograd.grad(loss.sum(), list(actor.parameters()))
    return torch.cat([grad.flatten(1) for grad in grads], dim=-1)


def some_legal(spec, rows):
    sizes = [n for n in spec.cardinalities if n]
    legal = torch.rand(MEMBERS, rows, len(sizes), max(sizes), generator=torch.manual_seed(3)) < 0.5
    legal[..., 0] = True
    return legal


def test_questions_by_hand():
    """Five states, two Choice heads: two states for each, and one that nobody asks."""
    asked = Questions(Layout(HYBRID), 5)  # a Range, one of three, a Range, one of two
    action = torch.tensor([0.5, 2.0, -0.5, 1.0]).expand(1, 5, 4)
    first = [[0.5, option, -0.5, 1.0] for option in (0.0, 1.0, 2.0)]
    second = [[0.5, 2.0, -0.5, option] for option in (0.0, 1.0)]
    assert asked.actions(action).tolist() == [[*first, *second, *first, *second]]
    obs = torch.arange(5.0).view(1, 5, 1)
    assert asked.states(obs).flatten().tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
    nothing = [0.0, 0.0, 0.0]
    assert asked.answers(torch.arange(1.0, 11.0).view(1, 10)).tolist() == [
        [
            [[2.5, 5.0, 7.5], nothing], [nothing, [10.0, 12.5, 0.0]],
            [[15.0, 17.5, 20.0], nothing], [nothing, [22.5, 25.0, 0.0]],
            [nothing, nothing],
        ]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "rows", "turns"),
    [((2, 2, 2), 12, 4), ((2,) * 5, 2, 1), ((3, 40), 256, 95), ((1000,), 256, 4), ((5000,), 8, 1)],
)
def test_every_head_is_asked_about_equally_often_at_a_bounded_cost(sizes, rows, turns):
    """Also where heads are more than states, and where options are very many."""
    layout = Layout(ActionSpec.of(**{f"h{i}": Choice(n) for i, n in enumerate(sizes)}))
    asked = Questions(layout, rows)
    actions = asked.actions(torch.full((1, rows, len(sizes)), -1.0))[0]
    for head, size in enumerate(sizes):
        seen = actions[actions[:, head] >= 0]
        assert sorted(seen[:, head].tolist()) == sorted([*range(size)] * turns)
        assert (seen.sum(-1) == seen[:, head] + 1 - len(sizes)).all()  # the others are as they were
    assert len(actions) <= max(16 * rows, sum(sizes))
    mean = asked.answers(torch.ones(1, len(actions))).mean(1)[0]
    torch.testing.assert_close(mean, layout.mask.float())


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_the_loss_is_that_of_a_loop_over_heads_and_options(name, masked):
    spec, rows = CASES[name], 12
    soft, critic, alpha = built(spec)
    obs = observations(rows=rows)
    legal = some_legal(spec, rows) if masked else None
    found = actor_loss(soft, critic, alpha, obs, legal)

    noise = Keys((0, 1, 2)).uniform(Stream.ACTOR, 0, (rows, soft.num_noise))
    raw, judged = soft.actor.sample(obs, noise, legal)
    unit = soft.actor.to_unit(raw)
    places = [h for h, n in enumerate(spec.cardinalities) if n]
    gain = lesser(soft.predict(critic, obs, unit)).squeeze(-1) if spec.num_ranges else 0.0
    for place, head in enumerate(places):
        mine = torch.arange(rows) % len(places) == place  # the states that are asked about it
        mine &= torch.arange(rows) < rows // len(places) * len(places)
        for option in range(spec.cardinalities[head]):
            action = unit.detach().clone()
            action[..., head] = option
            value = lesser(soft.predict(critic, obs, action)).squeeze(-1)
            if spec.is_conditional:  # an option may put numbers in use, which are random
                value = value + paid_for_numbers(soft, judged.heads, raw, alpha, action).detach()
            value = value * mine * (rows / mine.sum())
            gain = gain + judged.heads.log_probs[..., place, option].exp() * value
    entropy = torch.where(soft.layout.is_choice, judged.heads.entropy(), -judged.log_prob)
    expected = -(gain + (alpha.unsqueeze(1) * entropy).sum(-1)).mean(-1)
    torch.testing.assert_close(found.loss, expected)
    torch.testing.assert_close(found.entropy, entropy)
    ours, theirs = (gradient_of(loss, soft.actor) for loss in (found.loss, expected))
    assert torch.isfinite(ours).all()
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def paid_for_numbers(soft, heads, raw, alpha, action):
    """Temperatures times minus the log-densities of those numbers that an action uses, (P, B)."""
    if heads.ranges is None:
        return torch.zeros(raw.shape[:-1])
    ranges = soft.layout.ranges
    surprise = -heads.ranges.log_prob(raw[..., ranges])
    return (alpha[:, None, ranges] * surprise * soft.layout.active(action)[..., ranges]).sum(-1)


def test_an_option_is_worth_the_randomness_of_the_numbers_it_puts_in_use():
    """The logits' gradient against that of the expected value, options weighted one by one."""
    conditions = (None, Condition(0, 0, 1), Condition(0, 1, 3))
    spec = ActionSpec(
        ("kind", "power", "angle"), (Choice(3), Range(-1, 1), Range(0, 5)), conditions
    )
    soft, critic, alpha = built(spec)
    obs = observations(rows=50)
    (ours,) = torch.autograd.grad(
        actor_loss(soft, critic, alpha, obs).loss.sum(), [soft.actor.output.bias]
    )
    noise = Keys((0, 1, 2)).uniform(Stream.ACTOR, 0, (50, soft.num_noise))
    raw, judged = soft.actor.sample(obs, noise, None)
    unit, heads = soft.actor.to_unit(raw).detach(), judged.heads
    gain = alpha[:, :1] * heads.option_entropy()[..., 0]
    for option in range(3):
        action = unit.clone()
        action[..., 0] = option
        value = lesser(soft.predict(critic, obs, action)).squeeze(-1)
        value = value + paid_for_numbers(soft, heads, raw, alpha, action)
        gain = gain + heads.log_probs[..., 0, option].exp() * value.detach()
    (exact,) = torch.autograd.grad(-gain.mean(-1).sum(), [soft.actor.output.bias])
    of_options = slice(-3, None)  # the numbers' outputs come first
    torch.testing.assert_close(ours[..., of_options], exact[..., of_options])


def exact_gradient(soft, critic, alpha, obs, spec):
    """Of minus the value expected and the entropy, by brute force over all joint actions."""
    heads = soft.actor.heads(obs)
    value = torch.zeros(MEMBERS, 1)
    for action in all_actions(spec):
        options = action.long().expand(MEMBERS, 1, -1)
        log_prob = heads.log_probs.gather(-1, options.unsqueeze(-1)).squeeze(-1).sum(-1)
        value = value + log_prob.exp() * lesser(
            soft.predict(critic, obs, action.expand(MEMBERS, 1, -1))
        ).squeeze(-1)
    gain = value + (alpha.unsqueeze(1) * heads.entropy()).sum(-1)
    return gradient_of(-gain.mean(-1), soft.actor)


def distance(gradient, spec):
    """How far the gradient of the expectation is missed on average over draws, as a share."""
    soft, critic, alpha = built(spec, gradient)
    obs, draws = observations(rows=1), 20_000
    exact = exact_gradient(soft, critic, alpha, obs, spec)
    many = obs.expand(MEMBERS, draws, -1).contiguous()
    mean = gradient_of(actor_loss(soft, critic, alpha, many).loss, soft.actor)
    return (mean - exact).norm(dim=-1) / exact.norm(dim=-1)


@pytest.mark.parametrize("name", DISCRETE)
def test_the_gradient_is_that_of_the_expected_value(name):
    """Also with alternatives: an option is judged with the parameters that it puts in use."""
    assert (distance("counterfactual", CASES[name]) < 0.02).all()
    # The other one is off by a fifth and more, however many draws there are.
    assert (distance("straight_through", CASES[name]) > 0.1).all()


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_options_that_may_not_be_chosen_learn_nothing(name):
    spec, rows = CASES[name], 40
    soft, critic, alpha = built(spec)
    legal = some_legal(spec, 1).expand(-1, rows, -1, -1)  # the same in every row
    loss = actor_loss(soft, critic, alpha, observations(rows=rows), legal).loss
    (grad,) = torch.autograd.grad(loss.sum(), [soft.actor.output.bias])
    sizes = [n for n in spec.cardinalities if n]
    may = torch.cat([legal[:, 0, d, :n] for d, n in enumerate(sizes)], dim=-1)
    of_options = grad.reshape(MEMBERS, -1)[:, -sum(sizes) :]
    assert torch.isfinite(of_options).all()
    assert (of_options[~may] == 0).all()
    alone = torch.cat(
        [(may_head.sum(-1, keepdim=True) == 1).expand_as(may_head)
         for may_head in may.split(sizes, dim=-1)], dim=-1,
    )  # fmt: skip
    assert (of_options[may & ~alone] != 0).any()


def test_parameters_of_an_alternative_that_is_never_taken_learn_nothing():
    soft, critic, alpha = built(ONE_OF)  # 3 kinds; `run` of 4 with the first, `jump` with the next
    legal = torch.ones(MEMBERS, 40, 4, 4, dtype=torch.bool)
    legal[..., 0, 1:] = False
    loss = actor_loss(soft, critic, alpha, observations(rows=40), legal).loss
    (grad,) = torch.autograd.grad(loss.sum(), [soft.actor.output.bias])
    run, rest = grad.reshape(MEMBERS, -1)[:, 3:7], grad.reshape(MEMBERS, -1)[:, 7:]
    assert (run != 0).all()
    assert (rest.abs() < 1e-7).all()  # the same value for every option, so no slope but rounding


def test_the_cost_is_that_of_one_head_and_no_gumbel_noise_is_drawn():
    soft, critic, alpha = built(HYBRID)  # 3 and 2 options
    rows = []
    predict = soft.predict
    soft.predict = lambda c, obs, a, *rest: rows.append(obs.shape[1]) or predict(c, obs, a, *rest)
    actor_loss(soft, critic, alpha, observations(rows=10))
    assert sorted(rows) == [10, 5 * 3 + 5 * 2]
    assert soft.num_noise == soft.num_uniforms
    assert built(HYBRID, "straight_through")[0].num_noise == soft.num_uniforms + 2 * 3


# --- the setting of SAC -------------------------------------------------------------------------


def loop_for(view, seeds, **settings):
    env = NativeVecEnv("HybridShoot", seeds, 4, view=view)
    small = {"hidden": (16, 16), "replay": 200, "batch_size": 16, "warmup": 16}
    config = algorithms.get("sac")(**small, **settings)
    return make_loop(env, config, Shared(), seeds, 160)


def parameters(loop):
    state = loop.algorithm.state_dict()
    return torch.cat([x.reshape(x.shape[0], -1).double() for x in state.values()], dim=1)


@pytest.mark.parametrize("view", ["discrete", "hybrid"])
def test_a_member_alone_equals_itself_in_any_population(view):
    learned = {}
    for seeds in ((0, 1, 2, 3), (2, 0, 3), (1,)):
        loop = loop_for(view, seeds)
        loop.run(160)
        assert loop.updates >= 5
        assert loop.algorithm.alive.all()
        for seed, row in zip(seeds, parameters(loop), strict=True):
            assert torch.equal(learned.setdefault(seed, row), row), f"seed {seed} of {seeds}"
    other = loop_for(view, (1,), actor_gradient="straight_through")
    other.run(160)
    assert not torch.equal(parameters(other)[0], learned[1])


def test_it_is_what_sac_does_unless_told_otherwise_and_no_matter_where_no_actor_draws_options():
    assert SAC().actor_gradient == "counterfactual"
    learned = []
    for gradient in ("counterfactual", "straight_through"):
        loop = loop_for("continuous", (1,), actor_gradient=gradient)
        loop.run(160)
        learned.append(parameters(loop)[0])
    assert torch.equal(*learned)
