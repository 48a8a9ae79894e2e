"""What every factorization promises to SAC: policies, soft values and gradients."""

import itertools

import pytest
import torch
from cases import (
    OBS,
    SPECS,
    all_actions,
    blueprint,
    for_all_rows,
    make,
    observations,
    offers,
)

from headwise import ActionSpec, Choice, Range
from headwise.factorizations import factorizations
from headwise.population import Keys, Stream

SOFT = offers("soft", tuple(SPECS))
OVER_OPTIONS = [pair for pair in SOFT if not SPECS[pair[1]].num_ranges]
ROWS = 5


def built(name, spec, seeds=(0, 1, 2)):
    soft = make(name, "soft", SPECS[spec], seeds, state_std=True, log_std_bounds=(-5.0, 1.0))
    return soft, soft.make_critic(), temperatures(spec, len(seeds))


def temperatures(spec, members=3):
    return torch.linspace(0.2, 0.5, SPECS[spec].num_heads).expand(members, -1).clone()


def uniforms(stream, rows, columns, seeds=(0, 1, 2)):
    return Keys(seeds).uniform(stream, 0, (rows, columns))


def some_actions(spec, rows, members=3):
    generator = torch.Generator().manual_seed(2)
    columns = [
        torch.randint(n, (rows,), generator=generator).float() if n else torch.full((rows,), 0.3)
        for n in SPECS[spec].cardinalities
    ]
    return torch.stack(columns, -1).expand(members, rows, -1)


def losses(name, spec, seeds=(0, 1, 2), obs=None):
    soft, critic, alpha = built(name, spec, seeds)
    obs = observations(members=len(seeds), rows=60) if obs is None else obs
    noise = uniforms(Stream.ACTOR, 60, soft.num_noise, seeds)
    predicted = soft.predict(critic, obs, some_actions(spec, 60, len(seeds)))
    actor = soft.actor_loss(critic, obs, noise, alpha, torch.tensor(1.0), None)
    return soft, critic, predicted.square().sum((-1, -2, -3)), actor


@pytest.mark.parametrize(("name", "spec"), SOFT)
def test_shapes(name, spec):
    soft, critic, alpha = built(name, spec)
    obs, heads = observations(), SPECS[spec].num_heads
    uniform = uniforms(Stream.ACT, ROWS, soft.num_uniforms)
    action = soft.sample(critic, obs, uniform, alpha, None)
    assert action.shape == soft.mode(critic, obs, None).shape == (3, ROWS, heads)
    for drawn in (action, soft.mode(critic, obs, None)):
        for h, size in enumerate(SPECS[spec].cardinalities):
            column = drawn[..., h]
            good = column.abs() <= 1
            if size:
                good = (column >= 0) & (column < size) & (column == column.floor())
            assert good.all()
    assert soft.predict(critic, obs, action).shape == (3, 2, ROWS, soft.num_columns)
    value = soft.soft_value(critic, obs, uniform, alpha, None)
    assert value.shape == (3, ROWS, soft.num_columns)


@pytest.mark.parametrize(("name", "spec"), SOFT)
def test_gradients_reach_every_parameter_and_no_other_member(name, spec):
    soft, critic, critic_loss, actor = losses(name, spec)
    assert critic_loss.shape == (3,)
    if soft.actor is None:
        assert actor.loss is None
    else:
        assert actor.loss.shape == (3,)
        actor.loss[1].backward(retain_graph=True)
        check_gradients(soft.actor)
    critic.zero_grad()
    critic_loss[1].backward()
    check_gradients(critic)


def check_gradients(module):
    for label, parameter in module.named_parameters():
        grad = parameter.grad
        assert grad is not None, label
        assert (grad[0] == 0).all(), label
        assert (grad[2] == 0).all(), label
        copies = grad[1].flatten(0, -3) if grad.dim() > 3 else grad[1].unsqueeze(0)
        assert (copies != 0).flatten(1).float().mean(-1).min() > 0.1, label


