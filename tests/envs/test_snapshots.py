"""Snapshots of compiled environments: every state they reach fits in again, no forged one does."""

import struct

import numpy as np
import pytest

from headwise.envs.native.engine import Autoreset, Engine
from headwise.errors import EnvError


def made(name, slots=3, settings=None, **more):
    env = Engine(name, slots, settings, num_threads=1, **more)
    env.seed(np.arange(slots), np.zeros(slots))
    env.reset()
    return env


def act(env, rng):
    for head, options in enumerate(env.spec.cardinalities[: env.spec.num_choices]):
        env.choices[:, head] = rng.integers(0, options, env.num_envs)
    low, high = (bound[env.spec.num_choices :] for bound in (env.spec.low, env.spec.high))
    units = rng.uniform(-0.2, 1.2, env.ranges.shape).clip(0.0, 1.0)  # the end points too
    env.ranges[:] = np.clip(low + units * (high - low), low, high)


def checksum(data):
    """FNV-1a of eight bytes at a time, as cpp/core/checksum.h has it: no secret."""
    total = 0xCBF29CE484222325
    for at in range(0, len(data), 8):
        word = int.from_bytes(data[at : at + 8].ljust(8, b"\0"), "little")
        total = (total ^ word) * 0x100000001B3 % 2**64
        total ^= total >> 29
    return total


def forged(snapshot, kind, *places):
    """The snapshot with other numbers at some places, and a checksum that agrees with them."""
    start = snapshot.index(b"\n") + 1
    body = bytearray(snapshot[start:-8])
    assert checksum(body) == int.from_bytes(snapshot[-8:], "little")
    for place, number in places:
        struct.pack_into(kind, body, place, number)
    return snapshot[:start] + bytes(body) + checksum(body).to_bytes(8, "little")


# --- what an environment reaches -----------------------------------------------------------------


@pytest.mark.parametrize("mode", list(Autoreset))
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("ContextualDecoupler", {"one_hot": True}),
        ("Platform", {}),
        ("Platform", {"noise": 100.0}),
        ("HybridShoot", {"num_targets": 1, "hit_radius": 1.0}),
        ("HybridShoot", {"mode": "independent", "hit_radius": 1.0}),
        ("CoopPush", {"visit": "one", "landmarks": [[1, 1]], "particles": [[5, 5]] * 2,
                      "boulders": [[0, 7], [9, 0]]}),
        ("CoopPush", {"dt": 10.0, "num_physics_steps": 1000}),
    ],
)  # fmt: skip
def test_every_state_that_is_reached_can_be_restored(name, settings, mode):
    """Running, terminated and truncated ones, and of slots that only fill up the last block."""
    env = made(name, 11, settings, max_episode_steps=7, autoreset=mode)
    rng = np.random.default_rng(0)
    for _ in range(40):
        act(env, rng)
        env.step()
        before = env.snapshot()
        env.restore(before)
        assert env.snapshot() == before
        if mode == Autoreset.DISABLED and (ended := env.terminated | env.truncated).any():
            env.reset(ended)


def test_without_a_time_limit_particles_may_go_far():
    """A million from the origin is a hundred of the longest steps away."""
    env = made("CoopPush", 1, {"dt": 10.0, "num_physics_steps": 1000, "view": "continuous"},
               max_episode_steps=0)  # fmt: skip
    env.ranges[:] = 1.0
    for _ in range(200):
        env.step()
    state = env.state(0)
    assert state["particles"].min() > 1e6
    env.restore(env.snapshot())
    env.set_state(0, state)


def test_a_run_may_end_just_past_the_edge_of_a_platform():
    """At 70 a second a frame takes the player 3.5 further, and there is no frame left to fall."""
    env = made("Platform", 1, {"noise": 0.0}, autoreset=Autoreset.DISABLED)
    past = 0
    for x in np.arange(180.0, 249.0, 0.5):
        env.reset()
        env.set_state(0, {"x": x, "vx": 70.0, "enemy_x": [20.0, 730.0]})
        env.choices[:], env.ranges[:] = 0, [30.0, 0.0, 0.0]
        env.step()
        if not env.terminated[0]:
            state = env.state(0)
            env.set_state(0, state)
            if 250.0 < state["x"] <= 253.5:
                last, past = state, past + 1
    assert past == 7
    env.reset()
    env.set_state(0, last)
    env.step()
    assert env.terminated[0]  # there is nothing under its feet
    for impossible in ({"x": 253.6}, {"x": 454.9}, {"y": 41.0}, {"vy": 1.0}):
        env.reset()
        with pytest.raises(EnvError, match=r"impossible state for slot 0: .*(platform|vy)"):
            env.set_state(0, impossible)


