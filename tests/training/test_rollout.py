import torch

from headwise.algorithms.base import Acted
from headwise.training.rollout import Rollout
from headwise.training.transition import Transition


def step(number, members=2, slots=3, legal=False):
    """A step whose every number says when it was."""
    flags = torch.zeros(members, slots, dtype=torch.bool)
    rows = torch.full((members, slots), float(number))
    masks = torch.ones(members, slots, 1, 2, dtype=torch.bool) if legal else None
    return Transition(
        obs=rows.unsqueeze(-1),
        acted=Acted(rows.unsqueeze(-1), {"log_prob": -rows.unsqueeze(-1)}),
        reward=rows,
        next_obs=rows.unsqueeze(-1) + 1,
        terminated=flags,
        truncated=flags.clone(),
        valid=~flags,
        legal=masks,
        next_legal=masks,
    )


def test_steps_come_back_in_order_and_the_next_rollout_begins_anew():
    rollout = Rollout(3)
    for first in (0, 10):
        for k in range(3):
            assert not rollout.full
            rollout.add(step(first + k))
        assert rollout.full
        batch = rollout.take()
        assert batch.reward.shape == (2, 3, 3)
        assert batch.reward[0, :, 0].tolist() == [first, first + 1, first + 2]
        assert batch.next_obs[1, :, 2, 0].tolist() == [first + 1, first + 2, first + 3]
        assert torch.equal(batch.extra["log_prob"], -batch.obs)
        assert batch.legal is None
        assert batch.next_legal is None


def test_what_was_added_is_copied():
    rollout, one = Rollout(1), step(5)
    rollout.add(one)
    one.reward.fill_(99.0)  # an environment overwrites its arrays
    assert (rollout.take().reward == 5).all()


def test_masks_are_kept():
    rollout = Rollout(1)
    rollout.add(step(0, legal=True))
    assert rollout.take().legal.shape == (2, 1, 3, 1, 2)


def test_masks_may_come_and_go():
    """Where none were given, everything is legal."""
    rollout, mask = Rollout(3), torch.zeros(2, 3, 1, 2, dtype=torch.bool)
    for masked in ((1,), (0, 2)):
        for t in range(3):
            told = mask if t in masked else None
            rollout.add(step(t)._replace(legal=told, next_legal=told))
        batch = rollout.take()
        for t in range(3):
            assert bool(batch.legal[:, t].all()) == (t not in masked)
            assert bool(batch.next_legal[:, t].any()) == (t not in masked)
    half = Rollout(3)
    half.add(step(0))
    rollout.load_state_dict(half.state_dict())
    assert rollout.state_dict()["legal"].all()


def test_ends_are_kept_apart():
    rollout, one = Rollout(2), step(0)
    one.terminated[0, 0] = True
    one.truncated[0, 1] = True
    rollout.add(one)
    rollout.add(step(1))
    batch = rollout.take()
    assert batch.terminated[0].tolist() == [[True, False, False], [False] * 3]
    assert batch.truncated[0].tolist() == [[False, True, False], [False] * 3]


def test_a_half_full_rollout_goes_into_a_fresh_one():
    ours, fresh = Rollout(3), Rollout(3)
    for k in range(2):
        ours.add(step(k))
    fresh.load_state_dict(ours.state_dict())
    assert fresh.size == 2
    for rollout in (ours, fresh):
        rollout.add(step(2))
    for mine, theirs in zip(ours.take()[:7], fresh.take()[:7], strict=True):
        assert torch.equal(mine, theirs)


def test_an_episode_that_is_left_counts_as_cut_off():
    rollout, last = Rollout(2), step(0)
    last.terminated[0, 0] = True
    rollout.add(last)
    rollout.cut()
    rollout.add(step(1))
    batch = rollout.take()
    assert batch.truncated[0, 0].tolist() == [False, True, True]  # an end of its own stays one
    assert not batch.truncated[:, 1].any()
