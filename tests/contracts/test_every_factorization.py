"""What every factorization promises. A new file in `factorizations/` is tested by existing."""

from __future__ import annotations

import pytest
import torch
from cases import (
    DISCRETE,
    MODELS,
    SPECS,
    CriticModel,
    PlainModel,
    PolicyModel,
    ValueModel,
    all_actions,
    assert_in_form,
    assert_legal,
    is_canonical,
    observations,
    offers,
    some_masks,
    uniforms,
)

from headwise.factorizations import factorizations
from headwise.factorizations.base import offers as defines
from headwise.ops import mix, weigh

CHOICES = ("discrete", "one_of")
POLICIES = offers("policy")
OVER_OPTIONS = [pair for pair in POLICIES if pair[1] in CHOICES]
VALUES = [(what, *cell) for what in ("value", "plain_value") for cell in offers(what)]
SCALES = (1.0, 1e12, 1e20)
"""Of observations; logits grow with them."""


def value_model(what, name, spec, rows=5) -> ValueModel:
    return MODELS[what](name, spec, rows=rows)


def test_all_six_are_there():
    assert set(factorizations.names()) >= {"independent", "shared", "vdn", "qplex", "joint", "ar"}


@pytest.mark.parametrize("name", factorizations.names())
def test_whatever_is_offered_is_in_a_case(name):
    kind = factorizations.get(name)
    offered = {what for what in MODELS if defines(kind, what)}
    assert offered == {what for what in MODELS if name in dict(offers(what))}
    assert offered
    assert isinstance(kind.small(), kind)


# --- values ---------------------------------------------------------------------------------------


def check_greedy(model: ValueModel) -> None:
    """The greedy action is the best of all joint actions, and its value is what is said of it."""
    obs = observations()
    model.trained_a_little(obs)
    best, said = model.best(obs), model.best_value(obs)
    actions = all_actions(model.spec)
    table = torch.stack([model.predict(obs, a.expand(3, 5, -1)).sum(-1) for a in actions])
    chosen = model.predict(obs, best)
    torch.testing.assert_close(chosen.sum(-1), table.amax(0))
    assert table.amax(0).sub(table.amin(0)).min() > 1e-3  # there was something to choose
    torch.testing.assert_close(said, chosen)


@pytest.mark.parametrize(("what", "name", "spec"), VALUES)
def test_greedy_is_the_best_of_all_joint_actions(what, name, spec):
    check_greedy(value_model(what, name, spec))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("what", "name", "spec"), VALUES)
def test_greedy_never_leaves_legal_options(what, name, spec, scale):
    model, legal = value_model(what, name, spec, 400), some_masks(SPECS[spec], 3, 400)
    best = model.best(scale * observations(rows=400), legal)
    assert_legal(SPECS[spec], best, legal)


@pytest.mark.parametrize(("what", "name", "spec"), VALUES)
def test_greedy_is_the_best_of_legal_joint_actions(what, name, spec):
    obs, legal = observations(), some_masks(SPECS[spec], 3, 5)
    model = value_model(what, name, spec).trained_a_little(obs)
    best, said, table = model.best(obs, legal), model.best_value(obs, legal), []
    for action in all_actions(SPECS[spec]):
        if not is_canonical(SPECS[spec], action):
            continue
        many = action.expand(3, 5, -1)
        in_use = torch.as_tensor(SPECS[spec].active(action.numpy()))
        allowed = legal.gather(-1, many.long().unsqueeze(-1)).squeeze(-1) | ~in_use
        predicted = model.predict(obs, many, legal).sum(-1)
        table.append(predicted.masked_fill(~allowed.all(-1), -torch.inf))
    chosen = model.predict(obs, best, legal)
    torch.testing.assert_close(chosen, said)
    assert (chosen.sum(-1) >= torch.stack(table).amax(0) - 1e-5).all()


SOFT = [cell for cell in VALUES if factorizations.get(cell[1]).soft_targets]


def soft_heads(model: ValueModel, obs, temperature):
    """Soft values (P, B, G) at one temperature for all heads."""
    alpha = model.room(model.layout.num_heads).rows(0, 1)
    alpha.tensor.fill_(temperature)
    room = model.room(model.layout.num_heads)
    soft = model.made.soft(model.see(obs), room, alpha, None, model.mask(None))
    return soft.value.tensor[:, 0].clone(), alpha


