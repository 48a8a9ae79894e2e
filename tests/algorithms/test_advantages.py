"""From what a critic says of a rollout to advantages and targets, by hand."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))

from by_hand import result, rows
from learners import make_learner, rollout_batch

from headwise import ActionSpec, Choice
from headwise.algorithms.ppo.advantages import value_of_next
from headwise.algorithms.ppo.ratios import group_advantages
from headwise.ops import Buffer, RatioGroups

SPEC = ActionSpec.of(a=Choice(2), b=Choice(2))
HALF = (0.5, 0.5)
SAID = {"value": [0.5, 1.0, 1.5, 2.0], "next_value": [1.0, 9.0, 4.0, 6.0]}
EVEN = [[1.0, 1.0]] * 4


def estimate(factorization="shared", importance=None, spec=SPEC, q=None, **settings):
    """What is made of four steps of one environment, if policy and critic say what is said above.

    Rewards are 1, 2, 3 and 4; the second ends the task, and the third is cut off. Importance is
    shares of the credit.
    """
    settings = {"gamma": HALF, "gae_lambda": HALF, "normalize_advantage": False} | settings
    learner = make_learner(
        "ppo", factorization, spec, envs=1, n_steps=4, batch_size=4, anneal_share=0.0, **settings
    )
    ends = [[False, True, False, False], [False, False, True, False]]
    terminated, truncated = (torch.tensor(x).view(1, 4, 1).repeat(2, 1, 1) for x in ends)
    reward = torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 4, 1).repeat(2, 1, 1)
    batch = rollout_batch(learner, reward=reward, terminated=terminated, truncated=truncated)
    learner.load(batch)
    said = {name: torch.tensor(x).unsqueeze(-1) for name, x in SAID.items()}
    said |= {} if importance is None else {"importance": torch.tensor(importance)}
    said |= {} if q is None else {"q": torch.tensor(q).unsqueeze(-1)}

    def look(part):
        for name, x in said.items():
            part[name].tensor.copy_(x.expand_as(part[name].tensor))

    learner.estimator._evaluate = look
    learner.updates.longs.fill_(1)  # weights apply in full
    learner.estimator.run(learner.rollout, learner.updates, 4)
    return {name: x.tensor[:, 0].clone() for name, x in learner.rollout.buffers.items()}


def flat(x):
    return x[0].flatten().tolist()


def test_lambda_returns_by_hand():
    # residuals 1, 1, 3.5, 5; the trace (0.25) is cut at both ends: advantages 1.25, 1, 3.5, 5
    found = estimate()
    assert flat(found["advantage"]) == [1.25, 1.0, 3.5, 5.0]
    assert torch.equal(found["plain"], found["advantage"])
    assert flat(found["target"]) == [1.75, 2.0, 5.0, 7.0]  # value + advantage


def test_each_head_of_independent_has_its_own():
    found = estimate("independent")
    assert found["target"][0].tolist() == [[x, x] for x in (1.75, 2.0, 5.0, 7.0)]
    assert found["advantage"][0].tolist() == [[x, x] for x in (1.25, 1.0, 3.5, 5.0)]


def test_one_step_targets_by_hand():
    # r + 0.5 V(s'), without V(s') after the task's own end and with it after a cut
    found = estimate("vdn", EVEN, critic_target="one_step")
    assert flat(found["target"]) == [1.5, 2.0, 5.0, 7.0]
    assert flat(found["plain"]) == [1.25, 1.0, 3.5, 5.0]  # the same as ever


def test_targets_with_what_was_done_next_by_hand():
    """r + 0.5 Q(s', a'), and V(s') after a cut and the rollout's end."""
    said = {"q": [10.0, 20.0, 30.0, 40.0]}
    found = estimate("vdn", EVEN, critic_target="one_step_q", **said)
    assert flat(found["target"]) == [11.0, 2.0, 5.0, 7.0]
    assert flat(found["plain"]) == [1.25, 1.0, 3.5, 5.0]


def test_what_was_done_next_is_of_the_same_environment():
    """Two environments side by side; the second step ends the first one's episode."""
    q, value = rows(*[[float(i)] for i in range(6)]), rows(*[[10.0 + i] for i in range(6)])
    ends, none = rows([0.0], [0.0], [1.0], [0.0], [0.0], [0.0]), rows(*[[0.0]] * 6)
    expected = [2.0, 3.0, 12.0, 5.0, 14.0, 15.0]
    for given in ((ends, none), (none, ends)):
        found = result(value_of_next, q, value, *given, num_envs=2)
        assert found.flatten().tolist() == expected


@pytest.mark.parametrize("factorization", ["vdn", "qplex"])
def test_q_of_a_rollout_is_what_the_critic_predicts(factorization):
    learner = make_learner("ppo", factorization, SPEC, critic_target="one_step_q")
    learner.load(rollout_batch(learner))
    learner.estimator.run(learner.rollout, learner.updates, 5)
    found = learner.rollout["q"].tensor.clone()
    assert found.std() > 0.01
    for start in range(0, learner.num_rows, 4):  # the critic has room for a few
        part = learner.rollout.part(start, min(4, learner.num_rows - start))
        predicted = learner.critic.predict(part["obs"], part.actions())
        torch.testing.assert_close(predicted.tensor, found[..., start : start + part.num_rows, :])


WEIGHTS = [[0.25, 0.75], [1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]


def test_credit_by_hand_inside_and_outside_the_trace():
    def close(found, *expected):
        torch.testing.assert_close(found[0], torch.tensor(expected), atol=1e-6, rtol=1e-6)

    found = estimate("vdn", WEIGHTS)
    close(found["weight"], *WEIGHTS)
    # head 0: residuals .25, 1, 1.75, 0; with the trace: .25 + .25 * 1 = .5, then 1, 1.75, 0
    close(found["advantage"], [0.5, 0.75], [1.0, 0.0], [1.75, 1.75], [0.0, 5.0])
    close(found["plain"], [1.25], [1.0], [3.5], [5.0])
    close(found["target"], [1.75], [2.0], [5.0], [7.0])  # which credit does not change
    outside = estimate("vdn", WEIGHTS, weight_place="outside")
    # the whole estimate (1.25, 1, 3.5, 5) by the weight of its own state
    close(outside["advantage"], [0.3125, 0.9375], [1.0, 0.0], [1.75, 1.75], [0.0, 5.0])


@pytest.mark.parametrize("place", ["inside", "outside"])
def test_credit_summed_over_heads_is_the_plain_estimate(place):
    importance = torch.rand(4, 2, generator=torch.Generator().manual_seed(0)).tolist()
    found = estimate("vdn", importance, weight_place=place, importance_floor=0.2)
    torch.testing.assert_close(found["credit"].sum(-1, keepdim=True), found["plain"])


def test_members_discount_by_their_own():
    found = estimate(gamma=(0.5, 0.0))
    assert found["advantage"][0].flatten().tolist() == [1.25, 1.0, 3.5, 5.0]
    assert found["advantage"][1].flatten().tolist() == [0.5, 1.0, 1.5, 2.0]  # r - V


def test_all_heads_are_standardized_together():
    """One mean and one deviation: a head with little credit keeps little credit."""
    settings = {"weight_place": "outside", "normalize_advantage": "rollout"}
    found = estimate("vdn", [[0.9, 0.1]] * 4, **settings)["advantage"]
    raw = estimate("vdn", [[0.9, 0.1]] * 4, **settings | {"normalize_advantage": False})[
        "advantage"
    ]
    mean = raw.mean((-2, -1), keepdim=True)
    std = raw.var((-2, -1), keepdim=True, correction=0).sqrt()
    torch.testing.assert_close(found, (raw - mean) / std, rtol=1e-5, atol=1e-6)
    assert found[0, :, 0].std() > 5 * found[0, :, 1].std()


@pytest.mark.parametrize(
    ("groups", "mean", "advantages"),
    [
        # heads a, b: Choices, x, y: Ranges with advantages 2, 9, 1 and 4
        ((0, 0, 0, 0), False, [16.0]),
        ((0, 0, 0, 0), True, [4.0]),
        ((0, 1, 2, 2), False, [2.0, 9.0, 5.0]),
        ((0, 1, 2, 2), True, [2.0, 9.0, 2.5]),
        ((0, 1, 2, 3), True, [2.0, 9.0, 1.0, 4.0]),
    ],
)
def test_shares_of_a_credit_add_up_and_whole_advantages_do_not(groups, mean, advantages):
    given, out = Buffer(1, 3, 4), Buffer(1, 3, len(advantages))
    given.tensor.copy_(torch.tensor([2.0, 9.0, 1.0, 4.0]).expand(1, 1, 3, 4))
    group_advantages(given, ratios=RatioGroups(groups, (1.0,) * 4), mean=mean, out=out)
    assert out.tensor[0, 0].tolist() == [advantages] * 3


@pytest.mark.parametrize(
    ("factorization", "adds_up"),
    [("independent", False), ("vdn", True), ("qplex", True)],
)
def test_who_shares_out_a_credit(factorization, adds_up):
    """With one ratio for all heads: shares are added up, and whole advantages averaged."""
    branches = {"importance": WEIGHTS} if adds_up else {}
    found = estimate(factorization, **branches, ratio="joint")
    credit, advantage = found["credit"], found["advantage"]
    together = credit.sum(-1) if adds_up else credit.mean(-1)
    torch.testing.assert_close(advantage, together.unsqueeze(-1))
