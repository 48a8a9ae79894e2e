import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import headwise
from headwise import Choice, ConfigError, EnvError, Range
from headwise.envs.lander import LanderEnv, LanderVectorEnv, landers

VIEWS = ("discrete", "hybrid", "continuous")
BACKENDS = ("envpool", "gymnasium")
ID = "headwise/Lander-v0"

# `reset(seed=0)` and three steps of LunarLander-v3, continuous: (action, observation, reward).
GOLDEN_START = [0.0057061, 1.3990337, 0.5779653, -0.5282997, -0.0066053, -0.1309177, 0, 0]
GOLDEN_STEPS = [
    (
        (0, 0),
        [0.0114125, 1.3865713, 0.5771849, -0.5539262, -0.0130747, -0.1293994, 0, 0],
        -1.0992279,
    ),
    (
        (1, 0),
        [0.0170982, 1.3743477, 0.5752462, -0.5433422, -0.0196754, -0.1320270, 0, 0],
        1.1265713,
    ),
    (
        (-1, 1),
        [0.0228477, 1.3615115, 0.5832606, -0.5706366, -0.0278826, -0.1641593, 0, 0],
        -2.0450549,
    ),
]


def in_view(view, main, lateral):
    """The engines' powers, all of them end points of three bins, as an action of a view."""
    if view == "discrete":
        return np.array([main + 1, lateral + 1])
    if view == "hybrid":
        return main + 1, np.array([lateral], dtype=np.float32)
    return np.array([main, lateral], dtype=np.float32)


@pytest.mark.parametrize("view", VIEWS)
def test_goldens(view):
    env = LanderEnv(view)
    obs, _ = env.reset(seed=0)
    np.testing.assert_allclose(obs, GOLDEN_START, atol=6e-8)
    for engines, expected, reward in GOLDEN_STEPS:
        obs, got, terminated, truncated, _ = env.step(in_view(view, *engines))
        np.testing.assert_allclose(obs, expected, atol=6e-8)
        assert got == pytest.approx(reward, abs=1e-7)
        assert not terminated
        assert not truncated


@pytest.mark.parametrize("view", VIEWS)
def test_goldens_through_the_vector_face(view):
    envs = LanderVectorEnv(3, view, backend="gymnasium")
    obs, _ = envs.reset(seed=[7, 0, 7])
    np.testing.assert_allclose(obs[1], GOLDEN_START, atol=6e-8)
    for engines, expected, reward in GOLDEN_STEPS:
        actions = [in_view(view, *engines)] * 3
        batch = tuple(map(np.stack, zip(*actions, strict=True)))
        obs, got, *_ = envs.step(batch if view == "hybrid" else np.stack(actions))
        np.testing.assert_allclose(obs[1], expected, atol=6e-8)
        assert got[1] == pytest.approx(reward, abs=1e-6)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("render_mode", [None, "rgb_array"])
