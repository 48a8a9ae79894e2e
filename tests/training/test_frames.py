"""Large observations stored once: what is drawn is what a plain replay draws, to the bit."""

import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from small_agents import small_agent

import headwise as hw
from headwise.agent.state_check import check_state
from headwise.algorithms.base import Acted
from headwise.population import Keys, Stream
from headwise.training.replay import FRAMES_FROM, Replay
from headwise.training.transition import Transition

MEMBERS, SLOTS, WORDS = 2, 3, 5
GAMMA = torch.tensor([0.9, 0.5])


class Story:
    """Episodes of random bytes in every slot, as environments tell them.

    Args:
        way: How an episode's end goes on: "same" step (the successor is not acted on next), a step
            of its own that is no transition ("later"), or either, cut off now and then ("cut").
        ends: How likely an episode ends at each step.
        masks: Whether there are masks.
    """

    def __init__(self, way="same", *, ends=0.2, masks=False, words=WORDS):
        self.rng, self.way, self.ends, self.masks = np.random.default_rng(0), way, ends, masks
        self.words = words
        self.obs, self.waits = self._seen(), np.zeros((MEMBERS, SLOTS), dtype=bool)

    def _seen(self):
        """Words of bytes, among them words that are not a number and two zeros."""
        words = self.rng.integers(0, 256, (MEMBERS, SLOTS, self.words, 4), dtype=np.uint8)
        words[..., 0, :] = self.rng.choice([0, 255], (MEMBERS, SLOTS, 1))
        words[..., 1, :] = (0, 0, 0, 128) if self.rng.random() < 0.5 else (0, 0, 0, 0)
        return words.reshape(MEMBERS, SLOTS, -1).view(np.float32)

    def step(self):
        shape = (MEMBERS, SLOTS)
        valid = ~self.waits
        ended = valid & (self.rng.random(shape) < self.ends)
        terminated = ended & (self.rng.random(shape) < 0.5)
        successor = self._seen()
        now = successor.copy()
        if self.way == "later":
            self.waits = ended
        else:
            now[ended] = self._seen()[ended]
        legal = self.rng.random((2, *shape, 1, 4)) < 0.5 if self.masks else (None, None)
        told = {
            "obs": self.obs, "reward": self.rng.random(shape, dtype=np.float32),
            "next_obs": successor, "terminated": terminated, "truncated": ended & ~terminated,
            "valid": valid,
        }  # fmt: skip
        tensors = {name: torch.from_numpy(x.copy()) for name, x in told.items()}
        action = torch.from_numpy(self.rng.random((*shape, 2), dtype=np.float32))
        self.obs = now
        masks = [None if x is None else torch.from_numpy(x) for x in legal]
        return Transition(acted=Acted(action, {}), legal=masks[0], next_legal=masks[1], **tensors)

    def lose(self):
        """All episodes are given up, and others begun."""
        self.obs, self.waits = self._seen(), np.zeros_like(self.waits)


def both(capacity=40, n_step=1):
    frames = Replay(capacity, SLOTS, n_step, frames_from=1)
    return Replay(capacity, SLOTS, n_step, frames_from=10**9), frames


def bits(x):
    return np.ascontiguousarray(x.numpy()).view(np.uint8)


def check(plain, frames, tick=0):
    uniform = Keys(range(MEMBERS)).uniform(Stream.REPLAY, tick, (300, 2))
    ours, theirs = (one.sample(uniform, GAMMA)._asdict() for one in (frames, plain))
    for name, x in theirs.items():
        if x is None:
            assert ours[name] is None
        else:
            np.testing.assert_array_equal(bits(ours[name]), bits(x), err_msg=name)


@pytest.mark.parametrize("way", ["same", "later", "cut"])
@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize(("ends", "masks"), [(0.05, False), (0.6, True)])
def test_samples_are_those_of_the_plain_replay(way, n_step, ends, masks):
    """Around the ring three times, with ends of all kinds, masks, and a change of hands midway."""
    (plain, frames), story = both(n_step=n_step), Story(way, ends=ends, masks=masks)
    assert plain.rows == 13
    for tick in range(45):
        step = story.step()
        for one in (plain, frames):
            one.add(step)
        if way == "cut" and tick % 7 == 3:
            story.lose()
            for one in (plain, frames):
                one.cut()
        check(plain, frames, tick)
    assert plain.frames is None
    assert frames.frames is not None


@pytest.mark.parametrize("ticks", [1, 8, 13, 40])
@pytest.mark.parametrize("way", ["same", "later"])
def test_it_goes_on_from_what_was_kept(ticks, way):
    """From its own state, from that of a plain one, and the other way round."""
    (plain, frames), story = both(), Story(way)
    for _ in range(ticks):
        step = story.step()
        plain.add(step)
        frames.add(step)
    again = [both() for _ in range(2)]
    for source, (to_plain, to_frames) in zip((plain, frames), again, strict=True):
        state = source.state_dict()
        to_plain.load_state_dict(state)
        to_frames.load_state_dict(state)
    assert ("next_obs" in plain.state_dict()) > ("next_obs" in frames.state_dict())
    for tick in range(30):
        step = story.step()
        for one in (plain, frames, *again[0], *again[1]):
            one.add(step)
        for one in (frames, *again[0], *again[1]):
            check(plain, one, tick)


def test_it_is_saved_as_it_was_loaded():
    (_, frames), story = both(), Story()
    for _ in range(20):
        frames.add(story.step())
    other = both()[1]
    other.load_state_dict(frames.state_dict())
    ours, theirs = frames.state_dict(), other.state_dict()
    assert ours.keys() == theirs.keys()
    for name, x in ours.items():
        assert torch.equal(x.view(torch.uint8), theirs[name].view(torch.uint8)), name


