"""What SAC pays for entropy: the whole of it, or what there is above the target."""

import math

import pytest
import torch
from learners import make_learner, normal

from headwise import ActionSpec, Choice, Range
from headwise.algorithms.base import ReplayBatch
from headwise.population import Stream
from headwise.spaces.action import Condition

FRACTION = (0.5, 0.25)
SPEC = ActionSpec.of(a=Choice(4), x=Range(-1, 1), b=Choice(2))
OPTIONS = ActionSpec.of(a=Choice(4), b=Choice(2))
ALTERNATIVES = ActionSpec(
    ("kind", "left", "right"),
    (Choice(2), Choice(3), Choice(5)),
    (None, Condition(0, 0, 1), Condition(0, 1, 2)),
)


def learner_for(spec, factorization, fraction=FRACTION, rows=6, **settings):
    return make_learner(
        "sac", factorization, spec, envs=4, obs=3, net_arch=(8,), batch_size=rows,
        target_entropy=fraction, ent_coef="auto_0.3", **settings,
    )  # fmt: skip


def some_legal(spec, rows=6):
    """Of each head two options in the first half of the rows, and all of them in the rest."""
    sizes = [n for n in spec.cardinalities if n]
    legal = torch.arange(max(sizes)) < torch.tensor(sizes).unsqueeze(-1)
    legal = legal.expand(2, rows, -1, -1).clone()
    legal[:, : rows // 2, :, 2:] = False
    return legal


def batch_for(spec, rows=6, masked=False):
    obs, following = normal(2, 2, rows, 3)
    action = torch.zeros(2, rows, spec.num_heads)
    action[:, ::3, 0] = 1.0  # of the first head a third takes the second option
    reward, discount = torch.zeros(2, rows), torch.full((2, rows), 0.9)
    legal = some_legal(spec, rows) if masked else None
    return ReplayBatch(obs, action, reward, following, discount, legal, legal)


def following(learner, batch):
    """What the values that follow are in an update, in the order of the learner's heads."""
    learner.update(batch)
    return learner.target.tensor[:, 0] / 0.9


def difference(spec, factorization, masked=False):
    """What the whole entropy pays more to a fresh learner than that above the target."""
    found = [
        following(learner_for(spec, factorization, entropy_bonus=kind), batch_for(spec, 6, masked))
        for kind in ("whole", "above_target")
    ]
    return found[0] - found[1]


def of_heads(spec, worth, factorization):
    """Numbers of the spec's heads (..., H) as the values have them: choices first, or the sum."""
    order = [h for h, head in enumerate(spec.heads) if isinstance(head, Choice)]
    order += [h for h in range(spec.num_heads) if h not in order]
    if factorization != "independent":  # one value for all heads
        return worth.sum(-1, keepdim=True)
    return worth[..., order]


CELLS = [
    (SPEC, "shared"), (SPEC, "vdn"), (SPEC, "qplex"), (SPEC, "ar"), (SPEC, "independent"),
    (OPTIONS, "joint"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "factorization"), CELLS)
def test_at_the_target_entropy_is_worth_nothing(spec, factorization):
    found = difference(spec, factorization)
    by_head = [
        [f * math.log(h.n) if isinstance(h, Choice) else -1.0 for h in spec.heads] for f in FRACTION
    ]
    worth = of_heads(spec, 0.3 * torch.tensor(by_head).unsqueeze(-2), factorization)
    torch.testing.assert_close(found, worth.expand_as(found))


def test_a_head_counts_as_often_as_it_is_in_use():
    found = difference(ALTERNATIVES, "vdn")
    largest = math.log(2) + math.log(3) * 2 / 3 + math.log(5) / 3
    worth = torch.tensor([[[0.3 * f * largest]] for f in FRACTION])
    torch.testing.assert_close(found, worth.expand_as(found))


@pytest.mark.parametrize(("spec", "factorization"), CELLS)
def test_the_target_is_a_share_of_what_is_legal_in_each_state(spec, factorization):
    """With two legal options of each Choice: log 2 each, which is log 4 for a joint action."""
    log2, log4 = math.log(2), math.log(4)
    few, many = [log2, 0.0, log2], [log4, 0.0, log2]
    if spec is OPTIONS:
        few, many = [log2, log2], [log4, log2]
    fraction = torch.tensor(FRACTION).view(-1, 1, 1)
    of_range = torch.tensor([0.0 if isinstance(h, Choice) else -1.0 for h in spec.heads])
    worth = 0.3 * (fraction * torch.tensor([few, few, few, many, many, many]) + of_range)
    worth = of_heads(spec, worth, factorization)
    torch.testing.assert_close(difference(spec, factorization, masked=True), worth)


@pytest.mark.parametrize(("spec", "factorization"), CELLS)
def test_temperatures_aim_at_a_share_of_what_is_legal(spec, factorization):
    learner = learner_for(spec, factorization)
    found = learner.update(batch_for(spec, masked=True))()["heads/target_entropy"]
    choices = [h for h, head in enumerate(spec.heads) if isinstance(head, Choice)]
    if factorization == "joint":
        choices = [0]
    # Of `a` two and then four options are legal, of `b` always two: 1.5 log 2 + log 2 on average.
    assert found[0, choices].sum().item() == pytest.approx(0.5 * 2.5 * math.log(2))
    assert found[1, choices].sum().item() == pytest.approx(0.25 * 2.5 * math.log(2))


def at_its_target(spec, factorization, rows=4000):
    """A learner whose policy over options is uniform, which is its target, and actions of it."""
    learner = learner_for(spec, factorization, fraction=1.0, rows=rows)
    stores = [o.store for name, o in learner.optimizers.items() if name != "alpha"]
    for store in (*stores, learner.target_store):
        store.parameters.tensor.zero_()
    batch = batch_for(spec, rows)
    uniform = learner.keys.uniform(Stream.ACT, 0, (rows, learner.num_uniforms))
    return learner, batch._replace(action=learner.policy(batch.obs, uniform))


@pytest.mark.parametrize("factorization", ["shared", "vdn", "ar", "independent", "joint"])
def test_at_the_target_entropy_is_worth_nothing_where_heads_may_be_idle(factorization):
    spec = ActionSpec(("kind", "a"), (Choice(2), Choice(50)), (None, Condition(0, 0, 1)))
    learner, batch = at_its_target(spec, factorization)
    bonus = following(learner, batch).mean(-2)
    # How often `a` is in use is by chance, once in the batch and once in what follows:
    # a deviation of 0.3 log 50 sqrt(2 / 4 / 4000) = 0.013.
    torch.testing.assert_close(bonus, torch.zeros_like(bonus), atol=0.05, rtol=0.0)
    metrics = learner.update(batch)()
    surplus = (metrics["heads/entropy"] - metrics["heads/target_entropy"]).sum(-1)
    torch.testing.assert_close(surplus, torch.zeros(2), atol=1e-4, rtol=0.0)
    if factorization == "joint":
        assert metrics["heads/target_entropy"][0].sum().item() == pytest.approx(math.log(51))
