"""What DQN regresses on, against the same over all joint actions, each counted by itself."""

import pytest
import torch
from learners import (
    DISCRETE,
    IDLE,
    all_actions,
    as_buffer,
    make_learner,
    move,
    replay_batch,
    values_of,
)

from headwise import ActionSpec, Choice
from headwise.factorizations.qplex import QPLEX
from headwise.factorizations.vdn import VDN

SPEC = ActionSpec.of(a=Choice(2), b=Choice(3))
ROWS = 7
CELLS = [
    (name, dueling)
    for name in ("vdn", "joint", "qplex", "ar")
    for dueling in (True, False)
    if dueling or name in ("vdn", "joint")
]
CELLS += [(VDN(center="mean"), True), (VDN(center="none"), True)]
CELLS += [
    (QPLEX(center=x, mixer_width=8, mixer_weights="softplus"), True) for x in ("mean", "none")
]
TEMPERATURE, WEIGHT, FLOOR = 0.3, 0.9, -1.0
MUNCHAUSEN = {"munchausen": WEIGHT, "munchausen_floor": FLOOR, "temperature": TEMPERATURE}


def learner_and_batch(name, spec=SPEC, **settings):
    """A learner whose target network is not its online network, and transitions."""
    learner = make_learner("dqn", name, spec, batch_size=ROWS, **settings)
    move(learner.store, seed=1)
    move(learner.target_store, seed=2)
    return learner, replay_batch(spec, 2, ROWS)


def table(learner, value, obs):
    """The value of every joint action, (P, B, J)."""
    return values_of(learner, value, obs, all_actions(SPEC)).squeeze(-1)


def targets(learner, batch):
    """What an update regresses on, (P, B)."""
    learner.update(batch)
    return learner.target.tensor[:, 0, :, 0].clone()


@pytest.mark.parametrize(("name", "dueling"), CELLS)
def test_the_best_of_the_target_network(name, dueling):
    learner, batch = learner_and_batch(name, dueling=dueling)
    best = table(learner, learner.q_target, batch.next_obs).amax(-1)
    torch.testing.assert_close(targets(learner, batch), batch.reward + batch.discount * best)


@pytest.mark.parametrize(("name", "dueling"), CELLS)
def test_double_q_judges_what_the_online_network_chooses(name, dueling):
    learner, batch = learner_and_batch(name, dueling=dueling, double_q=True)
    best = table(learner, learner.q_net, batch.next_obs).argmax(-1, keepdim=True)
    judged = table(learner, learner.q_target, batch.next_obs)
    following = judged.gather(-1, best).squeeze(-1)
    assert (following < judged.amax(-1) - 1e-3).any()  # they do not always agree
    torch.testing.assert_close(targets(learner, batch), batch.reward + batch.discount * following)


@pytest.mark.parametrize(("name", "dueling"), [c for c in CELLS if c[0] in ("vdn", "joint")])
def test_soft_values_and_the_log_policy_of_munchausen(name, dueling):
    learner, batch = learner_and_batch(name, dueling=dueling, **MUNCHAUSEN)
    now, later = (table(learner, learner.q_target, x) for x in (batch.obs, batch.next_obs))
    soft = TEMPERATURE * (later / TEMPERATURE).logsumexp(-1)
    taken = (batch.action * torch.tensor([3.0, 1.0])).sum(-1, keepdim=True).long()
    added = TEMPERATURE * (now / TEMPERATURE).log_softmax(-1).gather(-1, taken).squeeze(-1)
    assert (added < FLOOR).any()
    assert (added > FLOOR).any()
    expected = batch.reward + WEIGHT * added.clamp(FLOOR, 0.0) + batch.discount * soft
    torch.testing.assert_close(targets(learner, batch), expected)


@pytest.mark.parametrize("name", ["shared", "independent"])
def test_heads_with_values_of_their_own_have_targets_of_their_own(name):
    learner, batch = learner_and_batch(name, double_q=True)
    online, slow = (
        values_of(learner, value, batch.next_obs, all_actions(SPEC))
        for value in (learner.q_net, learner.q_target)
    )
    learner.update(batch)
    for head, n in enumerate((2, 3)):
        actions = [list(all_actions(SPEC)[:, head]).index(option) for option in range(n)]
        best = online[..., actions, head].argmax(-1, keepdim=True)
        judged = slow[..., actions, head].gather(-1, best).squeeze(-1)
        expected = batch.reward + batch.discount * judged
        torch.testing.assert_close(learner.target.tensor[:, 0, :, head], expected)


@pytest.mark.parametrize("dueling", [True, False])
@pytest.mark.parametrize("name", ["vdn", "shared", "independent", "joint"])
def test_munchausen_counts_heads_in_use_only(name, dueling):
    """The second kind has no parameter: whatever is said for it, the bonus is that of the kind."""
    settings = MUNCHAUSEN | {"munchausen_floor": -100.0}
    learner, batch = learner_and_batch(name, IDLE, dueling=dueling, **settings)
    batch = batch._replace(reward=torch.zeros(2, ROWS), discount=torch.zeros(2, ROWS))
    # By kind, then by `a`.
    values = values_of(learner, learner.q_target, batch.obs, all_actions(IDLE))
    first, second = values[..., :5, :].amax(-2), values[..., 5, :]
    log_policy = (torch.stack([first, second], -1) / TEMPERATURE).log_softmax(-1)[..., 0, 1]
    found = []
    for option in range(5):
        action = torch.tensor([1.0, float(option)]).expand(2, ROWS, 2)
        kept = learner.target_store.rows()
        learner.update(batch._replace(action=action))
        learner.target_store.load_rows(kept)
        found.append(learner.target.tensor[:, 0].clone())
    assert (found[0] < 0).any()
    assert all(torch.equal(x, found[0]) for x in found)
    if name != "joint":
        torch.testing.assert_close(found[0].sum(-1), WEIGHT * TEMPERATURE * log_policy)


