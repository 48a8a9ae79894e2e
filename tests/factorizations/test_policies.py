"""What policies draw and say, and their gradients, against the textbook's distributions."""

import pytest
import torch
from built import (
    MEMBERS,
    SPECS,
    Part,
    assert_near,
    buffer,
    observations,
    room,
    some_actions,
    some_mask,
    uniforms,
)
from policy_oracle import Said

from headwise import View
from headwise.factorizations.ar import AR
from headwise.heads.blueprint import Actions
from headwise.ops import distribution
from headwise.ops.distributions import to_unit

CASES = SPECS | {"driven by a number": View(SPECS["parameters"], "continuous").spec}
KINDS = {
    "independent": "independent",
    "shared": "shared",
    "vdn": "vdn",
    "qplex": "qplex",
    "joint": "joint",
    "ar": "ar",
    "ar from the end": AR(order=("b", "y", "a", "x")),
    "ar, a tree": AR(order=("kind", "jump", "spin", "run")),
    "ar, a graph": AR(parents={"x": ("a",), "y": ("a",), "b": ("a", "y")}),
    "ar, a forest": AR(parents={"run": ("kind",), "spin": ("jump",)}),
}
SPEC_OF = {
    "ar from the end": ("hybrid",),
    "ar, a tree": ("one_of",),
    "ar, a graph": ("hybrid",),
    "ar, a forest": ("one_of",),
}
CELLS = [
    (name, spec)
    for name in KINDS
    for spec in SPEC_OF.get(name, tuple(CASES))
    if name != "joint" or spec in ("discrete", "one_of")
    if name not in ("vdn", "qplex") or spec == "hybrid"  # those are `shared`
]
RANGES = {
    "free": {"kind": "squashed"},
    "state": {"kind": "squashed", "state_std": True},
    "clipped": {"kind": "clipped", "log_std": (-2.0, 0.5)},
    "clipped, state": {"kind": "clipped", "state_std": True},
    "beta": {"kind": "beta"},
}
POLICIES = [
    (name, spec, kind)
    for name, spec in CELLS
    for kind in (RANGES if spec in ("hybrid", "driven by a number") else ("state",))
    if not (kind == "beta" and name == "ar, a graph")  # float32 rounds a little above the bound
    # Beta's distribution function has no closed form: test_distributions.py has that.
    if not (kind == "beta" and spec == "driven by a number" and name != "ar")
]


def made(name, spec, kind, seeds=(0, 1, 2), rows=7):
    return Part(
        KINDS[name], "policy", CASES[spec], seeds=seeds, rows=rows, scale=2.0, **RANGES[kind]
    )


def raw_actions(layout, kind, rows=7):
    raw = some_actions(layout, rows=rows)
    if RANGES[kind]["kind"] == "beta":
        raw[..., layout.num_discrete :] = raw[..., layout.num_discrete :] * 0.45 + 0.5
    return raw


def legal_actions(raw, mask, layout):
    """With the first option that the mask allows where another was taken."""
    for h, own in enumerate(mask.split(layout.sizes, dim=-1)):
        taken = own.gather(-1, raw[..., h : h + 1].long())
        raw[..., h : h + 1] = torch.where(taken > 0, raw[..., h : h + 1], own.argmax(-1, True))
    return raw


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("name", "spec", "kind"), POLICIES)
def test_what_is_said_and_its_gradient(name, spec, kind, masked):
    part, acted = made(name, spec, kind), made(name, spec, kind, seeds=(7, 8, 9))
    layout, x = part.layout, observations(rows=7)
    raw, mask = raw_actions(layout, kind), None
    if masked and layout.num_discrete:
        mask = some_mask(layout, rows=7)
        raw = legal_actions(raw, mask, layout)
    unit = to_unit(part.it.table, raw)
    old = room(7, layout.total + 2 * layout.num_continuous)
    y, free = acted.it.outputs(buffer(x), Actions(buffer(raw), buffer(unit)))
    distribution(y, free, buffer(mask), table=acted.it.table, out=old)

    found = part.evaluate(x, raw, mask, old.tensor[:, 0])
    leaf = part.leaf()
    said, before = Said(part, leaf, x, unit, mask), Said(acted, acted.leaf(), x, unit, mask)
    exact = said.log_prob(raw), said.entropy(), before.kl_to(said)
    for ours, theirs in zip((found.log_prob, found.entropy, found.kl), exact, strict=True):
        assert_near(ours, theirs, 3e-6)
    if layout.is_conditional:
        assert (said.used == 0.0).any()
        assert (found.log_prob[said.used == 0.0] == 0.0).all()
        if mask is None:  # else there may be no choice
            assert (found.log_prob[said.used == 1.0] != 0.0).all()
    generator = torch.Generator().manual_seed(5)
    slopes = [torch.randn(raw.shape, generator=generator) for _ in range(3)]
    (wanted,) = torch.autograd.grad(exact, leaf, [slope.double() for slope in slopes])
    assert_near(found.gradient(*slopes), wanted.flatten(1), 5e-6)


