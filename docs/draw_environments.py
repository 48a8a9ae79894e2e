"""Draws the pictures of docs/environments.md: python docs/draw_environments.py."""

from pathlib import Path

import gymnasium as gym
import numpy as np
from PIL import Image

from headwise.envs.native import env_id

ASSETS = Path(__file__).parent / "assets"


def main() -> None:
    """Plays a few chosen steps of each environment and keeps the last picture."""
    draw(
        "ContextualDecoupler",
        {},
        {"context": 0, "targets": [3, 1]},
        [np.array([3, 2])],
    )
    draw(
        "Platform",
        {"noise": 0.0},
        {"x": 228.0, "vx": 70.0, "enemy_x": [60.0, 560.0], "enemy_dx": [-30.0, 30.0]},
        [(1, np.array([12.0, 700.0, 210.0]))],
    )
    draw(
        "HybridShoot",
        {"num_targets": 4},
        {"targets": [[0.22, 0.7], [0.64, 0.82], [0.78, 0.3], [0.35, 0.22]]},
        [(1, np.array([0.62, 0.8])), (0, np.array([0.24, 0.45])), (2, np.array([0.75, 0.34]))],
    )
    inwards = np.array([[1.0, 0.1], [1.0, -0.1], [0.3, -0.9], [0.6, 0.7]])
    draw(
        "CoopPush",
        {"view": "continuous", "shuffle": False},
        {
            "particles": [[-10.5, 2.0], [-10.8, -2.2], [1.0, 9.0], [2.0, -8.5]],
            "boulders": [[-6.0, 0.0]],
            "visited": [[0], [1]],
        },
        [inwards.ravel()] * 3,
    )
    draw(
        "CoopPush",
        {"view": "continuous", "layout": "independent", "shuffle": False},
        {"particles": [[2.0, 30.5], [-3.0, -30.0]], "boulders": [[7.0, 30.0], [2.0, -30.0]]},
        [np.array([1.0, 0.0, 1.0, 0.0])] * 2,
        "IndependentPush",
    )
    idle, up = ((main, np.array([0.0], dtype=np.float32)) for main in (0, 2))
    draw("Lander", {}, None, [idle] * 45 + [up, up, idle] * 8)
    draw("CartPole", {}, {"x": 0.4, "x_dot": 0.6, "theta": 0.09, "theta_dot": 0.5}, [1, 0, 1])
    draw("Acrobot", {}, {"theta1": 1.1, "theta2": 0.9, "dtheta1": 1.0, "dtheta2": 2.0}, [2])
    draw("MountainCar", {}, {"position": -0.1, "velocity": 0.03}, [2, 2])
    push = np.array([0.6], dtype=np.float32)
    draw("MountainCarContinuous", {}, {"position": -0.3, "velocity": 0.02}, [push])
    torque = np.array([-1.4], dtype=np.float32)
    draw("Pendulum", {}, {"theta": 2.2, "theta_dot": -3.0}, [torque, torque])


def draw(
    name: str, settings: dict, start: dict | None, actions: list, picture: str | None = None
) -> None:
    """Saves the picture of an environment after some steps from a given start."""
    env = gym.make(f"headwise/{name}-v0" if name == "Lander" else env_id(name),
                   render_mode="rgb_array", **settings)  # fmt: skip
    env.reset(seed=3, options=start)
    for action in actions:
        env.step(action)
    # A palette of 256 colors is enough for smooth edges, and keeps the files small.
    image = Image.fromarray(env.render()).quantize(256, dither=Image.Dither.NONE)
    image.save(ASSETS / f"{picture or name}.png", optimize=True)


if __name__ == "__main__":
    main()
