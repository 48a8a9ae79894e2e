"""An agent's two languages: the environment's own observations and actions, and the learner's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from headwise.envs.foreign.codec import EnvCodec
from headwise.envs.legal import check_legal
from headwise.envs.masks import MASK, MASK_METHOD
from headwise.errors import CheckpointError, HeadwiseError, SpaceError
from headwise.spaces import ActionSpec, Choice, Link, ObsCodec, ObsSpec
from headwise.spaces.to_json import space_from_json, space_to_json, spec_from_json, spec_to_json


class Face:
    """Turns observations into vectors, and a learner's actions into the environment's.

    Args:
        observation_space: Of one environment; a mapping by agent for a team.
        action_space: The same for actions.
        spec: What the learner sees, where it has names of its own for the same heads.
        **settings: Of `EnvCodec`: `view`, `bins`, `bounds`, `masks`, `constraints`.
    """

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        *,
        spec: ActionSpec | None = None,
        **settings: Any,
    ) -> None:
        self.observation_space, self.action_space = observation_space, action_space
        self.settings = settings
        self.codec = EnvCodec(observation_space, action_space, **settings)
        if spec is not None and not _same_values(spec, self.codec.spec):
            raise SpaceError(
                "the action space has other heads", got=str(self.codec.spec), allowed=str(spec)
            )
        self.spec = self.codec.spec if spec is None else spec
        """The action as the learner sees it."""

    @classmethod
    def plain(
        cls, spec: ActionSpec, obs_spec: ObsSpec, seen: ActionSpec | None = None, **settings: Any
    ) -> Face:
        """A face for an environment without spaces: an action is a tuple, a value for each head."""
        parts: list[spaces.Space[Any]] = [
            spaces.Discrete(head.n) if isinstance(head, Choice) else spaces.Box(head.low, head.high)
            for head in spec.heads
        ]
        obs_space = spaces.Box(-np.inf, np.inf, (obs_spec.size,))
        return cls(obs_space, spaces.Tuple(parts), spec=seen or spec, **settings)

    @property
    def is_plain(self) -> bool:
        """Whether it was made by `plain`, so that the spaces do not tell what observations hold."""
        unbounded = spaces.Box(-np.inf, np.inf, (self.obs_spec.size,))
        return bool(self.observation_space == unbounded and self.spec != self.codec.spec)

    @property
    def obs_spec(self) -> ObsSpec:
        """The observation as the learner sees it."""
        return self.codec.obs_spec

    def observe(self, obs: Any) -> tuple[NDArray[np.float32], bool]:
        """Observations as vectors (B, O), and whether they came as a batch."""
        batched = self._is_batch(obs)
        flatten = self.codec.flatten_batch if batched else self.codec.flatten
        rows = np.atleast_2d(flatten(obs))
        for part in self.obs_spec.numbers:
            numbers = rows[:, part]
            if not np.isfinite(numbers).all():
                raise SpaceError(
                    "the observation is not finite",
                    got=numbers[~np.isfinite(numbers)][0],
                    allowed="finite numbers",
                )
        return rows, batched

    def _is_batch(self, obs: Any) -> bool:
        try:
            return self.codec.is_batch(obs)
        except SpaceError:  # an agent that is not there, or nonsense: flatten knows
            return False

    def legal(self, mask: Any, rows: int, *, batched: bool) -> NDArray[np.bool_]:
        """Masks in any form that an environment may give them, as (B, H, K) over the spec."""
        legal = np.empty((rows, *self.codec.all_legal.shape), dtype=np.bool_)
        if batched:
            if not isinstance(mask, Sequence | np.ndarray) or len(mask) != rows:
                raise SpaceError(
                    "a batch of observations needs a batch of masks",
                    got=mask,
                    allowed=f"{rows} masks, one after another",
                )
            self.codec.legal_batch(mask, np.ones(rows, dtype=np.bool_), legal)
        else:
            legal[0] = self.codec.legal(mask)
        over = np.zeros((1, rows), dtype=np.bool_)
        check_legal(legal[None], self.spec, self.codec.all_legal, over)
        return legal

    def mask_in(self, obs: Any, rows: int, *, batched: bool) -> Any:
        """The masks in observations, where the environment puts them there; or None."""
        return self.codec.masks_in(obs, rows) if batched else self.codec.mask_in(obs)

    def told_mask(self, env: gym.Env[Any, Any], obs: Any, info: Any) -> Any:
        """The mask that an environment tells beside an observation, for `predict`; or None."""
        if not self.codec.reads_masks:
            return None
        if self.codec.mask_in_obs:
            return obs[MASK]
        if isinstance(info, Mapping) and MASK in info:
            return info[MASK]
        asks = env.has_wrapper_attr(MASK_METHOD)
        return env.get_wrapper_attr(MASK_METHOD)() if asks else None

    def act(self, units: NDArray[np.float32], *, batched: bool) -> Any:
        """Actions (B, H) of the learner in the environment's own structure."""
        return self.codec.to_env_batch(units) if batched else self.codec.to_env(units[0])

    def check(self, other: Face) -> None:
        """Refuses an environment whose actions or observations mean something else, by its face."""
        if not _same_values(self.spec, other.spec) or self.obs_spec.size != other.obs_spec.size:
            raise _not_the_one(
                "",
                got=f"{other.spec}; observations of {other.obs_spec.size} numbers",
                allowed=f"{self.spec}; observations of {self.obs_spec.size} numbers",
            )
        if not _same_labels(self, other):
            reordered = sorted(self.spec.names) == sorted(other.spec.names)
            raise _not_the_one(
                ": its heads come in another order"
                if reordered and self.spec.names != other.spec.names
                else ": its heads are others",
                got=_labelled(other.spec),
                allowed=_labelled(self.spec),
                fix="Wrap it, or change its action space: the same structure, with the keys of "
                "every Dict in this order.",
            )
        if not _same_layout(self, other):
            raise _not_the_one(
                ": its observation is laid out otherwise",
                got=_laid_out(other.codec.observations),
                allowed=_laid_out(self.codec.observations),
                fix="Wrap it, or change its observation space: the same structure, with the keys "
                "of every Dict in this order.",
            )

    def to_json(self) -> dict[str, Any]:
        """All that is needed to make it again."""
        return {
            "observation_space": space_to_json(self.observation_space),
            "action_space": space_to_json(self.action_space),
            "spec": spec_to_json(self.spec),
            "settings": json.loads(json.dumps(self.settings, default=as_lists)),
        }

    @classmethod
    def from_json(cls, form: Any) -> Face:
        """Reads what `to_json` wrote, and refuses anything else."""
        try:
            return cls(
                space_from_json(form["observation_space"]),
                space_from_json(form["action_space"]),
                spec=spec_from_json(form["spec"]),
                **form["settings"],
            )
        except (KeyError, TypeError, HeadwiseError) as error:
            raise CheckpointError(
                "the checkpoint does not describe its spaces",
                got=(str(error) or repr(error)).rstrip("."),
            ) from error


