"""What every factorization promises. A new file in `factorizations/` is tested by existing."""

import pytest
import torch
from cases import (
    DISCRETE,
    SPECS,
    all_actions,
    blueprint,
    for_all_rows,
    make,
    observations,
    offers,
)

from headwise.factorizations import factorizations
from headwise.factorizations.base import Branching
from headwise.factorizations.parts.critics import BranchingCritic
from headwise.factorizations.parts.heads import Heads
from headwise.nets import Mixer
from headwise.population import Keys, Stream

ALL_SPECS = tuple(SPECS)
POLICIES = offers("policy", ALL_SPECS)
VALUES = [(*cell, True) for cell in offers("value", ("discrete", "one_of"))]
VALUES += [(*cell, False) for cell in offers("value", ("discrete", "one_of"), dueling=False)]
SCALES = (1.0, 1e12, 1e20)
"""Of observations; logits grow with them."""


def test_all_six_are_there():
    assert set(factorizations.names()) >= {"independent", "shared", "vdn", "qplex", "joint", "ar"}


# --- values ---------------------------------------------------------------------------------------


def trained_a_little(value, obs, spec, steps=30):
    """Moves a value away from its start, where everything is nearly equal."""
    optimiser = torch.optim.Adam(value.parameters(), lr=0.02)
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        options = [torch.randint(n, obs.shape[:2], generator=generator) for n in spec.cardinalities]
        action = torch.stack(options, -1).float()
        wanted = torch.sin(7.0 * action.sum(-1, keepdim=True) + obs.sum(-1, keepdim=True))
        loss = (value.predict(obs, action) - wanted).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return value


EXACT = [cell for cell in VALUES if factorizations.get(cell[0]).exact_greedy]


def test_plain_values_are_there():
    plain = {name for name, _, dueling in VALUES if not dueling}
    assert plain == {"independent", "shared", "vdn", "joint"}


@pytest.mark.parametrize(("name", "spec", "dueling"), EXACT)
def test_greedy_is_the_best_of_all_joint_actions(name, spec, dueling):
    obs = observations()
    value = trained_a_little(make(name, "value", SPECS[spec], dueling=dueling), obs, SPECS[spec])
    with torch.no_grad():
        best, columns = value.best(obs), value.best_value(obs)
        actions = for_all_rows(all_actions(SPECS[spec]))
        table = torch.stack([value.joint(obs, action) for action in actions])
        torch.testing.assert_close(value.joint(obs, best), table.amax(0))
        assert table.amax(0).sub(table.amin(0)).min() > 1e-3  # there was something to choose
        # what `best_value` says is what is predicted for the action that `best` returns
        torch.testing.assert_close(columns, value.predict(obs, best))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("name", "spec", "dueling"), VALUES)
def test_greedy_never_leaves_legal_options(name, spec, dueling, scale):
    value, obs = make(name, "value", SPECS[spec], dueling=dueling), scale * observations(rows=400)
    sizes = SPECS[spec].cardinalities
    legal = torch.rand(3, 400, len(sizes), max(sizes)) < 0.5
    legal[..., 0] = True
    with torch.no_grad():
        options = value.best(obs, legal).long()
    assert (options < torch.tensor(sizes)).all()
    assert legal.gather(-1, options.unsqueeze(-1)).all()


@pytest.mark.parametrize(("name", "spec", "dueling"), VALUES)
def test_greedy_keeps_to_legal_options(name, spec, dueling):
    obs = observations()
    value = trained_a_little(make(name, "value", SPECS[spec], dueling=dueling), obs, SPECS[spec])
    sizes = SPECS[spec].cardinalities
    generator = torch.Generator().manual_seed(3)
    legal = torch.rand(3, 5, len(sizes), max(sizes), generator=generator) < 0.5
    legal[..., 0] = True
    with torch.no_grad():
        best, columns = value.best(obs, legal), value.best_value(obs, legal)
    assert legal.gather(-1, best.long().unsqueeze(-1)).all()
    with torch.no_grad():
        table = []
        for action in for_all_rows(all_actions(SPECS[spec])):
            allowed = legal.gather(-1, action.long().unsqueeze(-1)).squeeze(-1).all(-1)
            predicted = value.predict(obs, action, legal).mean(-1)
            table.append(predicted.masked_fill(~allowed, -torch.inf))
        chosen = value.predict(obs, best, legal)
    torch.testing.assert_close(chosen, columns)
    # centring sees legal options only, so the choice beats every legal joint action
    assert (chosen.mean(-1) >= torch.stack(table).amax(0) - 1e-5).all()