def test_joint_munchausen_is_of_the_actions_that_there_are():
    """Six of ten joint actions are others: the idle ones are one and the same."""
    learner, batch = learner_and_batch("joint", IDLE, **MUNCHAUSEN | {"munchausen_floor": -100.0})
    batch = batch._replace(reward=torch.zeros(2, ROWS), discount=torch.zeros(2, ROWS))
    values = values_of(learner, learner.q_target, batch.obs, all_actions(IDLE)[:6]).squeeze(-1)
    log_policy = (values / TEMPERATURE).log_softmax(-1)[..., 5]
    learner.update(batch._replace(action=torch.tensor([1.0, 3.0]).expand(2, ROWS, 2)))
    torch.testing.assert_close(learner.target.tensor[:, 0, :, 0], WEIGHT * TEMPERATURE * log_policy)


# --- what errors count ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "total"), [("shared", 1.0), ("independent", 2.0), ("vdn", 1.0), ("joint", 1.0)]
)
def test_losses_of_heads_are_added_up_or_averaged_as_the_factorization_says(name, total):
    """Two heads with errors of one: a loss of 1 if they are averaged, and 2 if added up."""
    learner, batch = learner_and_batch(name)
    learner.update(batch)
    error = learner.q_net.predict(learner.batch.obs, learner.batch.action, None)
    learner.target.tensor.copy_(error.tensor - 1.0)
    weight = learner._row_weights().tensor
    assert weight.expand_as(error.tensor).sum((1, 2, 3)).tolist() == pytest.approx([total] * 2)


@pytest.mark.parametrize("uses", [1, 3, 7])
def test_a_learner_of_its_own_does_not_learn_more_where_another_is_idle(uses):
    """Each head of `independent` has a mean over its own rows: the kind, which is always in use,
    learns as much as if there were nothing beside it."""
    learner, batch = learner_and_batch("independent", IDLE)
    action = batch.action.clone()
    action[..., 0] = (torch.arange(ROWS) >= uses).float()  # so many rows use `a`
    learner.update(batch._replace(action=action))
    weight = learner._row_weights().tensor[:, 0]
    torch.testing.assert_close(weight[..., 0], torch.full((2, ROWS), 1.0 / ROWS))
    expected = (torch.arange(ROWS) < uses).float() / uses
    torch.testing.assert_close(weight[..., 1], expected.expand(2, ROWS))


def test_heads_of_one_network_have_one_mean_over_all_that_is_in_use():
    learner, batch = learner_and_batch("shared", IDLE)
    action = batch.action.clone()
    action[..., 0] = (torch.arange(ROWS) >= 3).float()
    learner.update(batch._replace(action=action))
    used = torch.stack([torch.ones(ROWS), (torch.arange(ROWS) < 3).float()], -1)
    torch.testing.assert_close(
        learner._row_weights().tensor[:, 0], (used / 10.0).expand(2, ROWS, 2)
    )


@pytest.mark.parametrize("name", ["vdn", "shared", "independent", "joint"])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_what_is_reported_by_hand(name, loss):
    learner, batch = learner_and_batch(name, DISCRETE, loss=loss)
    with torch.no_grad():
        rows = learner.layout.to_learner(batch.action)
        predicted = learner.q_net.predict(as_buffer(batch.obs), as_buffer(rows), None)
        predicted = predicted.tensor[:, 0].clone()
    found = learner.update(batch)()
    error = predicted - learner.target.tensor[:, 0]
    each = error.square()
    if loss == "huber":
        each = torch.where(error.abs() < 1, 0.5 * each, error.abs() - 0.5)
    heads = 3.0 if name == "independent" else 1.0  # learners of their own add up
    torch.testing.assert_close(found["train/loss"], heads * each.mean((-2, -1)))
    torch.testing.assert_close(found["train/td_error"], error.abs().mean((-2, -1)))
    torch.testing.assert_close(found["train/q_values"], predicted.mean((-2, -1)))


def test_plain_values_are_the_outputs_of_the_network():
    learner, batch = learner_and_batch("vdn", dueling=False)
    obs, action = as_buffer(batch.obs), as_buffer(batch.action)
    outputs = learner.q_net.net.forward([obs]).tensor[:, 0].clone()  # of head a, then of head b
    columns = batch.action.long() + torch.tensor([0, 2])
    sums = outputs.gather(-1, columns).sum(-1, keepdim=True)
    torch.testing.assert_close(learner.q_net.predict(obs, action, None).tensor[:, 0], sums)


def test_the_target_network_follows_a_part_of_the_way():
    learner, batch = learner_and_batch("vdn", tau=0.25)
    before = learner.target_store.rows()
    learner.update(batch)
    expected = before + 0.25 * (learner.store.rows() - before)
    torch.testing.assert_close(learner.target_store.rows(), expected)
