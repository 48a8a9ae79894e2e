"""Auto-regressive heads: the chain rule in any order, and values that can be any function."""

import pytest
import torch
from built import (
    DISCRETE,
    MEMBERS,
    SPECS,
    Part,
    all_actions,
    observations,
    uniforms,
)

from headwise import ActionSpec, Choice, Range
from headwise.factorizations.ar import AR

ORDERS = {
    "discrete": [None, ("c", "a", "b"), ("b", "c", "a")],
    "hybrid": [None, ("b", "y", "a", "x"), ("a", "b", "x", "y")],
    "one_of": [None, ("kind", "jump", "spin", "run")],
    "parameters": [None],
}
CASES = [(spec, order) for spec, orders in ORDERS.items() for order in orders]


def policy_of(spec, order):
    return Part(AR(order=order), "policy", SPECS[spec], scale=2.0, state_std=True)


@pytest.mark.parametrize(("spec", "order"), CASES)
def test_teacher_forced_log_probs_equal_sequential_ones(spec, order):
    """One head at a time, each network fed with what was drawn so far and nothing else."""
    policy, x = policy_of(spec, order), observations()
    raw, _, drawn = policy.sample(x, uniforms(policy.it.table.num_uniforms))
    known = torch.zeros_like(raw)
    for name in order or SPECS[spec].names:
        head = policy.layout.names.index(name)
        known[..., head] = raw[..., head]  # later heads are still zero
        alone = policy.evaluate(x, known).log_prob[..., head]
        torch.testing.assert_close(alone, drawn[..., head])
    torch.testing.assert_close(policy.evaluate(x, raw).log_prob, drawn)


@pytest.mark.parametrize("spec", ["discrete", "one_of"])
def test_probabilities_of_all_actions_are_one_in_all(spec):
    policy, x = policy_of(spec, None), observations()
    total = torch.zeros(MEMBERS, 5)
    for action in all_actions(SPECS[spec]):
        if (SPECS[spec].canonical(action.numpy()) == action.numpy()).all():
            taken = action.expand(MEMBERS, 5, -1)
            total += policy.evaluate(x, taken).log_prob.sum(-1).exp()
    torch.testing.assert_close(total, torch.ones(MEMBERS, 5))


@pytest.mark.parametrize("name", ["ar", "shared", "independent"])
@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_entropy_is_that_of_the_joint_action(name, scale):
    """Summed over all actions with their probabilities, heads' entropies are the joint entropy."""
    spec = SPECS["one_of"]
    policy, x = Part(name, "policy", spec, scale=scale), observations()
    exact, mean = torch.zeros(MEMBERS, 5), torch.zeros(MEMBERS, 5)
    for action in all_actions(spec):
        if (spec.canonical(action.numpy()) == action.numpy()).all():
            found = policy.evaluate(x, action.expand(MEMBERS, 5, -1))
            log_prob = found.log_prob.sum(-1)
            exact -= log_prob.exp() * log_prob
            mean += log_prob.exp() * found.entropy.sum(-1)
    torch.testing.assert_close(mean, exact, atol=1e-5, rtol=1e-5)


def test_the_order_changes_what_can_be_said():
    assert policy_of("discrete", None).it.graph.order == [0, 1, 2]
    assert policy_of("discrete", ("c", "a", "b")).it.graph.order == [2, 0, 1]


def test_what_a_head_sees_by_hand():
    # a: one-hot of 3; b: a Range, as it is; c: bins of a Range, as the number they stand for
    spec = ActionSpec.of(a=Choice(3), b=Range(0, 5), c=Choice(5, ordered=True))
    policy = Part(AR(order=("c", "a", "b")), "policy", spec).it
    # the learner's heads are a, c and b; columns are c, then those of a, then b
    visible = policy.net.visible(torch.zeros(1))[:, 0, 4:]
    assert visible.tolist() == [[1, 0, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 0]]
    seen = policy.embedding.numbers(torch.tensor([2.0, 1.0, 0.25]), None)
    assert seen.tolist() == [-0.5, 0, 0, 1, 0.25]  # bin 1 of 5 is -0.5


@pytest.mark.parametrize("order", ORDERS["discrete"])
def test_the_value_can_be_any_function_and_greedy_finds_its_maximum(order):
    """XOR-like payoffs, which no sum over heads can have, are learned to the digit."""
    actions = all_actions(DISCRETE)
    value = Part(AR(order=order), "value", DISCRETE, rows=len(actions), orthogonal=False)
    payoff = torch.randn(len(actions), generator=torch.Generator().manual_seed(4))
    x = torch.zeros(MEMBERS, len(actions), 4)
    taken, wanted = actions.expand(MEMBERS, -1, -1), payoff.expand(MEMBERS, -1).unsqueeze(-1)
    assert value.fit(x, taken, wanted, 400, 0.02) < 3e-3
    best = value.greedy(x)
    assert (best == actions[payoff.argmax()]).all()
    found = value.greedy_value(x)
    torch.testing.assert_close(found, payoff.max().expand_as(found), atol=0.05, rtol=0)
    torch.testing.assert_close(found, value.predict(x, best))


@pytest.mark.parametrize("name", ["vdn", "shared"])
def test_no_sum_over_heads_learns_it(name):
    """So that the test above says something."""
    actions = all_actions(DISCRETE)
    value = Part(name, "value", DISCRETE, rows=len(actions), orthogonal=False)
    payoff = torch.randn(len(actions), generator=torch.Generator().manual_seed(4))
    x, wanted = torch.zeros(MEMBERS, len(actions), 4), payoff.expand(MEMBERS, -1).unsqueeze(-1)
    assert value.fit(x, actions.expand(MEMBERS, -1, -1), wanted, 400, 0.02) > 0.1