@pytest.mark.parametrize(
    ("name", "spec", "dueling"),
    [cell for cell in VALUES if factorizations.get(cell[0]).has_soft_heads],
)
def test_soft_values_are_at_least_those_of_the_best_action(name, spec, dueling):
    obs = observations()
    value = make(name, "value", SPECS[spec], dueling=dueling)
    with torch.no_grad():
        log_policy, soft = value.soft_heads(obs, 0.4)
        assert (soft >= value.best_value(obs) - 1e-6).all()
    torch.testing.assert_close(log_policy.exp().sum(-1), torch.ones(log_policy.shape[:-1]))
    options = value.options(value.best(obs))
    assert options.shape == log_policy.shape[:-1]


@pytest.mark.parametrize(("name", "dueling"), [("vdn", True), ("vdn", False), ("joint", False)])
def test_soft_values_sum_over_all_joint_actions(name, dueling):
    obs, temperature = observations(), 0.4
    value = trained_a_little(make(name, "value", DISCRETE, dueling=dueling), obs, DISCRETE)
    with torch.no_grad():
        log_policy, soft = value.soft_heads(obs, temperature)
        actions = for_all_rows(all_actions(DISCRETE))
        scaled = torch.stack([value.joint(obs, action) for action in actions]) / temperature
        torch.testing.assert_close(soft.squeeze(-1), temperature * scaled.logsumexp(0))
        for action, expected in zip(actions, scaled.log_softmax(0), strict=True):
            options = value.options(action).unsqueeze(-1)
            torch.testing.assert_close(log_policy.gather(-1, options).sum((-1, -2)), expected)


@pytest.mark.parametrize(("name", "spec"), [cell[:2] for cell in VALUES if cell[2]])
def test_max_centred_advantages_have_maximum_zero(name, spec):
    value, obs = make(name, "value", SPECS[spec]), observations()
    if name == "joint":
        value = value.inner
    if hasattr(value, "advantages"):  # given a prefix: for every one of them
        found = [value.advantages(obs, a) for a in for_all_rows(all_actions(SPECS[spec]))]
    else:
        found = [value.branches(obs)[1]]
    for advantage in found:
        top = advantage.amax(-1)
        torch.testing.assert_close(top, torch.zeros_like(top), atol=1e-6, rtol=0)


# --- policies -------------------------------------------------------------------------------------


OVER_OPTIONS = [pair for pair in POLICIES if pair[1] in ("discrete", "one_of")]


@pytest.mark.parametrize(("name", "spec"), OVER_OPTIONS)
def test_probabilities_of_all_actions_sum_to_one(name, spec):
    policy, obs = make(name, "policy", SPECS[spec]), observations()
    actions = all_actions(SPECS[spec])
    resting = torch.as_tensor(SPECS[spec].canonical(actions.numpy())).float()
    actions = actions[(actions == resting).all(-1)]  # the same action twice is one action
    log_probs = [policy.judge(obs, a).log_prob.sum(-1) for a in for_all_rows(actions)]
    torch.testing.assert_close(torch.stack(log_probs).exp().sum(0), torch.ones(3, 5))


@pytest.mark.parametrize(("name", "spec"), OVER_OPTIONS)
def test_sampling_frequencies_match_the_probabilities(name, spec):
    policy = make(name, "policy", SPECS[spec])
    draws = 20_000
    obs = observations(rows=1).expand(3, draws, -1)
    uniform = Keys((0, 1, 2)).uniform(Stream.ACT, 0, (draws, policy.num_uniforms))
    with torch.no_grad():
        raw, judged = policy.sample(obs, uniform)
    drawn = torch.as_tensor(SPECS[spec].canonical(raw.numpy())).float()
    for action in all_actions(SPECS[spec]):
        if (torch.as_tensor(SPECS[spec].canonical(action.numpy())) != action).any():
            continue
        frequency = (drawn == action).all(-1).float().mean(-1)
        with torch.no_grad():
            expected = policy.judge(obs[:, :1], action.expand(3, 1, -1)).log_prob.sum(-1).exp()
        error = (frequency - expected[:, 0]).abs()
        assert (error < 4.5 * (expected[:, 0] / draws).sqrt() + 1e-4).all(), action
    again = policy.judge(obs, raw).log_prob
    torch.testing.assert_close(judged.log_prob, again.detach())


