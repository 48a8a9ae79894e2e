"""Pictures. What they should look like is in docs/assets; here is what they must not fail at."""

import dataclasses
import itertools
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

from headwise.envs.native import NATIVE_NAMES, env_id
from headwise.envs.native import drawing as render
from headwise.envs.native.canvas import BLUE, GREEN, ORANGE, RED, Canvas
from headwise.envs.native.gym_env import NativeEnv
from headwise.envs.native.tasks.hybrid_shoot import selected, shot_point
from headwise.envs.native.tasks.platform import chosen_kind, strengths
from headwise.envs.native.vector_env import NativeVectorEnv

CLASSICS = ("CartPole", "Acrobot", "MountainCar", "MountainCarContinuous", "Pendulum")
SETTINGS = [
    ("ContextualDecoupler", {}),
    ("ContextualDecoupler", {"num_options": 40, "one_hot": True}),
    ("Platform", {"view": "discrete"}),
    ("Platform", {"view": "continuous", "param_heads": 2}),
    ("Platform", {"action_form": "oneof"}),
    ("HybridShoot", {"num_targets": 16}),
    ("HybridShoot", {"mode": "independent", "view": "discrete", "hilbert_width": 8}),
    *((name, {}) for name in CLASSICS),
    ("CoopPush", {"layout": "independent"}),
    (
        "CoopPush",
        {
            "view": "continuous",
            "layout": {
                "particles": [(0, 0)],
                "boulders": [(9000, 8), (0, -9000)],
                "landmarks": [(1, 1), (-8000, 50)],
            },
        },
    ),
]


def rgb(color):
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])


def count(frame, color):
    """How many pixels are of a color of the palette, exactly."""
    return int((frame == rgb(color)).all(axis=-1).sum())


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_a_picture_of_every_step(name, settings):
    env = NativeEnv(name, render_mode="rgb_array", max_episode_steps=4, **settings)
    env.reset(seed=0)
    env.action_space.seed(0)
    frames = [env.render()]
    over = False
    while not over:
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        over = terminated or truncated
        frames.append(env.render())
    for frame in frames:
        assert frame.shape == (400, 600, 3)
        assert frame.dtype == np.uint8
    for earlier, later in itertools.pairwise(frames):
        assert (earlier != later).any()
    np.testing.assert_array_equal(env.render(), frames[-1])  # looking changes nothing


def test_the_colors_tell_the_story():
    env = NativeEnv("HybridShoot", render_mode="rgb_array")
    env.reset(options={"targets": [[0.2, 0.2], [0.8, 0.2], [0.5, 0.8]]})
    start = env.render()
    assert count(start, ORANGE) > 500
    env.step((0, np.array([0.9, 0.9])))
    missed = env.render()
    env.step((0, np.array([0.2, 0.2])))
    hit = env.render()
    assert count(missed, RED) > count(start, RED) + 50
    assert count(missed, BLUE) > count(start, BLUE) + 50  # somebody is selected
    assert count(hit, GREEN) > count(missed, GREEN) + 50
    assert count(hit, ORANGE) < count(missed, ORANGE) - 100  # one is dead


@pytest.mark.parametrize("name", NATIVE_NAMES)
def test_human_windows_open_follow_and_close(name, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    fast = dataclasses.replace(render.info_of(name), frames_per_second=1000)
    monkeypatch.setattr(render, "info_of", lambda name: fast)
    import pygame

    env = gym.make(env_id(name), render_mode="human")
    env.reset(seed=0)
    assert pygame.display.get_surface().get_size() == (600, 400)
    assert env.render() is None
    shown = pygame.surfarray.array3d(pygame.display.get_surface()).transpose(1, 0, 2)
    quiet = NativeEnv(name, render_mode="rgb_array")
    quiet.reset(seed=0)
    np.testing.assert_array_equal(shown, quiet.render())
    env.step(env.action_space.sample())
    env.close()
    assert not pygame.display.get_init()


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_one_picture_for_each_slot(mode):
    vector = NativeVectorEnv(
        "CoopPush", 3, render_mode="rgb_array", autoreset_mode=mode, max_episode_steps=2
    )
    single = NativeEnv("CoopPush", render_mode="rgb_array", max_episode_steps=2)
    vector.reset(seed=0)
    single.reset(seed=2)
    vector.action_space.seed(0)
    for step in range(2):
        actions = vector.action_space.sample()
        vector.step(actions)
        single.step((actions[0][2], actions[1][2]))
        frames = vector.render()
        assert isinstance(frames, tuple)
        if step == 1 and mode == "same_step":
            single.reset()  # there the picture is already that of the next episode
        np.testing.assert_array_equal(frames[2], single.render())
    if mode == "next_step":
        vector.step(actions)
        single.reset()
        np.testing.assert_array_equal(vector.render()[2], single.render())


def test_videos(tmp_path):
    env = gym.wrappers.RecordVideo(
        gym.make("headwise/HybridShoot-v0", render_mode="rgb_array"), str(tmp_path / "videos")
    )
    env.reset(seed=0)
    for _ in range(5):
        env.step(env.action_space.sample())
    env.close()
    (video,) = tmp_path.rglob("*.mp4")
    assert video.stat().st_size > 1000


def test_collected_frames():
    env = gym.make("headwise/CoopPush-v0", render_mode="rgb_array_list")
    env.reset(seed=0)
    env.step(env.action_space.sample())
    assert [frame.shape for frame in env.render()] == [(400, 600, 3)] * 2


def test_without_a_render_mode_gymnasium_is_warned():
    env = NativeEnv("HybridShoot")
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="without a render mode"):
        assert env.render() is None
    with pytest.warns(UserWarning, match="without a render mode"):
        assert NativeVectorEnv("HybridShoot", 2).render() is None


