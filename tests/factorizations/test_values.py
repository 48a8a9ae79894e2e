"""Values of actions: predictions and gradients against float64 autograd of the papers' formulas."""

import pytest
import torch
from built import (
    DISCRETE,
    MEMBERS,
    SPECS,
    Part,
    all_actions,
    assert_near,
    buffer,
    observations,
    some_actions,
    some_mask,
)
from oracle import q_values

from headwise import ActionSpec, Choice, Range
from headwise.factorizations.ar import AR
from headwise.factorizations.qplex import QPLEX
from headwise.factorizations.shared import Shared
from headwise.factorizations.vdn import VDN

BINNED = ActionSpec.of(aim=Choice(4, ordered=True), a=Choice(3), x=Range(-1, 1))
WIDE = ActionSpec.of(a=Choice(70), b=Choice(3), c=Choice(2))
CASES = SPECS | {"binned": BINNED, "wide": WIDE}
KINDS = {
    "independent": "independent",
    "shared": "shared",
    "vdn": "vdn",
    "joint": "joint",
    "qplex": QPLEX(mixer_width=16),
    "qplex's own": QPLEX(mixer="qplex", mixer_width=16),
    "ar": "ar",
    "ar from the end": AR(order=("c", "a", "b")),
    "ar, a graph": AR(parents={"b": ("a",), "c": ("a",)}),
}
CENTERED = {
    "shared by the mean": Shared(center="mean"),
    "shared by nothing": Shared(center="none"),
    "vdn by the mean": VDN(center="mean"),
    "vdn by nothing": VDN(center="none"),
    "qplex by the mean": QPLEX(mixer_width=16, center="mean", mixer_bend="relu"),
    "qplex by nothing": QPLEX(mixer_width=16, center="none", mixer_weights="softplus"),
    "qplex by the best, softplus": QPLEX(mixer_width=16, mixer_weights="softplus"),
}
KINDS |= CENTERED
VALUES = [
    (name, "value", spec)
    for name in KINDS
    for spec in ("discrete", "one_of", "wide")
    if not (spec == "one_of" and (name in ("ar from the end", "ar, a graph") or name in CENTERED))
]
VALUES += [
    (name, "plain_value", spec)
    for name in ("independent", "shared", "vdn", "joint")
    for spec in ("discrete", "one_of")
]
TWINS = [
    (name, "twins", spec)
    for name in ("independent", "shared", "vdn", "qplex", "ar", "joint")
    for spec in ("discrete", "hybrid", "continuous", "one_of", "parameters", "binned")
    if not (name in ("vdn", "qplex") and spec == "continuous")
    and not (name == "joint" and spec in ("hybrid", "continuous", "parameters", "binned"))
]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("name", "what", "spec"), VALUES + TWINS)
def test_predictions_and_gradients_are_those_of_the_formula(name, what, spec, masked):
    part = Part(KINDS[name], what, CASES[spec], rows=7, scale=1.5)
    x, action = observations(rows=7), some_actions(part.layout, rows=7)
    mask = some_mask(part.layout, rows=7) if masked else None
    found = part.predict(x, action, mask)
    leaf, taken = part.leaf(), action.double().requires_grad_()
    q = q_values(part, leaf, x, taken, mask)
    assert_near(found.view_as(q), q)

    slope = torch.randn(q.shape, generator=torch.Generator().manual_seed(4))
    of_parameters, of_action = part.gradients(x, action, slope, mask)
    exact, through = torch.autograd.grad(
        q, [leaf, taken], slope.double(), allow_unused=True, materialize_grads=True
    )
    assert_near(of_parameters, exact.flatten(1), 5e-6)
    numbers = slice(part.layout.num_discrete, None)
    if part.layout.num_continuous and what == "twins":
        assert (through[..., numbers] != 0.0).any()
        assert_near(of_action[..., numbers], through[..., numbers], 5e-6)


