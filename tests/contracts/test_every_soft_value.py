"""What every factorization promises to SAC: policies, soft values and gradients."""

from __future__ import annotations

import itertools

import pytest
import torch
from cases import (
    SPECS,
    SoftModel,
    all_actions,
    assert_in_form,
    assert_legal,
    is_canonical,
    observations,
    offers,
    some_masks,
    uniforms,
)

from headwise import ActionSpec, Choice, Range
from headwise.algorithms.sac.actor import Pathwise
from headwise.factorizations import factorizations

SOFT = offers("twins")
OVER_OPTIONS = [pair for pair in SOFT if not SPECS[pair[1]].num_ranges]
ONE_VALUE = [p for p in OVER_OPTIONS if SoftModel(*p).made.num_values == 1]
BY_CRITICS = [p for p in OVER_OPTIONS if factorizations.get(p[0]).chooses == "discrete"]
MASKED = [p for p in SOFT if SPECS[p[1]].num_choices]


@pytest.mark.parametrize(("name", "spec"), SOFT)
def test_shapes(name, spec):
    model, obs, heads = SoftModel(name, spec), observations(), SPECS[spec].num_heads
    action = model.draw(obs, uniforms(model)).clone()
    assert action.shape == model.mode(obs).shape == (3, 5, heads)
    for found in (action, model.mode(obs)):
        assert_in_form(SPECS[spec], found)
    assert model.predict(obs, action).shape == (3, 2, 5, model.made.num_values)
    assert model.soft_value(obs, uniforms(model)).shape == (3, 5, model.made.num_values)
    assert (model.drawn.actor is None) == (not SPECS[spec].num_ranges and name != "shared")


@pytest.mark.parametrize(("name", "spec"), ONE_VALUE)
def test_sampling_and_soft_value_match_brute_force(name, spec):
    """V = E[Q + alpha H], over all actions with the frequency at which they are drawn."""
    draws = 20_000
    model = SoftModel(name, spec, rows=draws).twins_made_equal()
    model.alpha.tensor.fill_(0.3)  # one temperature: then V is E[Q - 0.3 log pi]
    many = observations(rows=1).expand(3, draws, -1)
    drawn = model.draw(many, uniforms(model)).clone()
    value = model.soft_value(many, uniforms(model)).mean((-1, -2))
    drawn = torch.as_tensor(SPECS[spec].canonical(drawn.numpy())).float()
    expected, total = torch.zeros(3), torch.zeros(3)
    for action in all_actions(SPECS[spec]):
        if not is_canonical(SPECS[spec], action):
            continue
        share = (drawn == action).all(-1).float().mean(-1)
        q = model.predict(many, action.expand(3, draws, -1))[:, 0, 0, 0]
        expected += share * (q - 0.3 * share.clamp_min(1e-9).log())
        total += share
    torch.testing.assert_close(total, torch.ones(3))
    # A mixture is sampled, so V is an average as well; the rest is exact but for the shares.
    torch.testing.assert_close(value, expected, atol=0.02, rtol=0.02)


@pytest.mark.parametrize(("name", "spec"), BY_CRITICS)
def test_mode_is_the_action_of_largest_value(name, spec):
    model, obs = SoftModel(name, spec).twins_made_equal(), observations()
    best = model.predict(obs, model.mode(obs))[:, 0].sum(-1)
    table = [
        model.predict(obs, action.expand(3, 5, -1))[:, 0].sum(-1)
        for action in all_actions(SPECS[spec])
    ]
    torch.testing.assert_close(best, torch.stack(table).amax(0))


@pytest.mark.parametrize("scale", [1.0, 1e12, 1e20])
@pytest.mark.parametrize(("name", "spec"), MASKED)
def test_masks_are_kept(name, spec, scale):
    model, legal = SoftModel(name, spec, rows=300), some_masks(SPECS[spec], 3, 300)
    obs, uniform = scale * observations(rows=300), uniforms(model)
    assert_legal(SPECS[spec], model.draw(obs, uniform, legal), legal)
    assert_legal(SPECS[spec], model.mode(obs, legal), legal)
    value = model.soft_value(obs, uniform, legal)
    assert (value.abs() < 50 * scale).all()  # no masked option's logit leaks into a value