def test_gymnasium_finds_nothing_to_complain_about(view, render_mode, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gym.make(ID, view=view, render_mode=render_mode)
    check_env(env.unwrapped)  # warnings are errors here
    env.close()


def test_heads_of_each_view():
    assert LanderEnv("discrete").action_spec.heads == (Choice(3, True), Choice(3, True))
    assert LanderEnv("hybrid").action_spec.heads == (Choice(3, True), Range(-1, 1))
    assert LanderEnv("continuous").action_spec.heads == (Range(-1, 1), Range(-1, 1))
    assert LanderEnv("hybrid", bins=11).action_spec.cardinalities == (11, 0)
    assert LanderEnv("discrete").action_spec.names == ("main", "lateral")


def test_pictures():
    env = LanderEnv(render_mode="rgb_array")
    env.reset(seed=0)
    frame = env.render()
    assert frame.shape == (400, 600, 3)
    assert frame.std() > 10  # there is something to see
    envs = LanderVectorEnv(2, render_mode="rgb_array")  # EnvPool does not draw, so Gymnasium does
    envs.reset(seed=0)
    first, second = envs.render()
    assert (first == frame).all()
    assert first.shape == second.shape
    with pytest.raises(ConfigError, match=r"not drawn.*gymnasium"):
        LanderVectorEnv(2, backend="envpool", render_mode="rgb_array")


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_the_vector_face_does_what_gymnasium_would(mode):
    """The same landers in SyncVectorEnv: observations, rewards, flags, final observations."""
    ours = LanderVectorEnv(
        4, "continuous", backend="gymnasium", autoreset_mode=mode, max_episode_steps=60
    )
    theirs = SyncVectorEnv(
        [lambda: LanderEnv("continuous", max_episode_steps=60)] * 4, autoreset_mode=mode
    )
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"]
    assert ours.single_action_space == theirs.single_action_space
    assert ours.observation_space == theirs.observation_space
    np.testing.assert_array_equal(ours.reset(seed=5)[0], theirs.reset(seed=5)[0])
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(150):
        actions = rng.uniform(-1, 1, (4, 2)).astype(np.float32)
        mine, other = ours.step(actions), theirs.step(actions)
        np.testing.assert_array_equal(mine[0], other[0])
        np.testing.assert_allclose(mine[1], other[1], rtol=1e-6)  # float32 in between
        np.testing.assert_array_equal(mine[2], other[2])
        np.testing.assert_array_equal(mine[3], other[3])
        ended = mine[2] | mine[3]
        ends += ended.sum()
        if not ended.any():
            assert mine[4] == {}
            continue
        np.testing.assert_array_equal(mine[4]["_episode"], ended)
        if mode is AutoresetMode.SAME_STEP:
            np.testing.assert_array_equal(mine[4]["_final_obs"], other[4]["_final_obs"])
            for a, b in zip(mine[4]["final_obs"], other[4]["final_obs"], strict=True):
                np.testing.assert_array_equal(a, b)
        if mode is AutoresetMode.DISABLED:
            with pytest.raises(EnvError, match=rf"slot {np.argmax(ended)} has ended"):
                ours.step(actions)
            again, _ = ours.reset(options={"reset_mask": ended})
            same, _ = theirs.reset(options={"reset_mask": ended})
            np.testing.assert_array_equal(again, same)
    assert ends > 4


def played(mode, num_envs=3, steps=250):
    """All observations of each slot in the order in which they came, resets included."""
    envs = LanderVectorEnv(num_envs, "continuous", autoreset_mode=mode, backend="envpool")
    obs, _ = envs.reset(seed=11)
    seen = [[row] for row in obs]
    lengths = [[] for _ in obs]
    for _ in range(steps):
        obs, _, terminated, truncated, infos = envs.step(np.zeros((num_envs, 2), dtype=np.float32))
        ended = terminated | truncated
        for slot, row in enumerate(obs):
            if ended[slot]:
                lengths[slot].append(infos["episode"]["l"][slot])
                if mode == "same_step":
                    seen[slot].append(infos["final_obs"][slot])
            seen[slot].append(row)
        if mode == "disabled" and ended.any():
            obs, _ = envs.reset(options={"reset_mask": ended})
            for slot in np.flatnonzero(ended):
                seen[slot].append(obs[slot])
    return seen, lengths


def test_envpool_plays_the_same_episodes_in_every_autoreset_mode():
    runs = {mode: played(mode) for mode in ("next_step", "same_step", "disabled")}
    reference, lengths = runs["next_step"]
    assert min(map(len, lengths)) >= 2  # two episodes of every lander have ended
    for seen, ends in runs.values():
        for slot in range(3):
            np.testing.assert_array_equal(seen[slot][:251], reference[slot])
            assert ends[slot][:2] == lengths[slot][:2]
            # Observation L is the last one of the first episode, L + 1 the first of the second.
            start = seen[slot][lengths[slot][0] + 1]
            assert start[1] == pytest.approx(1.41, abs=0.02)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_seed_is_honored(backend):
    def start(seed):
        envs = LanderVectorEnv(3, backend=backend)
        return envs.reset(seed=seed)[0]

    np.testing.assert_array_equal(start(3), start(3))
    np.testing.assert_array_equal(start(3)[1], start(4)[0])  # slot i has seed + i
    np.testing.assert_array_equal(start([9, 8, 3])[2], start(3)[0])
    assert (start(3) != start(100)).any()
    envs = LanderVectorEnv(2, backend=backend)
    one, _ = envs.reset(seed=1)
    two, _ = envs.reset()  # the stream goes on
    assert (one != two).any()
    np.testing.assert_array_equal(envs.reset(seed=1)[0], one)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_crash_on_the_last_step_is_no_time_limit(backend):
    """Without engines one of these landers ends first, at a step L; then the limit is L."""

    def fall(limit):
        many, steps = landers(backend, 4, max_episode_steps=limit), 0
        many.reset(seed=[1, 2, 3, 4])
        while True:
            found = many.step(np.zeros((4, 2), dtype=np.float32))
            steps += 1
            if (found[2] | found[3]).any():
                return steps, *found[:4]

    length, obs, _, terminated, truncated = fall(1000)
    assert not truncated.any()
    steps, same, reward, ended, cut = fall(length)
    assert steps == length
    np.testing.assert_array_equal(ended, terminated)
    np.testing.assert_array_equal(cut, ~terminated)
    np.testing.assert_array_equal(same, obs)
    assert (np.abs(reward[ended]) == 100).all()
    assert (np.abs(reward[cut]) != 100).all()


@pytest.mark.parametrize("limit", [0, -1])
@pytest.mark.parametrize("backend", BACKENDS)
def test_no_time_limit(backend, limit):
    envs = LanderVectorEnv(1, "continuous", backend=backend, max_episode_steps=limit)
    obs, _ = envs.reset(seed=0)
    for _ in range(1100):
        obs, _, terminated, truncated, _ = envs.step(hovering(obs))
        assert not (terminated | truncated).any()
        assert obs in envs.observation_space


@pytest.mark.parametrize(("limit", "steps"), [(7, 7), (None, 1000), (1050, 1050)])
def test_the_time_limit_given_to_make(limit, steps):
    env = gym.make(ID, view="continuous", max_episode_steps=limit)
    obs, _ = env.reset(seed=0)
    for step in range(1, steps + 1):
        obs, _, terminated, truncated, _ = env.step(hovering(obs[None])[0])
        assert truncated == (step == steps)
        assert not terminated


def hovering(obs):
    """Engines that keep a lander in the air, upright, above the middle."""
    x, y, vx, vy, angle, turning = obs[:, :6].T
    tilt = np.clip(0.5 * x + vx, -0.4, 0.4)
    lateral = np.clip(20 * turning - 10 * (tilt - angle), -1, 1)
    main = np.where(vy + 0.3 * (y - 1.0) < 0, 1.0, -1.0)
    return np.stack([main, lateral], axis=1).astype(np.float32)


BAD_ACTIONS = [
    ("continuous", np.array([np.nan, 0], dtype=np.float32), "out of range"),
    ("continuous", np.array([0, 1.5], dtype=np.float32), r"out of range; got 1\.5"),
    ("continuous", np.zeros(3, dtype=np.float32), "wrong shape"),
    ("discrete", np.array([3, 0]), "out of range; got 3"),
    ("discrete", np.array([0.0, 1.0]), "wrong type"),
    ("hybrid", np.array([0.0, 1.0]), ""),
    ("hybrid", (-1, np.zeros(1, dtype=np.float32)), "out of range; got -1"),
]


@pytest.mark.parametrize(("view", "action", "complaint"), BAD_ACTIONS)
def test_a_refused_action_changes_nothing(view, action, complaint):
    env, twin = LanderEnv(view), LanderEnv(view)
    env.reset(seed=3)
    twin.reset(seed=3)
    with pytest.raises(EnvError, match=f"Lander.*{complaint}"):
        env.step(action)
    good = env.action_space.sample()
    np.testing.assert_array_equal(env.step(good)[0], twin.step(good)[0])


def test_calls_out_of_order_are_refused():
    env = LanderEnv()
    with pytest.raises(EnvError, match="step before reset"):
        env.step(env.action_space.sample())
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="no such reset options"):
        env.reset(options={"wind": 3})
    env.close()
    with pytest.raises(EnvError, match=r"closed\. Make a new one"):
        env.step(env.action_space.sample())
    with pytest.raises(EnvError, match=r"closed\. Make a new one"):
        env.reset()
    envs = LanderVectorEnv(2)
    with pytest.raises(EnvError, match="step before reset"):
        envs.step(envs.action_space.sample())
    with pytest.raises(EnvError, match="must be of all slots"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    envs.reset(seed=0)
    for mask in (np.array([True]), np.zeros(2, dtype=bool), [True, False], np.ones(2)):
        with pytest.raises(EnvError, match="mask does not fit"):
            envs.reset(options={"reset_mask": mask})
    with pytest.raises(EnvError, match="one whole number"):
        envs.reset(seed=[1, None])
    envs.close()
    with pytest.raises(EnvError, match=r"closed\. Make a new one"):
        envs.step(envs.action_space.sample())


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"view": "hybridd"}, "Did you mean 'hybrid'"),
        ({"bins": 1}, "bins"),
        ({"bins": 2.5}, "bins"),
        ({"max_episode_steps": -2}, "max_episode_steps"),
        ({"max_episode_steps": True}, "max_episode_steps"),
        ({"max_episode_steps": 10**10}, "max_episode_steps"),
        ({"render_mode": "ansi"}, "render mode"),
    ],
)
def test_impossible_settings(settings, complaint):
    for make in (LanderEnv, LanderVectorEnv):
        with pytest.raises(headwise.HeadwiseError, match=complaint):
            make(**settings)


