"""What the PPO learner makes of rollouts, minibatches and settings, by hand."""

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from headwise import ConfigError
from headwise.algorithms.base import Task
from headwise.algorithms.ppo import PPO
from headwise.factorizations import factorizations
from headwise.factorizations.vdn import VDN
from headwise.population import Keys

sys.path.insert(0, str(Path(__file__).parents[1] / "contracts"))

from cases import DISCRETE, OBS, observations


def make_learner(factorization="shared", spec=DISCRETE, **settings):
    kind = factorization
    if isinstance(kind, str):
        kind = factorizations.get(kind)()
    task = Task(
        spec=spec, obs_size=OBS, num_slots=4, total_steps=100,
        factorization=kind, keys=Keys((0,)),
    )  # fmt: skip
    return PPO(**{"hidden": (16, 16)} | settings).build(task)


def looked_at(learner, legal, next_legal):
    obs, following = observations(members=1, rows=8), observations(members=1, rows=8, seed=1)
    raw = torch.zeros(1, 8, 3)
    part = {"obs": obs, "raw": raw, "action": raw, "next_obs": following}
    part |= {"legal": legal, "next_legal": next_legal}
    with torch.no_grad():
        found = learner._look({name: x for name, x in part.items() if x is not None})
        plain = learner.critic.value(obs), learner.critic.value(following)
    return found["value"] - plain[0], found["next_value"] - plain[1], found


# --- masks --------------------------------------------------------------------------------------


def only_the_first():
    legal = torch.zeros(1, 8, 3, 3, dtype=torch.bool)
    legal[..., 0] = True
    return legal


def test_credit_counts_legal_options_alone():
    legal = only_the_first()
    legal[..., 0, 1] = True  # the first head has a choice, the others have none
    _, _, found = looked_at(make_learner("vdn"), legal, legal)
    assert (found["importance"][..., 0] > 0).all()
    assert (found["importance"][..., 1:] == 0).all()


def test_a_mixture_of_what_is_certain_adds_nothing_on_average():
    """With one legal option of each head every advantage is zero, and so is the mixture."""
    learner = make_learner("qplex", correct_mixture=True)
    with torch.no_grad():
        learner.critic.net.advantage.weight *= 20.0
    certain, everything = only_the_first(), torch.ones(1, 8, 3, 3, dtype=torch.bool)
    now, later, _ = looked_at(learner, certain, everything)
    assert (now.abs() < 1e-5).all()
    assert (later > 0.1).all()
    now, later, _ = looked_at(learner, everything, certain)
    assert (now > 0.1).all()
    assert (later.abs() < 1e-5).all()
    both = looked_at(learner, None, None)[:2]
    torch.testing.assert_close(both, looked_at(learner, everything, everything)[:2])


# --- what a factorization says ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "joint", "importance"),
    [
        ("independent", False, "range"), ("shared", False, "range"), ("vdn", False, "range"),
        ("qplex", False, "grad"), ("joint", True, "range"), ("ar", True, "range"),
    ],
)  # fmt: skip
def test_ratio_and_credit_are_the_factorizations_unless_told_otherwise(name, joint, importance):
    learner = make_learner(name)
    assert learner.policy_loss.ratio == ("joint" if joint else "per_head")
    assert learner.importance == importance
    told = make_learner(name, ratio="per_head", importance="state")
    assert (told.policy_loss.ratio, told.importance) == ("per_head", "state")


def test_a_factorization_of_ones_own_may_say_so_too():
    @dataclass(frozen=True, kw_only=True)
    class Own(VDN):
        joint_ratio: ClassVar[bool] = True
        default_importance: ClassVar[str] = "state"

    learner = make_learner(Own())
    assert (learner.policy_loss.ratio, learner.importance) == ("joint", "state")


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("factorization", ["vdn", "qplex"])
def test_values_of_actions_are_not_clipped(factorization):
    with pytest.raises(ConfigError, match=r"learns by the value of actions; got value_clip=0\.5"):
        make_learner(factorization, value_clip=0.5)


@pytest.mark.parametrize("factorization", ["shared", "independent", "joint", "ar"])
def test_a_value_that_has_moved_too_far_is_held_where_that_costs_more(factorization):
    learner = make_learner(factorization, value_clip=0.5)
    obs = observations(members=1, rows=2)
    with torch.no_grad():
        now = learner.critic.value(obs)
    share = torch.full((1, 2, 1), 0.5)
    # 2 above the old value and 3 below the target; held at 0.5 above, it is 4.5 below.
    part = {"obs": obs, "value": now - 2.0, "target": now + 3.0}
    columns = now.shape[-1]
    assert learner.value_loss(part, None, share).item() == pytest.approx(20.25 * columns, rel=1e-4)
    # Above the target it is the other way round: 3 squared, and not 1.5.
    part["target"] = now - 3.0
    assert learner.value_loss(part, None, share).item() == pytest.approx(9.0 * columns, rel=1e-4)


def gradient_length(**settings):
    """Of a step in which only the value has anything to learn."""
    learner = make_learner(entropy_coef=0.0, max_grad_norm=1e9, **settings)
    obs, raw = observations(members=1, rows=8), torch.zeros(1, 8, 3)
    with torch.no_grad():
        log_prob = learner.actor.judge(obs, raw).log_prob
        value = learner.critic.value(obs)
    part = {"obs": obs, "raw": raw, "log_prob": log_prob, "valid": torch.ones(1, 8, 1)}
    learner._step(part | {"advantage": torch.zeros(1, 8, 1), "target": value + 1.0}, report=False)
    return learner.optimiser.norm.item()


def test_the_weight_of_the_value_is_that_of_its_gradient():
    assert gradient_length(value_coef=0.0) == 0.0
    assert gradient_length(value_coef=2.0) == pytest.approx(4 * gradient_length(value_coef=0.5))


def test_the_critics_activation_by_hand():
    """One unit with a bias of 2 and nothing else: tanh 2, or 2."""
    for activation, expected in (("tanh", math.tanh(2.0)), ("relu", 2.0)):
        learner = make_learner(
            critic_hidden=(1,), critic_activation=activation, branch_width=0, activation="relu"
        )
        with torch.no_grad():
            for parameter in learner.critic.parameters():
                parameter.zero_()
            learner.critic.encoder.layers[0].bias.fill_(2.0)
            learner.critic.output.weight.fill_(1.0)
            value = learner.critic.value(observations(members=1, rows=3))
        torch.testing.assert_close(value, torch.full((1, 3, 1), expected))


def test_the_critic_begins_orthogonal_or_as_torch_begins():
    """Rows of length root 2 at right angles; or numbers within 1 / sqrt(inputs), with a bias."""
    first = make_learner(critic_orthogonal=True).critic.encoder.layers[0]
    torch.testing.assert_close(first.weight[0] @ first.weight[0].T, 2.0 * torch.eye(OBS))
    assert (first.bias == 0).all()
    first = make_learner(critic_orthogonal=False).critic.encoder.layers[0]
    assert first.weight.abs().max() <= OBS**-0.5
    assert first.weight.std().item() == pytest.approx(OBS**-0.5 / 3**0.5, rel=0.2)
    assert (first.bias != 0).all()
