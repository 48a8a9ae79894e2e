"""What the learners of all algorithms share: how they see and act, and what they keep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import torch
from torch import Tensor

from headwise import ops
from headwise.algorithms.base import Acted, Acting, Algorithm, AlgorithmConfig, Metrics, Task
from headwise.algorithms.schedules import is_scheduled
from headwise.factorizations.base import check_constraints, check_offers, check_shares
from headwise.heads.blueprint import Blueprint
from headwise.heads.layout import Layout
from headwise.nets.encoders import Encoder, make_encoder
from headwise.nets.preprocess import Seen, vector_of, words_of
from headwise.ops import Buffer, Recorded, Scratch
from headwise.ops.buffers import Trace
from headwise.population.keys import Stream
from headwise.population.store import Adam, seeds_of, settings

_SHOWN_AS = {"learning_rate": "train/learning_rate", "clip_range": "train/clip_range"}
"""What settings that follow the run are called among the metrics."""


class Learner(Algorithm, ABC):
    """A population of learners.

    A subclass makes its buffers in `_allocate`, which is called again when the first mask comes,
    and says how actions are drawn from observations.
    """

    optimizers: dict[str, Adam]
    masked: bool
    """Whether there is room for masks."""
    obs: Buffer
    """What is acted on, (P, 1, E, F)."""
    mask: Buffer | None
    """Which options are allowed there, (P, 1, E, total)."""
    noise: Buffer | None = None
    """Uniform numbers that actions are drawn by, (P, 1, E, U); None: there are only greedy ones."""
    counts_updates = True
    """Whether what it draws, or a schedule, depends on how often it has learned."""

    def __init__(self, config: AlgorithmConfig, task: Task) -> None:
        kind, keys = task.factorization, task.keys
        kind.check(task.spec)
        for what in config.needs:
            check_offers(kind, what, config.name)
        self._settings, self.keys, self._task = config, keys, task
        spec, self.encodes = task.obs_spec, task.network.learns
        self.obs_size = spec.size if self.encodes else spec.vector_size
        """Numbers of an observation as a batch has it: for an encoder the words of its row."""
        self.features = self.obs_size
        """Numbers of an observation as networks see it."""
        self.layout = Layout(task.spec, task.device, joint=kind.is_joint)
        check_constraints(kind, self.layout, task.spec, config.needs[0], config.name)
        self.num_envs = task.num_slots
        """Environment copies (E): the rows that are acted on at once."""
        self.extra: dict[str, int] = {}
        self.seeds = seeds_of(keys)
        self._following: list[tuple[str, float, Buffer]] = []
        """Settings that follow the run: their names, what they are multiplied with, and where."""
        self._scratch = Scratch(keys.num_members, task.device)
        self.acts, self.updates = self._scratch("acts", 1, 2), self._scratch("updates", 1, 2)
        """Clocks: how often the learner has acted, and learned."""

    def setting(self, name: str, scale: float = 1.0) -> Buffer:
        """A setting that may vary along the population, times a scale, (P, 1, 1, 1)."""
        value = self._settings.member_values(name, self.keys)
        buffer = settings(self.keys, value if scale == 1.0 else value * scale, name)
        if is_scheduled(getattr(self._settings, name)):
            self._following.append((name, scale, buffer))
        return buffer

    def follow(self, remaining: float) -> None:
        """Brings settings that follow the run to where so much of it remains, from 1 to 0."""
        for name, scale, buffer in self._following:
            value = self._settings.member_values(name, self.keys, remaining)
            buffer.tensor.copy_((value * scale).view(-1, 1, 1, 1))

    def lay_out(self, total_steps: int) -> None:
        """Says how many environment steps a member will take, before it takes the first one."""
        self._set_spans(total_steps)
        self._record()  # spans are numbers that a recording knows

    def _set_spans(self, total_steps: int) -> None:
        """Sets how long what goes by a clock takes, in a run of so many steps; here nothing."""

    def _record(self) -> None:
        """Records what it does, on the buffers of now; here nothing."""

    def make_encoder(self, number: int, *, shift: int = 0) -> Encoder | None:
        """One of its encoders; those of one number begin alike. None: networks see observations.

        Blueprints are made after it.
        """
        task = self._task
        encoder = make_encoder(
            task.network, task.obs_spec, self.keys, number, normalized=task.normalized,
            shift=shift,
        )  # fmt: skip
        if encoder is not None:
            check_shares(task.factorization)
            self.features = encoder.width
        return encoder

    def blueprint(self, rows: int, **kinds: Any) -> Blueprint:
        """What networks are built from, for at most so many rows; `Blueprint` names the kinds."""
        return Blueprint(
            layout=self.layout, members=self.keys.num_members, features=self.features,
            rows=max(rows, self.num_envs), device=self.layout.device, **kinds,
        )  # fmt: skip

    @abstractmethod
    def _allocate(self, *, masked: bool) -> None:
        """Makes room for what is seen and learned from, with or without masks."""

    def _noise(self) -> None:
        """Draws the uniform numbers of an action."""
        if self.noise is not None:
            ops.uniform(self.noise, self.seeds, self.acts, Stream.ACT)

    @abstractmethod
    def _draw(self) -> None:
        """Chooses actions as in training, exploration included."""

    @abstractmethod
    def _greedy(self) -> None:
        """Chooses the greedy actions."""

    @abstractmethod
    def _chosen(self, *, greedy: bool) -> Tensor:
        """What was chosen last, (P, E, H) in the order of the spec."""

    def _record_acting(self, action: Buffer, layout: Layout | None = None) -> None:
        """Records how it acts, on the buffers of now, and counts what it learns and draws.

        Temperatures are no parameters of a network, and are not counted. What is done in training
        is in `action`, as the layout has it.
        """
        stores = [x.store for name, x in self.optimizers.items() if name != "alpha"]
        self.num_parameters = sum(store.num_parameters for store in stores)  # targets only follow
        self.num_uniforms = 0 if self.noise is None else self.noise.width
        bodies = self._act_once, self._draw, self._greedy
        self._act, self._drawn, self._mode = (Recorded(x, self.layout.device) for x in bodies)
        self._acting: Acting | None = None
        sees_rows = not self.encodes and not self._task.obs_spec.packed
        if sees_rows and type(self).act is Learner.act and action.core is not None:
            see, masked = partial(self._see, legal=None), self.mask is not None
            given = layout or self.layout, self.obs, action, self._kept(), see, self._act_once
            self._acting = Acting(*given, masked)

    @property
    def alive(self) -> Tensor:
        """Which members have not diverged, (P,)."""
        return next(iter(self.optimizers.values())).alive.tensor.flatten() > 0.0

    def act(self, obs: Tensor, legal: Tensor | None = None) -> Acted:
        """Actions (P, E, H) for collecting data, and what must be kept beside them."""
        self._see(self.vector(obs), legal)
        self._act()
        return Acted(self._chosen(greedy=False), self._extra())

    def compiled_acting(self) -> Acting | None:
        """How it acts, as operations on buffers; None for one that acts in a way of its own."""
        return self._acting

    @torch.no_grad()
    def policy(
        self,
        obs: Seen,
        uniform: Tensor | None = None,
        legal: Tensor | None = None,
        member: int | None = None,
    ) -> Tensor:
        """The greedy actions (P, B, H), or actions drawn by uniform numbers (P, B, U).

        With a `member` only that one acts, and P is 1 in all of them. Observations may also be
        leaves (P, B, ...) by path.
        """
        obs = self.vector(obs)
        if Trace.now is not None:
            return self._policy(obs, uniform, legal)
        parts = (slice(at, at + self.num_envs) for at in range(0, obs.shape[1], self.num_envs))
        actions = [
            self._policy(
                obs[:, at],
                None if uniform is None else uniform[:, at],
                None if legal is None else legal[:, at],
                member,
            )
            for at in parts
        ]
        return actions[0] if len(actions) == 1 else torch.cat(actions, dim=-2)

    def _policy(
        self,
        obs: Tensor,
        uniform: Tensor | None,
        legal: Tensor | None,
        member: int | None = None,
    ) -> Tensor:
        self._see(obs, legal)  # a lone member's observations are shown to all
        recorded = self._mode
        if uniform is not None and self.noise is not None:
            put(self.noise, uniform)
            recorded = self._drawn
        if member is None:
            recorded()
        else:
            recorded.of_member(member)
        chosen = self._chosen(greedy=recorded is self._mode)
        if Trace.now is not None:
            return chosen
        who = slice(None) if member is None else slice(member, member + 1)
        return chosen[who, : obs.shape[1]].clone()

    def _see(self, obs: Tensor, legal: Tensor | None) -> None:
        self._make_room_for(legal)
        put(self.obs, obs)
        if self.mask is not None:
            put_mask(self.mask, self.layout.mask(legal))

    def vector(self, obs: Seen) -> Tensor:
        """What networks see of observations, or encoders read."""
        spec = self._task.obs_spec
        return vector_of(obs, spec) if not self.encodes else words_of(obs, spec)

    def _make_room_for(self, legal: Tensor | None) -> None:
        """Masks may come for the first time at any moment."""
        if legal is not None and not self.masked:
            with Trace.paused():
                self._allocate(masked=True)

    def _act_once(self) -> None:
        self._noise()
        self._draw()
        ops.advance(self.acts)

    def _extra(self) -> dict[str, Tensor]:
        return {name: x.tensor[:, 0] for name, x in self._kept().items()}

    def _kept(self) -> dict[str, Buffer]:
        """What must be kept beside an action, (P, 1, E, ...) each."""
        return {}

    def _followed(self) -> Metrics:
        """Settings that follow the run as they are now, (P,) each."""
        return {
            _SHOWN_AS[name]: buffer.tensor.flatten().clone()
            for name, scale, buffer in self._following
            if scale == 1.0
        }

    def _clocks(self) -> dict[str, Tensor]:
        """The counts of the clocks, (P,) each."""
        clocks = {"acts": self.acts} | ({"updates": self.updates} if self.counts_updates else {})
        return {name: clock.longs.flatten().clone() for name, clock in clocks.items()}

    def _set_clocks(self, state: dict[str, Tensor]) -> None:
        for name in self._clocks():
            getattr(self, name).longs.copy_(state[name].view(-1, 1, 1, 1))


def put(buffer: Buffer, x: Tensor) -> None:
    """Takes in numbers (P, B, W), as the first rows if there is room for more."""
    _rows_of(buffer, x).write(x.unsqueeze(1))


def put_mask(buffer: Buffer, mask: Tensor | None) -> None:
    """Takes in a mask (P, B, total) or (total,); without one every option may be chosen."""
    if mask is None:
        buffer.write(torch.ones_like(buffer.tensor))
    elif mask.dim() == 1:
        buffer.write(mask.expand_as(buffer.tensor))
    else:
        put(buffer, mask)


def _rows_of(buffer: Buffer, x: Tensor) -> Buffer:
    """As many rows as there are; in the graph of an export a buffer has those of its input."""
    return buffer if Trace.now is not None else buffer.rows(0, x.shape[1])
