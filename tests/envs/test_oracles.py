"""The compiled environments against their rules in plain Python (oracles.py)."""

import math

import numpy as np
import oracles
import pytest

from headwise.envs.native.engine import Autoreset, Engine

DIRECTIONS = [(0, 0), (0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1)]


def engine(name, num_envs, **settings):
    """An engine with all slots reset, without a time limit, and without autoreset."""
    made = Engine(name, num_envs, settings, max_episode_steps=0, autoreset=Autoreset.DISABLED)
    made.seed(np.arange(num_envs), np.zeros(num_envs))
    made.reset()
    return made


# --- CoopPush ------------------------------------------------------------------------------------


def push_state(state):
    return {
        key: part.tolist() for key, part in state.items() if key not in ("velocities", "elapsed")
    }


def compare_push_step(env, rules, slots, moves):
    """One step of the engine against one of the oracle from the same states; compared slots."""
    before = [oracles.Push(rules, **push_state(env.state(slot))) for slot in range(slots)]
    env.step()
    compared = 0
    for slot, oracle in enumerate(before):
        reward, terminated, velocities = oracle.step(moves[slot])
        if oracle.margin < 1e-4:
            continue
        compared += 1
        state = env.state(slot)
        scale = 1e-5 * (10 + np.abs(state["boulders"]).max() + np.abs(state["particles"]).max())
        np.testing.assert_allclose(state["particles"], oracle.particles, atol=scale)
        np.testing.assert_allclose(state["boulders"], oracle.boulders, atol=scale)
        np.testing.assert_allclose(state["velocities"], velocities, atol=1e-6)
        if rules.visit_all:
            np.testing.assert_array_equal(state["visited"], oracle.visited)
        else:
            np.testing.assert_array_equal(state["finished"], oracle.finished)
        assert env.reward[slot] == pytest.approx(reward, abs=10 * scale)
        assert env.terminated[slot] == terminated
    return compared


@pytest.mark.parametrize("trial", range(16))
def test_push_with_random_layouts(trial):
    rng = np.random.default_rng(trial)
    sizes = {"particles": rng.integers(2, 9), "boulders": rng.integers(1, 5),
             "landmarks": rng.integers(1, 5)}  # fmt: skip
    if trial == 0:  # as many as there can be
        sizes = {"particles": 16, "boulders": 8, "landmarks": 8}
    if trial == 1:  # the sizes that have a kernel of their own
        sizes = {"particles": 4, "boulders": 1, "landmarks": 2}
    rules = oracles.PushRules(
        visit_all=bool(trial % 2),
        dense=trial % 4 < 3,
        dt=float(rng.uniform(0.05, 0.5)),
        num_physics_steps=int(rng.integers(1, 11)),
        boulder_weight=float(rng.uniform(1, 8)),
    )
    layout = {key: rng.uniform(-12, 12, (n, 2)) for key, n in sizes.items()}
    slots = 5 if trial == 0 else 18  # more than a block of sixteen
    env = engine(
        "CoopPush", slots, **layout, view="hybrid", shuffle=False, dense=rules.dense, dt=rules.dt,
        visit="all" if rules.visit_all else "one", num_physics_steps=rules.num_physics_steps,
        boulder_weight=rules.boulder_weight,
    )  # fmt: skip
    rules.dt, rules.boulder_weight = (
        float(np.float32(rules.dt)),
        float(np.float32(rules.boulder_weight)),
    )
    discrete = env.spec.num_choices
    compared = 0
    for step in range(12):
        for slot in range(slots):  # every slot in a layout of its own, anew every few steps
            if step % 4 == 0:
                state = {key: rng.uniform(-12, 12, (n, 2)) for key, n in sizes.items()}
                env.set_state(slot, state)
        ended = env.terminated.copy()
        if ended.any():
            env.reset(ended)
        env.choices[...] = rng.integers(0, 9, env.choices.shape)
        env.ranges[...] = rng.uniform(-1, 1, env.ranges.shape)
        moves = [
            [DIRECTIONS[option] for option in env.choices[slot]]
            + env.ranges[slot].reshape(-1, 2).tolist()
            for slot in range(slots)
        ]
        assert len(moves[0]) == sizes["particles"]
        assert discrete == sizes["particles"] // 2
        compared += compare_push_step(env, rules, slots, moves)
    assert compared > 0.5 * 12 * slots


