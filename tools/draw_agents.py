"""Draws the picture of the README: python tools/draw_agents.py [FOLDER].

Agents are trained for some minutes (kept in FOLDER, and taken from there the next time) and play
side by side, with a bar for each head: its share of the credit in that state, as PPO's critic
sees it.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import numpy as np
from PIL import Image, ImageDraw, ImageFont

import headwise as hw

TARGET = Path(__file__).parents[1] / "docs" / "assets" / "agents.webp"
SIZE = (450, 300)
ROWS, ROW = 6, 19
FRAMES, PAUSE_MS, HOLD = 110, 110, 8
TASKS = {
    "Platform": (200_000, {"view": "hybrid"}),
    "HybridShoot": (1_200_000, {"view": "hybrid"}),
    "CoopPush": (600_000, {"view": "hybrid"}),
    "Lander": (300_000, {"view": "hybrid"}),
}
"""What is played in each panel, after how many steps of learning."""
INK, GREY, PALE, PAPER, BAR = "#1c2330", "#8a8678", "#e8e6df", "#fbfaf6", "#2f6db5"
EVERY = {"Lander": 5, "CoopPush": 1, "Platform": 1, "HybridShoot": 1}
"""How many steps pass from picture to picture."""
HEADS = {
    "Platform": ["run, hop or leap", "run: strength", "hop: strength", "leap: strength"],
    "HybridShoot": ["target", "aim: x", "aim: y"],
    "CoopPush": ["particle 0", "particle 1", "2: x", "2: y", "3: x", "3: y"],
    "Lander": ["main engine", "side engine"],
}
"""What the heads are, in the order of the action."""


def main() -> None:
    """Trains what is not yet trained, plays, and writes the film."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/picture")
    folder.mkdir(parents=True, exist_ok=True)
    films = [film(name, trained(name, folder)) for name in TASKS]
    frames = [sheet([film[i] for film in films]) for i in range(FRAMES)]
    first, *others = frames
    first.save(
        TARGET, save_all=True, append_images=others, duration=PAUSE_MS, loop=0, quality=60, method=4
    )
    sys.stdout.write(f"{TARGET} has {TARGET.stat().st_size / 1e6:.2f} MB\n")


def trained(name: str, folder: Path) -> hw.Agent:
    """The agent of a panel."""
    path = folder / f"{name}.zip"
    steps, settings = TASKS[name]
    if not path.exists():
        env = gym.make(f"headwise/{name}-v0", **settings)
        agent = hw.Agent("ppo", env, factorization="vdn")
        agent.learn(steps)
        sys.stdout.write(f"{name}: {agent.evaluate(episodes=20)}\n")
        agent.save(path)
    return hw.Agent.load(path)


def film(name: str, agent: hw.Agent) -> list[Image.Image]:
    """Pictures of as many episodes as the film has room for."""
    env = gym.make(f"headwise/{name}-v0", render_mode="rgb_array", **TASKS[name][1])
    frames: list[Image.Image] = []
    episode = 0
    while len(frames) < FRAMES:
        shots = list(played(env, agent, HEADS[name], seed=episode))
        frames += shots[:: EVERY[name]] + [shots[-1]] * HOLD
        episode += 1
    env.close()
    return frames[:FRAMES]


def played(env: gym.Env, agent: hw.Agent, names: list[str], seed: int) -> Iterator[Image.Image]:
    """The pictures of one episode."""
    obs, _ = env.reset(seed=seed)
    over = False
    while True:
        shares = agent.importance(obs)
        yield panel(env.render(), names, shares)
        if over:
            return
        obs, _, terminated, truncated, _ = env.step(agent.predict(obs, deterministic=True))
        over = terminated or truncated


def panel(frame: np.ndarray, names: list[str], shares: np.ndarray) -> Image.Image:
    """A picture of the environment with the bars below it."""
    font = ImageFont.load_default(13)
    made = Image.new("RGB", (SIZE[0], SIZE[1] + ROW * ROWS + 30), PAPER)
    made.paste(Image.fromarray(frame).resize(SIZE, Image.Resampling.LANCZOS))
    draw = ImageDraw.Draw(made)
    draw.text((12, SIZE[1] + 5), "credit of each head", fill=GREY, font=font)
    for row, (name, share) in enumerate(zip(names, shares, strict=True)):
        top = SIZE[1] + 25 + row * ROW
        draw.text((12, top), name, fill=INK, font=font)
        draw.rectangle((130, top + 4, 390, top + 13), fill=PALE)
        draw.rectangle((130, top + 4, 130 + round(260 * float(share)), top + 13), fill=BAR)
        draw.text((400, top), f"{share:.0%}", fill=INK, font=font)
    return made


def sheet(panels: list[Image.Image]) -> Image.Image:
    """All panels of one moment, two in a row."""
    width, height = panels[0].size
    made = Image.new("RGB", (2 * width + 6, 2 * height + 6), "#c9c5ba")
    for number, one in enumerate(panels):
        made.paste(one, ((number % 2) * (width + 6), (number // 2) * (height + 6)))
    return made


if __name__ == "__main__":
    main()
