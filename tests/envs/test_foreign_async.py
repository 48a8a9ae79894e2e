"""Environments in processes of their own: what happens when one of them ends."""

import functools
import multiprocessing
import os
import signal

import numpy as np
import pytest
from foreign_toys import Counter

import headwise as hw
from headwise import EnvError
from headwise.envs.foreign import foreign_env
from headwise.envs.foreign.vec_env import MOST_NEW_PROCESSES
from headwise.envs.types import LostEpisodesError

ZEROS = np.zeros((1, 2, 1), dtype=np.float32)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # Gymnasium's, of ended workers


class Falls(Counter):
    """A robot that falls over at a time of its own."""

    falls_at = 3

    def step(self, action):
        if self.time == self.falls_at:
            raise RuntimeError("the robot fell over")
        return super().step(action)


def never(time):
    return type("Falls", (Falls,), {"falls_at": time})


def workers(env):
    return env.adapters[0].vector.processes


def children():
    return {one.pid for one in multiprocessing.active_children()}


LONG = functools.partial(Counter, length=9)


def made(make=LONG):
    env = foreign_env(make, [1], 2, vectorization="async")
    return env, env.reset().copy()


@pytest.mark.parametrize("which", [0, 1])
def test_a_killed_process_is_replaced_and_new_episodes_begin(which, caplog):
    before = children()
    env, first = made()
    env.step(ZEROS)
    old = {process.pid for process in workers(env)}
    os.kill(workers(env)[which].pid, signal.SIGKILL)
    with pytest.raises(LostEpisodesError, match="every slot begins a new episode"):
        env.step(ZEROS)
    assert "processes have ended (" in caplog.text
    assert not children() - before  # none is left until a reset
    again = env.reset()
    assert not {process.pid for process in workers(env)} & old
    assert not np.isin(again[..., 0], first[..., 0]).any()  # seeds that were not used before
    assert env.step(ZEROS).valid.all()
    env.close()
    assert not children() - before


def test_a_process_killed_before_a_reset():
    env, _ = made()
    os.kill(workers(env)[0].pid, signal.SIGKILL)
    env.reset()
    assert env.step(ZEROS).valid.all()
    env.close()


def test_an_exception_is_survived_three_times_and_then_raised(caplog):
    before = children()
    env, _ = made(Falls)
    for number in range(MOST_NEW_PROCESSES):
        for _ in range(3):
            env.step(ZEROS)
        with pytest.raises(LostEpisodesError):
            env.step(ZEROS)
        assert caplog.text.count("the robot fell over). New ones") == number + 1
        env.reset()
    for _ in range(3):
        env.step(ZEROS)
    with pytest.raises(RuntimeError, match="the robot fell over"):
        env.step(ZEROS)
    env.close()
    assert not children() - before


def test_what_an_environment_gives_is_refused_at_once():
    """New processes would give it again; but after a reset one may try."""
    before = children()

    class Bad(Counter):
        def _obs(self):
            return super()._obs()[: 2 if self.time == 2 else 3]

    env, _ = made(Bad)
    env.step(ZEROS)
    with pytest.raises(hw.SpaceError, match=r"slot [01] of member 0: .*wrong shape"):
        env.step(ZEROS)
    assert not children() - before
    env.reset()
    assert env.step(ZEROS).valid.all()
    env.close()
    assert not children() - before


def test_what_cannot_be_made_in_a_process():
    before, here = children(), os.getpid()

    def make():
        if os.getpid() != here:
            raise RuntimeError("only in the process that trains")
        return Counter()

    with pytest.raises(EnvError, match="could not be made in a process of its own"):
        foreign_env(make, [1], 2, vectorization="async")
    assert not children() - before


class FallsOnce(Counter):
    """Falls over in the process that first comes so far, and never again."""

    def __init__(self, path):
        super().__init__(length=5)
        self.path = path

    def step(self, action):
        if self.time == 2 and self.episode == 1 and not self.path.exists():
            self.path.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_training_and_evaluation_go_on(algorithm, tmp_path):
    settings = {"ppo": {"n_steps": 4}, "dqn": {"learning_starts": 8, "batch_size": 8}}[algorithm]
    make = functools.partial(FallsOnce, tmp_path / "fell")
    agent = hw.Agent(
        algorithm,
        make,
        num_envs=2,
        net_arch=(8,),
        env_settings={"vectorization": "async"},
        **settings,
    )  # fmt: skip
    agent.learn(64)
    assert (tmp_path / "fell").exists()
    assert agent.loop.env_steps == 64
    # What was under way was cut off, and counts as no episode.
    assert agent.loop.episodes.table[:, -1].max() <= 5
    (tmp_path / "fell").unlink()
    result = agent.evaluate(episodes=6)
    assert (tmp_path / "fell").exists()
    assert (result.lengths == 5).all()
    agent.close()