def test_push_runs_free_from_the_default_layout():
    """A hundred steps without a common restart: the rounding of float32 does not build up."""
    rng = np.random.default_rng(5)
    env = engine("CoopPush", 1, view="continuous", shuffle=False)
    oracle = oracles.Push(oracles.PushRules(), **push_state(env.state(0)))
    total = expected = 0.0
    for _ in range(100):
        toward = -env.obs[0, :16].reshape(4, 4)[:, :2] + 0.3 * rng.normal(size=(4, 2))
        env.ranges[0] = np.clip(5 * toward, -1, 1).ravel()
        reward, terminated, _ = oracle.step(env.ranges[0].reshape(4, 2).tolist())
        env.step()
        total, expected = total + env.reward[0], expected + reward
        np.testing.assert_allclose(env.state(0)["boulders"], oracle.boulders, atol=2e-3)
        assert env.terminated[0] == terminated
        if terminated:
            break
    assert total == pytest.approx(expected, abs=2e-3)
    assert abs(expected) > 0.1  # the boulder was pushed


def test_push_coinciding_bodies_part():
    """On top of each other there is no direction to part in: it is +x, for the boulder."""
    layout = {"particles": [[0, 0], [9, 9]], "boulders": [[0, 0], [0, 0]], "landmarks": [[40, 0]]}
    env = engine("CoopPush", 1, **layout, view="continuous", shuffle=False, num_physics_steps=1)
    oracle = oracles.Push(oracles.PushRules(num_physics_steps=1), **push_state(env.state(0)))
    oracle.step([(0, 0), (0, 0)])
    env.step()
    np.testing.assert_allclose(env.state(0)["boulders"], oracle.boulders, atol=1e-5)
    np.testing.assert_allclose(env.state(0)["particles"], oracle.particles, atol=1e-5)
    assert np.isfinite(env.obs).all()


# --- HybridShoot ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["dependent", "independent"])
@pytest.mark.parametrize("view", ["discrete", "hybrid", "continuous"])
@pytest.mark.parametrize("num_targets", [1, 3, 16])
@pytest.mark.parametrize("aim", ["xy", "scalar"])
def test_shoot_with_random_targets(mode, view, num_targets, aim):
    rng = np.random.default_rng(num_targets)
    slots, radius = 37, 0.2
    env = engine(
        "HybridShoot", slots, mode=mode, view=view, num_targets=num_targets, aim=aim,
        hit_radius=radius,
    )  # fmt: skip
    compared = 0
    for _ in range(12):
        if env.terminated.any():
            env.reset(env.terminated.copy())
        oracle = [
            oracles.Shoot(state["targets"].tolist(), state["alive"].astype(int).tolist(),
                          mode == "independent", radius)
            for state in map(env.state, range(slots))
        ]  # fmt: skip
        actions = env.spec.sample(rng, slots)
        env.choices[...] = actions[:, : env.spec.num_choices]
        env.ranges[...] = actions[:, env.spec.num_choices :]
        env.step()
        for slot in range(slots):
            selected, x, y = shot(env, slot, view, aim, num_targets)
            reward, terminated = oracle[slot].step(selected, x, y)
            if oracle[slot].margin < 1e-5:
                continue
            compared += 1
            assert env.reward[slot] == pytest.approx(reward, abs=1e-5)
            assert env.terminated[slot] == terminated
            np.testing.assert_array_equal(env.state(slot)["alive"], oracle[slot].alive)
    assert compared > 0.9 * 12 * slots


