"""The environment that an agent was given, and how to make more of it."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from headwise.agent.face import Face, as_lists
from headwise.envs.foreign import TRANSLATING, ForeignVecEnv, foreign_env, is_itself
from headwise.envs.make import own_name, plain_name
from headwise.envs.native import env_id
from headwise.envs.types import VecEnv
from headwise.envs.zoomed import ZOOM, ZoomedVecEnv
from headwise.errors import CheckpointError, ConfigError, EnvError
from headwise.training.config import EnvironmentConfig

logger = logging.getLogger("headwise")

_RUNNING = ("vectorization", "num_threads", "allocate", "autoreset")
"""Settings that say how an environment is run, and nothing of what happens in it."""
UNKNOWN = object()
"""Stands for an environment of which a checkpoint does not tell, or must not make."""


class World:
    """An environment as the user gave it, with its settings.

    Settings are of two kinds. Those of `wrap` translate between the environment and the learner
    (`view`, `bounds`, `masks`, ...): they are a part of what was learned, and go along to whatever
    environment an agent is handed later. All others make the environment: they are for its id, or
    for a callable that takes them, and never for what is made already.

    Args:
        env: An id, a Gymnasium env or vector env, a callable that makes one, or a PettingZoo
            parallel env; UNKNOWN where a checkpoint does not tell.
        settings: Settings of the environment, and how to vectorize it.
        view: How the action is seen, if not as it is.
        constraints: Which options of its heads go together.
        name: The id of what was trained in, where it is known but must not or cannot be made.
        unsaid: Names of settings that a checkpoint could not hold.
    """

    def __init__(
        self,
        env: Any,
        settings: Mapping[str, Any],
        view: str | None = None,
        constraints: Sequence[Any] = (),
        *,
        name: str | None = None,
        unsaid: Sequence[str] = (),
    ) -> None:
        if not isinstance(settings, Mapping) or not all(isinstance(k, str) for k in settings):
            raise ConfigError("env_settings must be a dict of settings by name", got=settings)
        self.env = env
        self.settings = dict(settings)
        if view is not None:
            self.settings["view"] = view
        if constraints:
            self.settings["constraints"] = constraints
        self._id = env if isinstance(env, str) else name
        self._unsaid = tuple(unsaid)
        self._why: EnvError | None = None

    @property
    def config(self) -> EnvironmentConfig:
        """What a checkpoint says of it, as a part of the configuration of a run."""
        told = self.to_json()
        settings = dict(told["settings"])
        view = settings.pop("view", None)
        return EnvironmentConfig(env=told["id"], env_settings=settings, view=view)

    @property
    def making(self) -> dict[str, Any]:
        """The settings that make the environment; the others translate."""
        return {name: x for name, x in self.settings.items() if name not in TRANSLATING}

    # --- environments ---------------------------------------------------------------------------

    def vec(self, seeds: Sequence[int], num_slots: int | None) -> VecEnv:
        """P members with E slots each, whose episodes follow from the seeds."""
        if not self.is_known:
            raise self._not_known()
        made = foreign_env(self.env, list(seeds), num_slots, **self.settings)
        if made.spec.links:  # as tables, which can be kept
            self.settings["constraints"] = made.spec.links
        return made

    def few(self, seeds: Sequence[int], num_slots: int, episodes: int) -> VecEnv:
        """The same to play so many episodes in, with no more slots than they need.

        A callable may make vector environments, which have as many slots as they have.
        """
        try:
            return self.vec(seeds, min(num_slots, episodes))
        except EnvError:
            if episodes >= num_slots:
                raise
            return self.vec(seeds, num_slots)

    @property
    def is_known(self) -> bool:
        """Whether there is an environment to learn in."""
        return self.env is not UNKNOWN

    @property
    def is_ours(self) -> bool:
        """Whether it is one of the environments that come with Headwise, by name."""
        return isinstance(self.env, str) and own_name(self.env) is not None

    def is_alone(self, num_members: int, num_slots: int | None) -> bool:
        """Whether it was handed over and is used itself, so that there is never a second one."""
        return self.is_known and is_itself(self.env, num_members, num_slots)

    def face(self, env: VecEnv) -> Face:
        """How the environment itself speaks."""
        if isinstance(env, ForeignVecEnv):  # it may be registered by a name of Headwise too
            codec = env.codec
            return Face(codec.observation_space, codec.action_space, **codec.settings)
        assert self.is_ours
        name = _bare(self.env)
        zoom = {}
        if self.settings.get("view") == "zoom":
            zoom = {n: self.settings[n] for n in ("view", *ZOOM) if n in self.settings}
        if env_id(name) not in gym.registry:
            own = env.native.spec if isinstance(env, ZoomedVecEnv) else env.spec
            return Face.plain(own, env.obs_spec, env.spec, **zoom)
        single = self.single()
        face = Face(single.observation_space, single.action_space, spec=env.spec, **zoom)
        single.close()
        return face

    def single(self, render_mode: str | None = None) -> gym.Env[Any, Any]:
        """One environment as Gymnasium has it, to watch."""
        if not self.is_known:
            raise self._not_known()
        if not isinstance(self.env, str):
            raise EnvError(
                "only an environment with an id can be made once more to watch",
                got=self.env,
                fix="Train with an id, or step your own environment with agent.predict.",
            )
        if not self.is_ours:
            return gym.make(self.env, **self.making | {"render_mode": render_mode})
        beside = ("num_threads", "allocate", "backend", "vectorization", "constraints", *ZOOM)
        settings = {k: v for k, v in self.settings.items() if k not in beside}
        if settings.get("view") == "zoom":  # of its default view
            del settings["view"]
        made = env_id(_bare(self.env))
        if made not in gym.registry:
            raise EnvError(
                f"{self.env} cannot be watched: it draws no pictures",
                fix="Measure it: agent.evaluate(), or `headwise eval`.",
            )
        return gym.make(made, render_mode=render_mode, **settings)

    def without(self, why: EnvError) -> World:
        """This environment where it cannot be made: it is only known by name."""
        lost = World(UNKNOWN, self.settings, name=self._id, unsaid=self._unsaid)
        lost._why = why
        return lost

    def _not_known(self) -> EnvError:
        if self._why is not None:
            return self._why
        why, fix = "its checkpoint does not say how to make it", "Hand it over: "
        named = "..." if self._id is None else repr(self._id)
        if self._unsaid:
            why = f"its checkpoint could not hold the settings {', '.join(self._unsaid)}"
        elif self._id is not None:
            why = f"{self._id!r} would import a module, and a checkpoint alone never does that"
            fix = "If you trust it, hand it over: "
        return EnvError(
            f"this agent has no environment: {why}", fix=f"{fix}Agent.load(path, env={named})."
        )

    def load_call(self, path: str) -> str:
        """What a user writes to get an agent back that can go on."""
        found = World._told(UNKNOWN, self._id, {}, self.to_json().get("unsaid", ()))
        return f"Agent.load({path!r})" if found.is_known else f"Agent.load({path!r}, env=...)"

    # --- another environment --------------------------------------------------------------------

    def handed(self, env: Any, settings: Mapping[str, Any] | None = None) -> World:
        """The world of an environment that an agent is handed later, or of this one if None.

        Args:
            env: The environment.
            settings: What to set otherwise than it was.
        """
        more = World(UNKNOWN, {} if settings is None else settings).settings
        if env is not None:
            return World(env, self._translating_for(env) | self._making_for(env, more) | more)
        unsaid = [name for name in self._unsaid if name not in more]
        return World._told(self.env, self._id, self.settings | more, unsaid)

    @classmethod
    def _told(
        cls, env: Any, name: str | None, settings: Mapping[str, Any], unsaid: Sequence[str]
    ) -> World:
        """The world of an environment that was handed over, or that a checkpoint names."""
        if env is UNKNOWN and name is not None and ":" not in name and not unsaid:
            env = name
        return cls(env, settings, name=name, unsaid=unsaid)

    def _translating_for(self, env: Any) -> dict[str, Any]:
        """The settings that translate, without those that this kind of environment cannot have."""
        given = {name: x for name, x in self.settings.items() if name in TRANSLATING}
        if World(env, {}).is_ours and not self._is_named(env):
            ours = ("view", "bins", *ZOOM, "num_threads")
            return {name: x for name, x in given.items() if name in ours}
        if not isinstance(env, VectorEnv) and (isinstance(env, str) or is_itself(env, 1, 1)):
            given.pop("autoreset", None)
        if is_itself(env, 1, 1):
            given.pop("vectorization", None)
        return given

    def _making_for(self, env: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that made the environment trained in, if this one is made by them too."""
        making = {name: x for name, x in self.making.items() if name not in given}
        lost = [name for name in self._unsaid if name not in given]
        if isinstance(env, str):
            fits = self._is_named(env)
        elif not callable(env) or is_itself(env, 1, 1) or not _takes_anything(env):
            return {}  # it says all of it itself
        else:
            bound = env.keywords if isinstance(env, partial) else {}
            making = {name: x for name, x in making.items() if name not in bound}
            fits = _takes(env, making)
        lost += [] if fits else list(making)
        if lost:
            logger.warning(
                "The environment trained in was made with settings that this one is not given: %s. "
                "Give them if they are meant: env_settings={...}.",
                ", ".join(lost),
            )
        return making if fits else {}

    def changed(self, before: World) -> list[str]:
        """The settings that are others than they were, as far as a checkpoint could hold them."""
        ours, theirs = (world.to_json() for world in (self, before))
        untold = {*_RUNNING, *ours.get("unsaid", ()), *theirs.get("unsaid", ())}
        ours, theirs = ours["settings"], theirs["settings"]
        return [
            name
            for name in {**ours, **theirs}
            if name not in untold
            and (name in ours, ours.get(name)) != (name in theirs, theirs.get(name))
        ]

    def _is_named(self, env: Any) -> bool:
        """Whether it is the id of the environment trained in, with its module or without."""
        return isinstance(env, str) and self._id is not None and _bare(env) == _bare(self._id)

    # --- keeping --------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """What a checkpoint says of it: an id if it has one, and the settings that are plain."""
        plain, unsaid = {}, list(self._unsaid)
        for name, value in self.settings.items():
            try:
                own = as_lists if name in TRANSLATING else _plain
                plain[name] = json.loads(json.dumps(value, default=own))
            except (TypeError, ValueError):
                unsaid += [name] * (name not in TRANSLATING)
        return {"id": self._id, "settings": plain} | ({"unsaid": unsaid} if unsaid else {})

    @classmethod
    def from_json(cls, form: Any, face: Face) -> World:
        """Reads what `to_json` wrote, from a file that may be anything.

        An id of the form `module:name` would import the module, so it stays a name: a checkpoint
        never makes code run.
        """
        if form is None:  # by an earlier version, of what had no id
            settings = face.settings.items()
            return cls(UNKNOWN, {n: x for n, x in settings if x is not None and x is not True})
        good = isinstance(form, dict) and isinstance(form.get("settings"), dict)
        good = good and isinstance(form.get("id"), str | None)
        if not good or not isinstance(form.get("unsaid", []), list):
            raise CheckpointError("the checkpoint does not describe its environment", got=form)
        unsaid = [str(name) for name in form.get("unsaid", [])]
        return cls._told(UNKNOWN, form.get("id"), form["settings"], unsaid)


def _plain(value: Any) -> Any:
    """What JSON does not know of and can be put back as it was."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError("no plain data")


def _bare(name: str) -> str:
    """An id without the module that registers it."""
    return plain_name(name.rpartition(":")[2])


def _takes_anything(make: Callable[..., Any]) -> bool:
    try:
        return bool(inspect.signature(make).parameters)
    except (TypeError, ValueError):
        return True


def _takes(make: Callable[..., Any], settings: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(make).bind_partial(**settings)
    except TypeError:
        return False
    except ValueError:  # compiled code without a signature
        return True
    return True
