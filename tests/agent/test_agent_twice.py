"""The same script twice: what the first run left behind is not destroyed by the second."""

import logging

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import headwise as hw
from headwise.agent.storage import held_steps


class Walk(gym.Env):
    observation_space = spaces.Box(0, 1, (1,))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return np.zeros(1, dtype=np.float32), {}

    def step(self, action):
        self.time += 1
        return np.zeros(1, dtype=np.float32), 1.0, False, self.time == 5, {}


def script(folder, steps=100, loggers=True, **more):
    agent = hw.Agent("ppo", Walk, num_envs=2, net_arch=(4,), n_steps=16)
    agent.learn(
        steps,
        progress=False,
        checkpoint=folder / "run.zip",
        loggers=[hw.CSVLogger(folder / "m.csv")] if loggers else [],
        log_every=20,
        **more,
    )
    return agent


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_run_that_is_further_is_not_replaced(tmp_path):
    script(tmp_path)
    before = contents(tmp_path)
    for loggers in (True, False):
        with pytest.raises(
            hw.CheckpointError, match=r"100 steps there, 0 here.*zip', env=\.\.\.\)"
        ):
            script(tmp_path, loggers=loggers)
    (tmp_path / "run.zip").rename(tmp_path / "kept.zip")
    with pytest.raises(hw.ConfigError, match=r"another run already; got .*m\.csv"):
        script(tmp_path)
    assert set(contents(tmp_path)) == {"kept.zip", "m.csv"}
    assert sorted(contents(tmp_path).values()) == sorted(before.values())


def test_going_on_writes_to_the_same_files(tmp_path):
    script(tmp_path)
    again = hw.Agent.load(tmp_path / "run.zip", env=Walk)
    again.learn(
        100, progress=False, checkpoint=tmp_path / "run.zip", log_every=20,
        loggers=[hw.CSVLogger(tmp_path / "m.csv")],
    )  # fmt: skip
    assert held_steps(tmp_path / "run.zip") == 200
    steps = [int(line.split(",")[0]) for line in (tmp_path / "m.csv").read_text().splitlines()[1:]]
    assert sorted(set(steps)) == list(range(20, 201, 20))
    again.learn(20, progress=False, checkpoint=tmp_path / "run.zip")


def test_a_run_that_was_killed_before_its_first_checkpoint_goes_on(tmp_path):
    """Its checkpoint is that of the start, and its numbers are further."""
    with pytest.raises(RuntimeError, match="killed"):
        script(tmp_path, callbacks=[lambda report: kill() if report.step == 60 else None])
    assert held_steps(tmp_path / "run.zip") == 0
    again = hw.Agent.load(tmp_path / "run.zip", env=Walk)
    again.learn(progress=False, loggers=[hw.CSVLogger(tmp_path / "m.csv")], log_every=20)
    steps = [int(line.split(",")[0]) for line in (tmp_path / "m.csv").read_text().splitlines()[1:]]
    assert steps == sorted(steps)
    assert set(steps) == set(range(20, 101, 20))


def kill():
    raise RuntimeError("killed")


def test_another_file_is_not_replaced_either(tmp_path):
    (tmp_path / "run.zip").write_text("my thesis")
    with pytest.raises(hw.CheckpointError, match="another file at"):
        script(tmp_path)
    assert (tmp_path / "run.zip").read_text() == "my thesis"
    (tmp_path / "run.zip").write_text("")  # as tempfile makes one
    script(tmp_path)


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_a_run_too_short_to_learn_from_says_so_once(algo, caplog, tmp_path):
    needed, setting = {"ppo": ("512", "n_steps"), "dqn": ("1,000", "learning_starts")}[algo]
    agent = hw.Agent(algo, Walk, num_envs=2, net_arch=(4,))
    with caplog.at_level(logging.WARNING, "headwise"):
        agent.learn(200, progress=False)
        agent.learn(200, progress=False)
    assert caplog.text.count(f"in 200 steps: an update needs {needed} before it") == 1
    assert f"smaller {setting}" in caplog.text
    agent.save(tmp_path / "x.zip")
    hw.Agent.load(tmp_path / "x.zip", env=Walk).learn(20, progress=False)  # to fine-tune
    assert "in 20 steps" in caplog.text
    caplog.clear()
    hw.Agent.load(tmp_path / "x.zip", env=Walk).learn(progress=False)  # nothing is left
    hw.Agent(algo, Walk, num_envs=2, net_arch=(4,), **{setting: 64}).learn(128, progress=False)
    assert caplog.text == ""
