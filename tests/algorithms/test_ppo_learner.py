"""What the PPO learner makes of rollouts, minibatches and settings, by hand."""

import math
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from learners import DISCRETE, OBS, as_buffer, make_learner, networks, normal, rollout_batch

from headwise import ConfigError
from headwise.factorizations.vdn import VDN


def made(factorization="shared", **settings):
    settings = {"n_steps": 4, "batch_size": 8, "net_arch": (16, 16)} | settings
    return make_learner("ppo", factorization, DISCRETE, members=1, envs=2, **settings)


def looked_at(learner, legal, next_legal):
    """What the values have beside V, of states and of their successors; and the rollout."""
    parts = {"legal": legal, "next_legal": next_legal}
    learner.load(rollout_batch(learner, **parts))
    learner.estimator._evaluate(learner.rollout)
    rows = learner.rollout
    plain = [learner.critic.value(rows[name]).tensor.clone() for name in ("obs", "next_obs")]
    now, later = rows["value"].tensor - plain[0], rows["next_value"].tensor - plain[1]
    return now, later, rows


# --- masks --------------------------------------------------------------------------------------


def only_the_first():
    legal = torch.zeros(1, 4, 2, 3, 3, dtype=torch.bool)
    legal[..., 0] = True
    return legal


def everything():
    return torch.ones(1, 4, 2, 3, 3, dtype=torch.bool)


def test_credit_counts_legal_options_alone():
    legal = only_the_first()
    legal[..., 0, 1] = True  # the first head has a choice, the others have none
    _, _, rows = looked_at(made("vdn"), legal, legal)
    assert (rows["importance"].tensor[..., 0] > 0).all()
    assert (rows["importance"].tensor[..., 1:] == 0).all()


def test_a_mixture_of_what_is_certain_adds_nothing_on_average():
    """With one legal option of each head every advantage is zero, and so is the mixture."""
    learner = made("qplex", correct_mixture=True)
    (weight, _), = (layers[0] for net, layers in networks(learner.store)
                    if net is learner.critic.net._advantage)  # fmt: skip
    weight *= 20.0
    now, later, _ = looked_at(learner, only_the_first(), everything())
    assert (now.abs() < 1e-5).all()
    assert (later > 0.1).all()
    now, later, _ = looked_at(learner, everything(), only_the_first())
    assert (now > 0.1).all()
    assert (later.abs() < 1e-5).all()
    both = looked_at(learner, None, None)[:2]
    torch.testing.assert_close(both, looked_at(learner, everything(), everything())[:2])


# --- what a factorization says ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "joint", "importance"),
    [
        ("independent", False, "range"), ("shared", False, "range"), ("vdn", False, "range"),
        ("qplex", False, "grad"), ("joint", True, "range"), ("ar", True, "range"),
    ],
)  # fmt: skip
def test_ratio_and_credit_are_the_factorizations_unless_told_otherwise(name, joint, importance):
    learner = made(name)
    assert learner.ratios.count == (1 if joint else 3)
    assert learner.estimator.importance == importance
    told = made(name, ratio="per_head", importance="state")
    assert told.ratios.groups == tuple(range(told.layout.num_heads))
    assert told.estimator.importance == "state"


def test_a_factorization_of_ones_own_may_say_so_too():
    @dataclass(frozen=True, kw_only=True)
    class Own(VDN):
        joint_ratio: ClassVar[bool] = True
        default_importance: ClassVar[str] = "state"

    learner = made(Own())
    assert learner.ratios.groups == (0, 0, 0)
    assert learner.estimator.importance == "state"


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("factorization", ["vdn", "qplex"])
def test_values_of_actions_are_not_clipped(factorization):
    with pytest.raises(
        ConfigError, match=r"learns by the value of actions; got clip_range_vf=0\.5"
    ):
        made(factorization, clip_range_vf=0.5)


