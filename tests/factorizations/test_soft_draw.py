"""What SAC draws from an actor, against the actor's own way of drawing and judging."""

import pytest
import torch

from headwise.factorizations.ar import ARPolicy
from headwise.factorizations.base import Blueprint, Judged
from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.parts.stacks import PolicyStack, for_each_head
from headwise.factorizations.shared import SharedPolicy
from headwise.factorizations.soft.draw import draw, draw_stack, draw_units
from headwise.population import Initializer, Keys
from headwise.spaces import ActionSpec, Choice, Range

SPECS = {
    "mixed": ActionSpec.of(x=Range(-1, 1), a=Choice(4), y=Range(0, 1), b=Choice(2)),
    "in order": ActionSpec.of(a=Choice(3), b=Choice(3), x=Range(-1, 1)),
    "options": ActionSpec.of(a=Choice(3), b=Choice(5)),
    "numbers": ActionSpec.of(x=Range(-1, 1), y=Range(-1, 1)),
}


def blueprint(spec):
    return Blueprint(
        layout=Layout(spec),
        obs_size=4,
        init=Initializer(Keys((0, 1, 2))),
        hidden=(16,),
        activation="tanh",
        branch_width=8,
        state_std=True,
        log_std_bounds=(-5.0, 1.0),
        policy_gain=1.5,
    )


def actor_for(spec):
    return SharedPolicy(blueprint(spec))


def some(rows, columns):
    generator = torch.Generator().manual_seed(5)
    obs = torch.randn(3, rows, 4, generator=generator)
    return obs, torch.rand(3, rows, columns, generator=generator)


@pytest.mark.parametrize("name", SPECS)
def test_the_same_as_drawing_and_then_judging(name):
    spec = SPECS[name]
    actor = actor_for(spec)
    obs, uniform = some(50, actor.num_uniforms)
    drawn = draw(actor, obs, uniform)
    raw, judged = actor.sample(obs, uniform)
    torch.testing.assert_close(drawn.unit, actor.to_unit(raw))
    assert torch.equal(draw_units(actor, obs, uniform), drawn.unit)
    assert drawn.in_use is None
    exact = judged.heads.entropy()
    for h, size in enumerate(spec.cardinalities):
        expected = exact[..., h] if size else -judged.log_prob[..., h]
        torch.testing.assert_close(drawn.entropy[..., h], expected)
    if spec.num_choices:
        torch.testing.assert_close(drawn.log_probs, judged.heads.log_probs)
    else:
        assert drawn.log_probs is None


def test_masks_are_kept():
    actor = actor_for(SPECS["mixed"])
    obs, uniform = some(50, actor.num_uniforms)
    legal = torch.zeros(3, 50, 2, 4, dtype=torch.bool)
    legal[..., 1] = True
    for unit in (draw(actor, obs, uniform, legal).unit, draw_units(actor, obs, uniform, legal)):
        assert (unit[..., [1, 3]] == 1).all()


@pytest.mark.parametrize("order", [None, ("z", "x", "y")])
def test_a_chain_is_drawn_and_judged_on_the_way(order):
    """As when all heads are judged again, given what was drawn; and so are the gradients."""
    spec = ActionSpec.of(x=Range(-1, 1), y=Range(0, 1), z=Range(-1, 1))
    chain = ARPolicy(blueprint(spec), order).double()  # judging again, large slopes cancel out
    obs, uniform = (x.double() for x in some(50, chain.num_uniforms))
    drawn = draw(chain, obs, uniform)
    raw, _ = chain.sample(obs, uniform)
    log_prob = chain.judge(obs, raw).log_prob
    torch.testing.assert_close(drawn.unit, chain.to_unit(raw))
    torch.testing.assert_close(drawn.entropy, -log_prob)
    assert drawn.log_probs is None
    assert drawn.in_use is None
    with torch.no_grad():
        assert torch.equal(draw_units(chain, obs, uniform), drawn.unit)
    weights = torch.randn(2, *raw.shape, generator=torch.Generator().manual_seed(1))
    ours, theirs = (
        torch.autograd.grad((weights[0] * unit + weights[1] * entropy).sum(), chain.parameters())
        for unit, entropy in ((drawn.unit, drawn.entropy), (chain.to_unit(raw), -log_prob))
    )
    for x, y in zip(ours, theirs, strict=True):
        torch.testing.assert_close(x, y)


def test_a_network_for_each_head():
    stack = PolicyStack(blueprint(SPECS["numbers"]), 4)
    obs, uniform = some(50, stack.num_uniforms)
    unit, entropy = draw_stack(stack, obs, uniform)
    raw, log_prob = stack.heads(for_each_head(obs, 2)).sample(uniform)
    assert torch.equal(unit, torch.tanh(raw))
    assert torch.equal(entropy, -log_prob)


def test_distributions_are_made_when_asked_for():
    chain = ARPolicy(blueprint(SPECS["mixed"]), None)
    obs, uniform = some(50, chain.num_uniforms)
    raw, judged = chain.sample(obs, uniform)
    made = []

    def heads():
        made.append(judged.heads)
        return judged.heads

    later = Judged(judged.log_prob, heads, raw)
    assert later.log_prob is judged.log_prob
    assert not made
    assert torch.equal(later.entropy, judged.entropy)
    assert later.heads is judged.heads
    assert len(made) == 1