@pytest.mark.parametrize(("capacity", "slots"), [(60, 3), (21, 3), (40, 2), (40, 5)])
def test_with_other_slots_or_another_size_it_holds_what_a_plain_one_holds(capacity, slots):
    (plain, frames), story = both(), Story()
    for _ in range(30):
        step = story.step()
        plain.add(step)
        frames.add(step)
    new = [Replay(capacity, slots, frames_from=size) for size in (10**9, 1)]
    new[0].load_state_dict(plain.state_dict())
    new[1].load_state_dict(frames.state_dict())
    check(*new)


@pytest.mark.parametrize("n_step", [1, 3])
def test_captured_code_draws_the_same_without_looking(n_step):
    """It knows neither whether every slot is valid nor which successors lie apart."""
    (plain, frames), story = both(n_step=n_step), Story(ends=0.4)
    for tick in range(30):
        step = story.step()
        plain.add(step)
        frames.add(step._replace(whole=False))
        frames.frames.picks = False
        check(plain, frames, tick)


def test_where_every_step_is_an_end_every_successor_has_a_place():
    (plain, frames), story = both(), Story(ends=1.0)
    for tick in range(60):
        step = story.step()
        plain.add(step)
        frames.add(step)
        check(plain, frames, tick)
    assert frames.frames.apart.shape[1] == frames.rows


def test_small_observations_are_beside_their_successors():
    for words, once in ((FRAMES_FROM - 1, False), (FRAMES_FROM, True)):
        replay = Replay(40, SLOTS)
        replay.add(Story(words=words).step())
        assert (replay.frames is not None) == once
        assert replay.bytes_of_one(words, 2) == (4 * words + 28 if once else 8 * words + 20)


def transition(obs, next_obs, ended=False):
    flag, no = torch.full((1, 1), ended), torch.zeros(1, 1, dtype=torch.bool)
    return Transition(
        obs, Acted(torch.zeros(1, 1, 1), {}), torch.zeros(1, 1), next_obs, no, flag, ~no
    )


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def measured():
    """Bytes that the system gives for 400 rows, and those that a replay says; episodes of 50."""
    words, rng = 84 * 84, np.random.default_rng(0)
    replay = Replay(400, 1)
    frames = [
        torch.from_numpy(rng.integers(0, 256, (1, 1, 4 * words), dtype=np.uint8).view(np.float32))
        for _ in range(51)
    ]
    replay.add(transition(frames[0], frames[1]))
    before = resident()
    for tick in range(1, 1000):
        at = tick % 50
        replay.add(transition(frames[at], frames[at + 1], at == 49))
    return resident() - before, replay.num_bytes, replay.frames.num_bytes


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the kernel of Linux")
def test_a_hundred_thousand_stacks_of_84_x_84_x_4_bytes_take_less_than_3_gigabytes():
    """By arithmetic; and a 250th of it as the system counts it, in a process of its own."""
    assert 100_000 * Replay(100_000, 1).bytes_of_one(84 * 84, 1) < 2.83e9
    code = "import test_frames; print(*test_frames.measured())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    grown, told, frames = map(int, done.stdout.split())
    assert told == frames + 400 * 4 * 4
    assert told * 250 < 3e9
    assert 0.9 * 2.8224e9 < grown * 250 < 3.1e9  # and some pages of everything else


class Stack(gym.Env):
    """Pictures of 64 x 64 bytes in episodes of 7 steps, terminated and truncated by turns."""

    observation_space = spaces.Box(0, 255, (64, 64), np.uint8)
    action_space = spaces.Discrete(2)
    episodes = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.episodes = 0, self.episodes + 1
        return self._obs(), {}

    def step(self, action):
        self.time += 1
        over, by_turns = self.time == 7, bool(self.episodes % 2)
        return self._obs(), 1.0, over and by_turns, over and not by_turns, {}

    def _obs(self):
        return self.np_random.integers(0, 256, (64, 64), dtype=np.uint8)


@pytest.mark.parametrize("size", [100, 400])
def test_an_agent_is_saved_and_loaded_with_what_it_remembers(size, tmp_path):
    agent = small_agent("dqn", Stack, net_arch=(8,), buffer_size=size).learn(240, progress=False)
    agent.save(tmp_path / "agent.zip")
    again = hw.Agent.load(tmp_path / "agent.zip", env=Stack)
    ours, theirs = (one.loop.memory for one in (agent, again))
    assert ours.frames is not None
    for tick in range(2):
        uniform = Keys(range(2)).uniform(Stream.REPLAY, tick, (300, 2))
        drawn = (one.sample(uniform, GAMMA)._asdict() for one in (ours, theirs))
        for x, y in zip(*(one.values() for one in drawn), strict=True):
            assert x is None or np.array_equal(bits(x), bits(y))
    again.learn(120, progress=False)


def test_forged_places_are_refused(tmp_path):
    agent = small_agent("dqn", Stack, net_arch=(8,)).learn(80, progress=False)
    state = agent.loop.state_dict()
    check_state(agent.config, (0, 1), agent.face, state)
    for name, wrong in {
        "apart": state["memory"]["apart"][:, :, :, :-1],
        "number": state["memory"]["number"][:, :-1],
        "newest": state["memory"]["newest"].float(),
    }.items():
        forged = state | {"memory": state["memory"] | {name: wrong}}
        with pytest.raises(hw.CheckpointError, match=name):
            check_state(agent.config, (0, 1), agent.face, forged)
    del state["memory"]["apart"]
    with pytest.raises(hw.CheckpointError, match="apart"):
        check_state(agent.config, (0, 1), agent.face, state)
