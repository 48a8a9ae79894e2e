"""Studies on the streams of a GPU: several populations at a time, their agents kept."""

import numpy as np
import torch
from cuda_cells import need_gpu

from headwise import Agent
from headwise.study import Cell, Environment, Options, Store, Study, conduct, train
from headwise.training.evaluate import Player

need_gpu()

SMALL = {
    "ppo": {"n_steps": 16, "batch_size": 32, "n_epochs": 1},
    "dqn": {"buffer_size": 512, "batch_size": 32, "learning_starts": 64},
    "sac": {"buffer_size": 512, "batch_size": 32, "learning_starts": 64},
}
ROWS = np.random.default_rng(0).normal(size=(64, 9)).astype(np.float32)


def test_streams_keep_the_members_that_were_trained(tmp_path, monkeypatch):
    cells = [
        Cell(
            Environment("HybridShoot"),
            "hybrid",
            algorithm,
            factorization,
            total_timesteps=1024,
            num_envs=4,
            settings={"net_arch": (32, 32), **settings},
        )
        for algorithm, settings in SMALL.items()
        for factorization in ("shared", "vdn")
    ]
    study = Study("gpu", tuple(cells), (0, 1, 2))
    loops, make = [], train.make_pack_loop

    def recorded(pack, *arguments):
        loops.append((pack, make(pack, *arguments)))
        return loops[-1][1]

    monkeypatch.setattr(train, "make_pack_loop", recorded)
    options = Options(executor="streams", device="cuda", workers=4, keep_checkpoints=True)
    summary = conduct(study, tmp_path, options)
    assert (summary.finished, summary.failed, summary.checkpoints) == (18, 0, 18)
    assert len(loops) == len(cells)  # nothing had to be tried again
    for pack, loop in loops:
        for member, run in enumerate(pack.runs):
            agent = Agent.load(Store(tmp_path).checkpoint(run.id), device="cuda")
            learned = agent.loop.algorithm.state_dict()
            for name, x in loop.algorithm.state_dict().items():
                assert torch.equal(learned[name], x[member : member + 1]), name
            # A kernel for one member may round otherwise than one for three.
            actions = Player(agent.loop).act_alone(ROWS, 0)
            np.testing.assert_allclose(
                actions, Player(loop).act_alone(ROWS, member), rtol=1e-4, atol=1e-4
            )
            agent.close()


def test_runs_are_the_same_whoever_trains_beside_them(tmp_path):
    cells = [
        Cell(
            Environment("HybridShoot"), "discrete", algorithm, "shared", total_timesteps=steps,
            num_envs=4, settings={"net_arch": (32, 32), **SMALL[algorithm]},
        )
        for algorithm, steps in (("dqn", 512), ("ppo", 1024), ("sac", 2048), ("dqn", 4096))
    ]  # fmt: skip
    study = Study("gpu", tuple(cells), (0, 1))
    for workers in (1, 4):
        options = Options(executor="streams", device="cuda", workers=workers)
        assert conduct(study, tmp_path / str(workers), options).finished == 8
    one, four = (Store(tmp_path / workers) for workers in ("1", "4"))
    for run in one.plan():
        alone, beside = one.episodes(run.id), four.episodes(run.id)
        np.testing.assert_array_equal(alone.step, beside.step)
        np.testing.assert_array_equal(alone.returns, beside.returns)
