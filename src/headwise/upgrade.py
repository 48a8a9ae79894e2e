"""Runs and checkpoints of earlier layouts, in the words of this one, as pure functions.

Layout 1 had names of its own; layout 2 has those of Stable-Baselines3 where the meaning is the
same. Names changed, and values where they mean something else: a rollout of 4096 transitions is 256
steps of each of 16 environments. What is learned is the same to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwise.added import id_of
from headwise.errors import ConfigError

LAYOUT = 2
"""The version of the layout of runs, studies and archives; it changes when older readers would
misread them."""
LAYOUTS = (1, 2)
"""Those that can be read."""

_OFF_POLICY = {"replay": "buffer_size", "warmup": "learning_starts"}
RENAMED: dict[str, dict[str, str]] = {
    "": {"lr": "learning_rate", "hidden": "net_arch"},
    "ppo": {
        "rollout": "n_steps",
        "minibatch": "batch_size",
        "epochs": "n_epochs",
        "clip": "clip_range",
        "value_clip": "clip_range_vf",
        "entropy_coef": "ent_coef",
        "value_coef": "vf_coef",
        "normalise": "normalize_advantage",
        "centre": "center_advantage",
        "critic_hidden": "critic_net_arch",
    },
    "dqn": _OFF_POLICY
    | {
        "epsilon_start": "exploration_initial_eps",
        "epsilon": "exploration_final_eps",
        "epsilon_share": "exploration_fraction",
    },
    "sac": _OFF_POLICY | {"first_temperature": "ent_coef"},
}
"""What the settings of layout 1 are called now, by algorithm; of all of them under no name."""
RUN = {
    "steps": "total_timesteps",
    "normalise_obs": "normalize_obs",
    "normalise_reward": "normalize_reward",
}
"""What a run said beside those of its algorithm and its factorization."""
STATE_PARTS = {"normaliser": "normalizer"}
"""Parts of an agent's state that had another name."""
_ADVANTAGES = {"minibatch": "batch", "off": False}


def upgrade(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of a run in today's layout, with its id if it has one.

    One of today is returned as it is. An id of layout 1 must be the right one.
    """
    if "steps" not in config:
        return dict(config)
    said = {name: value for name, value in config.items() if name != "id"}
    try:
        if "id" in config and config["id"] != (right := plain_id(said)):
            raise ConfigError(
                "a run's id is not the hash of its configuration", got=config["id"], allowed=right
            )
        new = {RUN.get(name, name): value for name, value in said.items()}
        new["settings"] = upgrade_settings(said["algorithm"], said["settings"], said["num_envs"])
        return {**new, "id": plain_id(new)} if "id" in config else new
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ConfigError("a run cannot be read", got=repr(error)) from error


def upgraded_id(config: Mapping[str, Any]) -> str:
    """The id of a run today, from its configuration of any layout."""
    return plain_id(upgrade(config))


def upgrade_settings(algorithm: str, settings: Mapping[str, Any], num_envs: int) -> dict[str, Any]:
    """The settings of an algorithm of layout 1 in today's.

    Args:
        algorithm: Its name; of a user's own only what all algorithms have is known.
        settings: Some or all of them.
        num_envs: Environments of each member.
    """
    names = RENAMED[""] | RENAMED.get(algorithm, {})
    return {
        names.get(name, name): _value(algorithm, name, value, num_envs)
        for name, value in settings.items()
    }


def upgrade_plan(plan: Mapping[str, Any]) -> dict[str, Any]:
    """What a checkpoint says of its training, in today's layout."""
    settings = plan["settings"]
    if "lr" not in settings:
        return dict(plan)
    new = {RUN.get(name, name): value for name, value in plan.items()}
    return {**new, "settings": upgrade_settings(plan["algorithm"], settings, plan["num_envs"])}


def _value(algorithm: str, name: str, value: Any, num_envs: int) -> Any:
    if algorithm == "ppo" and name == "rollout":
        return max(value // max(num_envs, 1), 1)
    if algorithm == "ppo" and name in ("normalise", "centre"):
        return _ADVANTAGES.get(value, value)
    if algorithm == "sac" and name == "first_temperature":
        return f"auto_{float(value)!r}"
    return value


def plain_id(config: Mapping[str, Any]) -> str:
    """The hash of a configuration as it stands."""
    return id_of({name: value for name, value in config.items() if name not in ("labels", "id")})