@pytest.mark.parametrize(("name", "spec"), OVER_OPTIONS)
def test_entropy_is_the_mean_of_minus_log_prob(name, spec):
    policy = make(name, "policy", SPECS[spec])
    draws = 20_000
    obs = observations(rows=1).expand(3, draws, -1)
    uniform = Keys((0, 1, 2)).uniform(Stream.ACT, 1, (draws, policy.num_uniforms))
    with torch.no_grad():
        _, judged = policy.sample(obs, uniform)
    estimate = -judged.log_prob.sum(-1).mean(-1)
    torch.testing.assert_close(judged.entropy.sum(-1).mean(-1), estimate, atol=0.03, rtol=0.0)


@pytest.mark.parametrize(("name", "spec"), POLICIES)
def test_actions_are_in_the_learners_form(name, spec):
    policy = make(name, "policy", SPECS[spec])
    obs = observations(rows=200)
    uniform = Keys((0, 1, 2)).uniform(Stream.ACT, 2, (200, policy.num_uniforms))
    with torch.no_grad():
        for raw in (policy.sample(obs, uniform)[0], policy.mode(obs)):
            unit = policy.to_unit(raw)
            for h, size in enumerate(SPECS[spec].cardinalities):
                column = unit[..., h]
                if size:
                    assert ((column >= 0) & (column < size) & (column == column.floor())).all()
                else:
                    assert (column.abs() <= 1).all()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("name", "spec"), [p for p in POLICIES if p[1] != "continuous"])
def test_masks_are_kept_in_sampling_mode_and_log_probs(name, spec, scale):
    sizes = [n for n in SPECS[spec].cardinalities if n]
    policy, obs = make(name, "policy", SPECS[spec]), scale * observations(rows=400)
    legal = torch.rand(3, 400, len(sizes), max(sizes)) < 0.5
    legal[..., 0] = True
    uniform = Keys((0, 1, 2)).uniform(Stream.ACT, 3, (400, policy.num_uniforms))
    columns = [h for h, n in enumerate(SPECS[spec].cardinalities) if n]
    with torch.no_grad():
        for raw in (policy.sample(obs, uniform, legal)[0], policy.mode(obs, legal)):
            options = raw[..., columns].long().unsqueeze(-1)
            in_use = torch.as_tensor(SPECS[spec].active(raw.double().numpy()))[..., columns]
            assert (options.squeeze(-1) < torch.tensor(sizes)).all()
            assert (legal.gather(-1, options).squeeze(-1) | ~in_use).all()
            log_prob = policy.judge(obs, raw, legal).log_prob
            assert (log_prob > -30.0).all()


# --- gradients and members ------------------------------------------------------------------------


def some_loss(name, what, spec, module, obs):
    """A loss (P,) that touches everything a module has."""
    generator = torch.Generator().manual_seed(5)
    rows = obs.shape[-2]
    columns = [
        torch.randint(n, (rows,), generator=generator).float() if n else torch.full((rows,), 0.3)
        for n in SPECS[spec].cardinalities
    ]
    action = torch.stack(columns, -1).expand(len(obs), rows, -1)
    if what == "value":
        return module.predict(obs, action).square().sum((-1, -2))
    if what == "policy":
        judged = module.judge(obs, action)
        return (judged.log_prob + 0.1 * judged.entropy).sum((-1, -2))
    if not isinstance(module, BranchingCritic):
        return module.value(obs).square().sum((-1, -2))
    policy = make(name, "policy", SPECS[spec])
    masses = module.masses(policy.judge(obs, action).heads).detach()
    return module.predict(obs, module.bins(action), masses).square().sum((-1, -2))


EVERYTHING = [
    (name, what, spec)
    for what in ("policy", "critic", "value")
    for name, spec in offers(what, ALL_SPECS if what != "value" else ("discrete", "one_of"))
]


@pytest.mark.parametrize(("name", "what", "spec"), EVERYTHING)
def test_gradients_reach_every_parameter_and_no_other_member(name, what, spec):
    module, obs = make(name, what, SPECS[spec], state_std=True), observations(rows=60)
    loss = some_loss(name, what, spec, module, obs)
    assert loss.shape == (3,)
    loss[1].backward()
    for label, parameter in module.named_parameters():
        grad = parameter.grad
        assert grad is not None, label
        assert (grad[0] == 0).all(), label
        assert (grad[2] == 0).all(), label
        # Some numbers never get one: options that only pad a head, inputs that a head may not see,
        # a unit that is off in every row. But each copy of each layer gets many.
        copies = grad[1].flatten(0, -3) if grad.dim() > 3 else grad[1].unsqueeze(0)
        assert (copies != 0).flatten(1).float().mean(-1).min() > 0.1, label


