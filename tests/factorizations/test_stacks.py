"""Networks of every head are one stacked axis: as many tensors and kernels for two heads as ten."""

import pytest
import torch
from cases import make, observations

from headwise import ActionSpec, Choice, Range
from headwise.factorizations.parts.stacks import for_each_head
from headwise.population import Keys, Stream

TWO = ActionSpec.of([Choice(3), Range(-1, 1)])
TEN = ActionSpec.of([Choice(3), Range(-1, 1)] * 5)
OPTIONS = ActionSpec.of([Choice(3)] * 10)


@pytest.mark.parametrize(
    ("name", "what"),
    [("independent", "policy"), ("independent", "critic"), ("ar", "policy")],
)
def test_parameters_do_not_multiply_with_heads(name, what):
    few, many = (list(make(name, what, spec).parameters()) for spec in (TWO, TEN))
    assert len(few) == len(many)
    layers = [p for p in many if p.dim() > 3]
    assert layers
    assert all(p.shape[:2] == (3, 10) for p in layers)  # member, head


@pytest.mark.parametrize("name", ["independent", "ar"])
def test_values_have_a_network_for_each_head_in_one_tensor(name):
    stacked = [p for p in make(name, "value", OPTIONS).parameters() if p.dim() > 3]
    assert stacked
    assert all(p.shape[:2] == (3, 10) for p in stacked)


def test_a_head_of_a_stack_is_what_the_whole_stack_says_of_it():
    policy = make("independent", "policy", TEN, state_std=True)
    obs = observations()
    uniform = Keys((0, 1, 2)).uniform(Stream.ACT, 0, (5, policy.num_uniforms))
    with torch.no_grad():
        raw, _ = policy.sample(obs, uniform)
        for head in range(10):
            said = policy.stack.outputs_of(head, obs)
            alone = policy.stack.draw_from(head, said, uniform)
            torch.testing.assert_close(alone, raw[..., head])
            best = policy.stack.draw_from(head, said, None)
            assert torch.equal(best, policy.mode(obs)[..., head])


def test_inputs_are_shared_without_a_copy():
    obs = observations()
    wide = for_each_head(obs, 7)
    assert wide.shape == (3, 7, 5, 4)
    assert wide.data_ptr() == obs.data_ptr()
