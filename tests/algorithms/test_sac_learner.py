"""What the SAC learner does with the fates of its members, and with time."""

import pytest
import torch
from learners import HYBRID, OBS, make_learner, normal

from headwise.algorithms.base import ReplayBatch

MEMBERS, ROWS = 2, 16


class Trained:
    """A learner of two members over options and numbers, and the same batch again and again."""

    def __init__(self, factorization, **settings):
        self.learner = make_learner(
            "sac", factorization, HYBRID, envs=ROWS, steps=1000, net_arch=(16,), batch_size=ROWS,
            **settings,
        )  # fmt: skip
        self.obs = normal(MEMBERS, ROWS, OBS)
        self.action = self.learner.act(self.obs).action.clone()

    def update(self, reward=0.0):
        rewards = torch.zeros(MEMBERS, ROWS)
        rewards[1] = reward
        discount = torch.full((MEMBERS, ROWS), 0.9)
        batch = ReplayBatch(self.obs, self.action, rewards, self.obs, discount, None, None)
        return self.learner.update(batch)

    def state(self):
        """Everything but the clocks, which are the same for all members."""
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
    net = trained.learner.actor.net
    net.weights(net.parameters.tensor)[-1][1][1] = torch.nan
    trained.update()
    before = trained.state()
    for _ in range(2):
        trained.update()
    assert trained.learner.alive.tolist() == [True, False]
    for name, x in trained.state().items():
        assert torch.equal(x[1].nan_to_num(7.0), before[name][1].nan_to_num(7.0)), name
        still = name.endswith(("learning_rate", "alive", "acts"))
        assert (x[0] != before[name][0]).any() or still, name


def test_dead_in_one_is_dead_in_all():
    """They share one account of who has diverged."""
    trained = Trained("shared")
    state = trained.learner.state_dict()
    for name in state:
        if name.endswith("alive"):
            state[name] = torch.tensor([False, True])
    trained.learner.load_state_dict(state)
    assert trained.learner.alive.tolist() == [False, True]
    accounts = {id(optimizer.alive) for optimizer in trained.learner.optimizers.values()}
    assert len(accounts) == 1 < len(trained.learner.optimizers)


def test_relaxed_options_harden_with_every_update():
    """From 2, half of it with every update, and no less than 0.3: 2, 1, 0.5, and then 0.3."""
    trained = Trained(
        "shared", actor_gradient="straight_through",
        gumbel_start=2.0, gumbel_decay=0.5, gumbel_floor=0.3,
    )  # fmt: skip
    found = []
    for _ in range(4):
        trained.update()
        found.append(trained.learner.softness.tensor[0].item())
    assert found == pytest.approx([2.0, 1.0, 0.5, 0.3])


def test_every_update_draws_anew():
    """What is drawn in a target, in an actor's loss and in acting are other numbers each."""
    trained = Trained("shared")
    drawn = []
    for _ in range(2):
        trained.update()
        drawn += [
            x.noise.tensor.clone() for x in (trained.learner.next_sampler, trained.learner.sampler)
        ]
    drawn.append(trained.learner.noise.tensor.clone())
    for k, one in enumerate(drawn):
        assert all(not torch.equal(one, other) for other in drawn[:k])
