"""Users' environments here against Gymnasium's own vector environments, which step the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from benchmarks.machine import description
from benchmarks.results import renew, table
from benchmarks.timing import Meter, meter, race
from headwise.envs.foreign import ForeignVecEnv, wrap


class Arm(gym.Env[Any, Any]):
    """Nested observations and actions, and next to no work in a step."""

    observation_space = spaces.Dict(angle=spaces.Box(-3.2, 3.2, (2,)), tool=spaces.Discrete(3))
    action_space = spaces.Dict(grip=spaces.Discrete(3), joints=spaces.Box(-1, 1, (2,)))
    _angle: ClassVar = np.array([0.1, 0.2], dtype=np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Starts an episode of 200 steps."""
        super().reset(seed=seed)
        self.time = 0
        return {"angle": self._angle.copy(), "tool": 0}, {}

    def step(self, action: Any) -> Any:
        """One step."""
        self.time += 1
        reward = float(action["grip"]) - float(abs(action["joints"][0]))
        obs = {"angle": self._angle.copy(), "tool": self.time % 3}
        return obs, reward, False, self.time == 200, {}


class Camera(gym.Env[Any, Any]):
    """Pictures of 64 x 64 x 3 bytes, and no work in a step."""

    observation_space = spaces.Box(0, 255, (64, 64, 3), np.uint8)
    action_space = spaces.Discrete(4)

    def __init__(self) -> None:
        self.picture = np.zeros((64, 64, 3), dtype=np.uint8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Starts an episode of 200 steps."""
        super().reset(seed=seed)
        self.time = 0
        return self.picture, {}

    def step(self, action: Any) -> Any:
        """One step."""
        self.time += 1
        return self.picture, 1.0, False, self.time == 200, {}


def cart() -> gym.Env[Any, Any]:
    """CartPole as Gymnasium makes it."""
    return gym.make("CartPole-v1", disable_env_checker=True)


@dataclass(frozen=True)
class Case:
    """An environment, how many of it, and how much of Gymnasium's rate is to be reached."""

    name: str
    make: Callable[[], gym.Env[Any, Any]]
    num_envs: int
    vectorization: str
    target: float | None


def cases() -> Iterable[Case]:
    """Every comparison."""
    yield Case("CartPole", cart, 16, "sync", 0.9)
    yield Case("nested Dict", Arm, 16, "sync", 0.9)
    yield Case("64x64x3 bytes", Camera, 16, "sync", 1.0)
    yield Case("CartPole", cart, 1, "sync", None)
    yield Case("CartPole", cart, 16, "async", 1.0)


def meters_of(case: Case) -> tuple[list[Meter], Callable[[], None]]:
    """What takes turns (up to a batch, up to a Step, Gymnasium's), and what closes them."""
    kind = SyncVectorEnv if case.vectorization == "sync" else AsyncVectorEnv
    theirs = kind([case.make] * case.num_envs)
    made = [
        wrap(case.make, [0], case.num_envs, vectorization=case.vectorization)  # type: ignore[arg-type]
        for _ in range(2)
    ]
    for vector in (theirs, *made):
        vector.reset()
    actions = itertools.cycle([theirs.action_space.sample() for _ in range(64)])
    heads = itertools.cycle(_heads(made[0]))
    adapter = made[1].adapters[0]
    steps: list[Callable[[], object]] = [
        lambda: made[0].step(next(heads)),
        lambda: adapter.step(made[1].codec.to_env_batch(next(heads)[0])),
        lambda: theirs.step(next(actions)),
    ]

    def close() -> None:
        for vector in (theirs, *made):
            vector.close()

    return [meter(step, case.num_envs) for step in steps], close


def _heads(env: ForeignVecEnv) -> list[Any]:
    """Random actions in the learner's form."""
    rng, spec = np.random.default_rng(0), env.spec
    shape = (64, 1, env.num_slots, spec.num_heads)
    options = np.floor(rng.random(shape) * (spec.high + 1.0))
    return list(np.where(spec.is_choice, options, rng.uniform(-1, 1, shape)).astype(np.float32))


def run(peers: str | None, *, rounds: int, seconds: float, command: str) -> str:
    """Measures all cases, renews RESULTS.md and returns the text."""
    del peers  # what is compared with is a dependency
    rows = []
    for case in cases():
        meters, close = meters_of(case)
        result = race(meters, rounds=rounds, seconds=seconds)
        close()
        micros = [f"{1e6 * case.num_envs / rate:.0f}" for rate in result.rates]
        ratios = [
            f"{ratio:.2f} ({low:.2f} to {high:.2f})"
            for ratio, (low, high) in zip(result.ratios[:2], result.spread[:2], strict=True)
        ]
        theirs = "SyncVectorEnv" if case.vectorization == "sync" else "AsyncVectorEnv"
        target = "" if case.target is None else f">= {case.target:g}"
        row = [case.name, str(case.num_envs), theirs, micros[2], micros[1], f"**{ratios[1]}**"]
        rows.append([*row, target, micros[0], ratios[0]])
    columns = [
        "environment",
        "envs",
        "Gymnasium's",
        "its us a step",
        "our us",
        "its / ours",
        "target",
    ]
    text = "\n\n".join(
        [
            "## Users' environments",
            f"Medians of {rounds} rounds of {seconds:g} s in which all sides take turns, random "
            "actions; a ratio is that of rates, taken within a round (smallest to largest in "
            "brackets). Both step the same environments. Ours decodes the learner's actions, "
            "checks what comes back and gives a `Step` of leaves; on the right also the rows that "
            "the training loop takes. Where an episode ends, Gymnasium's spends a step on the "
            "reset (its default), and ours steps every environment: of CartPoles that act at "
            "random that is one step in twenty.",
            description(command) + ".",
            table([*columns, "us with rows", "its / ours with rows"], rows),
        ]
    )
    renew("adapters", text)
    return text
