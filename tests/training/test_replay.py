import numpy as np
import pytest
import torch

from headwise.algorithms.base import Acted
from headwise.population import Keys, Stream
from headwise.training.replay import Replay, way_to_draw
from headwise.training.transition import Transition

GAMMA = torch.tensor([0.5, 0.1])


def step(number, *, members=2, slots=1, terminated=(), truncated=(), invalid=(), legal=None):
    """Step t: obs t, reward 10^-t by hand-friendly powers of two, successor t + 1."""
    rows = torch.full((members, slots), float(number))
    flags = [torch.zeros(members, slots, dtype=torch.bool) for _ in range(3)]
    for flag, where in zip(flags, (terminated, truncated, invalid), strict=True):
        for slot in where:
            flag[:, slot] = True
    return Transition(
        obs=rows.unsqueeze(-1),
        acted=Acted(rows.unsqueeze(-1) * 10, {"ignored": rows}),
        reward=2.0**rows,
        next_obs=rows.unsqueeze(-1) + 1,
        terminated=flags[0],
        truncated=flags[1],
        valid=~flags[2],
        legal=legal,
        next_legal=legal,
    )


def drawn(replay, rows=400, members=2):
    uniform = Keys(range(members)).uniform(Stream.REPLAY, 0, (rows, 2))
    return replay.sample(uniform, GAMMA[:members])


def row_of(batch, obs):
    """The first row of member 0 that begins at an observation."""
    index = int((batch.obs[0, :, 0] == obs).nonzero()[0])
    return {n: x[0, index] for n, x in batch._asdict().items() if x is not None}


def seen(batch, member=0):
    return sorted(set(batch.obs[member, :, 0].tolist()))


def test_rows_belong_together():
    replay = Replay(10, 1)
    for t in range(5):
        replay.add(step(t))
    batch = drawn(replay)
    assert seen(batch) == [0, 1, 2, 3, 4]
    assert torch.equal(batch.action, batch.obs * 10)
    assert torch.equal(batch.reward, 2.0 ** batch.obs[..., 0])
    assert torch.equal(batch.next_obs, batch.obs + 1)
    assert (batch.discount == GAMMA.unsqueeze(-1)).all()


def test_every_row_is_as_likely_as_any_other():
    replay = Replay(12, 3)
    for t in range(4):
        rows = step(t, slots=3)
        replay.add(rows._replace(reward=rows.reward + torch.tensor([0.0, 0.25, 0.5])))
    batch = drawn(replay, rows=24_000)
    for member in (0, 1):
        _, counts = torch.unique(batch.reward[member], return_counts=True)
        assert len(counts) == 12
        # 2000 expected, standard deviation 43
        assert (counts - 2000).abs().max() < 4.5 * 43


def test_the_oldest_is_overwritten_first():
    replay = Replay(3, 1)
    for t in range(3):
        replay.add(step(t))
    for t in range(3, 9):
        replay.add(step(t))
        assert seen(drawn(replay)) == [t - 2, t - 1, t]


@pytest.mark.parametrize("capacity", [1, 3, 4])
@pytest.mark.parametrize("n_step", [1, 3])
def test_a_capacity_below_the_slots_keeps_what_a_row_needs(capacity, n_step):
    replay = Replay(capacity, 4, n_step)
    assert replay.rows == n_step + 1
    for t in range(6):
        replay.add(step(t, slots=4))
    newest_start = 5 - (n_step - 1)
    assert seen(drawn(replay)) == [newest_start - 1, newest_start]


# --- several steps --------------------------------------------------------------------------------


def test_three_steps_by_hand():
    replay = Replay(10, 1, n_step=3)
    for t in range(6):
        replay.add(step(t))
    batch = drawn(replay)
    assert seen(batch) == [0, 1, 2, 3]  # 4 and 5 have no three steps yet
    row = row_of(batch, 1)
    # 2 + 0.5 * 4 + 0.25 * 8 = 6, then 0.125 times the value of observation 4
    assert row["reward"] == 6.0
    assert row["discount"] == 0.125
    assert row["next_obs"] == 4.0
    # the second member discounts by 0.1: 2 + 0.4 + 0.08
    second = batch.reward[1][batch.obs[1, :, 0] == 1][0]
    assert second.item() == pytest.approx(2.48)


