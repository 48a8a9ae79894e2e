"""A critic that learns from rows of the past."""

import copy

import pytest
import torch
from learners import as_buffer, networks

from headwise import ConfigError
from headwise.algorithms.ppo import PPO
from headwise.algorithms.ppo.buffers import Rows
from headwise.algorithms.ppo.offline import OfflineRows
from headwise.envs.probes import probes
from headwise.population import Keys
from headwise.training.build import make_loop
from headwise.training.config import RunConfig

NAMES = ("obs", "raw", "unit", "option", "reward", "next_obs", "terminated", "valid")


def rows(first, count, mask=None, next_mask=None):
    """Numbers from `first` on in every column, of two members."""
    widths = dict.fromkeys(NAMES, 1)
    masks = {n: x for n, x in {"mask": mask, "next_mask": next_mask}.items() if x is not None}
    found = Rows(2, count, widths | dict.fromkeys(masks, 4), torch.device("cpu"))
    for name in NAMES:
        found[name].tensor[..., 0] = torch.arange(first, first + count, dtype=torch.float32)
    for name, value in masks.items():
        found[name].tensor.fill_(value)
    return found


def add(past, *some):
    for part in some:
        past.add(part, Keys((0, 1)).at(3), 1)
    return past


def kept(past, name="obs", member=0):
    return past.rows[name][member, :, 0].tolist()


def test_masks_may_come_and_go():
    """Where none were given, everything is legal."""
    past = add(OfflineRows(10), rows(0, 3), rows(3, 3, mask=0.0), rows(6, 3))
    assert past.rows["mask"].shape == (2, 9, 4)
    assert past.rows["mask"].amin(-1)[0].tolist() == [1.0] * 3 + [0.0] * 3 + [1.0] * 3
    past = add(OfflineRows(10), rows(0, 3), rows(3, 2, next_mask=0.0))
    assert past.rows["next_mask"][..., 0].tolist() == [[1.0] * 3 + [0.0] * 2] * 2
    assert past.rows["obs"].shape[1] == 5


def test_the_latest_rows_are_kept():
    past = add(OfflineRows(5), rows(0, 3))
    assert kept(past) == [0, 1, 2]
    assert kept(add(past, rows(3, 3)), member=1) == [1, 2, 3, 4, 5]
    assert kept(add(past, rows(6, 9)), "reward") == [10, 11, 12, 13, 14]


def test_rows_drawn_belong_together_and_differ_by_epoch_and_member():
    def drawn(*counts):
        past = OfflineRows(100)
        past.add(rows(0, 50), Keys((0, 1)).at(3), 2)
        found = []
        for count in counts:
            out = rows(0, count)
            past.draw(out)
            found.append({name: x.tensor[:, 0, :, 0].clone() for name, x in out.buffers.items()})
        return found

    first, second = drawn(50, 50)
    assert all(torch.equal(first["obs"], x) for x in first.values())
    assert not torch.equal(first["obs"], second["obs"])
    assert not torch.equal(first["obs"][0], first["obs"][1])
    assert len(first["obs"][0].unique()) < 50  # with replacement
    *_, part = drawn(10, 10)
    assert torch.equal(part["obs"], first["obs"][:, 10:20])


def loop_of(steps, offline_rows=300, factorization="vdn", **more):
    settings = {"net_arch": (16,), "n_steps": 4, "batch_size": 32, "n_epochs": 2} | more
    config = PPO(offline_rows=offline_rows, **settings)
    env = probes.get("agree-context")((0, 1), 16)
    plan = RunConfig.of(config, factorization=factorization, total_timesteps=steps)
    return make_loop(env, plan, (0, 1))


@pytest.mark.parametrize("factorization", ["vdn", "qplex"])
def test_the_critic_learns_from_the_past_and_the_policy_from_the_rollout(factorization):
    ours, plain = (loop_of(512, rows, factorization) for rows in (300, 0))
    for loop in (ours, plain):
        loop.run(512)
        assert all(torch.isfinite(x).all() for x in loop.metrics.values())
    assert ours.algorithm.offline.rows["obs"].shape == (2, 300, 1)
    assert plain.algorithm.offline is None
    assert not torch.equal(*(loop.algorithm.state_dict()["values"] for loop in (ours, plain)))


