"""A memory that is loaded into one of another shape: the same transitions, and no new ones."""

import pytest
import torch
from test_replay import step

from headwise import CheckpointError
from headwise.population import Keys, Stream
from headwise.training.replay import Replay


def filled(steps, capacity, slots, n_step=1):
    """Slot e writes observations 100 e, 100 e + 1, ...; member 0 has one invalid step of slot 1."""
    replay = Replay(capacity, slots, n_step)
    for t in range(steps):
        one = step(t, slots=slots)
        shift = 100.0 * torch.arange(slots)
        valid = one.valid.clone()
        if slots > 1:
            valid[0, 1] = t != 2
        moved = {
            "obs": one.obs + shift[:, None],
            "next_obs": one.next_obs + shift[:, None],
            "reward": torch.ones_like(one.reward),
            "valid": valid,
        }
        replay.add(one._replace(**moved))
    return replay


def pairs(replay, member):
    """What was observed and what followed, by all that can be drawn."""
    uniform = Keys([0, 1]).uniform(Stream.REPLAY, 0, (4000, 2))
    batch = replay.sample(uniform, torch.ones(2))
    ends = (x[member, :, 0].tolist() for x in (batch.obs, batch.next_obs))
    return set(zip(*ends, strict=True))


@pytest.mark.parametrize("slots", [1, 2, 3, 6])
@pytest.mark.parametrize("steps", [4, 20, 33])  # young, exactly full, and gone around
def test_the_same_transitions_with_other_slots(steps, slots):
    old, new = filled(steps, 60, 3), Replay(60, slots)
    new.load_state_dict(old.state_dict())
    assert new.steps * slots >= int(old.state_dict()["count"].sum(-1).max())
    for member in (0, 1):
        assert pairs(new, member) == pairs(old, member)
    assert new.state_dict()["count"].sum(-1).tolist() == old.state_dict()["count"].sum(-1).tolist()


@pytest.mark.parametrize(("capacity", "kept"), [(30, range(23, 33)), (90, range(13, 33))])
def test_another_size_keeps_the_newest(capacity, kept):
    """Of 33 steps of each of 3 slots, 20 were kept; 10 of each find room, or all."""
    new = Replay(capacity, 3)
    new.load_state_dict(filled(33, 60, 3).state_dict())
    assert {obs for obs, _ in pairs(new, 1)} == {100.0 * e + t for e in range(3) for t in kept}


@pytest.mark.parametrize("slots", [1, 2])
def test_no_return_reaches_from_one_slot_to_another(slots):
    """Three steps of reward 1 lead from t to t + 3, or to the end of what the slot remembers."""
    new = Replay(60, slots, n_step=3)
    new.load_state_dict(filled(8, 60, 3, n_step=3).state_dict())
    for obs, following in pairs(new, 1):
        assert obs // 100 == following // 100
        assert following - obs <= 3


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_writing_goes_on_behind_it(slots):
    new = Replay(60, slots)
    new.load_state_dict(filled(33, 60, 3).state_dict())
    for t in range(60 // slots):
        new.add(step(1000 + t, slots=slots))
    assert {obs for obs, _ in pairs(new, 0)} == {1000.0 + t for t in range(60 // slots)}
    again = Replay(60, slots)
    again.load_state_dict(new.state_dict())
    assert all(torch.equal(x, again.state_dict()[n]) for n, x in new.state_dict().items())


def test_what_fits_is_left_as_it_lies():
    old, new = filled(33, 60, 3), Replay(60, 3)
    new.load_state_dict(old.state_dict())
    for name, x in old.state_dict().items():
        assert torch.equal(x, new.state_dict()[name]), name


@pytest.mark.parametrize("name", ["next", "count"])
@pytest.mark.parametrize("number", [-1, 21, 2**40])
def test_cursors_that_point_outside_are_refused(name, number):
    """As in a forged file."""
    state = filled(33, 60, 3).state_dict()
    state[name][1, 2] = number
    with pytest.raises(CheckpointError, match="point outside"):
        Replay(60, 3).load_state_dict(state)
