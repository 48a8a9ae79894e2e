"""What the compiled module does with actions, against tensor operations and by hand."""

import math

import pytest
import torch

from headwise import _core
from headwise.errors import EnvError
from headwise.factorizations.parts import prefix as prefix_module
from headwise.factorizations.parts import values
from headwise.factorizations.parts.layout import NEVER, Layout
from headwise.factorizations.parts.options_compiled import (
    can_compile,
    centre_options,
    is_compiled,
    relax_options,
    soft_options,
)
from headwise.factorizations.parts.prefix import Prefix
from headwise.factorizations.parts.values import chosen_centred, chosen_values
from headwise.factorizations.shared import SharedPolicy
from headwise.factorizations.soft import branching as soft_branching
from headwise.factorizations.soft import draw as soft_draw
from headwise.factorizations.soft import worth
from headwise.factorizations.soft.branching import BranchingSoft
from headwise.spaces import ActionSpec, Choice, Range

from cases import OBS, ONE_OF, blueprint  # isort: skip

SPECS = {
    "mixed": ActionSpec.of(x=Range(-1, 1), a=Choice(4), y=Range(0, 1), b=Choice(2, ordered=True)),
    "in order": ActionSpec.of(a=Choice(3), b=Choice(3), x=Range(-1, 1)),
    "options": ActionSpec.of(a=Choice(3), b=Choice(5, ordered=True), c=Choice(1)),
    "numbers": ActionSpec.of(x=Range(-1, 1), y=Range(-1, 1)),
    "wide": ActionSpec.of(a=Choice(64), b=Choice(7)),
}
WITH_OPTIONS = [name for name in SPECS if name != "numbers"]
ROWS = 37  # no multiple of the sixteen that are worked on at once


@pytest.fixture
def by_tensors(monkeypatch):
    """Does something in tensor operations alone."""

    def call(something):
        with monkeypatch.context() as patch:
            for module in (prefix_module, soft_branching, soft_draw, values, worth):
                for name in ("can_compile", "is_compiled"):
                    if hasattr(module, name):
                        patch.setattr(module, name, lambda *_: False)
            return something()

    return call