@pytest.mark.parametrize("factorization", ["shared", "independent", "joint", "ar"])
@pytest.mark.parametrize(("above", "loss"), [(3.0, 20.25), (-3.0, 9.0)])
def test_a_value_that_has_moved_too_far_is_held_where_that_costs_more(factorization, above, loss):
    """2 above the old value and 3 below the target: held at 0.5 above, it is 4.5 below.

    Above the target it is the other way round: 3 squared, and not 1.5.
    """
    learner = made(factorization, clip_range_vf=0.5, vf_coef=1.0)
    part = learner.batch
    now = learner.critic.value(part["obs"])
    part["value"].tensor.copy_(now.tensor - 2.0)
    part["target"].tensor.copy_(now.tensor + above)
    part["valid"].tensor.fill_(1.0)
    learner._value_error(now, part, learner._row_weights(part))
    found = learner.value_loss.tensor[..., 0].item()
    assert found == pytest.approx(loss * now.width, rel=1e-4)


def gradient_length(**settings):
    """Of a step in which only the value has anything to learn."""
    settings = {"ent_coef": 0.0, "normalize_advantage": False, "max_grad_norm": 1e9} | settings
    learner = made(**settings)
    learner.load(rollout_batch(learner))
    part, rows = learner.batch, learner.rollout
    for name in ("obs", "raw", "unit", "log_prob", "valid"):
        part[name].tensor.copy_(rows[name].tensor)
    part["target"].tensor.copy_(learner.critic.value(part["obs"]).tensor + 1.0)
    learner.gradient_step(part)
    return learner.optimizer.norm.tensor.item()


def test_the_weight_of_the_value_is_that_of_its_gradient():
    assert gradient_length(vf_coef=0.0) == 0.0
    assert gradient_length(vf_coef=2.0) == pytest.approx(4 * gradient_length(vf_coef=0.5))


def first_layer(learner):
    return learner.critic._net.weights(learner.critic._net.parameters.tensor)[0]


def test_the_critics_activation_by_hand():
    """One unit with a bias of 2 and nothing else: tanh 2, or 2."""
    for activation, expected in (("tanh", math.tanh(2.0)), ("relu", 2.0)):
        learner = made(
            critic_net_arch=(1,), critic_activation=activation, branch_width=0, activation="relu"
        )
        net = learner.critic._net
        net.parameters.tensor.zero_()
        (_, bias), (weight, _) = net.weights(net.parameters.tensor)
        bias.fill_(2.0)
        weight.fill_(1.0)
        value = learner.critic.value(as_buffer(normal(1, 3, OBS))).tensor
        torch.testing.assert_close(value, torch.full((1, 1, 3, 1), expected))


def test_the_critic_begins_orthogonal_or_as_torch_begins():
    """Rows of length root 2 at right angles; or numbers within 1 / sqrt(inputs), with a bias."""
    weight, bias = first_layer(made(critic_orthogonal=True))
    torch.testing.assert_close(weight[0, 0] @ weight[0, 0].T, 2.0 * torch.eye(OBS))
    assert (bias == 0).all()
    weight, bias = first_layer(made(critic_orthogonal=False))
    assert weight.abs().max() <= OBS**-0.5
    assert weight.std().item() == pytest.approx(OBS**-0.5 / 3**0.5, rel=0.2)
    assert (bias != 0).all()


def test_a_rollout_is_gone_over_in_another_order_by_every_member_and_epoch():
    """All rows once in each epoch; a member alone goes over them as it does among others."""
    orders = []
    for members in (1, 2):
        learner = make_learner(
            "ppo", "shared", members=members, n_steps=8, n_epochs=2, batch_size=8
        )
        learner.update(rollout_batch(learner))
        orders.append(learner._order.ints[:, 0, 0].view(members, 2, 16).clone())
    assert (orders[1].sort(-1).values == torch.arange(16)).all()
    assert not torch.equal(orders[1][0, 0], orders[1][0, 1])
    assert not torch.equal(orders[1][0], orders[1][1])
    assert torch.equal(orders[0][0], orders[1][0])
