"""What the SAC learner does with the fates of its members, and with time."""

import sys
from pathlib import Path

import pytest
import torch

from headwise.algorithms.base import ReplayBatch, Task
from headwise.algorithms.sac import SAC
from headwise.factorizations import factorizations
from headwise.population import Keys

sys.path.insert(0, str(Path(__file__).parents[1] / "contracts"))

from cases import HYBRID, OBS, observations

MEMBERS, ROWS = 2, 16


class Trained:
    """A learner of two members over options and numbers, and the same batch again and again."""

    def __init__(self, factorization, **settings):
        self.task = Task(
            spec=HYBRID, obs_size=OBS, num_slots=4, total_steps=1000,
            factorization=factorizations.get(factorization)(), keys=Keys((0, 1)),
        )  # fmt: skip
        self.learner = SAC(hidden=(16,), **settings).build(self.task)
        self.obs = observations(MEMBERS, ROWS)
        self.action = self.learner.act(self.obs, self.task.keys.at(0)).action
        self.steps = 0

    def update(self, reward=0.0):
        rewards = torch.zeros(MEMBERS, ROWS)
        rewards[1] = reward
        discount = torch.full((MEMBERS, ROWS), 0.9)
        batch = ReplayBatch(self.obs, self.action, rewards, self.obs, discount, None, None)
        report = self.learner.update(batch, self.task.keys.at(self.steps))
        self.steps += 1
        return report

    def state(self):
        """Everything but the counters, which are the same for all members."""
        return {
            name: x.clone()
            for name, x in self.learner.state_dict().items()
            if name != "updates" and not name.endswith("count")
        }


@pytest.mark.parametrize("factorization", ["shared", "vdn", "qplex", "independent", "ar"])
def test_nothing_of_a_diverged_member_moves(factorization):
    """Neither its actor, nor its temperatures, nor its target critics."""
    trained, clean = Trained(factorization), Trained(factorization)
    trained.update()
    trained.update(reward=torch.nan)
    before = trained.state()
    assert trained.learner.alive.tolist() == [True, False]
    for _ in range(3):
        trained.update()
    for _ in range(5):
        clean.update()
    for name, x in trained.state().items():
        assert torch.equal(x[1], before[name][1]), name
        assert torch.equal(x[0], clean.state()[name][0]), name


def test_a_diverged_actor_stops_its_critics():
    trained = Trained("shared")
    trained.update()
    with torch.no_grad():
        trained.learner.soft.actor.output.bias[1] = torch.nan
    trained.update()
    before = trained.state()
    for _ in range(2):
        trained.update()
    assert trained.learner.alive.tolist() == [True, False]
    for name, x in trained.state().items():
        assert torch.equal(x[1].nan_to_num(7.0), before[name][1].nan_to_num(7.0)), name
        assert (x[0] != before[name][0]).any() or name.endswith((".lr", ".alive")), name


def test_dead_in_one_is_dead_also_if_it_was_kept_otherwise():
    """An optimiser each used to keep its own account."""
    trained = Trained("shared")
    state = trained.learner.state_dict()
    state["alpha.alive"] = torch.tensor([False, True])
    trained.learner.load_state_dict(state)
    assert trained.learner.alive.tolist() == [False, True]
    assert trained.learner.critic_optimiser.alive is trained.learner.alive


def test_relaxed_options_harden_with_every_update():
    """From 2, half of it with every update, and no less than 0.3: 2, 1, 0.5, and then 0.3."""
    trained = Trained(
        "shared", actor_gradient="straight_through",
        gumbel_start=2.0, gumbel_decay=0.5, gumbel_floor=0.3,
    )  # fmt: skip
    found = []
    for _ in range(4):
        found.append(trained.learner._relaxation().item())
        trained.update()
    assert found == pytest.approx([2.0, 1.0, 0.5, 0.3])
