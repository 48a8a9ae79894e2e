"""Going on with a run: what may be said with --resume, and what Ctrl-C says that it has left."""

import os
import shlex
import signal

import pytest
from small_run import train

import headwise as hw
from headwise.cli import main

QUIET = ["--no-progress", "--device", "cpu"]


def steps_in(folder):
    return hw.Agent.load(folder / "checkpoint.zip").steps


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "a run"
    assert train(folder) == 0
    return folder


def resume(folder, *words):
    return main(["train", "--resume", str(folder), *QUIET, *words])


def test_steps_are_how_many_there_are_to_be_in_all(run, capsys):
    assert resume(run, "--total-timesteps", "128") == 0
    assert steps_in(run) == 128
    assert resume(run, "--total-timesteps", "128") == 2
    assert "more than 128: --total-timesteps says how many" in capsys.readouterr().err


def test_a_finished_run_says_how_to_train_longer(run, capsys):
    capsys.readouterr()
    assert resume(run) == 0
    said = capsys.readouterr().out
    longer = shlex.join(
        ["headwise", "train", "--resume", str(run), *QUIET, "--total-timesteps", "128"]
    )
    assert f"The run is complete. To train longer: {longer}\n" in said
    assert steps_in(run) == 64


def test_what_a_run_keeps_is_refused_and_named(run, tmp_path, capsys):
    other = tmp_path / "other"
    assert (
        resume(
            run,
            "--learning-rate",
            "0.5",
            "--out",
            str(other),
            "--seeds",
            "3",
            "--total-timesteps",
            "128",
        )
        == 2
    )
    said = capsys.readouterr().err
    assert "got --learning-rate, --out, --seeds; allowed: --total-timesteps" in said
    assert not other.exists()
    assert steps_in(run) == 64


def test_a_checkpoint_of_another_name_goes_on_in_its_own_file(run):
    copy = run / "robot.zip"
    (run / "checkpoint.zip").rename(copy)
    assert main(["train", "--resume", str(copy), "--total-timesteps", "96", *QUIET]) == 0
    assert hw.Agent.load(copy).steps == 96
    assert not (run / "checkpoint.zip").exists()


def test_a_checkpoint_without_a_length_needs_one(tmp_path, capsys):
    hw.Agent("ppo", "HybridShoot", num_envs=2, net_arch=(8,)).save(tmp_path / "x.zip")
    assert resume(tmp_path / "x.zip") == 2
    assert "--total-timesteps 100000" in capsys.readouterr().err


# --- Ctrl-C ---------------------------------------------------------------------------------------


def pressed(times):
    """A `StopOnReturn` in whose stead somebody presses Ctrl-C, so many times."""

    class Pressed:
        def __init__(self, score, on):
            self.left = times

        def __call__(self, report):
            for _ in range(self.left):
                os.kill(os.getpid(), signal.SIGINT)
            self.left = 0

    return Pressed


STOP = "--total-timesteps 4000 --stop-at 1 --n-steps 250 --n-epochs 1"


def test_control_c_saves_and_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("headwise.cli.train.StopOnReturn", pressed(1))
    folder = tmp_path / "a run"
    assert train(folder, *STOP.split(), "--log", "csv", "jsonl") == 130
    words = f"--resume {shlex.quote(str(folder))} --stop-at 1 --log csv jsonl --no-progress"
    assert (
        f"stopped at 1,002 steps and saved; go on with: headwise train {words}"
        in capsys.readouterr().err
    )
    assert steps_in(folder) == 1002  # a tick of two slots later
    monkeypatch.undo()
    assert resume(folder) == 0
    assert steps_in(folder) == 4000


def test_control_c_twice_says_what_the_checkpoint_has(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("headwise.cli.train.StopOnReturn", pressed(2))
    assert train(tmp_path / "x", *STOP.split()) == 130
    said = capsys.readouterr().err
    assert "stopped at 1,000 steps, without time to save: the checkpoint has 0" in said
    assert f"go on from there with: headwise train --resume {tmp_path / 'x'}" in said
    assert steps_in(tmp_path / "x") == 0


def test_control_c_before_anything_is_saved(tmp_path, monkeypatch, capsys):
    def interrupted(self, *args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(hw.Agent, "save", interrupted)
    assert train(tmp_path / "x") == 130
    assert "stopped at 0 steps; nothing is saved" in capsys.readouterr().err


def test_the_hint_of_a_longer_run_repeats_its_length(run, monkeypatch, capsys):
    monkeypatch.setattr("headwise.cli.train.StopOnReturn", pressed(1))
    assert resume(run, "--total-timesteps", "4000", "--stop-at", "1") == 130
    assert (
        f"--resume {shlex.quote(str(run))} --total-timesteps 4000 --stop-at 1"
        in capsys.readouterr().err
    )
    assert 64 < steps_in(run) < 4000


def test_a_longer_run_that_was_killed_goes_on_to_its_length(run, monkeypatch):
    """Also if nobody repeats it: the checkpoint knows what it was to become."""
    monkeypatch.setattr("headwise.cli.train.StopOnReturn", pressed(1))
    assert resume(run, "--total-timesteps", "4000", "--stop-at", "1") == 130
    monkeypatch.undo()
    assert resume(run) == 0
    assert steps_in(run) == 4000