@pytest.mark.parametrize(("what", "name", "spec"), SOFT)
def test_soft_values_are_at_least_those_of_the_best_action(what, name, spec):
    obs, model = observations(), value_model(what, name, spec)
    soft, _ = soft_heads(model, obs, 0.4)
    assert (soft >= model.best_value(obs) - 1e-6).all()


@pytest.mark.parametrize(
    ("what", "name"), [("value", "vdn"), ("plain_value", "vdn"), ("plain_value", "joint")]
)
def test_soft_values_sum_over_all_joint_actions(what, name):
    obs, temperature = observations(), 0.4
    model = value_model(what, name, "discrete").trained_a_little(obs)
    soft, alpha = soft_heads(model, obs, temperature)
    actions = [a.expand(3, 5, -1) for a in all_actions(DISCRETE)]
    scaled = torch.stack([model.predict(obs, a).sum(-1) for a in actions]) / temperature
    torch.testing.assert_close(soft.squeeze(-1), temperature * scaled.logsumexp(0))
    for action, expected in zip(actions, scaled.log_softmax(0), strict=True):
        given = model.see(obs), model.action(action), alpha, model.mask(None)
        found = model.made.log_policy(*given).tensor[:, 0].sum(-1) / temperature
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


# --- policies -------------------------------------------------------------------------------------


def check_probabilities(model: PolicyModel) -> None:
    """Those of all actions sum to one."""
    obs = observations()
    actions = [a for a in all_actions(model.spec) if is_canonical(model.spec, a)]
    raws = [model.layout.to_learner(a.expand(3, 5, -1)) for a in actions]
    found = torch.stack([model.judge(obs, raw)[0].sum(-1) for raw in raws])
    torch.testing.assert_close(found.exp().sum(0), torch.ones(3, 5))


@pytest.mark.parametrize(("name", "spec"), OVER_OPTIONS)
def test_probabilities_of_all_actions_sum_to_one(name, spec):
    check_probabilities(PolicyModel(name, spec))


@pytest.mark.parametrize(("name", "spec"), OVER_OPTIONS)
def test_sampling_frequencies_match_the_probabilities(name, spec):
    draws = 20_000
    model = PolicyModel(name, spec, rows=draws)
    obs = observations(rows=1).expand(3, draws, -1)
    action, raw, log_prob = model.draw(obs, uniforms(model))
    again, _ = model.judge(obs, raw)
    torch.testing.assert_close(log_prob, again)
    drawn = torch.as_tensor(SPECS[spec].canonical(action.numpy())).float()
    for action in all_actions(SPECS[spec]):
        if not is_canonical(SPECS[spec], action):
            continue
        frequency = (drawn == action).all(-1).float().mean(-1)
        many = model.layout.to_learner(action.expand(3, draws, -1))
        expected = model.judge(obs, many)[0].sum(-1).exp()[:, 0]
        error = (frequency - expected).abs()
        assert (error < 4.5 * (expected / draws).sqrt() + 1e-4).all(), action


@pytest.mark.parametrize(("name", "spec"), OVER_OPTIONS)
def test_entropy_is_the_mean_of_minus_log_prob(name, spec):
    draws = 20_000
    model = PolicyModel(name, spec, rows=draws)
    obs = observations(rows=1).expand(3, draws, -1)
    _, raw, log_prob = model.draw(obs, uniforms(model, 1))
    _, entropy = model.judge(obs, raw)
    estimate = -log_prob.sum(-1).mean(-1)
    torch.testing.assert_close(entropy.sum(-1).mean(-1), estimate, atol=0.03, rtol=0.0)


@pytest.mark.parametrize(("name", "spec"), POLICIES)
def test_actions_are_in_the_learners_form(name, spec):
    model, obs = PolicyModel(name, spec, rows=200), observations(rows=200)
    for action in (model.draw(obs, uniforms(model, 2))[0], model.mode(obs)):
        assert_in_form(SPECS[spec], action)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("name", "spec"), [p for p in POLICIES if p[1] != "continuous"])
def test_masks_are_kept_in_sampling_mode_and_log_probs(name, spec, scale):
    model, legal = PolicyModel(name, spec, rows=400), some_masks(SPECS[spec], 3, 400)
    obs = scale * observations(rows=400)
    action, raw, _ = model.draw(obs, uniforms(model, 3), legal)
    for found in (action, model.mode(obs, legal)):
        assert_legal(SPECS[spec], found, legal)
    unit = model.layout.to_learner(action)
    assert (model.judge(obs, raw, legal, unit)[0] > -30.0).all()


