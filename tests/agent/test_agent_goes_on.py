"""Agents that go on: for longer, with masks or without them, and after they were closed."""

import os
import signal

import numpy as np
import pytest
import torch
from gymnasium import spaces
from robots import DQN, PPO, Robot, saved

import headwise as hw
from headwise.training.checkpoint import read_checkpoint, write_checkpoint

# --- how long -------------------------------------------------------------------------------------


def stop_at(steps):
    """A callback that presses Ctrl-C."""
    pressed = []

    def call(report):
        if report.step >= steps and not pressed:
            pressed.append(True)
            os.kill(os.getpid(), signal.SIGINT)

    return call


def test_a_run_that_was_made_longer_and_stopped_is_finished(tmp_path):
    """Schedules stay laid out for the first call; `learn()` finishes the last one."""
    x = tmp_path / "x.zip"
    agent = saved(x, "HybridShoot")
    with pytest.raises(KeyboardInterrupt, match=r"of 480 steps and saved; go on with .*learn\(\)"):
        agent.learn(400, progress=False, checkpoint=x, callbacks=[stop_at(200)], log_every=40)
    again = hw.Agent.load(x)
    assert 200 <= again.steps < 300
    assert again.learn(progress=False).steps == 480
    assert again.learn(progress=False).steps == 480
    assert (again.config.total_timesteps, again.target_steps) == (80, 480)
    assert agent.learn(progress=False).steps == 480  # the one that was stopped, too


def test_a_checkpoint_that_does_not_tell_the_last_call_finishes_the_first(tmp_path):
    agent = hw.Agent("ppo", "HybridShoot", **PPO)
    agent.learn(400, progress=False, callbacks=[lambda report: True], log_every=40)
    agent.save(tmp_path / "x.zip")
    found = read_checkpoint(tmp_path / "x.zip")
    info = {n: x for n, x in found.info.items() if n not in ("format", "entries")}
    del info["plan"]["target_steps"]
    write_checkpoint(tmp_path / "y.zip", found._replace(info=info))
    assert hw.Agent.load(tmp_path / "y.zip").learn(progress=False).steps == 400


def test_a_call_that_is_refused_leaves_nothing_to_finish(tmp_path):
    agent = hw.Agent("ppo", "HybridShoot", **PPO)
    with pytest.raises(hw.ConfigError, match="checkpoint_every needs a checkpoint"):
        agent.learn(400, progress=False, checkpoint_every=40)
    with pytest.raises(hw.ConfigError, match="needs total_timesteps"):
        agent.learn(progress=False)
    agent.learn(80, progress=False)
    with pytest.raises(hw.ConfigError, match="checkpoint_every needs a checkpoint"):
        agent.learn(400, progress=False, checkpoint_every=40)
    assert agent.learn(progress=False).steps == 80
    assert agent.config.total_timesteps == 80  # what schedules are laid out for


# --- masks ----------------------------------------------------------------------------------------


class Sometimes(Robot):
    """Gives masks, or none."""

    action_space = spaces.Discrete(3)

    def __init__(self, masks):
        super().__init__()
        self.masks = masks

    def reset(self, **given):
        return super().reset(**given)[0], self._info()

    def step(self, action):
        return *super().step(action)[:4], self._info()

    def _info(self):
        return {"action_mask": np.array([1, 0, 1])} if self.masks else {}


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
@pytest.mark.parametrize("first", [True, False])
def test_masks_may_be_there_now_and_not_before_and_the_other_way_round(algo, first, tmp_path):
    saved(tmp_path / "x.zip", lambda: Sometimes(first), algo)
    trained = hw.Agent.load(tmp_path / "x.zip", env=lambda: Sometimes(first))
    trained.learn(20 if algo == "ppo" else 40, progress=False).save(tmp_path / "x.zip")
    agent = hw.Agent.load(tmp_path / "x.zip", env=lambda: Sometimes(not first))
    agent.learn(10 if algo == "ppo" else 40, progress=False)
    legal = agent.loop.memory.state_dict()["legal"][0, :, :, 0]
    before = 10 if algo == "ppo" else 30  # steps of each slot
    assert (legal[:before, :, 1] == (not first)).all()
    assert (legal[before:, :, 1] == first).all()
    assert legal[..., [0, 2]].all()
    agent.learn(80, progress=False)


# --- closing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", [Robot, "HybridShoot", Robot()], ids=["class", "ours", "instance"])
def test_an_agent_that_was_closed_can_be_saved_and_go_on(env, tmp_path):
    agent = hw.Agent("dqn", env, net_arch=(8,), bins=3, learning_starts=16).learn(
        80, progress=False
    )
    agent.close()
    for _ in range(2):
        with pytest.raises(hw.EnvError, match=r"was closed.*Agent\.load\(path\)"):
            agent.learn(20, progress=False)
    agent.predict(np.zeros(agent.face.obs_spec.size))
    agent.save(tmp_path / "x.zip")
    again = hw.Agent.load(tmp_path / "x.zip", env=None if isinstance(env, str) else Robot)
    assert again.learn(32, progress=False).steps >= 112
    agent.close()


class Kept(Robot):
    def get_state(self):
        return bytes([self.time])

    def set_state(self, state):
        self.time = state[0]


@pytest.mark.parametrize("env", [Kept, "HybridShoot", None], ids=["class", "ours", "instance"])
@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_what_is_saved_after_closing_goes_on_to_the_bit(env, algo, tmp_path):
    settings, env = PPO if algo == "ppo" else DQN, env or Kept()
    settings = settings if not isinstance(env, Kept) else settings | {"num_envs": 1}
    agent = hw.Agent(algo, env, **settings).learn(84, progress=False)
    agent.save(tmp_path / "x.zip")
    agent.close()
    again = Kept() if isinstance(env, Kept) else env
    for _ in range(2):
        with pytest.raises(hw.EnvError, match="was closed"):
            agent.learn(20, progress=False)
        if isinstance(env, Kept):
            with pytest.raises(hw.EnvError, match="was closed"):
                agent.evaluate(1)
    agent.save(tmp_path / "y.zip")
    agent.close()
    agent.save(tmp_path / "z.zip")
    ends = []
    for name in "xyz":
        one = hw.Agent.load(tmp_path / f"{name}.zip", env=None if isinstance(env, str) else again)
        assert one.loop.in_episodes
        again = Kept() if isinstance(env, Kept) else env
        one.learn(80, progress=False)
        ends.append(one.loop.algorithm.state_dict())
    for other in ends[1:]:
        for name, x in ends[0].items():
            assert torch.equal(x, other[name]), name


def test_a_broken_environment_can_be_closed(tmp_path):
    class Broken(Kept):
        def get_state(self):
            if self.time:
                raise OSError("the robot is gone")
            return super().get_state()

    robot = Broken()
    agent = hw.Agent("ppo", robot, **{**PPO, "num_envs": 1}).learn(84, progress=False)
    agent.close()
    assert robot.closed
    agent.save(tmp_path / "x.zip")
    assert not hw.Agent.load(tmp_path / "x.zip", env=Kept()).loop.in_episodes
