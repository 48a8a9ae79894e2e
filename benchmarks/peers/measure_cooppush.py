"""cooppush 3.0.0, the batch environment of its authors. Arguments: envs, threads, envs per job."""

import json
import sys
import tempfile

import numpy as np
from cooppush.vectorized_environment import CoopPushVectorizedEnv
from worker import serve

# The default layout of the authors' repository, which their package does not ship.
LEVEL = {
    "particle_pos": [5.0, 5.0, -5.0, 5.0, -5.0, -5.0, 5.0, -5.0],
    "boulder_pos": [0.0, 0.0],
    "landmark_pos": [15.0, 0.0, -15.0, 0.0],
}

num_envs, num_threads, envs_per_job = map(int, sys.argv[1:])
with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    json.dump(LEVEL, file)
    file.flush()
    env = CoopPushVectorizedEnv(
        json_path=file.name,
        num_envs=num_envs,
        num_threads=num_threads,
        envs_per_job=envs_per_job,
    )
env.reset()
rng = np.random.default_rng(0)
actions = [rng.uniform(-1, 1, (num_envs, 4, 2)).astype(np.float32) for _ in range(64)]
turn = iter(range(10**12))
serve(lambda: env.step(actions[next(turn) % 64]), num_envs)
