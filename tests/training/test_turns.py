"""Trainings by turns, with made-up waiting; tests/gpu has real streams."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from headwise.algorithms import algorithms
from headwise.envs.make import make_vec
from headwise.training.build import make_loop
from headwise.training.config import RunConfig
from headwise.training.lazy_env import LazyEnv
from headwise.training.loop import SLOW
from headwise.training.turns import Turns, one_round


class Gate:
    """Open when told so."""

    def __init__(self, is_open):
        self.is_open = is_open

    def __call__(self):
        return self.is_open


def counting(to, log, name, gate=None):
    for number in range(to):
        log.append((name, number))
        yield gate or Gate(True)
    return name.upper()


def test_whoever_need_not_wait_goes_on():
    log, gate = [], Gate(False)
    quick, slow = Turns(counting(4, log, "q")), Turns(counting(2, log, "s", gate))
    both = [slow, quick]
    assert one_round(both) == []
    assert log == [("s", 0), ("q", 0)]
    assert one_round(both) == []
    assert one_round(both) == []
    assert log[2:] == [("q", 1), ("q", 2)]
    gate.is_open = True
    assert one_round(both) == []
    assert log[4:] == [("s", 1), ("q", 3)]
    assert one_round(both) == [slow, quick]
    assert (slow.result, quick.result) == ("S", "Q")


def test_if_all_wait_nobody_is_waited_for():
    log, gate = [], Gate(False)
    all_wait = [Turns(counting(2, log, name, gate)) for name in "ab"]
    one_round(all_wait)
    begun = time.perf_counter()
    assert one_round(all_wait) == []
    assert time.perf_counter() - begun < 0.5
    assert log == [("a", 0), ("b", 0)]


def test_each_goes_on_on_its_stream(monkeypatch):
    used = []
    monkeypatch.setattr("torch.cuda.set_stream", used.append)
    one_round([Turns(counting(1, [], "a"), "first"), Turns(counting(1, [], "b"), "second")])
    assert used == ["first", "second"]


def test_an_error_ends_one_training_alone():
    def dies():
        yield Gate(True)
        raise ValueError("no more")

    log = []
    bad, good = Turns(dies(), about="bad"), Turns(counting(3, log, "g"), about="good")
    assert one_round([bad, good]) == []
    assert one_round([bad, good]) == [bad]
    assert str(bad.error) == "no more"
    assert one_round([good]) == []
    assert one_round([good]) == [good]
    assert good.error is None


def made(seed):
    config = algorithms.get("dqn")(
        net_arch=(16, 16), learning_starts=64, buffer_size=500, batch_size=16
    )
    env = make_vec("HybridShoot", (seed,), 4, num_threads=1)
    plan = RunConfig.of(config, factorization="vdn", total_timesteps=400)
    return make_loop(env, plan, (seed,))


class Sluggish:
    """The same environment with more time for a step; it remembers which threads took them."""

    def __init__(self, env):
        self._env = env
        self.threads = set()
        self.stepping = False

    def step(self, action):
        self.stepping = True
        self.threads.add(threading.get_ident())
        time.sleep(2 * SLOW)
        step = self._env.step(action)
        self.stepping = False
        return step

    def __getattr__(self, name):
        return getattr(self._env, name)


@pytest.mark.parametrize("slow", [False, True])
def test_loops_trained_by_turns_are_those_trained_one_by_one(slow):
    alone, together = [made(seed) for seed in (1, 2)], [made(seed) for seed in (1, 2)]
    for loop in alone:
        loop.run(200)
    if slow:
        for loop in together:
            loop.lazy_env = LazyEnv.of(Sluggish(loop.env))
    with ThreadPoolExecutor(2) as aside:
        left = [Turns(loop.turns(200, aside)) for loop in together]
        while left:
            over = one_round(left)
            left = [training for training in left if training not in over]
    for one, other in zip(alone, together, strict=True):
        assert one.env_steps == other.env_steps == 200
        assert one.updates == other.updates
        state, expected = other.algorithm.state_dict(), one.algorithm.state_dict()
        for name, x in expected.items():
            np.testing.assert_array_equal(state[name], x)
        if slow:
            assert threading.get_ident() not in other.env.threads


def test_a_quick_environment_needs_no_thread():
    class Nobody:
        """Threads that are asked once: before the first step nothing is known."""

        asked = 0

        def submit(self, function, *arguments):
            self.asked += 1
            with ThreadPoolExecutor(1) as real:
                return real.submit(function, *arguments)

    aside, loop = Nobody(), made(1)
    for _ in loop.turns(200, aside):
        pass
    assert loop.env_steps == 200
    assert aside.asked < 10  # a step of 4 slots takes microseconds, unless something comes between


def test_a_training_that_is_given_up_leaves_no_step_half_done():
    loop = made(1)
    env = Sluggish(loop.env)
    loop.lazy_env = LazyEnv.of(env)
    with ThreadPoolExecutor(1) as aside:
        turns = loop.turns(200, aside)
        next(turns)  # actions
        next(turns)  # the step is under way
        turns.close()
        assert env.threads
        assert not env.stepping
