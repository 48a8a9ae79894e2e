"""Runs that are killed and go on: to the bit as if nothing had happened."""

import logging
import multiprocessing
import os
import random
import signal
import time
import zipfile

import numpy as np
import pytest
import torch
from small_agents import Kept, small_agent, states_equal

import headwise as hw
from headwise.training.checkpoint import read_checkpoint

STEPS = {"ppo": 960, "dqn": 960, "sac": 640}
VIEWS = {"ppo": "hybrid", "dqn": "discrete", "sac": "hybrid"}
EVERY = 32


def fresh(algo, **more):
    return small_agent(algo, view=VIEWS[algo], **more)


def square(remaining):
    return 1e-3 * remaining**2


FOLLOWED = {
    "ppo": {"learning_rate": ("linear_2e-3", square), "clip_range": "linear"},
    "dqn": {"learning_rate": square},
    "sac": {"learning_rate": ("linear", 1e-3)},
}


def train_to_the_end(path, algo, env):
    """What a user's script does: begin, or go on where it was killed."""
    torch.set_num_threads(1)
    os.fsync = lambda _: time.sleep(0.02)  # not for power cuts here: so that kills meet a run
    if os.path.exists(path):
        agent = hw.Agent.load(path, env=None if isinstance(env, str) else env)
        agent.learn(progress=False, checkpoint=path, checkpoint_every=EVERY)
    else:
        agent = fresh(algo, env=env, **FOLLOWED[algo])
        agent.learn(STEPS[algo], progress=False, checkpoint=path, checkpoint_every=EVERY)


@pytest.fixture(scope="module")
def processes():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["headwise.agent.agent"])
    return context


@pytest.mark.parametrize("env", ["HybridShoot", Kept], ids=["native", "user"])
@pytest.mark.parametrize("algo", ["ppo", "dqn", "sac"])
def test_killed_at_random_moments_equals_undisturbed(algo, env, tmp_path, processes):
    path = tmp_path / "run.zip"
    rng = random.Random(os.environ.get("HEADWISE_KILLS_SEED", f"kills of {algo}"))
    kills, reached = 0, [0]
    for _ in range(40):
        child = processes.Process(target=train_to_the_end, args=(str(path), algo, env))
        child.start()
        while child.is_alive() and kills < 3:
            time.sleep(0.005)
            if path.exists() and steps_of(path) > reached[-1]:  # it has begun, or gone on
                time.sleep(rng.uniform(0.0, 0.15))
                child.kill()
                break
        child.join()
        if child.exitcode != -signal.SIGKILL:
            break
        kills += 1
        reached.append(steps_of(path))
    assert child.exitcode == 0
    assert kills >= 2, reached
    whole = fresh(algo, env=env, **FOLLOWED[algo]).learn(STEPS[algo], progress=False)
    resumed = hw.Agent.load(path, env=None if isinstance(env, str) else env)
    assert resumed.steps == whole.steps == STEPS[algo]
    assert states_equal(resumed.loop, whole.loop)
    assert len(whole.loop.episodes.table) > 20


def steps_of(path):
    return int(read_checkpoint(path).tensors["counters"]["ticks"]) * 4


@pytest.mark.parametrize("algo", ["ppo", "dqn", "sac"])
@pytest.mark.parametrize("at", [4, 52, 148])
def test_half_and_half_equals_the_whole(algo, at, tmp_path):
    """With normalization too, at the very start, within a rollout, and after updates."""
    settings = {"normalize_obs": True, "normalize_reward": True}
    whole = fresh(algo, **settings).learn(240, progress=False)
    saves = []

    def keep(report):
        if report.step == at:
            agent.save(tmp_path / "half.zip")
            saves.append(report.step)

    agent = fresh(algo, **settings)
    agent.learn(240, progress=False, callbacks=[keep], log_every=4)
    assert saves == [at]
    half = hw.Agent.load(tmp_path / "half.zip")
    assert half.steps == at
    half.learn(progress=False)
    assert half.steps == 240
    assert states_equal(half.loop, whole.loop)


