"""The command line, called as a function: what is printed, what is left behind, what is refused."""

import json
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from small_run import train

import headwise as hw
from headwise.cli import COMMANDS, bench, main
from headwise.cli.envs import shortened
from headwise.cli.film import check_video, with_bars


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "x"
    assert train(folder, "--log", "csv", "jsonl") == 0
    return folder


def test_help_of_all_commands_is_readable(capsys):
    assert main([]) == 0
    overview = capsys.readouterr().out
    for name, text in COMMANDS.items():
        assert f"  {name}" in overview
        assert text in overview
    for name in ("train", "eval", "play", "export", "envs", "bench"):
        with pytest.raises(SystemExit, match="0"):
            main([name, "--help"])
        text = capsys.readouterr().out
        assert "(default" in text
        assert max(map(len, text.splitlines())) < 200
        # Every option says what it is for.
        assert "--" in text


def test_train_leaves_a_checkpoint_and_numbers(run):
    agent = hw.Agent.load(run / "checkpoint.zip")
    assert agent.steps == 64
    assert agent.seeds == (0, 1)
    assert agent.config.factorization.name == "vdn"
    assert agent.face.spec.num_ranges == 2
    assert "rollout/ep_rew_mean" in (run / "metrics.csv").read_text()
    assert json.loads((run / "metrics.jsonl").read_text().splitlines()[0])["step"] == 64


def test_train_does_not_overwrite_a_run(run, capsys):
    assert train(run) == 2
    assert "headwise train --resume" in capsys.readouterr().err


