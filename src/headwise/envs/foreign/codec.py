"""Between a user's environment and a learner: observations, actions and masks, there and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import ArrayLike, NDArray

from headwise.checks import all_true
from headwise.envs.masks import MASK, Legal, MaskReader
from headwise.errors import ConfigError, EnvError, SpaceError
from headwise.spaces import ActionCodec, ActionSpec, ObsCodec, ObsSpec, View, ViewKind
from headwise.spaces.action import FloatArray
from headwise.spaces.convert import Bounds
from headwise.spaces.views import DEFAULT_BINS

Spaces = spaces.Space[Any] | Mapping[str, spaces.Space[Any]]
"""One space, or the spaces of a team by agent."""


class EnvCodec:
    """Translates what an environment shows into what a learner sees, and its actions back.

    An entry `action_mask` of a Dict observation is a mask and no part of what the learner sees.
    With spaces by agent it speaks for a team: observations and actions are then dicts by agent, and
    the part of an agent that is missing from an observation is zero.

    Args:
        observation_space: The observation space, or the spaces by agent.
        action_space: The action space, or the spaces by agent.
        view: "discrete", "hybrid", "continuous" or "zoom"; None leaves the action as it is.
        bins: Bins of a Range that a view makes discrete: one number, or numbers by head name.
        zoom_levels: Levels of each Range in the zoom view, likewise; None means 3.
        zoom_bins: Bins of each of these levels, likewise; None means 5.
        bounds: Bounds for Boxes of the action that have none, as `ActionCodec` takes them.
        masks: Whether masks are read; if not, `action_mask` is an observation like any other.
        constraints: Which options go together: `Forbid`, `Require`, and `Given` for tables that are
            in masks.
    """

    def __init__(
        self,
        observation_space: Spaces,
        action_space: Spaces,
        *,
        view: ViewKind | None = None,
        bins: int | Mapping[str, int] | None = None,
        zoom_levels: int | Mapping[str, int] | None = None,
        zoom_bins: int | Mapping[str, int] | None = None,
        bounds: Mapping[str, Bounds] | None = None,
        masks: bool = True,
        constraints: Sequence[Any] = (),
    ) -> None:
        for name, space in (("observation", observation_space), ("action", action_space)):
            if not isinstance(space, spaces.Space | Mapping):
                raise SpaceError(
                    f"the {name} space is none", got=space, allowed="Gymnasium's spaces"
                )
        self.observation_space, self.action_space = observation_space, action_space
        self.settings: dict[str, Any] = {
            "view": view,
            "bins": bins,
            "bounds": bounds,
            "masks": masks,
        }
        """How it was made, to make it again."""
        self.reads_masks = masks
        if isinstance(action_space, spaces.Space):
            self._actions = ActionCodec(action_space, bounds=bounds)
        else:
            self._actions = ActionCodec.of_agents(action_space, bounds=bounds)
        native = self._actions.spec.under(constraints)
        if native.links:
            self.settings["constraints"] = native.links
        zoom = {"zoom_levels": zoom_levels, "zoom_bins": zoom_bins}
        self.settings |= {name: given for name, given in zoom.items() if given is not None}
        self._view = _view(native, view, bins, zoom_levels, zoom_bins)
        self.spec = native if self._view is None else self._view.spec
        """The heads of the action, as the learner is to see them."""
        self._has_choices, self._has_ranges = (
            bool(self.spec.num_choices),
            bool(self.spec.num_ranges),
        )
        self._whole = self.spec.is_choice if self._has_ranges else True
        choice, low, high = self.spec.is_choice, self.spec.low, self.spec.high
        self._least = np.where(choice, 0.0, -1.0).astype(np.float32)
        self._most = np.where(choice, high, 1.0).astype(np.float32)
        # (u + 1) half + base is an option itself, and goes from low to high for a Range.
        self._half = np.where(choice, 1.0, 0.5 * (high - low))
        self._base = np.where(choice, -1.0, low)
        self._plan_observations(observation_space)
        self._masks = MaskReader(action_space, native)
        self.all_legal: Legal = self.spec.full_mask
        """What is legal without a mask, (H, K), and below it a row for each of the tables given."""
        tables = np.arange(native.mask_rows - native.num_heads)
        driven = np.zeros_like(native.is_choice) if self._view is None else self._view.driven
        self._driven = [name for name, lost in zip(native.names, driven, strict=True) if lost]
        # Rows of a mask that the learner has as they are: of which head, and where.
        zoomed = None if self._view is None else self._view.zoom
        of = np.arange(native.num_heads) if zoomed is None else zoomed.sources
        (here,) = (native.is_choice & ~driven)[of].nonzero()
        self._kept = np.concatenate([here, self.spec.num_heads + tables])
        self._told = np.concatenate([of[here], native.num_heads + tables])

    def _plan_observations(self, space: Spaces) -> None:
        self._by_agent: dict[str, ObsCodec] = {}
        if isinstance(space, spaces.Space):
            seen, self.mask_in_obs = self.without_mask(space)
            self._codec = ObsCodec(seen)
        else:
            pairs = {agent: self.without_mask(one) for agent, one in space.items()}
            self.mask_in_obs = any(found for _, found in pairs.values())
            self._codec = ObsCodec.of_agents({agent: seen for agent, (seen, _) in pairs.items()})
            self._by_agent = {a: ObsCodec.of_agents({a: seen}) for a, (seen, _) in pairs.items()}
        self.obs_spec: ObsSpec = self._codec.spec
        """The layout of a flat observation."""

    @property
    def shows_mask(self) -> bool:
        """Whether a batch of observations has masks in it; those of a team are told beside it."""
        return self.mask_in_obs and not self._by_agent

    def without_mask(self, space: spaces.Space[Any]) -> tuple[spaces.Space[Any], bool]:
        """An observation space without the mask in it, and whether it had one."""
        if not self.reads_masks or not isinstance(space, spaces.Dict) or MASK not in space.spaces:
            return space, False
        rest = [(key, one) for key, one in space.spaces.items() if key != MASK]
        if not rest:
            raise SpaceError(
                "the observation is a mask and nothing else",
                got=space,
                fix="Put something to see beside it, or say masks=False.",
            )
        return spaces.Dict(rest), True  # pairs, because a dict would be sorted

    @property
    def observations(self) -> ObsCodec:
        """What makes vectors of observations, masks left out."""
        return self._codec

    @property
    def actions(self) -> ActionCodec:
        """What makes actions of head vectors."""
        return self._actions

    @property
    def view(self) -> View | None:
        """How the learner sees the heads, if not as they are."""
        return self._view

    # --- observations ---------------------------------------------------------------------------

    def is_batch(self, obs: Any) -> bool:
        """Whether an observation has one axis more than a single one, as a batch has."""
        return self._codec.is_batch(obs)

    def flatten(self, obs: Any) -> NDArray[np.float32]:
        """One observation as a vector (O,)."""
        if not self._by_agent:
            return self._codec.flatten(obs)
        self.check_agents(obs)
        parts = [
            codec.flatten({agent: obs[agent]})
            if agent in obs
            else np.zeros(codec.spec.size, dtype=np.float32)
            for agent, codec in self._by_agent.items()
        ]
        return np.concatenate(parts)

    def flatten_batch(
        self, obs: Any, out: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """A batch in Gymnasium's form as an array (B, O), written into `out` if given."""
        return self._codec.flatten_batch(obs, out)

    def check_agents(self, obs: Any) -> None:
        """Refuses observations of a team that are no dict by agent."""
        if not isinstance(obs, Mapping) or not set(obs) <= set(self._by_agent):
            raise SpaceError(
                "the observations are no dict by agent",
                got=list(obs) if isinstance(obs, Mapping) else obs,
                allowed=f"keys out of {list(self._by_agent)}",
            )

    # --- actions --------------------------------------------------------------------------------

    def to_env(self, action: ArrayLike) -> Any:
        """One action in the learner's form, (H,), as the environment takes it."""
        return self._actions.to_env(self._native(np.asarray(action)[None])[0])

    def to_env_batch(self, action: NDArray[Any]) -> Any:
        """Actions in the learner's form, (B, H), as a batch in Gymnasium's form."""
        return self._actions.decode(self._native(action))

    def _native(self, action: NDArray[Any]) -> NDArray[Any]:
        spec = self.spec
        if action.ndim != 2 or action.shape[1] != spec.num_heads:
            raise SpaceError(
                "actions have the wrong shape",
                got=action.shape,
                allowed=f"(..., {spec.num_heads}), a number for each of {', '.join(spec.names)}",
            )
        clean = np.minimum(np.maximum(action, self._least), self._most)
        if self._has_choices:
            np.rint(clean, out=clean, where=self._whole)
        if not all_true(clean == action):
            self._refuse(action.astype(np.float64))
        if self._has_ranges:
            clean = clean.astype(np.float64)
            clean += 1.0
            clean *= self._half
            clean += self._base
            clean = np.minimum(np.maximum(clean, spec.low), spec.high)
        return clean if self._view is None else self._view.to_native(clean)

    def _refuse(self, unit: FloatArray) -> None:
        good = self.spec.is_choice | (np.abs(unit) <= 1.0)
        if good.all():
            self.spec.check(np.where(self.spec.is_choice, unit, self.spec.low))
        row, head = np.argwhere(~good)[0]
        raise SpaceError(
            f"head {self.spec.names[head]!r} of action {int(row)} is out of range",
            got=unit[row, head],
            allowed="numbers from -1 to 1, which span the Range",
        )

    # --- masks ----------------------------------------------------------------------------------

    def mask_in(self, obs: Any) -> Any:
        """The mask in an observation or in a batch of them, as it is there; None if it has none."""
        if not self.mask_in_obs or not isinstance(obs, Mapping):
            return None
        if not self._by_agent:
            return obs.get(MASK)
        told = {agent: one for agent, one in obs.items() if isinstance(one, Mapping)}
        return {agent: one[MASK] for agent, one in told.items() if MASK in one} or None

    def masks_in(self, obs: Any, rows: int) -> list[Any] | None:
        """The masks in a batch of so many observations, one after another."""
        masks = self.mask_in(obs)
        if masks is None:
            return None
        space: Any = self.observation_space
        if not self._by_agent:
            return list(iterate(batch_space(space[MASK], rows), masks))
        columns = {
            agent: iterate(batch_space(space[agent][MASK], rows), mask)
            for agent, mask in masks.items()
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def legal(self, mask: Any) -> Legal:
        """A mask in any of the forms of `MaskReader`, as (H, K)."""
        self.require_options()
        return self._in_view(self._masks.read(mask))

    def legal_batch(self, masks: Any, present: Legal, out: Legal) -> None:
        """The masks of N slots into `out` (N, H, K); where none is `present`, all is legal."""
        self.require_options()
        if self._view is None:
            self._masks.read_batch(masks, present, out)
            return
        native = np.empty((len(out), *self._masks.all_legal.shape), dtype=np.bool_)
        self._masks.read_batch(masks, present, native)
        out[...] = self._in_view(native)

    def require_options(self) -> None:
        """Refuses masks for an action that cannot be masked."""
        if not self._driven and self.spec.num_choices:
            return
        what = f"heads {self._driven} into numbers" if self._driven else "an action of numbers only"
        raise EnvError(
            f"the environment gives masks, but the learner sees {what}",
            got=str(self.spec),
            allowed="masks for heads that choose",
            fix='Use the "discrete" or "hybrid" view, or say masks=False to ignore them.',
        )

    def _in_view(self, native: Legal) -> Legal:
        if self._view is None:
            return native
        legal = np.broadcast_to(self.all_legal, (*native.shape[:-2], *self.all_legal.shape)).copy()
        width = min(native.shape[-1], legal.shape[-1])
        legal[..., self._kept, :width] = native[..., self._told, :width]
        return legal


def _view(
    native: ActionSpec,
    kind: ViewKind | None,
    bins: int | Mapping[str, int] | None,
    zoom_levels: int | Mapping[str, int] | None,
    zoom_bins: int | Mapping[str, int] | None,
) -> View | None:
    """How a learner sees heads; None where as they are."""
    if kind is None:
        given = {"bins": bins, "zoom_levels": zoom_levels, "zoom_bins": zoom_bins}
        for name, value in given.items():
            if value is not None:
                views = 'view="discrete" or view="hybrid"' if name == "bins" else 'view="zoom"'
                raise ConfigError(f"{name} without a view", got=value, fix=f"Say {views} too.")
        return None
    if kind == "zoom" and bins is not None:
        raise ConfigError(
            "the zoom view has bins of its own",
            got=f"bins={bins}",
            fix=f"Say zoom_bins={bins}: every level has so many.",
        )
    chosen = DEFAULT_BINS if bins is None else bins
    return View(native, kind, bins=chosen, zoom_levels=zoom_levels, zoom_bins=zoom_bins)