def numbers(*shape, seed=0, scale=1.0):
    return scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def uniforms(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def slopes(found, by):
    """The gradients of a sum of everything found with some weights.

    What no option stands for counts nothing: nobody asks for its log-probability.
    """
    parts = [
        x.masked_fill(x < 0.5 * NEVER, 0.0) for x in found if x is not None and x.requires_grad
    ]
    total = sum((numbers(*x.shape, seed=9 + i) * x).sum() for i, x in enumerate(parts))
    return torch.autograd.grad(total, by)


def same(ours, theirs, **tolerance):
    for x, y in zip(ours, theirs, strict=True):
        if x is not None:
            torch.testing.assert_close(x, y, **({"rtol": 1e-6, "atol": 1e-6} | tolerance))


def test_an_option_is_the_first_whose_cumulative_probability_exceeds_the_number():
    layout = Layout(ActionSpec.of(a=Choice(3)))
    logits = torch.tensor([0.2, 0.3, 0.5]).log() + 7.0
    given = torch.tensor([0.0, 0.19, 0.21, 0.49, 0.51, 1.0 - 2.0**-24])
    unit, entropy, log_probs = soft_draw._DrawHeads.apply(
        logits.expand(1, 6, 3), given.view(1, 6, 1), layout, (-5.0, 1.0), False
    )
    assert unit.flatten().tolist() == [0, 0, 1, 1, 2, 2]
    by_hand = -sum(p * math.log(p) for p in (0.2, 0.3, 0.5))
    torch.testing.assert_close(entropy.flatten(), torch.full((6,), by_hand))
    torch.testing.assert_close(log_probs[0, 0, 0], torch.tensor([0.2, 0.3, 0.5]).log())


def test_what_is_drawn_is_never_an_option_that_does_not_exist():
    layout = Layout(SPECS["options"])
    given = uniforms(2, 5000, 3)
    given[0] = 1.0 - 2.0**-24
    outputs = numbers(2, 5000, 9, scale=20.0)
    unit, _, log_probs = soft_draw._DrawHeads.apply(outputs, given, layout, (-5.0, 1.0), False)
    assert (unit < torch.tensor([3, 5, 1])).all()
    assert (log_probs[~layout.mask.expand_as(log_probs)] == NEVER).all()


@pytest.mark.parametrize("name", SPECS)
def test_draws_are_those_of_tensor_operations(name, by_tensors):
    actor = SharedPolicy(blueprint(SPECS[name], state_std=True, policy_gain=2.0))
    obs = numbers(3, ROWS, OBS)
    wide = uniforms(3, ROWS, actor.num_uniforms + 2)
    uniform = wide[..., 1:-1]  # some columns of wider rows
    found, parameters = [], list(actor.parameters())
    for way in (lambda f: f(), by_tensors):
        drawn = way(lambda: soft_draw.draw(actor, obs, uniform))
        found.append((drawn, slopes(drawn[:3], parameters)))
        assert torch.equal(way(lambda: soft_draw.draw_units(actor, obs, uniform)), drawn.unit)
    (ours, our_slopes), (theirs, their_slopes) = found
    choices = actor.layout.choices
    assert torch.equal(ours.unit[..., choices], theirs.unit[..., choices])
    same(ours[:2], theirs[:2], atol=3e-6)
    same(ours[2:3], theirs[2:3])
    assert ours.in_use is None
    same(our_slopes, their_slopes, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("part", [0, 1, 2])
def test_the_gradient_of_each_part_of_a_draw(part, by_tensors):
    """Of entropies alone, for instance; what nobody asks for has none."""
    actor = SharedPolicy(blueprint(SPECS["mixed"], state_std=True))
    obs, uniform = numbers(3, ROWS, OBS), uniforms(3, ROWS, 4)
    ours, theirs = (
        slopes([way(lambda: soft_draw.draw(actor, obs, uniform))[part]], list(actor.parameters()))
        for way in (lambda f: f(), by_tensors)
    )
    same(ours, theirs, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", WITH_OPTIONS)
@pytest.mark.parametrize("softness", [2.0, 0.5, 0.05])
def test_relaxed_options_are_those_of_tensor_operations(name, softness, by_tensors):
    layout = Layout(SPECS[name])
    prefix, heads = Prefix(layout), (layout.num_choices, layout.max_options)
    logits = layout.masked(numbers(2, ROWS, *heads)).requires_grad_()
    unit = uniforms(2, ROWS, layout.num_heads).requires_grad_()
    obs, noise = numbers(2, ROWS, 6)[..., 1:], uniforms(2, ROWS, math.prod(heads))
    noise[0, :3] = torch.tensor([0.0, 0.5, 1.0 - 2.0**-24])[:, None]
    found = []
    for way in (lambda f: f(), by_tensors):
        x = way(
            lambda: prefix.relaxed_for_twins(
                obs, unit, logits.log_softmax(-1), noise, torch.tensor(softness)
            )
        )
        used = [logits, unit] if layout.num_ranges else [logits]
        found.append((x, slopes([x], used)))
    (ours, our_slopes), (theirs, their_slopes) = found
    assert torch.equal(ours, theirs)
    same(our_slopes, their_slopes, rtol=1e-5 / softness, atol=1e-5 / softness)


@pytest.mark.parametrize("name", SPECS)
def test_embedded_actions_are_those_of_tensor_operations(name, by_tensors):
    layout = Layout(SPECS[name])
    prefix, obs = Prefix(layout), numbers(2, ROWS, 8)[..., 2:]
    options = [torch.randint(n, (2, ROWS)).float() for n in layout.sizes]
    choices = torch.stack(options, -1) if options else None
    ranges = uniforms(2, ROWS, layout.num_ranges) if layout.num_ranges else None
    action = layout.columns(choices, ranges)
    ours = prefix.for_twins(obs, action)
    assert torch.equal(ours, by_tensors(lambda: prefix.for_twins(obs, action)))
    with_gradient = action.clone().requires_grad_()
    assert torch.equal(ours, prefix.for_twins(obs, with_gradient))
    assert prefix.for_twins(obs, with_gradient).requires_grad == (name != "wide")


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_soft_values_are_those_of_tensor_operations(name, by_tensors):
    soft = BranchingSoft(blueprint(SPECS[name], state_std=True))
    critic, obs = soft.make_critic(), numbers(3, ROWS, OBS)
    uniform, alpha = uniforms(3, ROWS, soft.num_uniforms), uniforms(3, soft.layout.num_heads) + 0.1
    found = []
    for way in (lambda f: f(), by_tensors):
        value, entropy, in_use = way(lambda: soft._soft(critic, obs, uniform, alpha, None))
        assert in_use is None
        found.append(((value, entropy), slopes([value], list(critic.parameters()))))
    (ours, our_slopes), (theirs, their_slopes) = found
    same(ours, theirs, rtol=3e-6, atol=3e-6)
    same(our_slopes, their_slopes, rtol=1e-4, atol=1e-4)


def test_soft_values_by_hand():
    layout = Layout(ActionSpec.of(a=Choice(2), b=Choice(3)))
    value = torch.tensor([[[1.0], [0.0]]])
    flat = torch.tensor([[[[3.0, 3.0, 0.0, -50.0, -50.0]], [[0.0, -90.0, 5.0, 5.0, 5.0]]]])
    total, entropy = soft_options(layout, value, flat, torch.tensor([[0.5, 2.0]]))
    # The first critic says 1 + 0.5 log 2 + 0, the second 0 + 0 + 2 log 3, which is more.
    torch.testing.assert_close(total, torch.tensor([[1.0 + 0.5 * math.log(2.0)]]))
    torch.testing.assert_close(entropy, torch.tensor([[[math.log(2.0), 0.0]]]), atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["options", "wide"])
@pytest.mark.parametrize("sums", [True, False])
def test_chosen_advantages_are_those_of_tensor_operations(name, sums, by_tensors):
    layout = Layout(SPECS[name])
    flat = numbers(3, 2, ROWS, layout.total_options).requires_grad_()
    value = numbers(3, 2, ROWS, seed=1).requires_grad_()
    taken = torch.stack([torch.randint(n, (3, ROWS)).float() for n in layout.sizes], -1)
    action = taken.unsqueeze(1).expand(3, 2, ROWS, layout.num_heads)  # as twins have it
    found = []
    for way in (lambda f: f(), by_tensors):
        both = way(lambda: chosen_values(layout, value, flat, action, sums=sums))
        alone = way(lambda: chosen_centred(layout, flat, action))
        found.append(((both, alone), slopes([both, alone], [value, flat])))
    same(found[0][0], found[1][0])
    same(found[0][1], found[1][1], atol=3e-6)


def test_an_option_that_does_not_exist_is_refused():
    layout = Layout(SPECS["options"])
    for wrong in (3.0, -1.0, float("nan")):
        taken = torch.tensor([[[wrong, 0.0, 0.0]]])
        with pytest.raises(EnvError, match="does not exist"):
            centre_options(layout, None, torch.zeros(1, 1, 9), taken, sums=False)


@pytest.mark.parametrize("columns", [1, 3])
def test_the_lesser_is_that_of_tensor_operations(columns, by_tensors):
    twins = numbers(3, 2, ROWS, columns).requires_grad_()
    entropy, alpha = numbers(3, ROWS, 4, seed=1).requires_grad_(), uniforms(3, 4)
    ours, theirs = worth.lesser(twins), by_tensors(lambda: worth.lesser(twins))
    assert torch.equal(ours, theirs)
    same(slopes([ours], [twins]), slopes([theirs], [twins]))
    if columns == 1:
        ours, theirs = (
            way(lambda: worth.worth(twins, entropy, alpha)) for way in (lambda f: f(), by_tensors)
        )
        same([ours], [theirs])
        same(slopes([ours], [twins, entropy]), slopes([theirs], [twins, entropy]))


def found_for(layout, members, spoilt=None):
    """Everything that these kernels find for some of three members, values and gradients."""
    prefix, heads = Prefix(layout), (layout.num_choices, layout.max_options)
    rows, options = (len(members), ROWS), layout.total_options
    outputs = numbers(3, ROWS, 2 * layout.num_ranges + options)
    if spoilt is not None:
        outputs[spoilt, 5] = torch.nan
    outputs = outputs[members].requires_grad_()
    uniform = uniforms(3, ROWS, layout.num_heads)[members]
    unit, entropy, log_probs = soft_draw._DrawHeads.apply(
        outputs, uniform, layout, (-5.0, 1.0), False
    )
    x = relax_options(
        prefix.columns, layout, numbers(3, ROWS, 6)[members], log_probs,
        uniforms(3, ROWS, math.prod(heads), seed=3)[members], torch.tensor(0.3), unit,
    )  # fmt: skip
    flat = numbers(3, 2, ROWS, options, seed=4)
    value = numbers(3, 2, ROWS, seed=5)
    if spoilt is not None:
        flat[spoilt, 1, 7, 0] = value[spoilt, 0, 20] = torch.nan
    flat, value = flat[members].requires_grad_(), value[members].requires_grad_()
    total, of_options = soft_options(layout, value, flat, uniforms(3, layout.num_heads)[members])
    picked = centre_options(layout, value, flat, unit.detach()[:, None, :, layout.choices].expand(
        len(members), 2, ROWS, layout.num_choices), sums=True)  # fmt: skip
    gain = worth.worth(picked, entropy, uniforms(3, layout.num_heads, seed=6)[members])
    given = [outputs, flat, value]
    weights = [numbers(3, *part.shape[1:], seed=7)[members] for part in (x, entropy, total, gain)]
    parts = zip(weights, (x, entropy, total, gain), strict=True)
    back = torch.autograd.grad(sum((w * part).sum() for w, part in parts), given)
    assert unit.shape[:2] == rows
    return [unit, entropy, log_probs, x, total, of_options, picked, gain, *back]


@pytest.mark.parametrize("name", ["mixed", "in order"])
def test_a_member_alone_is_the_same_to_the_bit(name):
    layout = Layout(SPECS[name])
    together = found_for(layout, [0, 1, 2])
    for member in range(3):
        for ours, all_of_them in zip(found_for(layout, [member]), together, strict=True):
            assert torch.equal(ours[0], all_of_them[member])


def test_what_is_not_a_number_is_found_out_and_stays_with_its_member():
    layout = Layout(SPECS["mixed"])
    clean, spoilt = found_for(layout, [0, 1, 2]), found_for(layout, [0, 1, 2], spoilt=1)
    for x, y in zip(clean, spoilt, strict=True):
        assert torch.equal(x[[0, 2]], y[[0, 2]])
    _, entropy, log_probs, _, total, _, picked, gain, *back = spoilt
    assert entropy[1, 5].isnan().all()
    assert log_probs[1, 5, 0].isnan().all()
    assert total[1, [7, 20]].isnan().all()
    assert picked[1, 1, 7].isnan().all()
    assert picked[1, 0, 20].isnan().all()
    assert gain[1, [5, 7, 20]].isnan().all()
    assert all(x[1].isnan().any() for x in back[:2])


def test_what_the_compiled_module_does_not_take():
    plain, x = Layout(SPECS["mixed"]), torch.zeros(1)
    assert can_compile(plain, x)
    assert is_compiled(x)
    assert not can_compile(plain, x.double())
    assert not can_compile(Layout(ONE_OF), x)
    assert not can_compile(Layout(SPECS["numbers"]), x)
    assert not can_compile(Layout(ActionSpec.of(a=Choice(65))), x)


def test_tables_that_lie_outside_are_refused():
    layout = Layout(SPECS["in order"])
    outputs, uniform = numbers(5, 8).numpy(), uniforms(5, 3).numpy()
    found = [torch.empty(5, 3).numpy(), torch.empty(5, 3).numpy(), torch.empty(5, 2, 3).numpy()]
    found.append(torch.empty(5, 1).numpy())
    tables = [x.numpy() for x in (layout.bounds, layout.choices, layout.ranges)]
    _core.draw_heads(outputs, uniform, *tables, -5.0, 3.0, *found)
    for i, table in enumerate(([0, 3, 7], [0, 3], [-1])):
        wrong = list(tables)
        wrong[i] = tables[i].copy()
        wrong[i][:] = table
        with pytest.raises(EnvError):
            _core.draw_heads(outputs, uniform, *wrong, -5.0, 3.0, *found)
