"""The kernels of values, mixtures and exploration against the same in tensor operations."""

import pytest
import torch

from headwise import ActionSpec, Choice
from headwise.algorithms.exploring import Exploring
from headwise.algorithms.losses.td_error import TDError
from headwise.factorizations.parts.centring import Given, centred
from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.parts.values import (
    best_options,
    chosen_centred,
    chosen_values,
    with_best,
)
from headwise.nets.mixture import mixture, mixture_slope, tensor_mixture, tensor_slope
from headwise.spaces import Condition

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

MEMBERS, ROWS = 3, 37
SPECS = {
    "unequal": ActionSpec.of(a=Choice(5), b=Choice(2), c=Choice(9)),
    "equal": ActionSpec.of(a=Choice(4), b=Choice(4), c=Choice(4), d=Choice(4)),
    "one": ActionSpec.of(a=Choice(7)),
}
LEGAL = [None, "rows", "everywhere"]


@pytest.fixture
def randoms():
    generator = torch.Generator().manual_seed(0)
    return lambda *shape: torch.randn(*shape, generator=generator)


def actions(layout, randoms):
    """Options (P, B, D), as columns of something wider."""
    wide = randoms(MEMBERS, ROWS, layout.num_heads + 2)
    sizes = torch.tensor(layout.sizes)
    wide[..., 1:-1] = (wide[..., 1:-1].abs() * 5).floor() % sizes
    return wide[..., 1:-1]


def masks(layout, randoms, kind):
    if kind is None:
        return None
    stack = (MEMBERS, ROWS) if kind == "rows" else (1, 1)
    return (randoms(*stack, *layout.mask.shape) > -0.5) & layout.mask


def there(x):
    return x.cuda() if isinstance(x, torch.Tensor) else x


