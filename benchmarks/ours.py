"""Our own learners as a process that measures when it is told to, like a peer's.

Arguments: ppo, dqn or sac; factorization; "decoupler" or a view of HybridShoot; members; threads;
products (float32 or bf16); then for the decoupler an importance estimator, for HybridShoot settings
as JSON.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))

import torch
from worker import serve

from headwise.algorithms import algorithms
from headwise.envs.make import make_vec
from headwise.factorizations import factorizations
from headwise.studies.paper.plans._decoupler_presets import decoupler_factorization, decoupler_ppo
from headwise.training.build import make_loop
from headwise.training.config import RunConfig
from headwise.training.matmul_precision import set_matmul_precision

NUM_ENVS, VECTOR_STEPS, LEARNING_STARTS = 16, 64, 10_000


def main() -> None:
    """Builds the loop and serves measurements."""
    algorithm, factorization, task, members, threads, products, more = sys.argv[1:]
    torch.set_num_threads(int(threads))
    set_matmul_precision(products)
    seeds = range(int(members))
    if task == "decoupler":
        env = make_vec("ContextualDecoupler", seeds, NUM_ENVS)
        config = decoupler_ppo("as_published", factorization, more)
        kind = decoupler_factorization("as_published", factorization)
        chunk, first = 2048, 0
    else:
        env = make_vec("HybridShoot", seeds, NUM_ENVS, view=task)
        sizes = {"net_arch": (256, 256), "learning_rate": 5e-4, "learning_starts": LEARNING_STARTS}
        config = algorithms.get(algorithm)(**sizes, **json.loads(more))
        kind = factorizations.get(factorization)()
        chunk, first = VECTOR_STEPS * NUM_ENVS, LEARNING_STARTS
    plan = RunConfig.of(config, factorization=kind, total_timesteps=10**7)
    loop = make_loop(env, plan, seeds)
    loop.run(first)

    def step() -> None:
        loop.run(loop.env_steps + chunk)

    serve(step, chunk * len(seeds))


main()
