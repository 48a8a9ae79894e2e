"""What SAC pays for entropy: the whole of it, or what there is above the target."""

import math

import pytest
import torch

from headwise import ActionSpec, Choice, Range
from headwise.algorithms import algorithms
from headwise.algorithms.base import ReplayBatch, Task
from headwise.factorizations import factorizations
from headwise.population import Keys
from headwise.spaces.action import Condition

FRACTION = (0.5, 0.25)
SPEC = ActionSpec.of(a=Choice(4), x=Range(-1, 1), b=Choice(2))
OPTIONS = ActionSpec.of(a=Choice(4), b=Choice(2))
ALTERNATIVES = ActionSpec(
    ("kind", "left", "right"),
    (Choice(2), Choice(3), Choice(5)),
    (None, Condition(0, 0, 1), Condition(0, 1, 2)),
)


def learner_for(spec, factorization, **settings):
    task = Task(
        spec=spec, obs_size=3, num_slots=4, total_steps=100,
        factorization=factorizations.get(factorization)(), keys=Keys((0, 1)),
    )  # fmt: skip
    config = algorithms.get("sac")(
        hidden=(8,), target_entropy=FRACTION, first_temperature=0.3, **settings
    )
    return config.build(task), task.keys


def batch_for(spec, rows=6):
    torch.manual_seed(0)
    obs, following = torch.randn(2, 2, rows, 3).unbind(0)
    action = torch.zeros(2, rows, spec.num_heads)
    action[:, ::3, 0] = 1.0  # of the first head a third takes the second option
    reward, discount = torch.zeros(2, rows), torch.full((2, rows), 0.9)
    return ReplayBatch(obs, action, reward, following, discount, None, None)


def targets_of(spec, factorization, **settings):
    """What the critics of a fresh learner are trained towards, (P, B, G)."""
    learner, keys = learner_for(spec, factorization, **settings)
    found = []
    errors = learner._errors

    def listening(predicted, following, batch):
        found.append(following.clone())
        return errors(predicted, following, batch)

    learner._errors = listening
    learner.update(batch_for(spec), keys.at(0))
    return found[0]


@pytest.mark.parametrize(
    ("spec", "factorization"),
    [
        (SPEC, "shared"), (SPEC, "vdn"), (SPEC, "qplex"), (SPEC, "ar"), (SPEC, "independent"),
        (OPTIONS, "joint"),
    ],
)  # fmt: skip
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