def scene_after(env, action):
    """The scene that a picture would be drawn of."""
    scenes = []
    env.reset(seed=0)
    env.step(action)
    original = render.picture
    try:
        render.picture = lambda scene: scenes.append(scene) or Canvas().pixels()
        env.render()
    finally:
        render.picture = original
    return scenes[0]


@pytest.mark.parametrize(
    ("settings", "action", "target", "point"),
    [
        ({}, (2, [0.25, 0.5]), 2, (0.25, 0.5)),
        ({"view": "discrete"}, [1, 0, 9], 1, (0, 1)),
        ({"view": "continuous"}, [0.34, 0.5, 0.5], 1, (0.5, 0.5)),  # 0.34 is in the second third
        ({"mode": "independent"}, (0, [0.1]), 0, (7 / 15, 3 / 15)),
        ({"mode": "independent", "view": "discrete"}, [0, 49], 0, (7 / 15, 8 / 15)),
        ({"mode": "independent", "view": "continuous"}, [1.0, 1.0], 2, (1, 0)),
    ],
)
def test_shots_are_drawn_where_they_went(settings, action, target, point):
    scene = scene_after(NativeEnv("HybridShoot", render_mode="rgb_array", **settings), action)
    assert selected(scene, scene.last) == target
    np.testing.assert_allclose(shot_point(scene, scene.last), point, atol=1e-6)


@pytest.mark.parametrize("width", [2, 4, 8, 32])
def test_the_curve_that_is_drawn_is_the_curve_that_is_shot_along(width):
    settings = {"mode": "independent", "num_targets": 1, "hit_radius": 1e-3}
    env = NativeEnv("HybridShoot", render_mode="rgb_array", hilbert_width=width, **settings)
    for aim in (0.0, 0.2, 0.37, 0.5, 0.81, 1.0):
        scene = scene_after(env, (0, [aim]))
        env.reset(options={"targets": [shot_point(scene, scene.last)]})
        assert env.step((0, [aim]))[2]


@pytest.mark.parametrize(
    ("settings", "action", "kind", "given"),
    [
        ({}, (1, [3, 400, 5]), 1, (3, 400, 5)),
        ({"view": "discrete"}, [2, 9, 0, 9], 2, (30, 0, 430)),
        ({"view": "continuous"}, [-0.5, 30, 0, 0], 0, (30, 0, 0)),
        ({"param_heads": 2}, (2, [6, 0.5]), 2, (6, 360, 215)),
        ({"action_form": "oneof"}, (1, [90]), 1, (0, 90, 0)),
    ],
)
def test_moves_are_drawn_as_they_were(settings, action, kind, given):
    scene = scene_after(NativeEnv("Platform", render_mode="rgb_array", **settings), action)
    assert chosen_kind(scene, scene.last) == kind
    np.testing.assert_allclose(list(strengths(scene, scene.last).values()), given)


def test_without_pillow_or_pygame_it_says_how_to_get_them():
    for module, mode in (("PIL", "rgb_array"), ("pygame", "human")):
        code = (
            f"import sys; sys.modules[{module!r}] = None\n"
            "import gymnasium, headwise\n"
            "try:\n"
            f"    gymnasium.make('headwise/HybridShoot-v0', render_mode={mode!r})\n"
            "except headwise.EnvError as error:\n"
            "    print(error)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        )
        assert "pip install 'headwise[render]'" in done.stdout
