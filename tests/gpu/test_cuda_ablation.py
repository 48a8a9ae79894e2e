"""An update without a Triton kernel learns what it learns with it: the ablation compares equals."""

import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from cuda_cells import GPU, need_gpu

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import gpu_ablation
from benchmarks.gpu import bundle, parts

from headwise.algorithms import algorithms
from headwise.envs.make import make_vec
from headwise.training.build import make_loop
from headwise.training.config import RunConfig

need_gpu()

SMALL = {
    "ppo": {"n_steps": 16, "batch_size": 32, "n_epochs": 2},
    "dqn": {"buffer_size": 512, "batch_size": 32, "learning_starts": 64},
    "sac": {"buffer_size": 512, "batch_size": 32, "learning_starts": 64},
}
CASES = [(contest, cell) for contest in gpu_ablation.CONTESTS for cell in contest.cells]


@pytest.mark.parametrize(
    ("contest", "cell"), CASES, ids=[f"{a.kernel}-{b.name}".replace(" ", "_") for a, b in CASES]
)
def test_without_a_kernel(contest, cell):
    found = []
    for context in (nullcontext(), contest.without()):
        with context:
            env = make_vec("HybridShoot", (3, 7), 8, view=cell.view, num_threads=1)
            settings = {"net_arch": (32, 32), **SMALL[cell.algorithm], **cell.settings}
            config = algorithms.get(cell.algorithm)(**settings)
            plan = RunConfig.of(config, factorization=cell.factorization, total_timesteps=4000)
            loop = make_loop(env, plan, (3, 7), GPU)
            loop.run(400)
        assert loop.updates
        assert parts(loop) == (8 if cell.algorithm == "ppo" else bundle(loop))
        found.append((loop.algorithm.state_dict(), loop.episodes.table.copy()))
    (one, table), (other, same) = found
    assert (table == same).all()
    for name, x in one.items():
        # Over a run rounding grows; a kernel that computed something else would be far beyond it.
        numbers, others = (y.double().reshape(len(y), -1) for y in (x, other[name]))
        off, size = (y.norm(dim=-1) for y in (others - numbers, numbers))
        assert (off <= 1e-3 * size + 1e-4).all(), name
