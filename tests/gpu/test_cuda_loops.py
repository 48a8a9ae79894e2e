"""Training on a GPU: acting and taking in are captured too, a run resumes, populations share it."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from cuda_cells import GPU, need_gpu
from gymnasium.spaces import Box, Discrete

from headwise import Agent
from headwise.algorithms import algorithms
from headwise.envs.foreign import foreign_env
from headwise.envs.make import make_vec
from headwise.ops.program import Graphs
from headwise.training.build import make_loop
from headwise.training.config import RunConfig

need_gpu()


class LateMask(gym.Env):
    """Allows one option of three, each time another, and says so from the second episode on."""

    observation_space = Box(0.0, 20.0, (1,), np.float32)
    action_space = Discrete(3)

    def __init__(self):
        self.episode = -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.time = self.episode + 1, 0
        return self._told()

    def step(self, action):
        assert not self.episode or action == self.time % 3, "an illegal option was taken"
        self.time += 1
        obs, info = self._told()
        return obs, 1.0, False, self.time == 20, info

    def _told(self):
        info = {"action_mask": np.arange(3) == self.time % 3} if self.episode else {}
        return np.array([self.time], dtype=np.float32), info


SEEDS = (3, 2**63 + 5, 11)
SETTINGS = {
    "ppo": {"n_steps": 16, "batch_size": 32, "n_epochs": 2},
    "dqn": {"buffer_size": 2000, "batch_size": 32, "learning_starts": 64},
    "sac": {"buffer_size": 2000, "batch_size": 32, "learning_starts": 64},
}
UPDATES = {"ppo": 5, "dqn": 144, "sac": 144}
CELLS = [
    (algorithm, name, view)
    for algorithm in SETTINGS
    for name in ("shared", "vdn", "ar")
    for view in ("discrete", "hybrid")
]


def loop_on(device, algorithm, name, view, seeds=SEEDS, **more):
    env = make_vec("HybridShoot", seeds, 8, view=view, num_threads=1)
    config = algorithms.get(algorithm)(net_arch=(32, 32), **SETTINGS[algorithm])
    plan = RunConfig.of(config, factorization=name, total_timesteps=4000, **more)
    return make_loop(env, plan, seeds, device)


def learned(loop):
    return {name: x.cpu().clone() for name, x in loop.algorithm.state_dict().items()}


def assert_same(found, wanted):
    for name, x in wanted.items():
        torch.testing.assert_close(found[name], x, rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.parametrize(("algorithm", "name", "view"), CELLS)
def test_captured_equals_one_by_one(algorithm, name, view, monkeypatch):
    """The same actions, the same episodes, the same learning."""
    found = []
    for eager in (False, True):
        if eager:
            monkeypatch.setattr(Graphs, "_run", lambda self, bundle: self._aside())
        loop = loop_on(GPU, algorithm, name, view)
        loop.run(640)
        assert loop.algorithm.alive.all()
        assert loop.updates == UPDATES[algorithm]
        found.append((learned(loop), loop.obs.cpu().clone(), loop.episodes.table.copy()))
    (one, obs, table), (other, same_obs, same_table) = found
    assert_same(one, other)
    torch.testing.assert_close(obs, same_obs, rtol=1e-4, atol=1e-5)
    assert (table == same_table).all()


@pytest.mark.parametrize("algorithm", list(SETTINGS))
def test_acting_is_what_it_is_on_the_cpu(algorithm):
    """Until the first update: the same draws lead to the same episodes."""
    here, there = (loop_on(device, algorithm, "shared", "hybrid") for device in ("cpu", GPU))
    for loop in (here, there):
        loop.run(56)
        assert loop.updates == 0
    torch.testing.assert_close(there.obs.cpu(), here.obs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("algorithm", list(SETTINGS))
@pytest.mark.parametrize("steps", [328, 640])
def test_a_run_resumes(algorithm, steps):
    """Within a rollout and between two; graphs are captured anew."""
    whole, begun = (loop_on(GPU, algorithm, "ar", "hybrid") for _ in range(2))
    whole.run(960)
    begun.run(steps)
    state = {
        part: {name: x.cpu() for name, x in tensors.items()}
        for part, tensors in begun.state_dict().items()
    }
    resumed = loop_on(GPU, algorithm, "ar", "hybrid")
    resumed.load_state_dict(_on_gpu(state))
    resumed.run(960)
    assert resumed.updates == whole.updates
    assert_same(learned(resumed), learned(whole))
    assert (resumed.episodes.table == whole.episodes.table).all()


def _on_gpu(state):
    own = ("learner", "memory", "now", "metrics")
    return {
        part: {name: x.to(GPU) if part in own else x for name, x in tensors.items()}
        for part, tensors in state.items()
    }


@pytest.mark.parametrize("algorithm", list(SETTINGS))
def test_normalized_observations_and_rewards(algorithm):
    loop = loop_on(GPU, algorithm, "shared", "hybrid", normalize_obs=True, normalize_reward=True)
    loop.run(400)
    assert loop.algorithm.alive.all()
    assert loop.updates


def test_populations_on_streams_of_their_own():
    """What each of eight learns is what it learns alone."""
    cells = [(a, "shared", v) for a in SETTINGS for v in ("discrete", "hybrid")]
    streams = [torch.cuda.Stream() for _ in cells]
    together = []
    for stream, cell in zip(streams, cells, strict=True):
        with torch.cuda.stream(stream):
            together.append(loop_on(GPU, *cell))
    for _ in range(80):
        for stream, loop in zip(streams, together, strict=True):
            with torch.cuda.stream(stream):
                loop.tick()
    torch.cuda.synchronize()
    for cell, loop in zip(cells, together, strict=True):
        alone = loop_on(GPU, *cell)
        alone.run(640)
        assert_same(learned(loop), learned(alone))
        assert (loop.episodes.table == alone.episodes.table).all()


@pytest.mark.parametrize("algorithm", list(SETTINGS))
def test_an_agent_goes_from_one_device_to_the_other(algorithm, tmp_path):
    settings = {"net_arch": (32, 32), "seeds": 2, **SETTINGS[algorithm]}
    agent = Agent(algorithm, "HybridShoot", device=GPU, **settings)
    agent.learn(400, progress=False)
    agent.save(tmp_path / "agent.zip")
    for device in ("cpu", GPU):
        other = Agent.load(tmp_path / "agent.zip", device=device)
        assert other.steps == 400
        assert_same(learned(other.loop), learned(agent.loop))
        other.learn(200, progress=False)
        assert other.loop.algorithm.alive.all()


@pytest.mark.parametrize("algorithm", SETTINGS)
def test_masks_that_come_late_are_heeded(algorithm):
    """What was captured before the first mask is captured anew; the environment would raise."""
    env = foreign_env(LateMask, SEEDS, 8)
    config = algorithms.get(algorithm)(net_arch=(32, 32), **SETTINGS[algorithm])
    plan = RunConfig.of(config, factorization="shared", total_timesteps=4000)
    loop = make_loop(env, plan, SEEDS, GPU)
    loop.run(152)  # 19 steps of each slot: graphs are in use
    assert loop.legal is None
    loop.run(1600)
    assert (loop.legal.sum((-1, -2)) == 1).all()
    assert loop.algorithm.alive.all()
