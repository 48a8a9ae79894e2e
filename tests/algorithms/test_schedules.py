import pytest
import torch

from headwise.algorithms import algorithms
from headwise.algorithms.base import Task
from headwise.algorithms.schedules import linear
from headwise.factorizations import factorizations
from headwise.population import Keys
from headwise.spaces import ActionSpec, Choice

START, END = torch.tensor([1.0, 0.5]), torch.tensor([0.0, 0.5])


@pytest.mark.parametrize(
    ("step", "expected"), [(0, 1.0), (25, 0.75), (100, 0.0), (101, 0.0), (10**9, 0.0)]
)
def test_a_line_and_then_its_end(step, expected):
    assert linear(START, END, step, 100).tolist() == [expected, 0.5]


@pytest.mark.parametrize("span", [0.0, -1.0])
def test_no_time_is_the_end_at_once(span):
    assert linear(START, END, 0, span).tolist() == [0.0, 0.5]


def learner_for(algorithm, **settings):
    spec = ActionSpec.of(a=Choice(2), b=Choice(2))
    task = Task(
        spec=spec, obs_size=1, num_slots=10, total_steps=1000,
        factorization=factorizations.get("vdn")(), keys=Keys((0, 1)),
    )  # fmt: skip
    return algorithms.get(algorithm)(hidden=(4,), **settings).build(task), task.keys


def test_exploration_falls_with_every_step_taken():
    learner, keys = learner_for("dqn", epsilon_start=(1.0, 0.5), epsilon=0.1, epsilon_share=0.1)
    assert learner.epsilon.tolist() == pytest.approx([1.0, 0.5])
    for tick in range(5):  # 50 of the 100 steps that the line takes
        learner.act(torch.zeros(2, 10, 1), keys.at(tick))
    assert learner.epsilon.tolist() == pytest.approx([0.55, 0.3])
    for tick in range(5, 20):
        learner.act(torch.zeros(2, 10, 1), keys.at(tick))
    assert learner.epsilon.tolist() == pytest.approx([0.1, 0.1])


def test_how_often_a_head_explores():
    """Each head of each slot by itself: half of the coins, and then any of two options."""
    learner, keys = learner_for("dqn", epsilon_start=0.5, epsilon=0.5)
    obs = torch.zeros(2, 4000, 1)
    other = learner.act(obs, keys.at(0)).action != learner.policy(obs)
    assert (other.float().mean(-2) - 0.25).abs().max() < 4.5 * (0.25 * 0.75 / 4000) ** 0.5
    both = other.all(-1).float().mean(-1)
    assert (both - 0.0625).abs().max() < 4.5 * (0.0625 / 4000) ** 0.5  # not one coin for all


def test_the_target_entropy_moves_over_its_share_of_the_updates():
    learner, _ = learner_for(
        "sac", target_entropy=0.8, target_entropy_end=0.2, target_entropy_share=0.5
    )
    assert learner.fraction.tolist() == pytest.approx([0.8, 0.8])
    learner.updates.set(62)  # of 250 updates in all, half of 125
    assert learner.fraction.tolist() == pytest.approx([0.8 - 0.6 * 62 / 125] * 2)
    learner.updates.set(125)
    assert learner.fraction.tolist() == pytest.approx([0.2, 0.2])
