"""Threads while a population trains: those of compiled operations, and torch's."""

import threading

import pytest
import torch
from small_agents import small_agent, states_equal

from headwise.ops import threads
from headwise.ops.threads import member_threads, members_over
from headwise.training.threads import training_threads

CPU = torch.device("cpu")


@pytest.fixture
def given(monkeypatch):
    """Three threads of torch, whatever a training that nobody finished has chosen here before."""
    monkeypatch.setattr(threads, "_chosen", threading.local())
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("members", "count"), [(1, 1), (2, 2), (9, 3)])
def test_members_are_spread_and_torch_has_one_thread(given, members, count):
    with training_threads(members, CPU):
        assert (member_threads(), torch.get_num_threads()) == (count, 1)
        with training_threads(9, CPU):  # an evaluation on the way takes no more
            assert (member_threads(), torch.get_num_threads()) == (count, 1)
        assert (member_threads(), torch.get_num_threads()) == (count, 1)
    assert member_threads() == torch.get_num_threads() == 3


def test_they_are_put_back_after_an_error_and_are_of_one_thread(given):
    seen = []

    def fail():
        with members_over(2):
            other = threading.Thread(target=lambda: seen.append(member_threads()))
            other.start()
            other.join()
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert seen != [2]
    assert member_threads() == torch.get_num_threads() == 3


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_the_same_is_learned_on_any_number(given, algo):
    more = {"bins": 3} if algo == "dqn" else {}
    loops = []
    for count in (1, 3):
        torch.set_num_threads(count)
        loops.append(small_agent(algo, seeds=3, **more).learn(300, progress=False).loop)
    assert states_equal(*loops)