def test_no_step_is_taken_over_an_end():
    replay = Replay(10, 1, n_step=3)
    for t in range(8):
        replay.add(step(t, terminated=(0,) if t == 2 else (), truncated=(0,) if t == 5 else ()))
    batch = drawn(replay)
    row = row_of(batch, 1)  # 1, then 2 where the task ends: 2 + 0.5 * 4
    assert (row["reward"], row["discount"], row["next_obs"]) == (4.0, 0.0, 3.0)
    row = row_of(batch, 2)
    assert (row["reward"], row["discount"]) == (4.0, 0.0)
    row = row_of(batch, 4)  # 4, then 5 where it is cut off: 16 + 0.5 * 32, and a value follows
    assert (row["reward"], row["discount"], row["next_obs"]) == (32.0, 0.25, 6.0)


def test_a_hundred_thousand_transitions_of_five_members_fit_into_150_megabytes():
    replay = Replay(100_000, 16)
    obs, flags = torch.zeros(5, 16, 24), torch.zeros(5, 16, dtype=torch.bool)
    acted = Acted(torch.zeros(5, 16, 3), {})
    replay.add(Transition(obs, acted, torch.zeros(5, 16), obs, flags, flags, ~flags))
    assert replay.num_bytes < 150e6


def test_several_steps_across_the_seam_of_the_ring():
    replay = Replay(4, 1, n_step=2)
    for t in range(7):
        replay.add(step(t))
    batch = drawn(replay)
    assert seen(batch) == [3, 4, 5]  # 3..6 are there; 6 has no second step
    for start in (3, 4, 5):
        row = row_of(batch, start)
        assert row["reward"] == 2.0**start + 0.5 * 2.0 ** (start + 1)
        assert row["next_obs"] == start + 2


def test_a_young_ring_gives_the_steps_it_has():
    """After two of three steps, nothing that was never written may be read."""
    replay = Replay(10, 1, n_step=3)
    replay.add(step(1))
    replay.add(step(2))
    row = row_of(drawn(replay), 1)
    assert (row["reward"], row["discount"], row["next_obs"]) == (2.0 + 0.5 * 4.0, 0.25, 3.0)


# --- steps that were none -------------------------------------------------------------------------


@pytest.mark.parametrize("n_step", [1, 2])
@pytest.mark.parametrize("capacity", [4, 6, 200])
def test_a_step_that_was_no_transition_is_never_drawn(capacity, n_step):
    """Slot 0 ends at t = 3, 7, ... and is only reset in the step that follows; slot 1 never is."""
    replay = Replay(capacity, 2, n_step)
    bad = set()
    for t in range(14):
        invalid = (0,) if t % 4 == 0 and t else ()
        bad |= {t} if invalid else set()
        ends = (0,) if t % 4 == 3 else ()
        one = step(t, slots=2, invalid=invalid, terminated=ends)
        one.obs[:, 1] += 100  # tells the slots apart
        replay.add(one)
        batch = drawn(replay)
        assert not bad & set(seen(batch)), f"after step {t}"
        # slot 1 goes on as if slot 0 were not there
        mine = [x - 100 for x in seen(batch) if x >= 100]
        oldest = max(0, t + 1 - replay.rows)
        assert mine == list(range(oldest, max(t + 1 - (n_step - 1), oldest + 1)))


def test_several_steps_skip_what_was_no_transition():
    replay = Replay(20, 1, n_step=2)
    for t in range(6):
        replay.add(step(t, truncated=(0,) if t == 1 else (), invalid=(0,) if t == 2 else ()))
    batch = drawn(replay)
    assert row_of(batch, 1)["next_obs"] == 2.0  # cut off: its own successor
    assert row_of(batch, 0)["next_obs"] == 2.0
    assert row_of(batch, 3)["next_obs"] == 5.0
    assert 2.0 not in seen(batch)


def test_members_may_have_different_steps_that_were_none():
    replay = Replay(3, 1)
    for t in range(5):
        one = step(t)
        one.valid[1] = t != 4
        replay.add(one)
    batch = drawn(replay)
    assert seen(batch, 0) == [2, 3, 4]
    assert seen(batch, 1) == [1, 2, 3]


# --- masks and keeping ----------------------------------------------------------------------------