def test_resuming_before_the_first_step(tmp_path):
    small_agent().save(tmp_path / "new.zip")
    resumed = hw.Agent.load(tmp_path / "new.zip").learn(160, progress=False)
    assert states_equal(resumed.loop, small_agent().learn(160, progress=False).loop)


def test_learning_again_goes_on(tmp_path):
    twice = small_agent("ppo").learn(200, progress=False)
    twice.learn(200, progress=False)
    assert twice.steps == 400
    assert twice.config.total_timesteps == 200  # what schedules were laid out for
    assert twice.learn(progress=False).steps == 400  # nothing is left to finish


def test_control_c_saves_and_says_how_to_go_on(tmp_path):
    path = tmp_path / "run.zip"
    pressed = []

    def press(report):
        if report.step == 80:
            pressed.append(report.step)
            signal.raise_signal(signal.SIGINT)

    agent = small_agent()
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match=r"stopped at 84 of 400 steps and saved.*zip'\)\.l"):
        agent.learn(400, progress=False, callbacks=[press], log_every=4, checkpoint=path)
    assert pressed == [80]
    assert signal.getsignal(signal.SIGINT) is before
    resumed = hw.Agent.load(path).learn(progress=False)
    assert states_equal(resumed.loop, small_agent().learn(400, progress=False).loop)


def test_control_c_without_a_checkpoint_leaves_a_whole_agent():
    agent = small_agent()

    def press(report):
        if report.step == 100:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match=r"104 of 400 steps; agent.learn\(296\) goes on"):
        agent.learn(400, progress=False, callbacks=[press], log_every=100)
    agent.learn(400 - agent.steps, progress=False)
    assert states_equal(agent.loop, small_agent().learn(400, progress=False).loop)


def test_a_full_disk_during_a_run_does_not_end_it(tmp_path, monkeypatch, caplog):
    """The run goes on with the previous checkpoint, and the last save succeeds again."""
    path = tmp_path / "run.zip"
    agent = small_agent()
    real, calls = agent.save, []

    def save(where):
        calls.append(agent.steps)
        if 100 < agent.steps < 300:
            raise hw.CheckpointError(f"no room to save {where}: the disk is full")
        real(where)

    monkeypatch.setattr(agent, "save", save)
    with caplog.at_level(logging.WARNING, "headwise"):
        agent.learn(400, progress=False, checkpoint=path, checkpoint_every=40)
    assert "disk is full" in caplog.text
    assert "goes on" in caplog.text
    assert calls == [0, *range(40, 401, 40), 400]
    assert hw.Agent.load(path).steps == 400


def test_an_unwritable_checkpoint_is_found_before_the_run(tmp_path):
    agent = small_agent()
    (tmp_path / "file").write_text("")
    with pytest.raises(hw.CheckpointError, match="cannot save"):
        agent.learn(400, progress=False, checkpoint=tmp_path / "file" / "x.zip")
    assert agent.steps == 0


def test_where_the_environment_cannot_be_kept_new_episodes_begin(tmp_path):
    """CartPole keeps its state to itself: learner and memory go on, with episodes not yet seen."""
    agent = small_agent("dqn", "CartPole-v1", n_step=3).learn(200, progress=False)
    agent.save(tmp_path / "x.zip")
    resumed = hw.Agent.load(tmp_path / "x.zip")
    first_obs = np.array(resumed.loop.env.reset())
    assert not np.isin(first_obs, agent.loop.memory._tensors["obs"].numpy()).all(-1).any()
    resumed = hw.Agent.load(tmp_path / "x.zip").learn(100, progress=False)
    assert resumed.steps == 300
    # The transition before the break is marked as cut off, so that no return reaches across it.
    row = 200 // 4 - 1
    kept = resumed.loop.memory._tensors
    assert (kept["truncated"] + kept["terminated"] > 0)[:, row].all()


def test_a_checkpoint_says_what_made_it(tmp_path):
    small_agent().save(tmp_path / "x.zip")
    info = read_checkpoint(tmp_path / "x.zip").info
    assert info["versions"]["headwise"] == hw.__version__
    assert info["versions"]["torch"] == torch.__version__
    assert info["plan"]["seeds"] == [0, 1]
    assert info["env"] == {"id": "HybridShoot", "settings": {}}
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        assert archive.testzip() is None
