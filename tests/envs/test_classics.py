"""The compiled classics beside Gymnasium's: the same states and actions, step by step."""

import hashlib

import gymnasium as gym
import numpy as np
import pytest

from headwise.envs.native import env_id
from headwise.envs.native.engine import Autoreset, Engine
from headwise.envs.native.gym_env import NativeEnv
from headwise.envs.reference import scripted_policy

PARTS = {
    "CartPole": ("x", "x_dot", "theta", "theta_dot"),
    "Acrobot": ("theta1", "theta2", "dtheta1", "dtheta2"),
    "MountainCar": ("position", "velocity"),
    "MountainCarContinuous": ("position", "velocity"),
    "Pendulum": ("theta", "theta_dot"),
}
UNSTABLE = ("CartPole", "Acrobot", "Pendulum")
"""Where the last bit of a sine grows: both start from the same state again every 20 steps."""
every_classic = pytest.mark.parametrize("name", PARTS)


def state_of(engine, name):
    """As Gymnasium keeps it: MountainCarContinuous goes on in float32."""
    state = engine.state(0)
    dtype = np.float32 if name == "MountainCarContinuous" else np.float64
    return np.array([state[part] for part in PARTS[name]], dtype)


def assert_near(ours, theirs, ulps, where):
    """Equal to within so many units in the last place of the second.

    Of a number nearer to zero than a hundredth, of that: it is a difference of larger ones.
    """
    theirs = np.asarray(theirs)
    unit = np.spacing(np.maximum(np.abs(theirs), np.float32(0.01)))
    assert (np.abs(ours - theirs) <= ulps * unit).all(), (where, ours, theirs)


def play_both(name, steps, policy, settings=None, limit=None):
    """Plays both from the same states by the same actions; returns how many episodes ended how."""
    ours = Engine(name, 1, settings, autoreset=Autoreset.DISABLED, max_episode_steps=limit)
    theirs = gym.make(env_id(name).removeprefix("headwise/"), max_episode_steps=limit,
                      **(settings or {}))  # fmt: skip
    ours.seed([3], [0])
    ours.reset()
    theirs.reset(seed=0)
    same, ends = False, np.zeros(2, dtype=int)
    for step in range(steps):
        if not same:
            theirs.unwrapped.state = state_of(ours, name)
        form = policy(ours.obs)[0]  # an option, or a number from -1 to 1
        if ours.spec.num_choices:
            ours.choices[0] = form
            action = int(form[0])
        else:
            ours.ranges[0] = form * ours.spec.high
            action = ours.ranges[0].copy()
        ours.step()
        obs, reward, terminated, truncated, _ = theirs.step(action)
        assert_near(ours.obs[0], obs, 2, (name, step))
        assert_near(ours.reward, np.float32([reward]), 2, (name, step))
        state = np.asarray(theirs.unwrapped.state, dtype=np.float64)
        np.testing.assert_allclose(state_of(ours, name), state, rtol=1e-12, atol=1e-12)
        assert bool(ours.terminated[0]) == terminated
        assert bool(ours.truncated[0]) == (truncated and not terminated)
        same = name not in UNSTABLE or step % 20 != 0
        if terminated or truncated:
            ends += [terminated, truncated and not terminated]
            ours.reset(np.array([True]))
            theirs.reset()
            same = False
    return ends.tolist()


def at_random(name):
    rng = np.random.default_rng(1)
    options = {"CartPole": 2, "Acrobot": 3, "MountainCar": 3}.get(name)
    draw = (lambda: rng.integers(options)) if options else (lambda: rng.uniform(-1, 1))
    return lambda obs: np.array([[draw()]], dtype=np.float32)


def by_hand(name):
    return scripted_policy(name, Engine(name, 1).spec)


@every_classic
def test_random_play_is_gymnasiums(name):
    terminated, truncated = play_both(name, 4000, at_random(name))
    assert terminated > 100 if name == "CartPole" else truncated >= 4


@every_classic
def test_good_play_is_gymnasiums(name):
    terminated, truncated = play_both(name, 4000, by_hand(name))
    assert truncated >= 8 if name in ("CartPole", "Pendulum") else terminated >= 4


@every_classic
@pytest.mark.parametrize("limit", [1, 7])
def test_another_time_limit_is_gymnasiums(name, limit):
    terminated, truncated = play_both(name, 60, at_random(name), limit=limit)
    assert terminated + truncated == 60 // limit


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("CartPole", {"sutton_barto_reward": True}),
        ("MountainCar", {"goal_velocity": 0.03}),
        ("MountainCarContinuous", {"goal_velocity": 0.03}),
        ("Pendulum", {"g": 9.81}),
        ("Pendulum", {"g": 0.0}),
    ],
)
def test_settings_are_gymnasiums(name, settings):
    assert sum(play_both(name, 1200, at_random(name), settings)) > 0
    play_both(name, 1200, by_hand(name), settings)


@every_classic
def test_spaces_and_limits_are_gymnasiums(name):
    ours, theirs = NativeEnv(name), gym.make(env_id(name).removeprefix("headwise/"))
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.max_episode_steps == theirs.spec.max_episode_steps
    assert (
        gym.make(env_id(name), render_mode="rgb_array").metadata["render_fps"]
        == (theirs.metadata["render_fps"])
    )