def test_eval_prints_the_score(run, capsys):
    assert main(["eval", str(run), "--episodes", "4"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("IQM ")
    assert "(2 seeds: too few to say" in text
    assert main(["eval", str(run), "--episodes", "4", "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert len(numbers["returns"]["0"]) == 4
    assert numbers["low"] <= numbers["iqm"] <= numbers["high"]


def test_eval_of_a_single_episode_has_no_interval(tmp_path, capsys):
    assert train(tmp_path / "x", "--seeds", "1") == 0
    capsys.readouterr()
    assert main(["eval", str(tmp_path / "x"), "--episodes", "1", "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)  # NaN is no JSON
    assert numbers["low"] is numbers["high"] is None


def test_eval_may_cut_episodes_short(run, capsys):
    assert main(["eval", str(run), "--episodes", "2", "--max-steps", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [float(line.split()[-1]) for line in lines[-2:]] == [3.0, 3.0]


def test_play_records_what_it_sees_with_bars_for_the_heads(run, tmp_path, capsys):
    from PIL import Image

    video = tmp_path / "deep" / "x.gif"
    assert main(["play", str(run), "--record", str(video), "--episodes", "2"]) == 0
    assert "frames in" in capsys.readouterr().out
    with Image.open(video) as film:
        assert film.n_frames >= 4
        assert film.size == (600, 400 + 3 * 16 + 2 * 8)  # a bar for each of three heads


def test_play_records_mp4(run, tmp_path):
    video = tmp_path / "x.mp4"
    assert main(["play", str(run), "--record", str(video), "--episodes", "1"]) == 0
    assert video.stat().st_size > 1000


@pytest.mark.parametrize("frames", [1, 5, 10_000])
def test_play_ends_where_the_video_does(frames, tmp_path, capsys):
    """With the returns of what was played: 3 episodes of CartPole, or less."""
    words = "--env CartPole-v1 --total-timesteps 8 --seeds 1 --num-envs 2 --net-arch 8 --device cpu"
    folder, video = str(tmp_path / "x"), str(tmp_path / "x.gif")
    assert main(["train", *words.split(), "--no-progress", "--out", folder]) == 0
    capsys.readouterr()
    words = ["--record", video, "--episodes", "3", "--max-frames", str(frames)]
    assert main(["play", folder, *words]) == 0
    shown, told = capsys.readouterr().out.splitlines()
    if frames == 10_000:
        assert told.count(",") == 2
        assert "episodes" not in told
        return
    assert shown.startswith(f"{frames} frames")
    # The first frame is before the first step, each of which earns 1.
    cut = "(1 of 3 episodes, the last one cut off: --max-frames is reached)"
    assert told == f"returns: {frames - 1} {cut}"


def test_play_stops_with_control_c_and_keeps_what_it_saw(run, tmp_path, monkeypatch, capsys):
    import headwise.cli.play as play

    draw, video = play.with_bars, tmp_path / "x.gif"
    drawn = []

    def pressed(*words):
        drawn.append(1)
        if len(drawn) == 4:
            raise KeyboardInterrupt
        return draw(*words)

    monkeypatch.setattr(play, "with_bars", pressed)
    assert main(["play", str(run), "--record", str(video), "--episodes", "9"]) == 130
    assert "3 frames in" in capsys.readouterr().out
    assert video.exists()


class Blind(gym.Env):
    """An environment that takes no render_mode."""

    metadata: ClassVar = {"render_modes": ["rgb_array"]}
    observation_space, action_space = gym.spaces.Box(-1, 1, (2,)), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 0.0, False, True, {}


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("Pendulum-v1 --view discrete --env-settings bins=5", 0, "frames in"),
        ("CartPole-v1 --env-settings masks=False vectorization=async", 0, "frames in"),
        ("probe/agree", 2, "probe/agree cannot be watched: it draws no pictures"),
        ("Blind-v0", 2, "this environment cannot be drawn; got TypeError"),
    ],
)
def test_play_of_all_kinds_of_environments(words, status, message, tmp_path, capsys, monkeypatch):
    blind = gym.envs.registration.EnvSpec("Blind-v0", entry_point=Blind)
    monkeypatch.setitem(gym.registry, "Blind-v0", blind)
    folder, video = str(tmp_path / "x"), str(tmp_path / "x.gif")
    settings = "--total-timesteps 8 --seeds 1 --num-envs 2 --net-arch 8 --device cpu --no-progress"
    settings += f" --env {words}"
    assert main(["train", *settings.split(), "--out", folder]) == 0
    played = main(["play", folder, "--record", video, "--episodes", "1", "--max-frames", "3"])
    assert played == status
    said = capsys.readouterr()
    assert message in said.out + said.err


def test_play_for_nobody_is_refused(run, monkeypatch, capsys):
    import pygame

    monkeypatch.delenv("SDL_VIDEODRIVER", raising=False)
    monkeypatch.setattr(pygame.display, "get_driver", lambda: "offscreen")
    assert main(["play", str(run)]) == 2
    assert "there is no screen here; got offscreen. Record a video" in capsys.readouterr().err
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    # A window has a pace of its own.
    monkeypatch.setattr("headwise.envs.native.drawing.Window.show", lambda *_: None)
    assert main(["play", str(run), "--episodes", "1"]) == 0


def test_a_video_that_cannot_be_written_leaves_the_old_one(tmp_path):
    video = tmp_path / "x.gif"
    check_video(video)
    assert not video.exists()
    video.write_bytes(b"old")
    check_video(video)
    assert video.read_bytes() == b"old"


def test_a_bar_is_as_long_as_its_share():
    frame = np.zeros((40, 600, 3), dtype=np.uint8)
    drawn = with_bars(frame, ["a", "b"], np.array([0.75, 0.25]))
    blue = (drawn == (66, 118, 180)).all(-1)
    lengths = [blue[40 + 8 + 16 * row + 8].sum() for row in (0, 1)]
    assert lengths[0] == pytest.approx(3 * lengths[1], abs=3)


def test_envs_lists_actions_views_and_scores(capsys):
    assert main(["envs", "--probes"]) == 0
    text = capsys.readouterr().out
    for part in ("headwise/CoopPush-v0", "hybrid", "2 x D9, 4 x R", "34.7", "probe/agree"):
        assert part in text
    assert main(["envs", "headwise/HybridShoot-v0"]) == 0
    text = capsys.readouterr().out
    assert "num_targets" in text
    assert "aim_x: Range(0, 1)" in text


def test_specs_in_a_few_words():
    spec = hw.ActionSpec.of(a=hw.Choice(3), b=hw.Choice(9), c=hw.Choice(9), d=hw.Range(0, 1))
    assert shortened(spec) == "D3, 2 x D9, R"


def test_bench_measures_environments_and_training(capsys, monkeypatch):
    monkeypatch.setattr(bench, "training_rate", lambda algo, *_: {"sac": 1234.0}.get(algo, 1.0))
    assert main(["bench", "--seconds", "0.001", "--slots", "8", "--seeds", "1"]) == 0
    text = capsys.readouterr().out
    assert "headwise/Platform-v0" in text
    assert "1,234" in text


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_training_is_measured_with_its_updates(algo):
    settings = {"ppo": {"n_steps": 16}, "dqn": {"learning_starts": 32, "batch_size": 8}}[algo]
    rate = bench.training_rate(algo, "HybridShoot", 2, 0.001, net_arch=(8,), **settings)
    assert 0 < rate < 1e7


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tarin"], "Did you mean 'train'"),
        (["train", "--algo", "pop"], "Did you mean 'ppo'"),
        (["train", "--env", "Platformm", "--no-progress"], "Did you mean"),
        (["train", "--learning-rate", "-1"], "learning_rate"),
        (["train", "--resume", "nowhere"], "there is no run here"),
        (["eval", "nowhere"], "there is no run here"),
        (["play", "nowhere", "--record", "x.avi"], ".gif or .mp4"),
        (["envs", "Platformm"], "Did you mean 'Platform'"),
        (["train", "CartPole-v1"], "An environment is --env CartPole-v1"),
        (["train", "--env", "MyRobot-v0"], "or MODULE:ID of yours"),
        (["train", "--env", "nowhere:MyRobot-v0"], "cannot import the module of 'nowhere:MyRobot"),
        (["train", "--total-timesteps", "0"], "steps must be a count; got 0"),
        (["train", "--total-timesteps", "1e99"], "steps is out of range"),
        (["train", "--algo", "a2c"], "a2c is not offered; 'ppo' is the nearest"),
        (["train", "--env", "./desk.py:Desk-v0"], "Write desk:Desk-v0"),
        (["eval", "nowhere", "--env", "broken:X-v0"], "there is no run here"),
        (["train", "--env", "broken:X-v0"], "got ZeroDivisionError: division by zero"),
        (["train", "--seeds", "9" * 30], "seeds must be a count; got 9999"),
        (["train", "--env-settings", "env=3"], "unknown setting of HybridShoot; got 'env'"),
        (["train", "--env-settings", "allocate=3"], "allocate makes the arrays"),
        (
            ["play", "nowhere", "--record", "/proc/x/y.gif"],
            "cannot write the video '/proc/x/y.gif'",
        ),
        (["play", "nowhere", "--episodes", "0"], "episodes must be a count"),
    ],
)
def test_mistakes_are_one_message_without_a_traceback(
    words, message, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("1 / 0")
    try:
        status = main(words)
    except SystemExit as error:  # tyro's own refusals
        status = error.code
    assert status == 2
    text = capsys.readouterr().err
    assert message in text
    assert "Traceback" not in text
    assert not (tmp_path / "runs").exists()


def test_the_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"headwise {hw.__version__}\n"


def test_the_entry_point_is_installed():
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["scripts"]["headwise"] == "headwise.cli:main"
