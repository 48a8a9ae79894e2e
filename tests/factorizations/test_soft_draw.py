"""What SAC draws from an actor, against the actor's own way of drawing and judging."""

import pytest
import torch

from headwise.factorizations.base import Blueprint
from headwise.factorizations.layout import Layout
from headwise.factorizations.shared import SharedPolicy
from headwise.factorizations.soft_draw import draw, draw_units
from headwise.population import Initializer, Keys
from headwise.spaces import ActionSpec, Choice, Range

SPECS = {
    "mixed": ActionSpec.of(x=Range(-1, 1), a=Choice(4), y=Range(0, 1), b=Choice(2)),
    "in order": ActionSpec.of(a=Choice(3), b=Choice(3), x=Range(-1, 1)),
    "options": ActionSpec.of(a=Choice(3), b=Choice(5)),
    "numbers": ActionSpec.of(x=Range(-1, 1), y=Range(-1, 1)),
}


def actor_for(spec, device="cpu"):
    keys = Keys((0, 1, 2), device)
    return SharedPolicy(
        Blueprint(
            layout=Layout(spec, device),
            obs_size=4,
            init=Initializer(keys),
            hidden=(16,),
            activation="tanh",
            branch_width=8,
            state_std=True,
            log_std_bounds=(-5.0, 1.0),
            policy_gain=1.5,
        )
    )


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