@pytest.mark.parametrize(("name", "spec"), SOFT)
def test_a_member_alone_equals_itself_in_any_population(name, spec):
    obs = observations(members=4, rows=60)
    seen = {}
    for seeds in ((0, 1, 2, 3), (2, 0, 3), (1,)):
        _, _, critic_loss, actor = losses(name, spec, seeds, obs[list(seeds)])
        rows = [critic_loss.unsqueeze(-1), actor.entropy.flatten(1)]
        rows += [] if actor.loss is None else [actor.loss.unsqueeze(-1)]
        for seed, row in zip(seeds, torch.cat(rows, -1), strict=True):
            assert torch.equal(seen.setdefault(seed, row), row)


def twins_made_equal(critic):
    """So that the lesser of both critics is either, and an oracle needs to know one only."""
    with torch.no_grad():
        for parameter in critic.parameters():
            parameter[:, 1] = parameter[:, 0]


@pytest.mark.parametrize(("name", "spec"), [p for p in OVER_OPTIONS if p[0] != "independent"])
def test_sampling_and_soft_value_match_brute_force(name, spec):
    """V = E[Q + alpha H], over all actions with the frequency at which they are drawn."""
    soft, critic, alpha = built(name, spec)
    twins_made_equal(critic)
    alpha = torch.full_like(alpha, 0.3)  # one temperature: then V is E[Q - 0.3 log pi]
    draws = 20_000
    obs = observations(rows=1)
    many = obs.expand(3, draws, -1)
    uniform = uniforms(Stream.ACT, draws, soft.num_uniforms)
    with torch.no_grad():
        drawn = soft.sample(critic, many, uniform, alpha, None)
        value = soft.soft_value(critic, many, uniform, alpha, None).mean((-1, -2))
        drawn = torch.as_tensor(SPECS[spec].canonical(drawn.numpy())).float()
        expected, total = torch.zeros(3), torch.zeros(3)
        for action in all_actions(SPECS[spec]):
            if (torch.as_tensor(SPECS[spec].canonical(action.numpy())) != action).any():
                continue
            share = (drawn == action).all(-1).float().mean(-1)
            q = soft.predict(critic, obs, action.expand(3, 1, -1))[:, 0].flatten()
            expected += share * (q - 0.3 * share.clamp_min(1e-9).log())
            total += share
    torch.testing.assert_close(total, torch.ones(3))
    # A mixture is sampled, so V is an average as well; the rest is exact but for the shares.
    torch.testing.assert_close(value, expected, atol=0.02, rtol=0.02)


# Not `shared`: its policy is an actor, which has not learned yet.
@pytest.mark.parametrize(("name", "spec"), [p for p in OVER_OPTIONS if p[0] != "shared"])
def test_mode_is_the_action_of_largest_value(name, spec):
    soft, critic, _ = built(name, spec)
    twins_made_equal(critic)
    obs = observations()
    with torch.no_grad():
        best = soft.predict(critic, obs, soft.mode(critic, obs, None)).mean((-1, -3))
        table = [
            soft.predict(critic, obs, a).mean((-1, -3))
            for a in for_all_rows(all_actions(SPECS[spec]))
        ]
    torch.testing.assert_close(best, torch.stack(table).amax(0))


@pytest.mark.parametrize("scale", [1.0, 1e12, 1e20])
@pytest.mark.parametrize(("name", "spec"), [p for p in SOFT if SPECS[p[1]].num_choices])
def test_masks_are_kept(name, spec, scale):
    soft, critic, alpha = built(name, spec)
    sizes = [n for n in SPECS[spec].cardinalities if n]
    columns = [h for h, n in enumerate(SPECS[spec].cardinalities) if n]
    generator = torch.Generator().manual_seed(3)
    legal = torch.rand(3, 300, len(sizes), max(sizes), generator=generator) < 0.5
    legal[..., 0] = True
    obs = scale * observations(rows=300)
    uniform = uniforms(Stream.ACT, 300, soft.num_uniforms)
    with torch.no_grad():
        for action in (
            soft.sample(critic, obs, uniform, alpha, legal),
            soft.mode(critic, obs, legal),
        ):
            options = action[..., columns].long().unsqueeze(-1)
            in_use = torch.as_tensor(SPECS[spec].active(action.double().numpy()))[..., columns]
            assert (options.squeeze(-1) < torch.tensor(sizes)).all()
            assert (legal.gather(-1, options).squeeze(-1) | ~in_use).all()
        value = soft.soft_value(critic, obs, uniform, alpha, legal)
        assert (value.abs() < 50 * scale).all()  # no masked option's logit leaks into a value