def as_lists(value: Any) -> Any:
    """What JSON does not know of: arrays in bounds, numbers of numpy, mappings, links of heads."""
    if isinstance(value, Link):
        return asdict(value)
    return dict(value) if isinstance(value, Mapping) else np.asarray(value).tolist()


def _same_values(one: ActionSpec, other: ActionSpec) -> bool:
    return (
        one.cardinalities == other.cardinalities
        and np.allclose(one.low, other.low)
        and np.allclose(one.high, other.high)
    )


def _same_labels(one: Face, other: Face) -> bool:
    """Whether heads have the same names and conditions, in the same order.

    Compiled environments have names of their own for what is a plain tuple to Gymnasium, so that
    either will do.
    """
    (mine, mine_there), (theirs, theirs_there) = (
        [(spec.names, spec.conditions) for spec in (face.spec, face.codec.spec)]
        for face in (one, other)
    )
    return theirs in (mine, mine_there) or mine == theirs_there


def _same_layout(one: Face, other: Face) -> bool:
    """Whether every number of a flat observation stands for the same thing."""
    mine, theirs = (
        [
            (leaf.path, leaf.shape, leaf.counts, leaf.is_packed)
            for leaf in face.codec.observations.leaves
        ]
        for face in (one, other)
    )
    return mine == theirs or one.is_plain or other.is_plain


def _not_the_one(how: str, *, got: str, allowed: str, fix: str | None = None) -> SpaceError:
    what = f"this environment is not the one that the agent was trained in{how}"
    return SpaceError(what, got=got, allowed=allowed, fix=fix)


def _labelled(spec: ActionSpec) -> str:
    """The heads, with the conditions under which they are in use."""
    told = []
    for name, head, condition in zip(spec.names, spec.heads, spec.conditions, strict=True):
        when = ""
        if condition is not None:
            when = f" (if {condition.low:g} <= {spec.names[condition.head]} < {condition.high:g})"
        told.append(f"{name}: {head}{when}")
    return ", ".join(told)


def _laid_out(codec: ObsCodec) -> str:
    """The leaves of an observation, in their order."""
    told = []
    for leaf in codec.leaves:
        options = " + ".join(map(str, leaf.counts or ()))
        of_numbers = f"{'bytes' if leaf.is_packed else 'numbers'} of shape {leaf.shape}"
        kind = of_numbers if leaf.counts is None else f"{options} options"
        told.append(f"{leaf.path}: {kind}")
    return ", ".join(told)
