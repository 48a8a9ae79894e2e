"""Auto-regressive heads: the chain rule, in any order."""

import pytest
import torch
from cases import (
    DISCRETE,
    HYBRID,
    ONE_OF,
    SPECS,
    all_actions,
    blueprint,
    for_all_rows,
    observations,
)

from headwise import ActionSpec, Choice, ConfigError, Range
from headwise.factorizations.ar import AR
from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.parts.prefix import Prefix
from headwise.population import Keys, Stream

ORDERS = {
    "discrete": [None, ("c", "a", "b"), ("b", "c", "a")],
    "hybrid": [None, ("b", "y", "a", "x"), ("a", "b", "x", "y")],
    "one_of": [None, ("kind", "jump", "spin", "run")],
}
CASES = [(spec, order) for spec, orders in ORDERS.items() for order in orders]


def policy_of(spec, order):
    return AR(order=order).policy(blueprint(SPECS[spec], policy_gain=3.0, state_std=True))


def numbers(spec, order):
    return [SPECS[spec].names.index(n) for n in (order or SPECS[spec].names)]


@pytest.mark.parametrize(("spec", "order"), CASES)
def test_teacher_forced_log_probs_equal_sequential_ones(spec, order):
    """One head at a time, each network fed with what was drawn so far and nothing else."""
    policy, obs = policy_of(spec, order), observations()
    uniform = Keys((0, 1, 2)).uniform(Stream.ACT, 0, (5, policy.num_uniforms))
    with torch.no_grad():
        raw, judged = policy.sample(obs, uniform)
        known = torch.zeros_like(raw)
        for head in numbers(spec, order):
            known = known.clone()
            known[..., head] = raw[..., head]  # later heads are still zero
            alone = policy.judge(obs, known).log_prob[..., head]
            torch.testing.assert_close(alone, judged.log_prob[..., head])
    torch.testing.assert_close(policy.judge(obs, raw).log_prob, judged.log_prob)


@pytest.mark.parametrize(("spec", "order"), CASES)
def test_a_head_sees_earlier_heads_and_no_later_one(spec, order):
    policy, obs = policy_of(spec, order), observations()
    place = numbers(spec, order)
    uniform = Keys((0, 1, 2)).uniform(Stream.ACT, 0, (5, policy.num_uniforms))
    with torch.no_grad():
        raw, _ = policy.sample(obs, uniform)
        before = policy.judge(obs, raw).log_prob
        for index, head in enumerate(place):
            other = raw.clone()
            size = SPECS[spec].cardinalities[head]
            other[..., head] = (raw[..., head] + 1) % size if size else raw[..., head] + 0.5
            after = policy.judge(obs, other).log_prob
            earlier = place[:index]
            assert torch.equal(after[..., earlier], before[..., earlier])
            if spec != "one_of":
                for later in place[index + 1 :]:
                    assert not torch.equal(after[..., later], before[..., later])


def test_the_order_changes_what_can_be_said():
    first, second = (policy_of("discrete", order) for order in ORDERS["discrete"][:2])
    assert first.prefix.order == (0, 1, 2)
    assert second.prefix.order == (2, 0, 1)


def test_what_a_head_sees_by_hand():
    # a: one-hot of 3; b: a Range, as it is; c: bins of a Range, as the number they stand for
    spec = ActionSpec.of(a=Choice(3), b=Range(0, 5), c=Choice(5, ordered=True))
    prefix = Prefix(Layout(spec), ("c", "a", "b"))
    # options first, then numbers; bin 4 of 5 is 1.0, bin 1 is -0.5
    assert prefix.embed(torch.tensor([2.0, 0.25, 1.0])).tolist() == [0, 0, 1, 0.25, -0.5]
    assert prefix.visible.tolist() == [[0, 0, 0, 0, 1], [1, 1, 1, 0, 1], [0, 0, 0, 0, 0]]
    # weights instead of options: gradients reach them
    weights = torch.tensor([[0.5, 0.5, 0, 0, 0], [0, 0, 0, 0.5, 0.5]])
    relaxed = prefix.embed_relaxed(weights, torch.tensor([0.0, 0.25, 0.0]))
    torch.testing.assert_close(relaxed, torch.tensor([0.5, 0.5, 0, 0.25, 0.75]))


def test_relaxed_options_say_themselves_what_is_in_use():
    """The action beside them has the same numbers, but options that were drawn apart."""
    layout = Layout(ONE_OF)
    prefix = Prefix(layout)
    torch.manual_seed(0)
    numbers = torch.rand(64, layout.num_ranges) * 2.0 - 1.0
    seen, apart = (
        torch.stack([torch.randint(n, (64,)) for n in layout.sizes], dim=-1) for _ in range(2)
    )
    assert not torch.equal(seen, apart)
    weights = torch.nn.functional.one_hot(seen, layout.max_options).float()
    relaxed = prefix.embed_relaxed(weights, layout.columns(apart.float(), numbers))
    expected = prefix.embed(layout.columns(seen.float(), numbers))
    assert torch.equal(relaxed, expected)
    assert (expected == 0.0).any()


@pytest.mark.parametrize(
    ("spec", "order", "message"),
    [
        (DISCRETE, ("a", "b"), "must name every head once; got .*allowed: a, b, c"),
        (DISCRETE, ("a", "b", "b"), "must name every head once"),
        (HYBRID, ("x", "a", "y", "bb"), "unknown head; got 'bb'.*Did you mean 'b'"),
        (ONE_OF, ("run", "kind", "jump", "spin"), "'run' before 'kind'"),
    ],
)
def test_orders_that_make_no_sense(spec, order, message):
    with pytest.raises(ConfigError, match=message):
        AR(order=order).check(spec)


@pytest.mark.parametrize("order", ORDERS["discrete"])
def test_the_value_can_be_any_function_and_greedy_finds_its_maximum(order):
    """XOR-like payoffs, which no sum over heads can have, are learned to the digit."""
    value = AR(order=order).value(blueprint(DISCRETE, hidden=(16, 16)))
    obs = torch.zeros(3, 1, 4)
    actions = all_actions(DISCRETE)
    payoff = torch.randn(len(actions), generator=torch.Generator().manual_seed(4))
    optimiser = torch.optim.Adam(value.parameters(), lr=0.02)
    rows, wanted = obs.expand(3, len(actions), -1), payoff.expand(3, -1).unsqueeze(-1)
    for _ in range(150):
        loss = (value.predict(rows, actions.expand(3, -1, -1)) - wanted).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss < 3e-3
    with torch.no_grad():
        best, columns = value.best(obs), value.best_value(obs)
        assert (best == actions[payoff.argmax()]).all()
        torch.testing.assert_close(columns, payoff.max().expand(3, 1, 1), atol=0.05, rtol=0)
        table = [value.joint(obs, a) for a in for_all_rows(actions, rows=1)]
        torch.testing.assert_close(value.joint(obs, best), torch.stack(table).amax(0))