# --- gradients and members ------------------------------------------------------------------------

EVERYTHING = [(what, *cell) for what in MODELS for cell in offers(what)]


def check_gradients(model) -> None:
    """They reach every part, and no other member."""
    model.loss_backward(observations(rows=60), [1])
    assert (model.gradient[[0, 2]] == 0.0).all()
    at = 0
    for part in model.store.parts:
        own = model.store.parameters.gradient[1, 0, 0, at : at + part.size]
        at += part.size
        if not hasattr(part, "weights"):
            assert (own[: part.width] != 0.0).all()
            continue
        # Some numbers never get one: options that only pad a head, inputs that a head may not see,
        # a unit that is off in every row. But each copy of each layer gets many.
        for weight, bias in part.weights(own):
            for x in (weight[0], bias[0]):
                assert (x != 0.0).flatten(1).float().mean(-1).min() > 0.1


@pytest.mark.parametrize(("what", "name", "spec"), EVERYTHING)
def test_gradients_reach_every_parameter_and_no_other_member(what, name, spec):
    settings = {"state_std": True} if what == "policy" else {}
    check_gradients(MODELS[what](name, spec, rows=60, **settings))


def check_members(make) -> None:
    """A member alone computes, forward and back, what it computes in any population."""
    obs, seen = observations(members=4), {}
    for seeds in ((0, 1, 2, 3), (2, 0, 3, 1), *((seed,) for seed in range(4))):
        model = make(seeds)
        loss = model.loss_backward(obs[list(seeds)], range(len(seeds)))
        rows = torch.cat([loss, model.gradient], dim=-1)
        for seed, row in zip(seeds, rows, strict=True):
            assert torch.equal(seen.setdefault(seed, row), row), f"seed {seed} of {seeds}"
    assert not torch.equal(seen[0], seen[1])


@pytest.mark.parametrize(("what", "name", "spec"), EVERYTHING)
def test_a_member_alone_equals_itself_in_any_population(what, name, spec):
    check_members(lambda seeds: MODELS[what](name, spec, seeds))


# --- critics and mixtures -------------------------------------------------------------------------

CRITICS = offers("critic")
BRANCHING = [cell for cell in CRITICS if hasattr(CriticModel(*cell).made, "table")]


def test_two_critics_branch():
    assert {name for name, _ in BRANCHING} == {"vdn", "qplex"}
    assert {what for what, *_ in VALUES} == {"value", PlainModel.needs}


@pytest.mark.parametrize(("name", "spec"), BRANCHING)
def test_policy_centered_advantages_have_mean_zero(name, spec):
    model, obs = CriticModel(name, spec), observations()
    taken, table = model.taken(), model.made.table
    model.made.predict(model.see(obs), taken)
    _, y = model.made.net.rows(model.rows)
    for head, size in enumerate(table.sizes):
        first = sum(table.sizes[:head])
        mean = torch.zeros(3, 5)
        for option in range(size):
            taken.option.tensor[..., head] = option
            chosen = model.made.chosen(y, taken).tensor[:, 0, :, head]
            mean += taken.probs.tensor[:, 0, :, first + option] * chosen
        torch.testing.assert_close(mean, torch.zeros_like(mean), atol=1e-6, rtol=0)
        assert chosen.abs().max() > 1e-4


@pytest.mark.parametrize(
    ("operation", "bends"),
    [(weigh, {}), *((mix, {"relu": r, "soft": s}) for r in (False, True) for s in (False, True))],
)
def test_a_mixture_is_monotonic_and_zero_at_zero(operation, bends):
    generator = torch.Generator().manual_seed(0)
    advantage = 3.0 * torch.randn(3, 1, 5, 3, generator=generator)
    width = 4 * 16 if operation is mix else 3
    weights = torch.randn(3, 1, 5, width, generator=generator)
    value = torch.zeros(3, 1, 5, 1)
    advantage.requires_grad_()
    mixed = operation.definition(value, advantage, weights, **bends)
    (slope,) = torch.autograd.grad(mixed.sum(), advantage)
    assert (slope >= 0).all()
    assert (slope > 0).any()
    zero = operation.definition(value, torch.zeros_like(advantage), weights, **bends)
    torch.testing.assert_close(zero, torch.zeros_like(zero))