def test_impossible_settings_of_many():
    with pytest.raises(ConfigError, match="Did you mean 'envpool'"):
        LanderVectorEnv(2, backend="envpol")
    with pytest.raises(ConfigError, match="autoreset mode"):
        LanderVectorEnv(2, autoreset_mode="never")
    with pytest.raises(EnvError, match="a lander to fly"):
        LanderVectorEnv(0)


def test_without_envpool_and_without_box2d():
    """What is not installed is said with the line that installs it, and "auto" does without."""
    code = """
import sys
sys.modules["envpool"] = None
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "envpool" else find(name, *rest)
from headwise.envs.lander import LanderVectorEnv
from gymnasium.vector import SyncVectorEnv
assert isinstance(LanderVectorEnv(2)._landers, SyncVectorEnv)
try:
    LanderVectorEnv(2, backend="envpool")
except Exception as error:
    print(error)
for name in [name for name in sys.modules if "box2d" in name.lower()]:
    del sys.modules[name]
sys.modules["Box2D"] = None
try:
    LanderVectorEnv(2)
except Exception as error:
    print(error)
"""
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    first, second = out.stdout.splitlines()
    assert "EnvPool is not installed" in first
    assert "Box2D is not installed" in second
    for line in (first, second):
        assert "pip install 'headwise[lander]'" in line
