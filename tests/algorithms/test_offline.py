import copy

import pytest
import torch

from headwise.algorithms.offline import OfflineRows
from headwise.algorithms.ppo import PPO
from headwise.envs.probes import probes
from headwise.factorizations import factorizations
from headwise.population import Keys
from headwise.training.build import make_loop

NAMES = ("obs", "raw", "bins", "reward", "next_obs", "terminated", "valid")


def rows(first, count, members=2):
    numbers = torch.arange(first, first + count, dtype=torch.float32)
    return {name: numbers.expand(members, -1).unsqueeze(-1).clone() for name in NAMES}


def test_masks_may_come_and_go():
    """Where none were given, everything is legal."""
    past, mask = OfflineRows(10), torch.zeros(2, 3, 1, 4, dtype=torch.bool)
    past.add(rows(0, 3))
    past.add(rows(3, 3) | {"legal": mask})
    past.add(rows(6, 3))
    assert past.rows["legal"].shape == (2, 9, 1, 4)
    assert past.rows["legal"].all(-1)[0, :, 0].tolist() == [True] * 3 + [False] * 3 + [True] * 3


def test_the_latest_rows_are_kept():
    past = OfflineRows(5)
    past.add(rows(0, 3))
    assert past.rows["obs"][0, :, 0].tolist() == [0, 1, 2]
    past.add(rows(3, 3))
    assert past.rows["obs"][1, :, 0].tolist() == [1, 2, 3, 4, 5]
    past.add(rows(6, 9))
    assert past.rows["reward"][0, :, 0].tolist() == [10, 11, 12, 13, 14]


def test_rows_drawn_belong_together_and_differ_by_epoch_and_member():
    past = OfflineRows(100)
    past.add(rows(0, 50))
    part = past.draw(Keys((0, 1)).at(3), epochs=2, num_rows=20)
    first, second = part(0, 0, 10), part(1, 0, 10)
    assert set(first) == {f"past_{name}" for name in NAMES}
    assert first["past_obs"].shape == (2, 10, 1)
    assert torch.equal(first["past_obs"], first["past_reward"])
    assert not torch.equal(first["past_obs"], second["past_obs"])
    assert not torch.equal(first["past_obs"][0], first["past_obs"][1])
    again = past.draw(Keys((0, 1)).at(3), epochs=2, num_rows=20)(0, 5, 5)
    assert torch.equal(again["past_obs"], first["past_obs"][:, 5:])


def test_masks_are_kept_where_there_are_any():
    past = OfflineRows(10)
    past.add(rows(0, 3) | {"legal": torch.ones(2, 3, 1, 2, dtype=torch.bool)})
    assert past.rows["legal"].shape == (2, 3, 1, 2)


def loop_of(steps, offline_rows=300, factorization="vdn", **more):
    settings = {"hidden": (16,), "rollout": 64, "minibatch": 32, "epochs": 2} | more
    config = PPO(offline_rows=offline_rows, **settings)
    env = probes.get("agree-context")((0, 1), 16)
    return make_loop(env, config, factorizations.get(factorization)(), (0, 1), steps)


@pytest.mark.parametrize("factorization", ["vdn", "qplex"])
def test_the_critic_learns_from_the_past_and_the_policy_from_the_rollout(factorization):
    ours, plain = (loop_of(512, rows, factorization) for rows in (300, 0))
    for loop in (ours, plain):
        loop.run(512)
        assert all(torch.isfinite(x).all() for x in loop.metrics.values())
    assert ours.algorithm.offline.rows["obs"].shape == (2, 300, 1)
    assert plain.algorithm.offline is None
    assert [loop.algorithm.capturable for loop in (ours, plain)] == [False, True]
    state = [loop.algorithm.state_dict()["values"] for loop in (ours, plain)]
    assert not torch.equal(*state)


def test_the_past_is_part_of_the_state():
    """Half of a run, and the rest by a fresh learner, is the whole run."""
    whole = loop_of(512)
    whole.run(256)
    other = loop_of(512)
    other.load_state_dict(copy.deepcopy(whole.state_dict()))
    for loop in (whole, other):
        loop.run(512)
    ours, theirs = (loop.algorithm.state_dict() for loop in (whole, other))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_rows_of_an_older_checkpoint_have_successors_of_which_every_option_is_legal():
    past = OfflineRows(10)
    past.add(rows(0, 3))
    past.add(rows(3, 2) | {"next_legal": torch.zeros(2, 2, 1, 2, dtype=torch.bool)})
    assert past.rows["next_legal"][:, :, 0, 0].tolist() == [[True] * 3 + [False] * 2] * 2
    assert past.rows["obs"].shape[1] == 5


@pytest.mark.parametrize("only_one", [False, True])
def test_the_next_value_of_the_past_counts_the_mixture_where_that_is_asked_for(only_one):
    """Targets are then higher by gamma times it; where one option is legal it adds nothing."""
    settings = {"correct_mixture": True, "gamma": 0.9}
    learner = loop_of(512, factorization="qplex", **settings).algorithm
    with torch.no_grad():
        learner.critic.net.advantage.weight *= 20.0
    chance = torch.Generator().manual_seed(0)
    obs, later, reward = (torch.rand(2, 4, 1, generator=chance) for _ in range(3))
    raw = torch.zeros(2, 4, 2)
    part = {
        "obs": obs, "raw": raw, "bins": torch.zeros(2, 4, 2, dtype=torch.long),
        "reward": reward, "next_obs": later,
        "terminated": torch.zeros(2, 4, 1, dtype=torch.bool),
        "valid": torch.ones(2, 4, 1, dtype=torch.bool),
    }  # fmt: skip
    options = learner.layout.max_options
    legal = torch.ones(2, 4, 2, options, dtype=torch.bool)
    if only_one:
        legal[..., 1:] = False
        part["next_legal"] = legal
    found = learner.value_loss({f"past_{n}": x for n, x in part.items()}, None, None)
    with torch.no_grad():
        heads = learner.actor.judge(part["next_obs"], raw, legal).heads
        chances = learner.critic.masses(heads)
        more = learner.critic.expected_mixture(part["next_obs"], chances).unsqueeze(-1)
        assert (more.abs() < 1e-5).all() if only_one else more.mean() > 0.01
        masses = learner.critic.masses(learner.actor.judge(obs, raw).heads)
        target = part["reward"] + 0.9 * (learner.critic.value(part["next_obs"]) + more)
        error = learner.critic.predict(obs, part["bins"], masses) - target
    torch.testing.assert_close(found.detach(), error.square().mean((-2, -1)))


def test_what_was_no_transition_teaches_nothing():
    """The loss of a past row that is not valid has no weight."""
    learner = loop_of(512).algorithm
    past = OfflineRows(10)
    part = {
        "obs": torch.rand(2, 4, 1), "raw": torch.zeros(2, 4, 2),
        "bins": torch.zeros(2, 4, 2, dtype=torch.long), "reward": torch.rand(2, 4, 1),
        "next_obs": torch.rand(2, 4, 1), "terminated": torch.zeros(2, 4, 1, dtype=torch.bool),
        "valid": torch.tensor([True, True, False, True]).view(1, 4, 1).repeat(2, 1, 1),
    }  # fmt: skip
    past.add(part)
    first = learner.value_loss({f"past_{n}": x for n, x in past.rows.items()}, None, None)
    past.rows["reward"][:, 2] = 1e6
    second = learner.value_loss({f"past_{n}": x for n, x in past.rows.items()}, None, None)
    assert torch.equal(first, second)
