"""Policies under constraints as ONNX: what they do is legal, and what predict does."""

import sys
from pathlib import Path

import numpy as np
import pytest
from deployed import run_onnx

import headwise as hw

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from constrained import RULES, TREE, Desk

ROWS = 2000
CELLS = [
    ("ppo", "ar", RULES, False),
    ("ppo", "shared", TREE, True),
    ("dqn", "vdn", TREE, True),
    ("sac", "joint", RULES, True),
    ("sac", "ar", RULES, False),
]


@pytest.mark.parametrize(("algo", "kind", "rules", "deterministic"), CELLS)
def test_what_a_file_does_is_legal(algo, kind, rules, deterministic, tmp_path):
    agent = hw.Agent(
        algo, lambda: Desk(rules=rules), factorization=kind, constraints=rules, net_arch=(16,)
    )
    path = tmp_path / "desk.onnx"
    agent.best().export(path, deterministic=deterministic, masks=True)
    env, random = Desk(rules=rules), np.random.default_rng(0)
    env.reset(seed=0)
    seen, masks, states = [], [], []
    for _ in range(ROWS):
        obs, info = env._show()
        seen.append(obs)
        masks.append(info["action_mask"])
        states.append((env.verbs, env.table))
    legal = agent.face.legal(masks, ROWS, batched=True)
    inputs = {"observation": np.stack(seen), "action_mask": legal}
    if not deterministic:
        width = agent.loop.algorithm.num_uniforms
        inputs["uniform"] = random.random((ROWS, width), dtype=np.float32)
    found = run_onnx(path, inputs)
    for row, (env.verbs, env.table) in enumerate(states):
        assert env.is_legal({name: x[row] for name, x in found.items()})
    if deterministic:
        ours = agent.predict(np.stack(seen), deterministic=True, action_mask=masks)
        same = np.all([found[name] == ours[name] for name in found], axis=0)
        assert same.mean() > 0.999  # two options may be equal to the last digit
