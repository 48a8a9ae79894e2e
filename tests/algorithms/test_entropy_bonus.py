"""What SAC pays for entropy: the whole of it, or what there is above the target."""

import math

import pytest
import torch

from headwise import ActionSpec, Choice, Range
from headwise.algorithms import algorithms
from headwise.algorithms.base import ReplayBatch, Task
from headwise.factorizations import factorizations
from headwise.population import Keys, Stream
from headwise.spaces.action import Condition

FRACTION = (0.5, 0.25)
SPEC = ActionSpec.of(a=Choice(4), x=Range(-1, 1), b=Choice(2))
OPTIONS = ActionSpec.of(a=Choice(4), b=Choice(2))
ALTERNATIVES = ActionSpec(
    ("kind", "left", "right"),
    (Choice(2), Choice(3), Choice(5)),
    (None, Condition(0, 0, 1), Condition(0, 1, 2)),
)


def learner_for(spec, factorization, fraction=FRACTION, **settings):
    task = Task(
        spec=spec, obs_size=3, num_slots=4, total_steps=100,
        factorization=factorizations.get(factorization)(), keys=Keys((0, 1)),
    )  # fmt: skip
    config = algorithms.get("sac")(
        hidden=(8,), target_entropy=fraction, first_temperature=0.3, **settings
    )
    return config.build(task), task.keys


