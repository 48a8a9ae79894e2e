"""`headwise play`: watch a trained agent, or record a video of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from headwise.agent import Agent
from headwise.cli.film import Frame, check_video, with_bars, write_video
from headwise.cli.runs import load_run
from headwise.envs.render import Window
from headwise.errors import ConfigError, EnvError


@dataclass(frozen=True)
class Play:
    """Watch a trained agent, or record a video of it.

    Where the critic tells how much each head matters (ppo with vdn or qplex), bars show it.
    """

    run: tyro.conf.Positional[Path]
    """The folder of the run, or a checkpoint."""
    record: Path | None = None
    """A .mp4 or .gif to write, instead of showing a window."""
    episodes: int = 3
    """Episodes to play."""
    member: int | None = None
    """Which member plays; the best known if not given."""
    sample: bool = False
    """Draw actions from the policy, instead of taking the best."""
    seed: int = 0
    """Where the episodes start."""
    max_frames: int = 3000
    """The longest video."""


def main(argv: Sequence[str]) -> int:
    """Plays as the words of the command line say."""
    asked = tyro.cli(Play, prog="headwise play", args=list(argv))
    if asked.record is not None:
        check_video(asked.record)
    if asked.episodes < 1:
        raise ConfigError("episodes must be a count", got=asked.episodes, allowed="from 1")
    agent = load_run(asked.run)
    env = agent.world.single("rgb_array")
    rate = int(env.metadata.get("render_fps", 15))
    frames: list[Frame] = []
    show: Callable[[Frame], None] = frames.append
    window = None
    if asked.record is None:
        window = Window(f"Headwise: {asked.run}", rate)
        show = window.show
    returns = []
    try:
        for episode in range(asked.episodes):
            total = 0.0
            for frame, reward in played(agent, env, asked, asked.seed + episode):
                show(frame)
                total += reward
                if len(frames) >= asked.max_frames:
                    break
            returns.append(total)
    finally:
        env.close()
        if window is not None:
            window.close()
    if asked.record is not None:
        write_video(asked.record, frames, rate)
        sys.stdout.write(f"{len(frames)} frames in {asked.record}\n")
    sys.stdout.write(f"returns: {', '.join(f'{x:.4g}' for x in returns)}\n")
    return 0


def played(agent: Agent, env: Any, asked: Play, seed: int) -> Iterator[tuple[Frame, float]]:
    """The frames of one episode, each with the reward that led to it."""
    obs, info = env.reset(seed=seed)
    names, reward, over = agent.face.spec.names, 0.0, False
    while True:
        frame = env.render()
        if not isinstance(frame, np.ndarray):
            raise EnvError("this environment draws no pictures", got=type(frame).__name__)
        shares = agent.importance(obs, member=asked.member)
        yield (frame if shares is None else with_bars(frame, names, shares)), reward
        if over:
            return
        action = agent.predict(
            obs,
            deterministic=not asked.sample,
            action_mask=agent.face.told_mask(env, obs, info),
            member=asked.member,
        )
        obs, gained, terminated, truncated, info = env.step(action)
        reward, over = float(gained), bool(terminated or truncated)