def both(function, spec, inputs, *others):
    """Results and gradients on both devices; `function` is given a layout, inputs and others."""
    found = []
    for move, device in ((lambda x: x, "cpu"), (there, "cuda")):
        given = [move(x.clone()).requires_grad_() for x in inputs]
        out = function(Layout(spec, device), *given, *map(move, others))
        weight = torch.arange(1.0, out.numel() + 1.0).view(out.shape) / out.numel()
        grads = torch.autograd.grad(out, given, move(weight))
        found.append([x.detach().cpu() for x in (out, *grads)])
    for ours, theirs in zip(*found, strict=True):
        assert ours.shape == theirs.shape
        torch.testing.assert_close(theirs, ours, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("kind", LEGAL)
@pytest.mark.parametrize("sums", [False, True])
@pytest.mark.parametrize("conditional", [False, True])
def test_chosen_values(name, kind, sums, conditional, randoms):
    spec, layout = SPECS[name], Layout(SPECS[name])
    heads, most = layout.mask.shape
    action, legal = actions(layout, randoms), masks(layout, randoms, kind)
    in_use = (randoms(MEMBERS, ROWS, heads) > 0).float() if conditional else None
    value, flat = randoms(MEMBERS, ROWS), randoms(MEMBERS, ROWS, layout.total_options)

    def run(stacked):
        return lambda layout, v, a, action, legal, in_use: chosen_values(
            layout, v, a, action, legal, stacked=stacked, sums=sums, in_use=in_use
        )

    both(run(False), spec, [value, flat], action, legal, in_use)
    own = value if sums else randoms(MEMBERS, heads, ROWS)
    both(run(True), spec, [own, randoms(MEMBERS, heads, ROWS, most)], action, legal, in_use)


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("kind", LEGAL)
def test_chosen_advantages_of_twins(name, kind, randoms):
    layout = Layout(SPECS[name])
    action, legal = actions(layout, randoms).long(), masks(layout, randoms, kind)
    twice = action.unsqueeze(1).expand(MEMBERS, 2, *action.shape[1:])
    legal = None if legal is None else legal.unsqueeze(1)
    both(
        chosen_centred, SPECS[name], [randoms(MEMBERS, 2, ROWS, layout.total_options)], twice, legal
    )


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("sums", [False, True])
def test_advantages_centred_under_a_policy(name, sums, randoms):
    layout = Layout(SPECS[name])
    bins = actions(layout, randoms).long()
    masses = torch.where(layout.mask, randoms(MEMBERS, ROWS, *layout.mask.shape).abs(), 0.0)
    masses = masses / masses.sum(-1, keepdim=True)

    def run(layout, value, flat, bins, masses):
        if flat.device.type == "cuda":
            return centred(value, flat, Given(layout, bins, sums=sums, masses=masses))
        raw = layout.pad(flat)
        taken = (raw - (masses * raw).sum(-1, keepdim=True)).gather(-1, bins.unsqueeze(-1))
        each = taken.squeeze(-1)
        return value.unsqueeze(-1) + (each.sum(-1, keepdim=True) if sums else each)

    flat = randoms(MEMBERS, ROWS, layout.total_options)
    both(run, SPECS[name], [randoms(MEMBERS, ROWS), flat], bins, masses)


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("kind", LEGAL)
def test_best_options(name, kind, randoms):
    ours, theirs = Layout(SPECS[name]), Layout(SPECS[name], "cuda")
    heads, most = ours.mask.shape
    legal = masks(ours, randoms, kind)
    flat, own = randoms(MEMBERS, ROWS, ours.total_options), randoms(MEMBERS, heads, ROWS, most)
    flat[0, 0] = torch.nan  # a member that has diverged still acts by what exists
    own[0, :, 0] = torch.nan
    for advantage, stacked in ((flat, False), (own, True)):
        found = best_options(theirs, advantage.cuda(), there(legal), stacked=stacked)
        assert torch.equal(found.cpu(), best_options(ours, advantage, legal, stacked=stacked))
    action = torch.full((MEMBERS, ROWS, heads), 7.0)
    for head in range(heads):
        found = with_best(theirs, head, own[:, head].cuda(), there(legal), action.cuda())
        assert torch.equal(found.cpu(), with_best(ours, head, own[:, head], legal, action))


def test_heads_in_use(randoms):
    spec = ActionSpec(
        ("kind", "run", "jump", "spin"),
        (Choice(3), Choice(4), Choice(2), Choice(2)),
        (None, Condition(0, 0, 1), Condition(0, 1, 2), Condition(2, 1, 2)),
    )
    ours, theirs = Layout(spec), Layout(spec, "cuda")
    action = actions(ours, randoms)
    twins = action.unsqueeze(1).expand(MEMBERS, 2, *action.shape[1:])
    for x in (action, twins, action.long()):
        assert torch.equal(theirs.active(x.cuda()).cpu(), ours.active(x.float()))


@pytest.mark.parametrize(("stack", "heads", "width"), [((2, 5), 3, 128), ((3, 2, 7), 2, 33)])
@pytest.mark.parametrize("based", [False, True])
def test_mixtures(stack, heads, width, based, randoms):
    sizes = ((*stack, heads), (*stack, heads * width), (*stack, width), stack)
    ours = [randoms(*size).requires_grad_() for size in sizes[: 3 + based]]
    theirs = [x.detach().cuda().requires_grad_() for x in ours]
    expected, found = tensor_mixture(*ours[:3]), mixture(*theirs)
    expected = expected + ours[3] if based else expected
    weight = randoms(*stack)
    known = torch.autograd.grad(expected, ours, weight)
    grads = torch.autograd.grad(found, theirs, weight.cuda())
    slopes = tensor_slope(*ours[:3]), mixture_slope(*theirs[:3])
    for x, y in ((expected, found), slopes, *zip(known, grads, strict=True)):
        torch.testing.assert_close(y.cpu(), x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("share", [None, 0.5, 0.0])
@pytest.mark.parametrize(("span", "now"), [(0.0, 0), (64.0, 16), (64.0, 400)])
def test_exploring_chooses_the_same(name, share, span, now, randoms):
    """Uniforms are on a grid of 2^-24; half of them lie next to where one option gives way."""
    spec, layout = SPECS[name], Layout(SPECS[name])
    heads, slots = layout.num_heads, 400
    generator = torch.Generator().manual_seed(1)
    uniform = torch.randint(2**24, (MEMBERS, 2, slots, heads), generator=generator)
    sizes = torch.tensor(layout.sizes)
    edges = (uniform[:, 1] % (sizes + 1)) * 2**24 // sizes
    near = edges + torch.randint(-2, 3, edges.shape, generator=generator)
    uniform[:, 1, ::2] = near[:, ::2].clamp(0, 2**24 - 1)
    uniform = uniform / 2**24
    best = (uniform[:, 0] * sizes).floor()
    legal = None
    if share is not None:
        legal = torch.rand(MEMBERS, slots, *layout.mask.shape, generator=generator) < share
        legal = legal & layout.mask
    found = []
    for device in ("cpu", "cuda"):
        start, end = (torch.tensor(x, device=device) for x in ([0.9, 0.5, 0.25], [0.9, 0.25, 0.75]))
        one = Exploring(Layout(spec, device), start, end, span)
        one.steps.set(now)
        mask = None if legal is None else legal.to(device)
        found.append(one.choose(best.to(device), uniform.to(device), mask).cpu())
    assert torch.equal(*found)


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("huber", [False, True])
def test_slopes_of_errors(columns, conditional, huber, randoms):
    rows = 300
    drawn, own = randoms(MEMBERS, rows, 9), randoms(MEMBERS, columns, rows).transpose(1, 2)
    shared = randoms(MEMBERS, rows, 1).expand(MEMBERS, rows, columns)
    in_use = None
    if conditional:
        in_use = (randoms(MEMBERS, rows, columns) > 0).float()
        in_use[1] = 0.0
    for following in (own, shared):
        parts = (
            2.0 * randoms(MEMBERS, rows, columns), drawn[..., 4:5], drawn[..., 5:6], following,
        )  # fmt: skip
        ours = TDError(*parts, 0.5, in_use, huber).slope()
        theirs = TDError(*map(there, parts), 0.5, there(in_use), huber).slope()
        torch.testing.assert_close(theirs.cpu(), ours, rtol=1e-5, atol=1e-6)
