"""Environments of a user's own module: imported if the user types it, never because a file says so.

From `headwise train --env my_robot:MyRobot-v0` on, every command that plays wants to be told again,
and says how.
"""

import sys

import gymnasium as gym
import pytest
from small_run import SMALL

import headwise as hw
from headwise.cli import main
from headwise.envs.make import environments

ROBOT = """
import gymnasium as gym, numpy as np
from gymnasium import spaces

class Robot(gym.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space = spaces.Box(-1, 1, (2,))
    action_space = spaces.Dict(grip=spaces.Discrete(3), arm=spaces.Box(-1, 1, (2,)))

    def __init__(self, render_mode=None, length=10):
        self.render_mode, self.length = render_mode, length

    def legal(self):
        return {"action_mask": {"grip": np.array([1, 0, 1], np.int8)}}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(2, np.float32), self.legal()

    def step(self, action):
        assert action["grip"] != 1, "this option is illegal"
        self.time += 1
        over = self.time == self.length
        return np.zeros(2, np.float32), 1.0, False, over, self.legal()

    def render(self):
        return np.zeros((8, 8, 3), np.uint8)

gym.register("MyRobot-v0", entry_point=Robot)
"""
ENV = "my_robot:MyRobot-v0"
STUDY = (
    ROBOT
    + """
from headwise.envs.foreign import wrap
from headwise.envs.make import environments
from headwise.study import Study

@environments.register("MyTeam")
def team(seeds, num_slots, **settings):
    return wrap(Robot, seeds, num_slots, **settings)

study = Study.grid(
    "my_study", environments=["MyRobot-v0", "MyTeam"], algorithms=["ppo"],
    factorizations=["shared"], total_timesteps=40, seeds=1,
    num_envs=2, settings={"net_arch": [8], "n_steps": 20},
)
"""
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the module in it, and nothing imported yet."""
    (tmp_path / "my_robot.py").write_text(ROBOT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    forget()


def forget():
    sys.modules.pop("my_robot", None)
    gym.registry.pop("MyRobot-v0", None)


@pytest.fixture
def run(here):
    words = (
        f"--seeds 2 --total-timesteps 64 --out robot --env {ENV} --env-settings length=5 {SMALL}"
    )
    assert main(["train", *words.split()]) == 0
    forget()
    return "robot"


COMMANDS = [
    ["eval", "robot", "--episodes", "2"],
    ["play", "robot", "--record", "x.gif", "--episodes", "2", "--no-deterministic"],
    ["train", "--resume", "robot", "--total-timesteps", "128", "--no-progress", "--device", "cpu"],
]


def test_the_run_says_how_it_is_measured(here, capsys):
    assert (
        main(["train", "--seeds", "1", "--total-timesteps", "8", "--out", "x", "--env", ENV]) == 0
    )
    assert f"headwise eval x --env {ENV}\n" in capsys.readouterr().out


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_command_that_plays_wants_to_be_told(run, words, capsys):
    assert main(words) == 2
    said = capsys.readouterr().err
    assert f"If you trust it: headwise {' '.join(words)} --env {ENV}\n" in said
    assert "my_robot" not in sys.modules
    assert main([*words, "--env", ENV]) == 0


def test_settings_of_the_environment_are_kept(run, capsys):
    assert main(["eval", run, "--episodes", "1", "--env", ENV, "--json"]) == 0
    assert "[5.0]" in capsys.readouterr().out


def test_masks_are_heeded_in_play(run, capsys):
    """The environment itself fails at an illegal option."""
    words = ["--record", "x.gif", "--episodes", "5", "--no-deterministic", "--env", ENV]
    assert main(["play", run, *words]) == 0
    assert "returns: 5, 5, 5, 5, 5" in capsys.readouterr().out


def test_an_export_needs_no_environment_and_takes_masks_where_it_gave_them(run):
    import onnxruntime

    for words, wanted in (([], True), (["--masks", "no"], False)):
        assert main(["export", run, *words]) == 0
        session = onnxruntime.InferenceSession(f"{run}/policy.onnx")
        assert ("action_mask" in [x.name for x in session.get_inputs()]) is wanted
    assert "my_robot" not in sys.modules


def test_a_checkpoint_without_an_id_wants_one(here, capsys):
    sys.path.insert(0, str(here))
    import my_robot

    hw.Agent("ppo", my_robot.Robot, num_envs=2, net_arch=(8,)).save("x.zip")
    assert main(["eval", "x.zip"]) == 2
    assert "headwise eval x.zip --env MODULE:ID" in capsys.readouterr().err
    assert main(["eval", "x.zip", "--env", ENV, "--episodes", "2"]) == 0


def test_a_module_that_fails_shows_where(here, capsys):
    (here / "broken.py").write_text("import nothing_of_the_kind")
    assert main(["train", "--env", "broken:X-v0"]) == 2
    assert "No module named 'nothing_of_the_kind'" in capsys.readouterr().err


def test_a_module_that_does_not_register_it_is_said_so(here, capsys):
    assert main(["train", "--env", "my_robot:Absent-v0"]) == 2
    said = capsys.readouterr().err
    assert "the module 'my_robot' can be imported, but registers no 'Absent-v0'" in said


@pytest.mark.parametrize("env", ["MyRobot-v0", "MyTeam"])
def test_a_run_of_a_study_whose_file_registers_it(here, env, capsys):
    (here / "my_study.py").write_text(STUDY)
    words = "study run my_study.py --keep-checkpoints --executor inline --out s"
    try:
        assert main(words.split()) == 0
        loaded = {hw.Agent.load(path).world._id: path for path in here.glob("s/**/checkpoint.zip")}
        run = str(loaded[env].parent.relative_to(here))
        forget()
        environments._entries.pop("MyTeam")
        capsys.readouterr()
        assert main(["eval", run, "--episodes", "2"]) == 2
        assert f"headwise eval {run} --episodes 2 --env MODULE:{env}\n" in capsys.readouterr().err
        assert main(["eval", run, "--episodes", "2", "--env", f"my_study:{env}"]) == 0
        assert "IQM 10.0" in capsys.readouterr().out
    finally:
        environments._entries.pop("MyTeam", None)
        sys.modules.pop("my_study", None)
