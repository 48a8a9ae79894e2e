"""What must work with all versions that are allowed: learn, save, load and act; the command line.

`make floors` runs it with the oldest of every dependency. It needs no test package.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import gymnasium as gym
import numpy as np

import headwise as hw

_REPLAY = {"buffer_size": 4096, "learning_starts": 128, "batch_size": 32}
_LEARNERS = {
    "ppo": {"n_steps": 8},
    "dqn": {"view": "discrete", **_REPLAY},
    "sac": {"view": "continuous", **_REPLAY},
}


class Dial(gym.Env):  # type: ignore[type-arg]
    """Turn a dial to where a lamp is, and press."""

    observation_space = gym.spaces.Dict(
        lamp=gym.spaces.Box(-1.0, 1.0, (2,)), color=gym.spaces.Discrete(3)
    )
    action_space = gym.spaces.Dict(turn=gym.spaces.Box(-1.0, 1.0, (1,)), key=gym.spaces.Discrete(2))

    def reset(self, *, seed=None, options=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
        """Lights a lamp."""
        super().reset(seed=seed)
        self.steps = 0
        return self._look(), {}

    def step(self, action):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
        """Nearer is better."""
        self.steps += 1
        reward = float(action["key"]) - abs(float(action["turn"][0] - self.lamp[0]))
        return self._look(), reward, self.steps == 9, False, {}

    def _look(self):  # type: ignore[no-untyped-def]  # noqa: ANN202
        self.lamp = self.np_random.uniform(-1.0, 1.0, 2).astype(np.float32)
        return {"lamp": self.lamp, "color": int(self.np_random.integers(3))}


def trains(algo: str, env: object, folder: Path) -> None:
    """An agent that has learned acts alike after it was saved and loaded."""
    agent = hw.Agent(algo, env, num_envs=4, seeds=2, net_arch=(16,), **_LEARNERS[algo])
    agent.learn(512, progress=False)
    assert agent.steps >= 512
    file = folder / f"{algo}.headwise"
    agent.save(file)
    again = hw.Agent.load(file, env=None if isinstance(env, str) else env)
    obs = agent.face.observation_space.sample()
    acted, loaded = (one.predict(obs, deterministic=True, member=1) for one in (agent, again))
    assert str(acted) == str(loaded), (acted, loaded)
    again.learn(256, progress=False)
    assert len(again.evaluate(2).returns)
    print(f"{algo} in {getattr(env, '__name__', env)}: ok", flush=True)


def main() -> None:
    """All of it."""
    names = ("numpy", "torch", "gymnasium", "tyro", "rich", "safetensors")
    print("python", sys.version.split()[0], *(f"{name} {version(name)}" for name in names))
    with tempfile.TemporaryDirectory() as folder:
        for algo in _LEARNERS:
            trains(algo, Dial, Path(folder))
            trains(algo, "headwise/Platform-v0", Path(folder))
        trains("dqn", "CartPole-v1", Path(folder))
    for words in ("--help", "train --help", "envs"):
        subprocess.run(
            [sys.executable, "-m", "headwise.cli", *words.split()],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    print("command line: ok")


if __name__ == "__main__":
    main()
