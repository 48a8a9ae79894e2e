"""What networks take is known before it is taken."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from small_agents import small_agent

import headwise as hw
from headwise.algorithms import algorithms
from headwise.algorithms.base import Task
from headwise.factorizations import factorizations
from headwise.population import Keys
from headwise.training import room

SPEC = hw.ActionSpec.of(a=hw.Choice(3), b=hw.Choice(40), c=hw.Choice(2))


def task(name, obs_size, *, spec=SPEC, seeds=(0, 1), slots=16):
    return Task(
        spec=spec, obs_spec=hw.ObsSpec.flat(obs_size), num_slots=slots, total_steps=1000,
        factorization=factorizations.get(name)(), keys=Keys(seeds),
    )  # fmt: skip


CELLS = [(algo, name) for algo in algorithms.names() for name in factorizations.names()]
MANY = hw.ActionSpec.of(**{f"h{i}": hw.Choice(5) for i in range(30)})


@pytest.mark.parametrize(("algo", "name"), CELLS)
def test_the_estimate_is_never_too_small(algo, name):
    for spec in (SPEC, MANY)[: 1 if name == "joint" else 2]:
        for hidden in ((16,), (256, 256), (1024, 64)):
            for obs_size, slots in ((2, 256), (10_000, 1)):
                what = task(name, obs_size, spec=spec, slots=slots)
                config = algorithms.get(algo)(net_arch=hidden)
                exact = room.size_of(config, what)[1]
                assert exact <= room.roughly(config, what), (hidden, obs_size)


@pytest.mark.parametrize("algo", ["ppo", "dqn", "sac"])
def test_the_size_is_what_a_process_takes(algo, monkeypatch):
    """Every buffer that the learner makes, and what compiled networks keep for themselves."""
    from headwise.ops.core import core

    config, made = algorithms.get(algo)(net_arch=(48, 64)), []
    parameters, promised = room.size_of(config, task("vdn", 500))

    class Counted:
        def __new__(cls, members, copies, rows, columns, pitch, gradient):
            made.append(4 * members * copies * rows * pitch * (2 if gradient else 1))
            return real(members, copies, rows, columns, pitch, gradient)

    real = core.Buffer
    monkeypatch.setattr(core, "Buffer", Counted)
    learner = config.build(task("vdn", 500))
    rollout = learner.plan.length * 16 if algo == "ppo" else 0
    least = sum(made) + 4 * 2 * 500 * (4 * 16 + 2 * rollout)
    assert least <= promised <= 2 * least
    assert parameters == learner.num_parameters


class Wide(gym.Env):
    """Shows as much as a large picture in colors does."""

    observation_space = spaces.Box(0, 1, (822_600,))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(822_600, np.float32), {}

    def step(self, action):
        return np.zeros(822_600, np.float32), 0.0, True, False, {}


@pytest.mark.parametrize("algo", ["ppo", "dqn", "sac"])
def test_networks_that_do_not_fit_are_refused_before_they_are_made(algo, monkeypatch):
    monkeypatch.setattr(room, "free_memory", lambda device: 4 * 10**9)
    made = []
    monkeypatch.setattr("headwise.training.build.Loop", lambda *_: made.append(1))
    with pytest.raises(hw.ConfigError) as told:
        hw.Agent(algo, Wide, num_envs=1)
    assert not made
    words = str(told.value)
    for part in (
        "do not fit into memory: they take", "observations of 822,600 numbers",
        "net_arch=(256, 256)", "4.0 GB, which is what is free now", "Make the observation smaller",
    ):  # fmt: skip
        assert part in words


def test_large_networks_are_announced_once_and_small_ones_never(monkeypatch, caplog):
    room._announce.cache_clear()
    monkeypatch.setattr(room, "free_memory", lambda device: 10**7)
    agent = small_agent("dqn", seeds=2, view="discrete", net_arch=(256, 256), batch_size=16)
    agent.learn(40, progress=False)
    assert caplog.text.count("The networks are large: ") == 1
    assert " parameters for each seed, observations of " in caplog.text
    caplog.clear()
    monkeypatch.setattr(room, "free_memory", lambda device: 10**10)
    small_agent("dqn", seeds=2, view="discrete", net_arch=(256, 256))
    assert not caplog.text


def test_free_memory_is_no_more_than_a_container_allows(monkeypatch):
    files = {
        "/proc/meminfo": ["MemTotal: 99 kB", "MemAvailable:   4000 kB"],
        "/sys/fs/cgroup/memory.max": ["3000000"],
        "/sys/fs/cgroup/memory.current": ["2500000"],
        "/sys/fs/cgroup/memory.stat": ["anon 5", "active_file 200000", "inactive_file 100000"],
    }
    monkeypatch.setattr(room, "_lines", lambda path: files.get(path, []))
    cpu = torch.device("cpu")
    assert room.free_memory(cpu) == 800_000
    files["/sys/fs/cgroup/memory.max"] = ["max"]
    assert room.free_memory(cpu) == 4_096_000
    del files["/proc/meminfo"]
    assert room.free_memory(cpu) == 0  # not on this system: nothing is refused
