"""`headwise play`: watch a trained agent, or record a video of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from headwise.checks import checked_count, checked_seed
from headwise.cli.film import Frame, check_video, with_bars, write_video
from headwise.cli.flags import asked
from headwise.cli.runs import OfRun, load_run
from headwise.envs.native.drawing import Window, require
from headwise.errors import EnvError, HeadwiseError

if TYPE_CHECKING:
    from headwise.agent import Agent


@dataclass(frozen=True, kw_only=True)
class Play(OfRun):
    """Watch a trained agent, or record a video of it.

    With ppo and vdn or qplex, bars show the importance of each head.
    """

    record: Path | None = None
    """A .mp4 or .gif to write instead of opening a window."""
    episodes: int = 3
    """Episodes to play."""
    member: Literal["best"] | int = "best"
    """Which seed plays: the best, or by index, where 0 is the first."""
    deterministic: bool = True
    """Take the greedy action; --no-deterministic samples from the policy."""
    seed: int = 0
    """Seed of the episodes."""
    max_frames: int = 3000
    """Frames after which the video ends."""


def main(argv: Sequence[str]) -> int:
    """Plays as the words of the command line say."""
    given = asked(Play, argv, "play")
    if given.record is not None:
        check_video(given.record)
    checked_count("episodes", given.episodes)
    checked_count("max_frames", given.max_frames)
    checked_seed(given.seed, "seed")
    agent = load_run(given.run, given.env, given.device, ["headwise", "play", *argv])
    env = _drawing(lambda: agent.world.single("rgb_array"))
    rate = int(env.metadata.get("render_fps", 15))
    frames: list[Frame] = []
    show: Callable[[Frame], None] = frames.append
    window = None
    if given.record is None:
        check_screen()
        window = Window(f"Headwise: {given.run}", rate)
        show = window.show
    returns: list[float] = []
    stopped = cut = False
    try:
        for episode in range(given.episodes):
            total = 0.0
            for frame, reward, last in played(agent, env, given, given.seed + episode):
                show(frame)
                total += reward
                if len(frames) >= given.max_frames:
                    cut = not last
                    break
            returns.append(total)
            if len(frames) >= given.max_frames:
                break
    except KeyboardInterrupt:  # enough seen
        stopped = True
    finally:
        env.close()
        if window is not None:
            window.close()
    if given.record is not None and frames:
        write_video(given.record, frames, rate)
        sys.stdout.write(f"{len(frames)} frames in {given.record}\n")
    told = f"returns: {', '.join(f'{x:.4g}' for x in returns)}"
    if cut or (len(returns) < given.episodes and not stopped):
        how = ", the last one cut off" if cut else ""
        told += f" ({len(returns)} of {given.episodes} episodes{how}: --max-frames is reached)"
    sys.stdout.write(f"{told}\n")
    return 130 if stopped else 0


def check_screen() -> None:
    """Refuses to play without a screen, where a window opens all the same, and shows nothing.

    Who names a driver in SDL_VIDEODRIVER has thought about it.
    """
    if "SDL_VIDEODRIVER" in os.environ:
        return
    pygame = require("pygame", "pygame-ce", "a window needs pygame")
    try:
        pygame.display.init()
        driver = pygame.display.get_driver()
        pygame.display.quit()
    except pygame.error as error:
        driver = str(error)
    else:
        if driver not in ("offscreen", "dummy"):
            return
    raise EnvError("there is no screen here", got=driver, fix="Record a video: --record x.gif.")


def played(agent: Agent, env: Any, given: Play, seed: int) -> Iterator[tuple[Frame, float, bool]]:
    """The frames of one episode, each with the reward that led to it and whether it is the last."""
    obs, info = env.reset(seed=seed)
    names, reward, over = agent.face.spec.names, 0.0, False
    member = None if given.member == "best" else given.member
    while True:
        frame = _drawing(env.render)
        if not isinstance(frame, np.ndarray):
            raise EnvError("this environment draws no pictures", got=type(frame).__name__)
        shares = agent.importance(obs, member=member)
        yield (frame if shares is None else with_bars(frame, names, shares)), reward, over
        if over:
            return
        action = agent.predict(
            obs,
            deterministic=given.deterministic,
            action_mask=agent.face.told_mask(env, obs, info),
            member=member,
        )
        obs, gained, terminated, truncated, info = env.step(action)
        reward, over = float(gained), bool(terminated or truncated)


def _drawing(call: Callable[[], Any]) -> Any:
    """What a call returns that may fail for want of a package, or of pictures."""
    try:
        return call()
    except HeadwiseError:
        raise
    except Exception as error:
        raise EnvError(
            "this environment cannot be drawn", got=f"{type(error).__name__}: {error}"
        ) from error