@pytest.mark.parametrize(("name", "what", "spec"), EVERYTHING)
def test_a_member_alone_equals_itself_in_any_population(name, what, spec):
    obs = observations(members=4)
    orders = [(0, 1, 2, 3), (2, 0, 3, 1)]
    outcomes = {}
    for order in orders:
        module = make(name, what, SPECS[spec], seeds=order)
        if isinstance(module, BranchingCritic):
            result = module.value(obs[list(order)])
        else:
            result = some_loss(name, what, spec, module, obs[list(order)]).unsqueeze(-1)
        for row, seed in zip(result, order, strict=True):
            assert torch.equal(outcomes.setdefault(seed, row), row)
    for seed in range(4):
        module = make(name, what, SPECS[spec], seeds=(seed,))
        if isinstance(module, BranchingCritic):
            alone = module.value(obs[seed : seed + 1])
        else:
            alone = some_loss(name, what, spec, module, obs[seed : seed + 1]).unsqueeze(-1)
        assert torch.equal(alone[0], outcomes[seed])


# --- critics --------------------------------------------------------------------------------------

BRANCHING = [
    (name, spec)
    for name, spec in offers("critic", ALL_SPECS)
    if isinstance(make(name, "critic", SPECS[spec]), Branching)
]


def judged_by_a_policy(name, spec):
    """A critic, and what it sees of actions drawn from a policy."""
    critic, policy = make(name, "critic", SPECS[spec]), make(name, "policy", SPECS[spec])
    obs = observations()
    uniform = Keys((0, 1, 2)).uniform(Stream.ACT, 0, (5, policy.num_uniforms))
    with torch.no_grad():
        raw, judged = policy.sample(obs, uniform)
        return critic, obs, critic.masses(judged.heads), critic.bins(policy.to_unit(raw))


@pytest.mark.parametrize(("name", "spec"), BRANCHING)
def test_policy_centred_advantages_have_mean_zero(name, spec):
    critic, obs, masses, bins = judged_by_a_policy(name, spec)
    torch.testing.assert_close(masses.sum(-1), torch.ones(3, 5, SPECS[spec].num_heads))
    with torch.no_grad():
        _, advantage = critic.centred(obs, masses)
    mean = (masses * advantage).sum(-1)
    torch.testing.assert_close(mean, torch.zeros_like(mean), atol=1e-6, rtol=0)
    assert (masses.gather(-1, bins.unsqueeze(-1)) > 0).all()


@pytest.mark.parametrize(("name", "spec"), BRANCHING)
@pytest.mark.parametrize("kind", ["uniform", "range", "range_slope", "grad", "state"])
def test_importance_is_not_negative_and_has_no_gradient(name, spec, kind):
    critic, obs, masses, bins = judged_by_a_policy(name, spec)
    _, advantage = critic.centred(obs, masses)
    importance = critic.importance(advantage, obs, bins, kind)
    assert importance.shape == (3, 5, SPECS[spec].num_heads)
    assert (importance >= 0).all()
    assert not importance.requires_grad


@pytest.mark.parametrize("kind", ["paper", "qplex"])
def test_the_mixer_is_monotonic_and_zero_at_zero(kind):
    bp = blueprint(DISCRETE)
    mixer = Mixer(bp.init, 3, 4, 16, kind, action_size=6)
    state, action = observations(), torch.rand(3, 5, 6)
    advantage = (3.0 * torch.randn(3, 5, 3)).requires_grad_()
    (slope,) = torch.autograd.grad(mixer(advantage, state, action).sum(), advantage)
    assert (slope >= 0).all()
    assert (slope > 0).any()
    zero = mixer(torch.zeros(3, 5, 3), state, action)
    torch.testing.assert_close(zero, torch.zeros(3, 5))


def test_heads_put_columns_back_in_order():
    layout = blueprint(SPECS["hybrid"]).layout
    raw = torch.tensor([[[0.1, 2.0, 0.2, 1.0]]])
    assert layout.choice_columns(raw).tolist() == [[[2, 1]]]
    torch.testing.assert_close(layout.range_columns(raw), torch.tensor([[[0.1, 0.2]]]))
    back = layout.columns(layout.choice_columns(raw).float(), layout.range_columns(raw))
    assert torch.equal(back, raw)
    assert isinstance(Heads.from_logits(layout, torch.zeros(1, 1, 2, 3), None), Heads)