@pytest.mark.parametrize(("name", "spec"), [p for p in SOFT if SPECS[p[1]].num_choices])
def test_masks_are_kept_where_temperatures_are_close_to_zero(name, spec):
    soft, critic, alpha = built(name, spec)
    sizes = [n for n in SPECS[spec].cardinalities if n]
    legal = torch.zeros(3, ROWS, len(sizes), max(sizes), dtype=torch.bool)
    legal[..., :2] = True
    obs, cold = observations(rows=ROWS), 1e-12 * alpha
    noise = uniforms(Stream.ACT, ROWS, soft.num_uniforms)
    with torch.no_grad():
        value = soft.soft_value(critic, obs, noise, cold, legal)
        noise = uniforms(Stream.ACT, ROWS, soft.num_noise)
        actor = soft.actor_loss(critic, obs, noise, cold, torch.tensor(1.0), legal)
    # A masked logit by such a temperature would be infinite.
    assert (value.abs() < 50).all()
    assert actor.entropy.isfinite().all()


def numbers_gradient(name, spec, temperature, expected):
    """The slope of the actor's gain by the actor's output, (P, N), with critics that are sure."""
    plan = blueprint(spec, state_std=True, log_std_bounds=(-5.0, 1.0))
    kind = factorizations.get(name)
    soft = (kind(mixer_width=16) if name == "qplex" else kind()).soft(plan)
    critic = soft.make_critic()
    twins_made_equal(critic)
    with torch.no_grad():
        critic.net.encoder.layers[0].weight[..., OBS:, :] *= 6.0  # numbers matter
        critic.net.advantage.weight *= 4.0
    critic.requires_grad_(False)
    alpha, draws = torch.full((3, spec.num_heads), temperature), 10_000
    obs = observations(rows=1).expand(3, draws, -1).contiguous()
    noise = uniforms(Stream.ACTOR, draws, soft.num_noise)
    if expected:
        gain = expected_gain(soft, critic, obs, noise, temperature)
    else:
        gain = soft.actor_loss(critic, obs, noise, alpha, torch.tensor(1.0), None).gain
    (grad,) = torch.autograd.grad(gain.squeeze(-1).mean(-1).sum(), [soft.actor.output.bias])
    return grad.reshape(3, -1)


def expected_gain(soft, critic, obs, noise, temperature):
    """E[V + mixture + alpha H] over the options of two heads, given the numbers drawn, (P, B)."""
    numbers, surprise = soft._draw_judged(obs, noise)
    value, flat, embedding = soft._outputs(critic, obs, numbers)
    advantage = soft._centred(flat, None)
    log_policy = torch.log_softmax(critic.effective(advantage, embedding) / temperature, -1)[:, 0]
    total = value[:, 0] + temperature * surprise.squeeze(-1)
    for a, b in itertools.product(range(3), range(4)):
        log_prob = log_policy[..., 0, a] + log_policy[..., 1, b]
        picked = torch.stack([advantage[..., 0, a], advantage[..., 1, b]], dim=-1)
        mixed = picked.sum(-1) if critic.mixer is None else critic.mixer(picked, embedding)
        total = total + log_prob.exp() * (mixed[:, 0] - temperature * log_prob)
    return total


@pytest.mark.parametrize(("name", "share"), [("vdn", 1e-5), ("qplex", 0.15)])
def test_numbers_learn_by_the_slope_of_the_expected_value(name, share):
    """In a mixture options are drawn from nearly the best chances, which is nearly as good."""
    spec = ActionSpec.of(a=Choice(3), b=Choice(4), x=Range(-1, 1))
    ours, exact = (numbers_gradient(name, spec, 1.0, expected) for expected in (False, True))
    assert ((ours - exact).norm(dim=-1) / exact.norm(dim=-1) < share).all()