# --- what is refused -----------------------------------------------------------------------------

DECOUPLER = {"context": 0, "targets[0]": 4, "targets[1]": 8, "elapsed": 32, "ended": 36}
"""Where the numbers of a slot begin; it takes 48 bytes."""


@pytest.mark.parametrize("mode", [Autoreset.SAME_STEP, Autoreset.DISABLED])
@pytest.mark.parametrize("slot", [0, 2])
@pytest.mark.parametrize(
    ("part", "number"),
    [
        ("context", -1), ("context", 2), ("targets[0]", 5), ("targets[0]", 50_000_000),
        ("targets[1]", -1), ("targets[1]", 2**31 - 1), ("elapsed", -1), ("elapsed", 100),
        ("ended", -1), ("ended", 3),
    ],
)  # fmt: skip
def test_forged_numbers_are_refused_and_nothing_changes(part, number, slot, mode):
    """They are indices and counts, so believing them would write where nothing of ours is."""
    env = made("ContextualDecoupler", 3, {"one_hot": True}, autoreset=mode)
    before, obs = env.snapshot(), env.obs.copy()
    with pytest.raises(EnvError, match=f"impossible state for slot {slot}: "):
        env.restore(forged(before, "<i", (48 * slot + DECOUPLER[part], number)))
    assert env.snapshot() == before
    np.testing.assert_array_equal(env.obs, obs)


def test_an_end_belongs_to_a_mode_that_waits_for_it():
    """Truncated is 2, at the limit of 100 steps; in the same step the next episode would begin."""
    for mode in Autoreset:
        env = made("ContextualDecoupler", 3, autoreset=mode)
        places = (DECOUPLER["elapsed"], 100), (DECOUPLER["ended"], 2)
        snapshot = forged(env.snapshot(), "<i", *places)
        if mode == Autoreset.SAME_STEP:
            with pytest.raises(EnvError, match="cannot have ended that way"):
                env.restore(snapshot)
        else:
            env.restore(snapshot)
            np.testing.assert_array_equal(env.truncated, [True, False, False])


@pytest.mark.parametrize("name", ["Platform", "HybridShoot", "CoopPush"])
def test_nan_is_refused_everywhere(name):
    """A state has numbers of each size; which of them the bytes belong to does not matter."""
    env = made(name, 5)
    before = env.snapshot()
    for at in (0, 32, 64):  # of all three the first part is coordinates
        with pytest.raises(EnvError, match="impossible state"):
            env.restore(forged(before, "<d" if name == "Platform" else "<f", (at, np.nan)))
    assert env.snapshot() == before


def test_a_snapshot_belongs_to_a_time_limit_and_an_autoreset_mode():
    """What follows would not be what followed, so it is refused as other settings are."""
    snapshot = made("HybridShoot").snapshot()
    made("HybridShoot", max_episode_steps=5).restore(snapshot)  # its own limit
    for other in ({"max_episode_steps": 6}, {"autoreset": Autoreset.NEXT_STEP}):
        with pytest.raises(EnvError, match="another time limit or autoreset mode"):
            made("HybridShoot", **other).restore(snapshot)


def test_snapshots_of_the_former_version_are_restored():
    """They did not name the time limit; a state that is beyond it is refused all the same."""
    env = made("HybridShoot")
    for _ in range(3):
        act(env, np.random.default_rng(0))
        env.step()
    header, _, body = env.snapshot().partition(b"\n")
    name, version, *numbers, limit, mode = header.split(b"/")[1:]
    assert (version, limit, mode) == (b"3", b"5", b"0")
    former = b"/".join([b"headwise", name, b"2", *numbers]) + b"\n" + body
    other = made("HybridShoot")
    other.restore(former)
    assert other.snapshot() == env.snapshot()
    with pytest.raises(EnvError, match="elapsed must be from 0 to 2"):
        made("HybridShoot", max_episode_steps=3).restore(former)