@pytest.mark.parametrize(("name", "spec"), MASKED)
def test_masks_are_kept_where_temperatures_are_close_to_zero(name, spec):
    model, legal = SoftModel(name, spec), some_masks(SPECS[spec], 3, 5)
    model.alpha.tensor.mul_(1e-12)
    value = model.soft_value(observations(), uniforms(model), legal)
    # A masked logit by such a temperature would be infinite.
    assert (value.abs() < 50).all()
    assert model.drawn.entropy.tensor.isfinite().all()


# --- actors ---------------------------------------------------------------------------------------

WITH_ACTOR = [pair for pair in SOFT if SoftModel(*pair).actor is not None]


def improved(model, obs):
    """The gradient (P, S) of an actor's parameters by the soft value, at some draw."""
    model.drawn.noise.tensor[:, 0] = uniforms(model)
    x = model.see(obs)
    Pathwise(model.made, model.drawn).gradient(x, x, None, model.alpha)
    return model.actor_store.parameters.gradient.flatten(1)


@pytest.mark.parametrize(("name", "spec"), WITH_ACTOR)
def test_gradients_reach_all_of_the_actor(name, spec):
    model = SoftModel(name, spec, rows=60)
    improved(model, observations(rows=60))
    for part in model.actor_store.parts:
        for weight, bias in part.weights(part.parameters.gradient):
            for x in (weight, bias):
                assert (x != 0.0).flatten(2).float().mean(-1).min() > 0.1


@pytest.mark.parametrize(("name", "spec"), WITH_ACTOR)
def test_a_member_alone_equals_itself_in_any_population(name, spec):
    obs, seen = observations(members=4, rows=60), {}
    for seeds in ((0, 1, 2, 3), (2, 0, 3), (1,)):
        model = SoftModel(name, spec, seeds, rows=60)
        for seed, row in zip(seeds, improved(model, obs[list(seeds)]), strict=True):
            assert torch.equal(seen.setdefault(seed, row), row), f"seed {seed} of {seeds}"
    assert not torch.equal(seen[0], seen[1])


def test_numbers_learn_by_the_slope_of_the_expected_value(monkeypatch):
    """Where values add up, V is the log-sum-exp over all joint actions; slopes by differences."""
    spec = ActionSpec.of(a=Choice(3), b=Choice(4), x=Range(-1, 1))
    monkeypatch.setitem(SPECS, "two and a number", spec)
    rows = 4000
    model = SoftModel("vdn", "two and a number", rows=rows).twins_made_equal()
    model.alpha.tensor.fill_(1.0)
    obs = observations(rows=1).expand(3, rows, -1)
    weights = model.actor_store.parts[-1].weights(model.actor_store.parameters.tensor)
    bias = weights[-1][1]
    ours = model.actor_store.parts[-1].weights(improved(model, obs))[-1][1].clone()

    def gain():
        model.drawn.sample(model.see(obs), None)
        number = model.layout.from_learner(model.drawn.action.tensor[:, 0])[..., 2:].clone()
        table = []
        for a, b in itertools.product(range(3), range(4)):
            options = torch.tensor([a, b]).expand(3, rows, 2)
            action = torch.cat([options, number], dim=-1)
            table.append(model.predict(obs, action)[:, 0, :, 0].double())
        entropy = model.drawn.entropy.tensor[:, 0, :, -1].double()
        return (torch.stack(table).logsumexp(0) + entropy).mean(-1)

    for column in range(bias.shape[-1]):
        ends = []
        for step in (1e-2, -1e-2):
            bias[..., column] += step
            ends.append(gain())
            bias[..., column] -= step
        slope = (ends[0] - ends[1]) / 2e-2
        found = -ours[:, 0, 0, column].double()
        torch.testing.assert_close(found, slope, atol=2e-3, rtol=2e-2)
        assert slope.abs().max() > 0.02
