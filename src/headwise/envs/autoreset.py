"""Gymnasium's autoreset modes, by whatever name they are given."""

from __future__ import annotations

from gymnasium.vector import AutoresetMode

from headwise.registry import unknown


def autoreset_mode(given: object) -> AutoresetMode:
    """The mode that is given by itself, by its name ("next_step") or by its value ("NextStep")."""
    for mode in AutoresetMode:
        if given in (mode, mode.value) or str(given).upper() == mode.name:
            return mode
    raise unknown("autoreset mode", given, [mode.name.lower() for mode in AutoresetMode])