def test_the_past_is_part_of_the_state():
    """Half of a run, and the rest by a fresh learner, is the whole run."""
    whole = loop_of(512)
    whole.run(256)
    other = loop_of(512)
    other.load_state_dict(copy.deepcopy(whole.state_dict()))
    for loop in (whole, other):
        loop.run(512)
    ours, theirs = (loop.algorithm.state_dict() for loop in (whole, other))
    assert {"past_obs", "past_reward"} <= ours.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


class Past:
    """A learner whose past is four rows of its own making, all of which it draws."""

    def __init__(self, factorization="vdn", **settings):
        self.learner = learner = loop_of(512, factorization=factorization, **settings).algorithm
        chance = torch.Generator().manual_seed(0)
        self.part = learner._past.part(0, 4)
        for name in ("obs", "next_obs", "reward"):
            self.part[name].tensor.copy_(torch.rand(2, 1, 4, 1, generator=chance))
        self.part["valid"].tensor.fill_(1.0)
        learner.offline.draw = lambda out: None

    def loss(self):
        """Of each member's critic on them."""
        self.learner._learn_from_the_past(self.learner.offline, 4)
        return self.learner.value_loss.tensor[:, 0, 0, 0] / self.learner.config.vf_coef


@pytest.mark.parametrize("only_one", [False, True])
def test_the_next_value_of_the_past_counts_the_mixture_where_that_is_asked_for(only_one):
    """Targets are then higher by gamma times it; where one option is legal it adds nothing."""
    past = Past("qplex", correct_mixture=True, gamma=0.9)
    learner, part = past.learner, past.part
    (weight, _), = (layers[0] for net, layers in networks(learner.store)
                    if net is learner.critic.net._advantage)  # fmt: skip
    weight *= 20.0
    if only_one:
        learner._make_room_for(torch.ones(()))
        old, past.part = part, learner._past.part(0, 4)
        part = past.part
        for name, x in old.buffers.items():
            part[name].tensor.copy_(x.tensor)
        part["mask"].tensor.fill_(1.0)
        part["next_mask"].tensor.copy_(torch.tensor([1.0, *[0.0] * (learner.layout.sizes[0] - 1)]
                                                    * learner.layout.num_heads))  # fmt: skip
    loss = past.loss()
    after, now = as_buffer(part["next_obs"].tensor[:, 0]), as_buffer(part["obs"].tensor[:, 0])
    more = part["next_value"].tensor - learner.critic.value(after).tensor
    assert (more.abs() < 1e-5).all() if only_one else more.mean() > 0.01
    target = part["reward"].tensor + 0.9 * (learner.critic.value(after).tensor + more)
    error = learner.critic.predict(now, part.actions()).tensor - target
    torch.testing.assert_close(loss, error.square().mean((1, 2, 3)))


def test_the_end_of_the_task_has_no_next_value():
    past = Past()
    past.part["terminated"].tensor.fill_(1.0)
    past.loss()
    assert torch.equal(past.part["target"].tensor, past.part["reward"].tensor)


def test_what_was_no_transition_teaches_nothing():
    """The loss of a past row that is not valid has no weight."""
    past = Past()
    past.part["valid"].tensor[:, :, 2] = 0.0
    first = past.loss().clone()
    past.part["reward"].tensor[:, :, 2] = 1e6
    assert torch.equal(first, past.loss())
    past.part["reward"].tensor[:, :, 1] = 1e3
    assert (first < past.loss()).all()


def test_it_is_not_known_what_was_done_after_rows_of_the_past():
    with pytest.raises(ConfigError, match="what was done next"):
        PPO(offline_rows=100, critic_target="one_step_q")
