"""The environment that an agent was given, and how to make more of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym

from headwise.agent.face import Face
from headwise.envs.foreign import foreign_env, is_itself
from headwise.envs.make import env_names, plain_name
from headwise.envs.registration import env_id
from headwise.envs.types import VecEnv
from headwise.errors import CheckpointError, ConfigError, EnvError


class World:
    """An environment as the user gave it, with its settings.

    Args:
        env: An id, a Gymnasium env or vector env, a callable that makes one, or a PettingZoo
            parallel env.
        settings: Settings of the environment, and how to vectorise it.
        view: How the action is seen, if not as it is.
    """

    def __init__(self, env: Any, settings: Mapping[str, Any], view: str | None = None) -> None:
        if not isinstance(settings, Mapping) or not all(isinstance(k, str) for k in settings):
            raise ConfigError("env_settings must be a dict of settings by name", got=settings)
        self.env = env
        self.settings = dict(settings)
        if view is not None:
            self.settings["view"] = view

    def vec(self, seeds: Sequence[int], num_slots: int | None) -> VecEnv:
        """P members with E slots each, whose episodes follow from the seeds."""
        return foreign_env(self.env, list(seeds), num_slots, **self.settings)

    @property
    def is_ours(self) -> bool:
        """Whether it is one of the environments that come with Headwise, by name."""
        return isinstance(self.env, str) and plain_name(self.env) in env_names()

    def is_alone(self, num_members: int, num_slots: int) -> bool:
        """Whether it was handed over and is used itself, so that there is never a second one."""
        return is_itself(self.env, num_members, num_slots)

    def face(self, env: VecEnv) -> Face:
        """How the environment itself speaks."""
        if not self.is_ours:
            codec = env.codec  # type: ignore[attr-defined]
            return Face(codec.observation_space, codec.action_space, **codec.settings)
        name = plain_name(self.env)
        if env_id(name) not in gym.registry:
            return Face.plain(env.spec, env.obs_spec)
        single = self.single()
        face = Face(single.observation_space, single.action_space, spec=env.spec)
        single.close()
        return face

    def single(self, render_mode: str | None = None) -> gym.Env[Any, Any]:
        """One environment as Gymnasium has it, to watch."""
        if not isinstance(self.env, str):
            raise EnvError(
                "only an environment with an id can be made once more to watch",
                got=self.env,
                fix="Train with an id, or step your own environment with agent.predict.",
            )
        vectorising = ("num_threads", "allocate", "backend", "vectorization")
        settings = {k: v for k, v in self.settings.items() if k not in vectorising}
        made = env_id(plain_name(self.env)) if self.is_ours else self.env
        return gym.make(made, render_mode=render_mode, **settings)

    def to_json(self) -> dict[str, Any] | None:
        """What a checkpoint says of it: an id and plain settings, or nothing."""
        if not isinstance(self.env, str):
            return None
        try:
            settings = json.loads(json.dumps(self.settings))
        except (TypeError, ValueError):
            return None
        return {"id": self.env, "settings": settings}

    @classmethod
    def from_json(cls, form: Any) -> World | None:
        """The way back, from a file that may be anything.

        An id of the form `module:name` would import the module, so it is refused: a checkpoint
        never makes code run.
        """
        if form is None:
            return None
        good = isinstance(form, dict) and isinstance(form.get("id"), str)
        if not good or not isinstance(form.get("settings"), dict):
            raise CheckpointError("the checkpoint does not describe its environment", got=form)
        if ":" in form["id"]:
            raise CheckpointError(
                "the environment of this checkpoint would import a module",
                got=form["id"],
                fix="If you trust it, make it yourself: Agent.load(path, env=...).",
            )
        return cls(form["id"], form["settings"])
