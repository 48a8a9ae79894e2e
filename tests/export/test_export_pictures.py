"""A policy that sees a picture and numbers: bytes go into the file as they are."""

import gymnasium as gym
import numpy as np
import onnx
import pytest
import torch
from deployed import run_onnx
from gymnasium import spaces

import headwise as hw

SEEN = spaces.Dict(
    eye=spaces.Box(0, 255, (6, 5, 3), np.uint8),
    gear=spaces.Discrete(3),
    speed=spaces.Box(-50, 50, (2,)),
)


class Car(gym.Env):
    """Pays for the turn that is as large as the picture is bright."""

    observation_space = SEEN
    action_space = spaces.Dict(brake=spaces.Discrete(2), turn=spaces.Discrete(5))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._obs(), {}

    def step(self, action):
        self.time += 1
        reward = float(action["turn"] == self.level)
        return self._obs(), reward, False, self.time == 9, {}

    def _obs(self):
        self.level = int(self.np_random.integers(5))
        noise = self.np_random.integers(0, 50, (6, 5, 3), dtype=np.uint8)
        picture = np.uint8(50 * self.level) + noise
        speed = self.np_random.normal(20.0, 10.0, 2).astype(np.float32)
        return {"eye": picture, "gear": self.time % 3, "speed": speed}


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
@pytest.mark.parametrize("normalize_obs", ["auto", True])
def test_a_file_takes_bytes_and_acts_as_the_agent_does(algo, normalize_obs, tmp_path):
    more = (
        {"n_steps": 64, "learning_rate": 0.003}
        if algo == "ppo"
        else {"buffer_size": 200, "learning_starts": 32, "learning_rate": 0.01}
    )
    agent = hw.Agent(
        algo, Car, net_arch=(16,), num_envs=4, normalize_obs=normalize_obs, **more
    ).learn(8000, progress=False)
    agent.export(tmp_path / "policy.onnx")
    inputs = {x.name: x.type.tensor_type for x in onnx.load(tmp_path / "policy.onnx").graph.input}
    assert inputs["observation/eye"].elem_type == onnx.TensorProto.UINT8
    assert [d.dim_value for d in inputs["observation/eye"].shape.dim[1:]] == [6, 5, 3]
    car = Car()
    samples = [car.reset(seed=seed)[0] for seed in range(200)]
    batch = {key: np.stack([one[key] for one in samples]) for key in SEEN.spaces}
    told = {f"observation/{key}": x for key, x in batch.items()}
    ours, theirs = (
        agent.predict(batch, deterministic=True),
        run_onnx(tmp_path / "policy.onnx", told),
    )
    for key, x in ours.items():
        assert (x != theirs[key]).mean() < 0.01, key  # a tie, at most
    assert len(np.unique(ours["turn"])) > 1  # the picture matters
    agent.export(tmp_path / "policy.pt2")
    module = torch.export.load(tmp_path / "policy.pt2").module()
    tensors = {name: torch.as_tensor(x) for name, x in told.items()}
    again = module(observation=tensors, uniform=None, action_mask=None)
    for key, x in theirs.items():
        assert (x != again[key].numpy()).mean() < 0.01, key
