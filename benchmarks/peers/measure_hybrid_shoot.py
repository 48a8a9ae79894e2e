"""hybrid-shoot 0.3.0, the vector environment of HybridShoot's authors.

Arguments: envs, threads, and "step" for what Python calls or "raw" for the C++ step beneath it.
"""

import sys

import numpy as np
from hybrid_shoot import HybridShootVecEnv
from worker import serve

num_envs, num_threads = map(int, sys.argv[1:3])
env = HybridShootVecEnv(num_envs=num_envs, independent_mode=False, num_threads=num_threads)
env.reset()
rng = np.random.default_rng(0)
actions = [
    (rng.integers(0, 3, num_envs).astype(np.int32), rng.random((num_envs, 2))) for _ in range(64)
]
turn = iter(range(10**12))
if sys.argv[3] == "raw":
    serve(lambda: env._vec.step(*actions[next(turn) % 64]), num_envs)
else:
    serve(lambda: env.step(actions[next(turn) % 64]), num_envs)
