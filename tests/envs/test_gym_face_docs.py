"""The page about the environments says what they are, all of it."""

from pathlib import Path

import gymnasium as gym
import pytest

from headwise.envs.native import NATIVE_NAMES, env_id
from headwise.envs.native.engine import settings_of

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "environments.md").read_text()


def shown(default):
    if isinstance(default, float):
        return f"{default:.6g}"  # 0.1, not the float32 next to it
    if default == []:
        return "none"
    return f'"{default}"' if isinstance(default, str) else str(default)


@pytest.mark.parametrize("name", NATIVE_NAMES)
def test_every_setting_is_there_with_its_default_and_help(name):
    section = PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]
    for setting, (default, _, text) in settings_of(name).items():
        assert f"| `{setting}` | `{shown(default)}` | {text} |" in section


@pytest.mark.parametrize("name", NATIVE_NAMES)
def test_every_environment_has_its_row_picture_and_state(name):
    env = gym.make(env_id(name)).unwrapped
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{env_id(name)}`")]
    assert row.endswith(f"| {env.max_episode_steps} |")
    assert f", {env.observation_space.shape[0]}" in row
    (parts,) = [line for line in PAGE.splitlines() if line.startswith(f"| {name} | `")]
    for part in env.get_state():
        assert f"`{part}`" in parts
    picture = DOCS / "assets" / f"{name}.png"
    assert f"](assets/{picture.name})" in PAGE
    assert 4_000 < picture.stat().st_size < 40_000
