"""How `join.py` describes an embedding to its kernels, against the embedding itself."""

import pytest
import torch

from headwise.factorizations.parts.join import Columns
from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.parts.prefix import Prefix
from headwise.spaces import ActionSpec, Choice, Range

SPECS = [
    ActionSpec.of(x=Range(-1, 1), a=Choice(4), y=Range(0, 1), b=Choice(2)),
    ActionSpec.of(a=Choice(3, ordered=True), b=Choice(3), x=Range(-1, 1)),
    ActionSpec.of(a=Choice(5, ordered=True), b=Choice(2, ordered=True)),
    ActionSpec.of(x=Range(-1, 1)),
]


def by_columns(columns, action):
    """What the kernel computes, in tensor operations."""
    owned = action[..., columns.owner]
    numbers = owned * columns.scale + columns.shift
    return torch.where(columns.match >= 0, (owned == columns.match).float(), numbers)


def some_actions(spec, rows=40):
    generator = torch.Generator().manual_seed(1)
    columns = [
        torch.randint(n, (2, rows), generator=generator).float()
        if n
        else torch.rand(2, rows, generator=generator)
        for n in spec.cardinalities
    ]
    return torch.stack(columns, -1)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_columns_describe_the_embedding(spec):
    prefix, action = Prefix(Layout(spec)), some_actions(spec)
    assert torch.equal(by_columns(prefix.columns, action), prefix.embed(action))
    for head in range(spec.num_heads):
        owned = torch.nonzero(prefix.columns.owner == head).flatten().tolist()
        first = int(prefix.columns.column_of[head])
        assert owned == list(range(first, first + len(owned)))  # the kernels count from the first


def test_numbers_as_they_are():
    action = torch.rand(2, 5, 3)
    assert torch.equal(by_columns(Columns.of_numbers(3, torch.device("cpu")), action), action)


def test_twins_see_observations_and_the_whole_action():
    prefix, action = Prefix(Layout(SPECS[0])), some_actions(SPECS[0])
    obs = torch.rand(2, 40, 6)
    x = prefix.for_twins(obs, action)
    assert x.shape == (2, 2, 40, 6 + prefix.size)
    for twin in x.unbind(1):
        assert torch.equal(twin, torch.cat([obs, prefix.embed(action)], -1))


def test_relaxed_options_are_one_of_each_head_and_have_gradients():
    layout = Layout(SPECS[0])
    prefix, action = Prefix(layout), some_actions(SPECS[0])
    obs, noise = torch.rand(2, 40, 6), torch.rand(2, 40, 2 * 4)
    logits = layout.masked(torch.randn(2, 40, 2, 4)).requires_grad_()
    x = prefix.relaxed_for_twins(obs, action, logits.log_softmax(-1), noise, torch.tensor(0.5))
    embedded = x[:, 1, :, 6:]
    assert (embedded[..., :4].sum(-1) == 1).all()
    assert (embedded[..., 4:6].sum(-1) == 1).all()
    assert torch.equal(embedded[..., 6:], action[..., [0, 2]])
    (x * torch.arange(x.shape[-1])).sum().backward()
    assert (logits.grad[..., 0, :] != 0).any()
    assert (logits.grad[..., 1, 2:] == 0).all()  # that option does not exist
