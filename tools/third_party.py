"""Environments of others, each as a user would hand it over: what it needs, and how fast it is.

    make third-party                     # in an environment of its own, of tools/third_party.txt
    python tools/third_party.py rware    # one of them, where its package is installed

Each is trained for a few hundred steps by PPO and by DQN or SAC, with its own action space, then
evaluated, saved and loaded, and has to act as before. Where it needs a setting, the same is tried
without it first: the refusal must say which.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import headwise as hw
from headwise.errors import HeadwiseError

_REPLAY = {"buffer_size": 2000, "learning_starts": 64, "batch_size": 32}
LEARNERS: dict[str, dict[str, Any]] = {"ppo": {"n_steps": 32}, "dqn": _REPLAY, "sac": _REPLAY}
_MARK = "third-party: "
LONGEST = 400
"""Characters of what an agent may say of itself."""


@dataclass(frozen=True)
class Case:
    """An environment of a package."""

    make: Callable[[], Any]
    other: str
    """What learns beside PPO."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What `env_settings` it needs, without which it is refused."""
    wrapper: str = ""
    """What it needs around it, without which it is refused."""
    bare: Callable[[], Any] | None = None
    """It without the wrapper."""
    refusal: str = ""
    """A part of the refusal."""
    others: str = ""
    """What its package needs, whoever learns."""
    encoder: str = "as they are"
    """What has to be said of what reads observations."""


def _id(name: str, **settings: Any) -> Callable[[], Any]:
    return partial(gym.make, name, **settings)


def _mpe(module: str, make: str) -> Callable[[], Any]:
    def made() -> Any:
        return getattr(import_module(f"mpe2.{module}"), make)()

    return made


_EVERY_FOURTH = "every fourth pixel, for speed"


def _doom(name: str, **settings: Any) -> Callable[[], Any]:
    def made() -> Any:
        env = gym.make(f"vizdoom.gymnasium_wrapper:{name}", **settings)
        space: Any = env.observation_space
        small = gym.spaces.Box(0, 255, (60, 80, 3), np.uint8)
        return gym.wrappers.TransformObservation(
            env,
            lambda obs: {**obs, "screen": obs["screen"][::4, ::4]},
            gym.spaces.Dict({**space.spaces, "screen": small}),
        )

    return made


_MINIGRID = _id("minigrid:MiniGrid-Empty-5x5-v0")


def _missionless() -> Any:
    return import_module("minigrid.wrappers").ImgObsWrapper(_MINIGRID())


def _painted() -> Any:
    wrappers = import_module("minigrid.wrappers")
    return wrappers.ImgObsWrapper(wrappers.RGBImgPartialObsWrapper(_MINIGRID()))


def _multi_objective(name: str) -> Callable[[], Any]:
    return lambda: import_module("mo_gymnasium").make(name)


def _grid() -> Any:
    grid2op = import_module("grid2op")
    compat = import_module("grid2op.gym_compat")
    return compat.GymEnv(grid2op.make("l2rpn_case14_sandbox", test=True))


_GRAY = {
    "action": {"type": "ContinuousAction"},
    "observation": {
        "type": "GrayscaleObservation",
        "observation_shape": (128, 64),
        "stack_size": 4,
        "weights": [0.2989, 0.5870, 0.1140],
        "scaling": 1.75,
    },
}
_PARTS = "reward_weights"
CASES: dict[str, Case] = {
    "highway-env": Case(_id("highway_env:highway-fast-v0"), "dqn"),
    "highway-env, gray": Case(
        _id("highway_env:highway-fast-v0", config=_GRAY), "sac", encoder="CNN"
    ),
    "mpe2 spread": Case(_mpe("simple_spread_v3", "parallel_env"), "dqn"),
    "mpe2 speaker, by turns": Case(_mpe("simple_speaker_listener_v4", "env"), "dqn"),
    "gymnasium-robotics": Case(
        _id("gymnasium_robotics:FetchReach-v4"), "sac", others="MuJoCo 3.3.7"
    ),
    "MuJoCo": Case(_id("HalfCheetah-v5"), "sac"),
    "VizDoom": Case(_doom("VizdoomBasic-v1"), "dqn", others=_EVERY_FOURTH, encoder="CNN"),
    "VizDoom, all buttons": Case(
        _doom("VizdoomDeadlyCorridor-v1", max_buttons_pressed=0),
        "dqn",
        others=_EVERY_FOURTH,
        encoder="CNN",
    ),
    "MiniGrid": Case(
        _missionless, "dqn", {}, "ImgObsWrapper", _MINIGRID, "'mission' cannot be", encoder="CNN"
    ),
    "MiniGrid, painted": Case(
        _painted, "dqn", {}, "RGBImgPartialObsWrapper, ImgObsWrapper", encoder="CNN"
    ),
    "lbforaging": Case(
        _id("lbforaging:Foraging-8x8-2p-1f-v3"), "dqn", {_PARTS: (1.0, 1.0)}, refusal=_PARTS
    ),
    "rware": Case(_id("rware:rware-tiny-2ag-v2"), "dqn", {_PARTS: (1.0, 1.0)}, refusal=_PARTS),
    "NLE": Case(
        _id("nle:NetHackScore-v0", observation_keys=("chars", "colors", "blstats", "message")),
        "dqn",
        others="`observation_keys`; `pip install --no-deps nle`",
    ),
    "mo-gymnasium": Case(
        _multi_objective("deep-sea-treasure-v0"), "dqn", {_PARTS: (1.0, 0.1)}, refusal=_PARTS
    ),
    "mo-gymnasium hopper": Case(
        _multi_objective("mo-hopper-v5"), "sac", {_PARTS: (1.0, 0.1, 0.1)}, refusal=_PARTS
    ),
    "grid2op": Case(_grid, "dqn"),
}
"""By what they are called in the table."""


