"""Who is trained and on what: seeds, members and devices as a user gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from headwise import checks
from headwise.errors import ConfigError
from headwise.population import Keys
from headwise.training.config import Where

AT_AGENT = Where(beside=("seeds", "device"), without=("env", "total_timesteps"))
"""What can be said of a run where an agent is made."""
HISTORY = 100_000
"""The last episodes that an agent keeps, over all members: 3 MB of a checkpoint."""


def as_seeds(seeds: Any) -> tuple[int, ...]:
    """The seeds of members, from how many there are or from themselves."""
    given = checks.plain(seeds)
    if checks.is_whole(given):
        if given < 1:
            raise ConfigError("there must be a seed", got=seeds, allowed="a number from 1")
        given = range(int(given))
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise ConfigError(
            "seeds must be a number of members, or a seed for each",
            got=seeds,
            allowed="5 or [0, 7]",
        )
    if given[checks.MAX_MEMBERS :]:
        is_seed = checks.is_whole(seeds) and seeds <= checks.MAX_SEED
        one = f" The seed {seeds} alone is seeds=[{seeds}]." if is_seed else ""
        raise ConfigError(
            "there are too many members",
            got=seeds,
            allowed=f"up to {checks.MAX_MEMBERS:,}",
            fix=f"seeds=5 trains five, with the seeds 0 to 4.{one}",
        )
    return Keys(given).seeds


def as_device(device: Any) -> str:
    """The name of a device that can be used here."""
    try:
        place = torch.device(device)
        torch.empty(0, device=place)
    except (RuntimeError, TypeError, AssertionError, ValueError) as error:
        raise ConfigError(
            "this device cannot be used here",
            got=device,
            allowed="auto, cpu, and cuda where there is a GPU",
        ) from error
    return str(place)


def checked_member(member: Any, num_members: int) -> int:
    """The number of a member that a user gave."""
    if not checks.is_whole(member) or not 0 <= member < num_members:
        raise ConfigError("there is no such member", got=member, allowed=f"0 to {num_members - 1}")
    return int(member)


def begun_for(target_steps: int | None) -> int:
    """The steps that the last `learn` was to reach; refuses where there was none."""
    if target_steps is None:
        raise ConfigError(
            "the first call of learn needs total_timesteps", got=None, fix="Call learn(100_000)."
        )
    return target_steps
