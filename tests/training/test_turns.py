"""Trainings by turns, with made-up streams; tests/gpu has real ones."""

import numpy as np

from headwise.algorithms import algorithms
from headwise.envs.make import make_vec
from headwise.factorizations import factorizations
from headwise.training.build import make_loop
from headwise.training.turns import Turns, one_round


class Stream:
    """Has done its work when told so."""

    def __init__(self, done):
        self.done = done

    def query(self):
        return self.done


def counting(to, log, name):
    for number in range(to):
        log.append((name, number))
        yield
    return name.upper()


def test_whoever_need_not_wait_goes_on(monkeypatch):
    monkeypatch.setattr("torch.cuda.set_stream", lambda stream: None)
    log = []
    quick, slow = Turns(counting(3, log, "q"), Stream(True)), Turns(counting(2, log, "s"))
    slow.stream = Stream(False)
    both = [slow, quick]
    assert one_round(both) == []
    assert one_round(both) == []
    assert log == [("q", 0), ("q", 1)]
    slow.stream.done = True
    assert one_round(both) == []
    assert log[2:] == [("s", 0), ("q", 2)]
    assert one_round(both) == [quick]
    assert quick.result == "Q"


def test_if_all_wait_the_first_is_waited_for(monkeypatch):
    monkeypatch.setattr("torch.cuda.set_stream", lambda stream: None)
    log = []
    all_wait = [Turns(counting(1, log, name), Stream(False)) for name in "ab"]
    assert one_round(all_wait) == []
    assert log == [("a", 0)]


def test_an_error_ends_one_training_alone():
    def dies():
        yield
        raise ValueError("no more")

    log = []
    bad, good = Turns(dies(), about="bad"), Turns(counting(3, log, "g"), about="good")
    assert one_round([bad, good]) == []
    assert one_round([bad, good]) == [bad]
    assert str(bad.error) == "no more"
    assert one_round([good]) == []
    assert one_round([good]) == [good]
    assert good.error is None


def test_loops_trained_by_turns_are_those_trained_one_by_one():
    def made(seed):
        config = algorithms.get("dqn")(hidden=(16, 16), warmup=64, replay=500, batch_size=16)
        env = make_vec("HybridShoot", (seed,), 4, num_threads=1)
        return make_loop(env, config, factorizations.get("vdn")(), (seed,), 400)

    alone, together = [made(seed) for seed in (1, 2)], [made(seed) for seed in (1, 2)]
    for loop in alone:
        loop.run(200)
    left = [Turns(loop.turns(200)) for loop in together]
    while left:
        over = one_round(left)
        left = [training for training in left if training not in over]
    for one, other in zip(alone, together, strict=True):
        assert one.env_steps == other.env_steps == 200
        assert one.updates == other.updates
        state, expected = other.algorithm.state_dict(), one.algorithm.state_dict()
        for name, x in expected.items():
            np.testing.assert_array_equal(state[name], x)