def some_legal(spec, rows=6):
    """Of each head two options in the first half of the rows, and all of them in the rest."""
    sizes = [n for n in spec.cardinalities if n]
    legal = torch.arange(max(sizes)) < torch.tensor(sizes).unsqueeze(-1)
    legal = legal.expand(2, rows, -1, -1).clone()
    legal[:, : rows // 2, :, 2:] = False
    return legal


def batch_for(spec, rows=6, masked=False):
    torch.manual_seed(0)
    obs, following = torch.randn(2, 2, rows, 3).unbind(0)
    action = torch.zeros(2, rows, spec.num_heads)
    action[:, ::3, 0] = 1.0  # of the first head a third takes the second option
    reward, discount = torch.zeros(2, rows), torch.full((2, rows), 0.9)
    legal = some_legal(spec, rows) if masked else None
    return ReplayBatch(obs, action, reward, following, discount, legal, legal)


def targets_of(spec, factorization, masked=False, **settings):
    """What the critics of a fresh learner are trained towards, (P, B, G)."""
    learner, keys = learner_for(spec, factorization, **settings)
    return listened(learner, keys, batch_for(spec, masked=masked))


def listened(learner, keys, batch):
    """What the values that follow are in an update."""
    found = []
    errors = learner._errors

    def listening(predicted, following, batch):
        found.append(following.clone())
        return errors(predicted, following, batch)

    learner._errors = listening
    learner.update(batch, keys.at(0))
    return found[0]


CELLS = [
    (SPEC, "shared"), (SPEC, "vdn"), (SPEC, "qplex"), (SPEC, "ar"), (SPEC, "independent"),
    (OPTIONS, "joint"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "factorization"), CELLS)
def test_at_the_target_entropy_is_worth_nothing(spec, factorization):
    whole = targets_of(spec, factorization, entropy_bonus="whole")
    above = targets_of(spec, factorization, entropy_bonus="above_target")
    by_head = [
        [f * math.log(h.n) if isinstance(h, Choice) else -1.0 for h in spec.heads] for f in FRACTION
    ]
    worth = 0.3 * torch.tensor(by_head).unsqueeze(-2)  # (P, 1, H)
    if factorization != "independent":  # one value for all heads
        worth = worth.sum(-1, keepdim=True)
    torch.testing.assert_close(whole - above, worth.expand_as(whole))


def test_a_head_counts_as_often_as_it_is_in_use():
    whole = targets_of(ALTERNATIVES, "vdn", entropy_bonus="whole")
    above = targets_of(ALTERNATIVES, "vdn", entropy_bonus="above_target")
    largest = math.log(2) + math.log(3) * 2 / 3 + math.log(5) / 3
    worth = torch.tensor([[[0.3 * f * largest]] for f in FRACTION])
    torch.testing.assert_close(whole - above, worth.expand_as(whole))


@pytest.mark.parametrize(("spec", "factorization"), CELLS)
def test_the_target_is_a_share_of_what_is_legal_in_each_state(spec, factorization):
    """With two legal options of each Choice: log 2 each, which is log 4 for a joint action."""
    whole = targets_of(spec, factorization, masked=True, entropy_bonus="whole")
    above = targets_of(spec, factorization, masked=True, entropy_bonus="above_target")
    log2, log4 = math.log(2), math.log(4)
    few, many = [log2, 0.0, log2], [log4, 0.0, log2]
    if spec is OPTIONS:
        few, many = [log2, log2], [log4, log2]
    fraction = torch.tensor(FRACTION).view(-1, 1, 1)
    of_range = torch.tensor([0.0 if isinstance(h, Choice) else -1.0 for h in spec.heads])
    rows = torch.tensor([few, few, few, many, many, many])
    worth = 0.3 * (fraction * rows + of_range)
    if factorization != "independent":
        worth = worth.sum(-1, keepdim=True)
    torch.testing.assert_close(whole - above, worth)


@pytest.mark.parametrize(("spec", "factorization"), CELLS)
def test_temperatures_aim_at_a_share_of_what_is_legal(spec, factorization):
    learner, keys = learner_for(spec, factorization)
    found = learner.update(batch_for(spec, masked=True), keys.at(0))()["heads/target_entropy"]
    choices = [h for h, head in enumerate(spec.heads) if isinstance(head, Choice)]
    # Of `a` two and then four options are legal, of `b` always two: 1.5 log 2 + log 2 on average.
    assert found[0, choices].sum().item() == pytest.approx(0.5 * 2.5 * math.log(2))
    assert found[1, choices].sum().item() == pytest.approx(0.25 * 2.5 * math.log(2))


def at_its_target(spec, factorization):
    """A learner whose policy over options is uniform, which is its target, and actions of it."""
    learner, keys = learner_for(spec, factorization, fraction=1.0)
    with torch.no_grad():
        for packed in (learner._packed, learner._packed_target):
            packed.values.zero_()
        if learner.actor_optimiser is not None:
            learner.actor_optimiser.packed.values.zero_()
    rows = 4000
    batch = batch_for(spec, rows)
    uniform = keys.uniform(Stream.ACT, 0, (rows, learner.soft.num_uniforms))
    action = learner.soft.sample(learner.critic, batch.obs, uniform, learner.temperatures(), None)
    return learner, keys, batch._replace(action=action)


@pytest.mark.parametrize("factorization", ["shared", "vdn", "ar", "independent", "joint"])
def test_at_the_target_entropy_is_worth_nothing_where_heads_may_be_idle(factorization):
    spec = ActionSpec(("kind", "a"), (Choice(2), Choice(50)), (None, Condition(0, 0, 1)))
    learner, keys, batch = at_its_target(spec, factorization)
    bonus = listened(learner, keys, batch).mean(-2)
    # How often `a` is in use is by chance, once in the batch and once in what follows:
    # a deviation of 0.3 log 50 sqrt(2 / 4 / 4000) = 0.013.
    torch.testing.assert_close(bonus, torch.zeros_like(bonus), atol=0.05, rtol=0.0)
    metrics = learner.update(batch, keys.at(1))()
    surplus = (metrics["heads/entropy"] - metrics["heads/target_entropy"]).sum(-1)
    torch.testing.assert_close(surplus, torch.zeros(2), atol=1e-4, rtol=0.0)
    if factorization == "joint":
        assert metrics["heads/target_entropy"][0].sum().item() == pytest.approx(math.log(51))