def shot(env, slot, view, aim, num_targets):
    """What the heads mean: the target selected and the point aimed at."""
    numbers = [
        *(float(option) for option in env.choices[slot]),
        *(float(value) for value in env.ranges[slot]),
    ]
    if view == "continuous":
        numbers[0] = min(math.floor(numbers[0] * num_targets), num_targets - 1)
    if view == "discrete":
        last = 99 if aim == "scalar" else 9
        numbers[1:] = [option / last for option in numbers[1:]]
    x, y = oracles.hilbert(numbers[1]) if aim == "scalar" else numbers[1:]
    return int(numbers[0]), x, y


@pytest.mark.parametrize("width", [2, 4, 8, 16, 64])
def test_the_curve(width):
    """Every option of a scalar aim with width^2 of them hits the cell that the walk is at."""
    cells = oracles.hilbert_walk(width)
    assert len(set(cells)) == width * width
    env = engine(
        "HybridShoot", width * width, mode="independent", view="hybrid", num_targets=1,
        hilbert_width=width, hit_radius=0.25 / width,
    )  # fmt: skip
    for slot, (x, y) in enumerate(cells):
        env.set_state(slot, {"targets": [[x / (width - 1), y / (width - 1)]]})
    env.ranges[:, 0] = np.arange(width * width) / (width * width)
    env.step()
    assert env.terminated.all()


# --- Platform ------------------------------------------------------------------------------------


def platform_oracle(state):
    numbers = {k: v.tolist() for k, v in state.items() if k not in ("frames", "elapsed")}
    return oracles.Platform(**numbers)


@pytest.mark.parametrize("trial", range(4))
def test_platform_from_random_states(trial):
    """Anywhere on the platforms, at any speed, with the enemies anywhere: one agent step."""
    rng = np.random.default_rng(trial)
    slots = 203
    env = engine("Platform", slots, noise=0.0, view="hybrid")
    ends = set()
    for slot in range(slots):
        left, right = [(0, 250), (455, 750), (965, 1034)][rng.integers(3)]
        enemy_dx = rng.uniform(-30, 30, 2)
        env.set_state(slot, {
            "x": rng.uniform(left, right), "vx": rng.choice([0, rng.uniform(0, 100)]),
            "enemy_x": [rng.uniform(0, 230), rng.uniform(475, 730)],
            "enemy_dx": rng.choice([-30, 30], 2) if slot % 2 else enemy_dx,
        })  # fmt: skip
    for _ in range(3):
        oracle = [platform_oracle(env.state(slot)) for slot in range(slots)]
        env.choices[:, 0] = rng.integers(0, 3, slots)
        env.ranges[...] = rng.uniform(0, 1, (slots, 3)) * [30, 720, 430]
        playing = ~env.terminated
        env.step()
        for slot in range(slots):
            if not playing[slot]:
                continue
            kind = int(env.choices[slot, 0])
            reward, terminated = oracle[slot].step(kind, float(env.ranges[slot, kind]))
            ends.add((kind, terminated))
            state = env.state(slot)
            for key in ("x", "y", "vx", "vy", "enemy_x", "enemy_dx"):
                np.testing.assert_allclose(state[key], getattr(oracle[slot], key), atol=1e-9)
            assert state["frames"] == oracle[slot].frames
            assert env.reward[slot] == pytest.approx(reward, abs=1e-7)
            assert env.terminated[slot] == terminated
        env.reset(env.terminated.copy())
    assert len(ends) == 6  # each kind of action, with and without an end


# --- ContextualDecoupler -------------------------------------------------------------------------


@pytest.mark.parametrize("one_hot", [False, True])
def test_decoupler(one_hot):
    rng = np.random.default_rng(0)
    env = engine("ContextualDecoupler", 64, one_hot=one_hot)
    for _ in range(20):
        states = [env.state(slot) for slot in range(64)]
        env.choices[...] = rng.integers(0, 5, (64, 2))
        env.step()
        for slot, state in enumerate(states):
            reward = oracles.decoupler_reward(
                int(state["context"]), state["targets"], env.choices[slot]
            )
            assert env.reward[slot] == pytest.approx(reward)