def test_masks_of_the_last_successor_come_along():
    replay = Replay(10, 1, n_step=2)
    for t in range(4):
        legal = torch.zeros(2, 1, 1, 4, dtype=torch.bool)
        legal[..., t] = True
        replay.add(step(t, legal=legal))
    batch = drawn(replay)
    for row in range(50):
        start = int(batch.obs[0, row, 0])
        assert batch.legal[0, row, 0].nonzero().item() == start
        assert batch.next_legal[0, row, 0].nonzero().item() == start + 1


MASK = torch.tensor([[True, False, True]]).expand(2, 1, 1, 3)


@pytest.mark.parametrize("n_step", [1, 2])
@pytest.mark.parametrize("gaps", [(), (0,)])
def test_masks_may_come_and_go(n_step, gaps):
    """Where none were given, everything is legal: before the first ones, and after the last."""
    replay = Replay(9, 1, n_step)
    for t in range(9):
        replay.add(step(t, legal=MASK if 3 <= t < 6 else None))
        if gaps:
            replay.add(step(99, invalid=gaps))
    batch = drawn(replay)
    assert seen(batch) == list(range(9 - n_step + 1))
    masked = (batch.obs[..., 0] >= 3) & (batch.obs[..., 0] < 6)
    assert (batch.legal[masked] == torch.tensor([True, False, True])).all()
    assert batch.legal[~masked].all()
    other = Replay(9, 1, n_step)
    other.add(step(0, legal=MASK))
    plain = Replay(9, 1, n_step)
    for t in range(4):
        plain.add(step(t))
    other.load_state_dict(plain.state_dict())
    assert drawn(other).legal.all()


@pytest.mark.parametrize("steps", [2, 5, 9])
@pytest.mark.parametrize("gaps", [False, True])
def test_what_is_kept_goes_into_a_fresh_replay(steps, gaps):
    ours, fresh = Replay(8, 2), Replay(8, 2)
    for t in range(steps):
        ours.add(step(t, slots=2, invalid=(1,) if gaps and t == 1 else ()))
    fresh.load_state_dict(ours.state_dict())
    for t in range(steps, steps + 3):
        for replay in (ours, fresh):
            replay.add(step(t, slots=2))
        for mine, theirs in zip(drawn(ours)[:6], drawn(fresh)[:6], strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("steps", [2, 7, 40])
def test_the_compiled_draw_equals_tensor_operations(steps):
    """With masks a batch is drawn by tensor operations; the rest of it is the same."""
    plain, masked = Replay(36, 3), Replay(36, 3)
    for t in range(steps):
        ended = {"terminated": [t % 3] if t % 4 == 0 else [], "invalid": [1] if t % 5 == 3 else []}
        plain.add(step(t, slots=3, **ended))
        masked.add(step(t, slots=3, legal=torch.ones(2, 3, 1, 2, dtype=torch.bool), **ended))
    ours, theirs = drawn(plain), drawn(masked)
    for name in ("obs", "action", "reward", "next_obs", "discount"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name)), name


def test_the_largest_uniform_number_draws_the_last_slot_and_row():
    replay = Replay(30, 3)
    for t in range(10):
        replay.add(step(t, slots=3))
    most = torch.full((2, 1, 2), 1.0 - 2.0**-24)  # times 3 it rounds to 3
    assert replay.sample(most, GAMMA).obs.flatten().tolist() == [9.0, 9.0]


def test_wide_rows_are_gathered_where_a_kernel_would_be_too_large():
    """An Atari stack is 84 x 84 x 4 numbers, twice: a tile of 16 such rows is 2**20."""
    assert way_to_draw("cuda", 2 * 9 + 4 + 3) == "kernel"
    assert way_to_draw("cuda", 4096) == "kernel"
    assert way_to_draw("cuda", 4097) == "gather"
    assert way_to_draw("cuda", 2 * 84 * 84 * 4 + 1 + 3) == "gather"
    assert way_to_draw("cpu", 2 * 84 * 84 * 4 + 1 + 3) == "compiled"
    assert way_to_draw("mps", 25) == "gather"


def test_gathering_draws_the_same(monkeypatch):
    replay = Replay(8, 2)
    for t in range(5):
        replay.add(step(t, slots=2, terminated=(t % 2,)))
    compiled = drawn(replay)
    monkeypatch.setattr("headwise.training.replay.way_to_draw", lambda *_: "gather")
    for name, x in compiled._asdict().items():
        assert x is None or torch.equal(x, getattr(drawn(replay), name)), name