@pytest.mark.parametrize(
    ("name", "what", "spec"), [c for c in TWINS if c[2] not in ("discrete", "one_of")]
)
def test_who_holds_parameters_constant_learns_by_the_action_alone(name, what, spec):
    part = Part(KINDS[name], what, CASES[spec], scale=1.5)
    x, action = observations(), some_actions(part.layout)
    given = buffer(x), buffer(action, gradient=True), None
    q = part.it.predict(*given)
    q.gradient.fill_(1.0)
    part.store.parameters.gradient.fill_(7.0)
    part.it.backward(*given, weights=False)
    assert (part.store.parameters.gradient == 7.0).all()
    _, of_action = part.gradients(x, action, torch.ones_like(q.tensor))
    numbers = slice(part.layout.num_discrete, None)
    assert torch.equal(given[1].gradient[:, 0, :, numbers], of_action[..., numbers])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("name", "what", "spec"), [c for c in VALUES if c[2] != "wide"])
def test_greedy_is_the_joint_maximum(name, what, spec, masked):
    """Where heads add up or are mixed, of all joint actions; else of every head by itself."""
    part = Part(KINDS[name], what, CASES[spec], scale=3.0)
    layout, x = part.layout, observations()
    mask = some_mask(layout) if masked else None
    if layout.always_masks:
        legal = layout.mask(None).expand(MEMBERS, 5, -1)
        mask = legal if mask is None else mask * legal
    best, value = part.greedy(x, mask), part.greedy_value(x, mask)
    predicted = part.predict(x, best, mask)
    torch.testing.assert_close(value.expand_as(predicted), predicted)
    actions = all_actions(
        ActionSpec.of([Choice(n) for n in layout.options])
    )  # the learner's: joint actions are options of one head
    seen = 0
    for action in actions:
        taken = action.expand(MEMBERS, 5, -1)
        allowed = torch.ones(MEMBERS, 5, dtype=torch.bool)
        for h, start in enumerate(_starts(layout.sizes)):
            if mask is not None:
                allowed &= mask[..., start + int(action[h])] > 0.0
        q = part.predict(x, taken, mask)
        assert (q <= predicted + 1e-5)[allowed].all()
        seen += int(allowed.sum())
    assert seen > MEMBERS * 5
    for h, start in enumerate(_starts(layout.sizes)):
        if mask is not None:
            chosen = (start + best[..., h]).long().unsqueeze(-1)
            assert (mask.gather(-1, chosen) > 0.0).all()


def _starts(sizes):
    return [sum(sizes[:i]) for i in range(len(sizes))]


def test_an_option_beyond_all_is_never_taken_however_large_observations_are():
    part = Part("vdn", "value", DISCRETE, rows=400)
    mask = some_mask(part.layout, rows=400)
    for scale in (1.0, 1e12, 1e20):
        best = part.greedy(scale * observations(rows=400), mask)
        for h, start in enumerate(_starts(part.layout.sizes)):
            chosen = (start + best[..., h]).long().unsqueeze(-1)
            assert (mask.gather(-1, chosen) > 0.0).all()
            assert (best[..., h] < part.layout.sizes[h]).all()


@pytest.mark.parametrize("masked", [False, True])
def test_of_options_that_tie_the_first_is_best_and_has_the_gradient(masked):
    """All advantages equal: whether all options are allowed by a mask or by none is the same."""
    part = Part("vdn", "value", DISCRETE)
    part.it.parts[2].parameters.tensor.zero_()  # the outputs of advantages
    x, action = observations(), torch.ones(MEMBERS, 5, 3)
    mask = torch.ones(MEMBERS, 5, part.layout.total) if masked else None
    assert (part.greedy(x, mask) == 0.0).all()
    part.gradients(x, action, torch.ones(MEMBERS, 1, 5, 1), mask)
    _, y = part.it.net.rows(5)
    expected = torch.tensor([-1.0, 1.0, -1.0, 1.0, 0.0, -1.0, 1.0])
    assert torch.equal(y.gradient[:, 0], expected.expand(MEMBERS, 5, -1))