def tried(name: str, steps: int, folder: Path) -> dict[str, Any]:
    """One environment: what it is, how fast it learns, and what had to be mended.

    Args:
        name: Which of `CASES`.
        steps: Environment steps.
        folder: Where agents are saved.
    """
    case = CASES[name]
    rates = {}
    for algo in ("ppo", case.other):
        if case.refusal:
            _refused(case, algo)
        how = {"num_envs": 2, "net_arch": (32,), **LEARNERS[algo]}
        agent = hw.Agent(algo, case.make, env_settings=dict(case.settings), **how)
        said = repr(agent)
        assert len(said) <= LONGEST, f"repr has {len(said)} characters: {said}"
        assert case.encoder in str(agent.config.network), agent.config.network
        started = time.perf_counter()
        agent.learn(steps, progress=False)
        rates[algo] = agent.steps / (time.perf_counter() - started)
        assert np.isfinite(agent.evaluate(1).returns).all()
        file = folder / f"{algo}.zip"
        agent.save(file)
        again = hw.Agent.load(file, env=case.make)
        obs = _first_observation(case.make())
        acted, loaded = (one.predict(obs, deterministic=True) for one in (agent, again))
        assert str(acted) == str(loaded), (acted, loaded)
        again.learn(64, progress=False)
        heads = agent.face.spec.num_heads
        for one in (agent, again):
            one.close()
    return {
        "space": in_words(agent.face.action_space),
        "heads": heads,
        "seen": agent.face.codec.obs_spec.vector_size,
        "cnn": "CNN" in str(agent.config.network),
        "rates": rates,
    }


def in_words(space: Any) -> str:
    """The kinds of spaces in an action."""
    if isinstance(space, gym.spaces.Discrete):
        return f"Discrete({space.n})"
    parts = getattr(space, "spaces", space if isinstance(space, dict) else None)
    if parts is None:
        return f"{type(space).__name__}{space.shape}"
    inside = [in_words(one) for one in (parts.values() if isinstance(parts, dict) else parts)]
    counted = {one: inside.count(one) for one in inside}
    each = ", ".join(f"{n} x {one}" if n > 1 else one for one, n in counted.items())
    kind = next(
        (k for k in ("Dict", "Tuple", "OneOf") if isinstance(space, getattr(gym.spaces, k))),
        "agents",
    )
    return f"{kind}: {each}"


def _refused(case: Case, algo: str) -> None:
    """What it needs is said by the refusal."""
    try:
        bare = hw.Agent(algo, case.bare or case.make, num_envs=2, **LEARNERS[algo])
        bare.learn(64, progress=False)
        said = "nothing"
    except HeadwiseError as refusal:
        said = str(refusal)
    assert case.refusal in said, f"the refusal says {said}"


def _first_observation(env: Any) -> Any:
    if hasattr(env, "agent_iter"):
        env = import_module("pettingzoo.utils").aec_to_parallel(env)
    obs, _ = env.reset(seed=0)
    env.close()
    return obs


def _in_a_process(name: str, steps: int) -> dict[str, Any]:
    """The same in a process of its own, which may die."""
    settings = {"OMP_NUM_THREADS": "1", "SDL_VIDEODRIVER": "dummy", **os.environ}
    command = [sys.executable, __file__, "--steps", str(steps), "--alone", name]
    ended = subprocess.run(command, capture_output=True, text=True, env=settings, check=False)
    for line in ended.stdout.splitlines():
        if line.startswith(_MARK):
            return dict(json.loads(line.removeprefix(_MARK)))
    return {
        "error": (ended.stderr.strip().splitlines() or [f"it ended with {ended.returncode}"])[-1]
    }


def _row(name: str, found: Mapping[str, Any]) -> str:
    case = CASES[name]
    told = [f"`{key}={value}`" for key, value in case.settings.items()]
    told += [f"`{one}`" for one in case.wrapper.split(", ") if one] + [case.others] * bool(
        case.others
    )
    needed = ", ".join(told) or "nothing"
    if "error" in found:
        return f"| {name} | | | | {needed} | | {found['error']} |"
    rates = ", ".join(f"{algo} {rate:,.0f}" for algo, rate in found["rates"].items())
    seen = f"{found['seen']:,} numbers, {'CNN' if found['cnn'] else 'vector'}"
    return f"| {name} | {found['space']} | {found['heads']} | {seen} | {needed} | {rates} | works |"


def main() -> None:
    """All, or those that are named; fails if one of them does."""
    asked = argparse.ArgumentParser(description="Environments of others.")
    asked.add_argument("names", nargs="*", metavar="name", help=", ".join(CASES))
    asked.add_argument("--steps", type=int, default=256)
    asked.add_argument("--alone", action="store_true", help="one of them, in this process")
    given = asked.parse_args()
    if unknown := [name for name in given.names if name not in CASES]:
        asked.error(f"no such environment: {', '.join(unknown)}")
    if given.alone:
        warnings.simplefilter("ignore")
        with tempfile.TemporaryDirectory() as folder:
            found = tried(given.names[0], given.steps, Path(folder))
        print(_MARK + json.dumps(found))
        return
    print("| environment | action | heads | sees | needed | steps/s | outcome |")
    print("|---|---|---|---|---|---|---|")
    failed = []
    for name in given.names or CASES:
        found = _in_a_process(name, given.steps)
        failed += [name] if "error" in found else []
        print(_row(name, found), flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