@every_classic
def test_the_first_step_from_a_start_of_gymnasiums(name):
    """Its starts are float64, also where it goes on in float32."""
    ours, theirs = NativeEnv(name), gym.make(env_id(name).removeprefix("headwise/"))
    ours.reset(seed=0)
    theirs.action_space.seed(0)
    for seed in range(200):
        start, _ = theirs.reset(seed=seed)
        parts = dict(zip(PARTS[name], theirs.unwrapped.state, strict=True))
        assert_near(ours.set_state({**parts, "elapsed": 0}), start, 1, seed)
        action = theirs.action_space.sample()
        now, then = ours.step(action), theirs.step(action)
        assert_near(now[0], then[0], 2, seed)
        assert now[1] == pytest.approx(then[1], rel=1e-6)
        assert now[2:4] == then[2:4]


@every_classic
def test_starts_are_drawn_as_gymnasiums(name):
    """Each part of the state uniformly between the same bounds, and apart from the others."""
    engine = Engine(name, 4000)
    engine.seed(np.full(4000, 5), np.arange(4000))
    engine.reset()
    ours = np.array([[engine.state(n)[part] for part in PARTS[name]] for n in range(4000)])
    theirs = gym.make(env_id(name).removeprefix("headwise/")).unwrapped
    theirs.reset(seed=0)
    drawn = np.array([theirs.reset() and np.array(theirs.state) for _ in range(4000)])
    bound = {"CartPole": [0.05] * 4, "Acrobot": [0.1] * 4, "Pendulum": [np.pi, 1.0]}.get(name)
    low, high = ([-0.6, 0], [-0.4, 0]) if bound is None else (-np.array(bound), np.array(bound))
    low, high = np.array(low), np.array(high)
    width = high - low
    for states in (ours, drawn):
        assert (low - 1e-7 <= states).all()
        assert (states <= high + 1e-7).all()
        np.testing.assert_allclose(states.mean(axis=0), (low + high) / 2, atol=0.02 * width.max())
        np.testing.assert_allclose(states.std(axis=0), width / 12**0.5, rtol=0.04, atol=1e-12)
    moving = ours[:, width > 0]
    related = np.corrcoef(moving.T).reshape(moving.shape[1], -1) - np.eye(moving.shape[1])
    assert (np.abs(related) < 0.07).all()


def test_sines_and_cosines_are_right_to_the_last_place_of_float32():
    """Pendulum shows those of any angle, near the multiples of a quarter turn and far from zero."""
    env = NativeEnv("Pendulum")
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    quarters = np.arange(-40, 41) * np.pi / 2
    angles = np.concatenate([
        quarters, np.nextafter(quarters, 1e9), quarters + 1e-9, rng.uniform(-4, 4, 500),
        rng.uniform(-1e3, 1e3, 500), rng.uniform(-1e6, 1e6, 500), [0.0, -0.0, 1e-300],
    ])  # fmt: skip
    for angle in angles:
        cosine, sine, _ = env.set_state({"theta": angle})
        assert_near(cosine, np.float32(np.cos(angle)), 1, angle)
        assert_near(sine, np.float32(np.sin(angle)), 1, angle)


def test_what_no_episode_can_come_to_is_refused():
    for name, parts in (
        ("CartPole", {"x": 2.5}), ("CartPole", {"theta": 0.21}), ("Acrobot", {"theta1": 3.2}),
        ("Acrobot", {"theta1": np.pi, "theta2": 0.0}), ("MountainCar", {"position": 0.55}),
        ("MountainCar", {"velocity": 0.08}), ("MountainCarContinuous", {"position": 0.46}),
        ("Pendulum", {"theta_dot": 8.1}),
    ):  # fmt: skip
        env = NativeEnv(name)
        env.reset(seed=0)
        before = env.snapshot()
        with pytest.raises(ValueError, match="impossible state"):
            env.set_state(parts)
        assert env.snapshot() == before


BYTES = {
    "CartPole": "801cfe686ce0235b",
    "Acrobot": "f945a2cc4bc6ad4a",
    "MountainCar": "f1e92ff55ab709c5",
    "MountainCarContinuous": "4d412b84b187ef4e",
    "Pendulum": "5eddb2707e7a6977",
}


@every_classic
def test_the_same_seed_gives_the_same_bytes_on_every_machine(name):
    """Nothing of libm is in them, whose sines differ from one version to the next."""
    engine = Engine(name, 37, max_episode_steps=90)
    engine.seed(np.arange(37), np.arange(37))
    engine.reset()
    rng, sha = np.random.default_rng(0), hashlib.sha256()
    for _ in range(200):
        heads = engine.spec.sample(rng, 37)
        engine.choices[...] = heads[:, : engine.spec.num_choices]
        engine.ranges[...] = heads[:, engine.spec.num_choices :]
        engine.step()
        for array in (engine.obs, engine.next_obs, engine.reward, engine.terminated):
            sha.update(array.tobytes())
    assert sha.hexdigest()[:16] == BYTES[name]