@pytest.mark.parametrize(("name", "spec", "kind"), POLICIES)
def test_what_is_drawn_is_said_to_be_as_likely(name, spec, kind):
    part, x = made(name, spec, kind), observations(rows=7)
    table = part.it.table
    raw, unit, log_prob = part.sample(x, uniforms(table.num_uniforms, rows=7))
    assert_near(part.evaluate(x, raw).log_prob, log_prob, 1e-5)
    torch.testing.assert_close(unit, to_unit(table, raw))
    assert (unit[..., part.layout.num_discrete :].abs() <= 1.0).all()
    for h, n in enumerate(part.layout.sizes):
        assert set(unit[..., h].flatten().tolist()) <= set(range(n))


@pytest.mark.parametrize(("name", "spec", "kind"), POLICIES)
def test_options_drawn_are_as_frequent_as_they_are_likely_and_never_forbidden(name, spec, kind):
    """Of the first head and, where it knows the first, of the whole action."""
    rows = 4000
    part = made(name, spec, kind, rows=rows)
    layout = part.layout
    if not layout.num_discrete:
        return
    x = observations(rows=1).expand(MEMBERS, rows, -1)
    mask = some_mask(layout, rows=1).expand(MEMBERS, rows, -1)
    raw, unit, _ = part.sample(x, uniforms(part.it.table.num_uniforms, rows=rows), mask)
    greedy, _ = part.mode(x[:, :7], mask[:, :7])
    said = Said(part, part.leaf(), x, unit, mask)
    for h, allowed in enumerate(mask.split(layout.sizes, dim=-1)):
        for taken, rest in ((raw, allowed), (greedy, allowed[:, :7])):
            assert (rest.gather(-1, taken[..., h : h + 1].long()) > 0.0).all()
        frequency = torch.nn.functional.one_hot(raw[..., h].long(), layout.sizes[h]).double()
        expected = said.heads[h].probs.mean(1)  # given each draw's own prefix
        assert (frequency.mean(1) - expected).abs().max() < 4.5 * 0.5 / rows**0.5


@pytest.mark.parametrize(("name", "spec", "kind"), [c for c in POLICIES if c[2] != "beta"])
def test_the_mode_is_the_most_likely_option_and_the_mean(name, spec, kind):
    part, x = made(name, spec, kind), observations(rows=7)
    raw, unit = part.mode(x)
    said = Said(part, part.leaf(), x, unit)
    for h, head in enumerate(said.heads):
        if part.layout.options[h]:
            assert torch.equal(raw[..., h], head.probs.argmax(-1).float())
        else:
            assert_near(raw[..., h], head.mean, 1e-5)


# --- auto-regressive ------------------------------------------------------------------------------

CHAINS = [
    ("discrete", None), ("discrete", ("c", "a", "b")), ("hybrid", None),
    ("hybrid", ("b", "y", "a", "x")), ("one_of", ("kind", "jump", "spin", "run")),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "order"), CHAINS)
def test_a_head_sees_earlier_heads_and_no_later_one(spec, order):
    part = Part(AR(order=order), "policy", SPECS[spec], scale=2.0, state_std=True)
    layout, x = part.layout, observations()
    raw, _, _ = part.sample(x, uniforms(part.it.table.num_uniforms))
    before = part.evaluate(x, raw).log_prob
    place = [layout.names.index(name) for name in order or SPECS[spec].names]
    for index, head in enumerate(place):
        other = raw.clone()
        n = layout.options[head]
        other[..., head] = (raw[..., head] + 1) % n if n else raw[..., head] + 0.5
        after = part.evaluate(x, other).log_prob
        earlier, later = place[:index], place[index + 1 :]
        assert torch.equal(after[..., earlier], before[..., earlier])
        if spec != "one_of":
            for head in later:
                assert not torch.equal(after[..., head], before[..., head])


def test_heads_apart_see_nothing_of_each_other_and_share_no_parameter():
    part = Part("independent", "policy", SPECS["discrete"])
    x, raw = observations(), some_actions(part.layout)
    slope = torch.zeros(MEMBERS, 5, 3)
    slope[..., 1] = 1.0
    found = part.evaluate(x, raw).gradient(slope, torch.zeros_like(slope))
    by_head = found.view(MEMBERS, 3, -1)
    assert (by_head[:, [0, 2]] == 0.0).all()
    assert (by_head[:, 1] != 0.0).any()


def test_a_mean_penalty_is_that_of_squares_beyond_four():
    plain, held = (
        Part("shared", "policy", SPECS["hybrid"], scale=8.0, mean_penalty=coef)
        for coef in (0.0, 0.3)
    )
    x, raw = observations(), some_actions(plain.layout)
    slopes = [torch.randn(raw.shape, generator=torch.Generator().manual_seed(k)) for k in (0, 1)]
    ours = held.evaluate(x, raw).gradient(*slopes) - plain.evaluate(x, raw).gradient(*slopes)
    leaf = plain.leaf()
    means = torch.stack([h.mean for h in Said(plain, leaf, x, raw).heads[2:]], -1)
    far = torch.where(means.abs() > 4.0, means.square(), 0.0)
    assert 0 < (far > 0).float().mean() < 1
    (wanted,) = torch.autograd.grad(0.3 * far.mean((-1, -2)).sum(), leaf)
    assert_near(ours, wanted.flatten(1), 1e-4)  # a difference of larger numbers
