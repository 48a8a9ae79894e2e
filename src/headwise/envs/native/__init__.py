"""Our environments in Gymnasium's registry. Nothing is built or loaded before `gymnasium.make`."""

from __future__ import annotations

import inspect
import pkgutil
import re
from pathlib import Path

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

_FILES = {
    "".join(word.capitalize() for word in re.sub(r"_v\d+$", "", file.name).split("_")): file.name
    for file in pkgutil.iter_modules([str(Path(__file__).with_name("tasks"))])
}
NATIVE_NAMES = tuple(_FILES)
"""The compiled environments: one for each file in `tasks`, which is not loaded for that."""
_GYMNASIUMS = {
    spec.name
    for spec in gym.registry.values()
    if spec.namespace is None and str(spec.entry_point).startswith("gymnasium.")
}
"""Names of Gymnasium's own environments, without their versions."""
NO_LIMIT = -1
"""Gymnasium's way to ask for episodes without a time limit."""


def env_id(name: str) -> str:
    """The Gymnasium id of one of our environments."""
    version = re.search(r"_v(\d+)$", _FILES.get(name, ""))
    return f"headwise/{name}-v{version[1] if version else 0}"


def public_name(name: str) -> str:
    """What users call an environment of ours: by its name, or by its id if Gymnasium has that name.

    So `CartPole-v1` and `CartPole` are never mistaken for `headwise/CartPole-v1`.
    """
    return env_id(name) if name in _GYMNASIUMS else name


def task_module(name: str) -> str:
    """The module in `tasks` that describes a compiled environment."""
    return f"{__name__}.tasks.{_FILES[name]}"


def register_environments() -> None:
    """Makes every environment known to `gymnasium.make` and `make_vec`; twice does no harm.

    They are registered without `max_episode_steps`: each has a time limit of its own, which
    depends on its settings, and needs no TimeLimit around it.
    """
    for name in NATIVE_NAMES:
        _register(
            name,
            "headwise.envs.native.gym_env:NativeEnv",
            "headwise.envs.native.vector_env:NativeVectorEnv",
            {"name": name},
        )
    lander = "headwise.envs.lander"
    _register("Lander", f"{lander}:LanderEnv", f"{lander}:LanderVectorEnv", {})


def limit_given_to_make() -> int | None:
    """The time limit of the `gymnasium.make` call that is building the caller, if there is one.

    To be called from the `__init__` of an environment that was not told any limit.

    Gymnasium keeps `max_episode_steps` to itself and puts a TimeLimit around the environment, as
    if that had no limit of its own. Ours has one, so that it also truncates unwrapped and never
    says both terminated and truncated; left alone, `make(id, max_episode_steps=7)` could then only
    shorten episodes, never lengthen them. So we look at who is calling.
    """
    frame = inspect.currentframe()
    for _ in range(2):  # from here to __init__, from there to the caller
        frame = frame.f_back if frame is not None else None
    if frame is None or frame.f_code is not gym.make.__code__:
        return None
    given, spec = frame.f_locals.get("max_episode_steps"), frame.f_locals.get("env_spec")
    if given is None and isinstance(spec, EnvSpec):
        given = spec.max_episode_steps
    return given if isinstance(given, int) and (given > 0 or given == NO_LIMIT) else None


def _register(name: str, entry_point: str, vector_entry_point: str, kwargs: dict[str, str]) -> None:
    if env_id(name) not in gym.registry:  # Gymnasium warns of a second time
        gym.register(
            env_id(name),
            entry_point=entry_point,
            vector_entry_point=vector_entry_point,
            kwargs=kwargs,
        )
