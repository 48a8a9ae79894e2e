"""A deployed policy with an encoder does what the agent does, in 1,000 states."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from seen_envs import HYBRID, Corner, Dashboard, Largest, Own

import headwise as hw
from headwise.export.observations import input_type
from headwise.nets.encoders import CNN, Entities, SimBa

onnxruntime = pytest.importorskip("onnxruntime")
ROWS = 1000
KINDS = {
    "cnn": (Corner, {"encoder": CNN(layers=((8, 3, 2),), width=16)}),
    "impala": (Corner, {"encoder": "impala"}),
    "entities": (Largest, {"encoder": Entities(8, 2), "entities": {"units": "there"}}),
    "simba": (Dashboard, {"encoder": SimBa(8, 1)}),
    "module": (Dashboard, {"encoder": Own}),
    "several": (Dashboard, {"encoder": CNN(layers=((8, 3, 2),), width=16)}),
}


def deployed(kind, algorithm):
    """An agent with a continuous head, which shows every digit, and what it is asked."""
    base, network = KINDS[kind]

    class Hybrid(base):
        def __init__(self):
            super().__init__()
            self.action_space = HYBRID

        def reward(self, action):
            return float(action["push"]) * (0.5 - int(action["row"]))

    settings = {"net_arch": (16,), "num_envs": 4, "learning_rate": 3e-3, "seeds": 2}
    learn = {"n_steps": 8, "batch_size": 16} if algorithm == "ppo" else {"learning_starts": 16}
    agent = hw.Agent(algorithm, Hybrid, **settings, **learn, **network)
    agent.learn(128, progress=False)
    env = Hybrid()
    env.reset(seed=1)
    return agent, [env.show() for _ in range(ROWS)]


def inputs_of(agent, many):
    """Observations as inputs of an exported policy, by name."""
    codec = agent.face.codec.observations
    named = {}
    for leaf, (path, keys, _) in zip(codec.leaves, codec.places, strict=True):
        name = path if path == "observation" else f"observation/{path}"
        column = []
        for obs in many:
            for key in keys:
                obs = obs[key]
            column.append(obs)
        named[name] = np.array(column, input_type(leaf))
    return named


def actions_of(agent, many, member):
    return agent.predict(stacked(many), True, member=member)


def stacked(many):
    """Observations as one batch, in the structure that each has."""
    if isinstance(many[0], dict):
        return {key: stacked([one[key] for one in many]) for key in many[0]}
    if isinstance(many[0], tuple):
        return tuple(map(stacked, map(list, zip(*many, strict=True))))
    return np.array(many)


@pytest.mark.parametrize(
    ("algorithm", "kind"), [*(("ppo", kind) for kind in KINDS), ("sac", "cnn"), ("sac", "module")]
)
def test_an_exported_policy_does_what_the_agent_does(algorithm, kind, tmp_path):
    agent, many = deployed(kind, algorithm)
    expected = actions_of(agent, many, agent.best_member)
    inputs = inputs_of(agent, many)

    agent.export(tmp_path / "it.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "it.onnx")
    names = [x.name for x in session.get_outputs()]
    _check(expected, dict(zip(names, session.run(names, inputs), strict=True)))

    agent.export(tmp_path / "it.pt2")
    policy = torch.export.load(tmp_path / "it.pt2").module()
    with torch.no_grad():
        given = {name: torch.from_numpy(x) for name, x in inputs.items()}
        got = policy(observation=given, uniform=None, action_mask=None)
    _check(expected, {name: x.numpy() for name, x in got.items()})


def _check(expected, got):
    push = next(x for name, x in got.items() if name.endswith("push"))
    row = next(x for name, x in got.items() if name.endswith("row"))
    assert np.unique(expected["push"]).size > 100, "it looks at what it is shown"
    np.testing.assert_allclose(push.reshape(-1), expected["push"], rtol=0.0, atol=1e-5)
    assert (row.reshape(-1) == expected["row"]).mean() >= 0.999
