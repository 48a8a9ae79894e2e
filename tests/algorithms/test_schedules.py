import pytest
import torch
from learners import make_learner

from headwise.ops import Buffer, decaying, linear
from headwise.spaces import ActionSpec, Choice

SPEC = ActionSpec.of(a=Choice(2), b=Choice(2))


def setting(*values):
    made = Buffer(len(values))
    made.tensor[:, 0, 0, 0] = torch.tensor(values)
    return made


def on_a_line(step, span):
    clock, out = Buffer(2, 1, 2), Buffer(2)
    clock.longs.fill_(step)
    linear(clock, setting(1.0, 0.5), setting(0.0, 0.5), span=span, out=out)
    return out.tensor.flatten().tolist()


@pytest.mark.parametrize(
    ("step", "expected"), [(0, 1.0), (25, 0.75), (100, 0.0), (101, 0.0), (10**9, 0.0)]
)
def test_a_line_and_then_its_end(step, expected):
    assert on_a_line(step, 100.0) == [expected, 0.5]


@pytest.mark.parametrize("span", [0.0, -1.0])
def test_no_time_is_the_end_at_once(span):
    assert on_a_line(0, span) == [0.0, 0.5]


def test_what_decays_has_a_floor():
    clock, out = Buffer(4, 1, 2), Buffer(4)
    clock.longs[:, 0, 0, 0] = torch.arange(4)
    decaying(clock, start=2.0, decay=0.5, floor=0.3, out=out)
    assert out.tensor.flatten().tolist() == pytest.approx([2.0, 1.0, 0.5, 0.3])


def small(algorithm, envs=10, **settings):
    return make_learner(
        algorithm, "vdn", SPEC, envs=envs, obs=1, steps=1000, net_arch=(4,), **settings
    )


def test_exploration_falls_with_every_step_taken():
    learner = small(
        "dqn",
        exploration_initial_eps=(1.0, 0.5),
        exploration_final_eps=0.1,
        exploration_fraction=0.1,
    )

    def epsilon():
        return learner.exploration.epsilon(learner.acts).tolist()

    assert epsilon() == pytest.approx([1.0, 0.5])
    for _ in range(5):  # 50 of the 100 steps that the line takes
        learner.act(torch.zeros(2, 10, 1))
    assert epsilon() == pytest.approx([0.55, 0.3])
    for _ in range(15):
        learner.act(torch.zeros(2, 10, 1))
    assert epsilon() == pytest.approx([0.1, 0.1])


def test_how_often_a_head_explores():
    """Each head of each slot by itself: half of the coins, and then any of two options."""
    learner = small("dqn", envs=4000, exploration_initial_eps=0.5, exploration_final_eps=0.5)
    obs = torch.zeros(2, 4000, 1)
    other = learner.act(obs).action.clone() != learner.policy(obs)
    assert (other.float().mean(-2) - 0.25).abs().max() < 4.5 * (0.25 * 0.75 / 4000) ** 0.5
    both = other.all(-1).float().mean(-1)
    assert (both - 0.0625).abs().max() < 4.5 * (0.0625 / 4000) ** 0.5  # not one coin for all
    again = learner.act(obs).action != learner.policy(obs)
    assert not torch.equal(again, other)  # nor the same coins again


def test_the_target_entropy_moves_over_its_share_of_the_updates():
    learner = small("sac", target_entropy=0.8, target_entropy_end=0.2, target_entropy_share=0.5)

    def fraction(updates):
        learner.updates.longs.fill_(updates)
        learner.temperatures.now(learner.updates)
        return (learner.temperatures.target(None).tensor / torch.tensor(2.0).log())[:, 0, 0]

    torch.testing.assert_close(fraction(0), torch.full((2, 2), 0.8))
    half = fraction(62)  # of 250 updates in all, half of 125
    torch.testing.assert_close(half, torch.full((2, 2), 0.8 - 0.6 * 62 / 125))
    torch.testing.assert_close(fraction(125), torch.full((2, 2), 0.2))
    torch.testing.assert_close(fraction(200), torch.full((2, 2), 0.2))
