"""What DQN and SAC share: settings of replay, and learners from transitions drawn from it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

from torch import Tensor

from headwise import ops
from headwise.added import added
from headwise.algorithms.base import (
    AlgorithmConfig,
    LazyMetrics,
    Metrics,
    ReplayBatch,
    ReplayPlan,
    Task,
)
from headwise.algorithms.learner import Learner, put, put_mask
from headwise.checks import check_counts, checked_count
from headwise.heads.layout import Layout
from headwise.nets.encoders import Encoder
from headwise.ops import Buffer, HeadTable, Recorded
from headwise.ops.threads import member_threads
from headwise.population.keys import Stream
from headwise.population.store import Store


@dataclass(frozen=True, kw_only=True)
class OffPolicyConfig(AlgorithmConfig):
    """Settings that DQN and SAC share: replay memory, gradient steps and target networks."""

    buffer_size: int = 100_000
    """Size of the replay memory: transitions of each seed."""
    batch_size: int = 256
    """Transitions in a minibatch, for each seed."""
    learning_starts: int = 1000
    """Transitions of each seed that are collected before the first gradient step."""
    updates_per_step: float = 0.25
    """Gradient steps for each environment step of a seed."""
    tau: float = 0.01
    """Coefficient of the soft (Polyak) update of the target network, at each gradient step."""
    n_step: int = 1
    """Steps of n-step returns."""
    random_shift: int = added(0)
    """Pixels by which images of a minibatch are shifted at random, against overfitting of the
    encoder (DrQ, where it is 4); 0 turns it off."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("tau", 0.0, 1.0)
        self.require("updates_per_step", 0.0, 100.0, open_low=True)
        check_counts(self, "buffer_size", "batch_size", "n_step")
        checked_count(f"{self.name} setting 'random_shift'", self.random_shift, 0, 64)

    @classmethod
    def small(cls, **settings: Any) -> Self:
        """A small replay that is soon full enough."""
        few = {
            "buffer_size": 200,
            "batch_size": 16,
            "learning_starts": 16,
            "updates_per_step": 0.25,
        }
        return super().small(**few | settings)

    def replay_plan(self) -> ReplayPlan:
        """What data an update wants, and when."""
        return ReplayPlan(
            self.buffer_size,
            self.batch_size,
            self.learning_starts,
            self.updates_per_step,
            self.n_step,
        )


class Transitions:
    """Rows of a batch, (P, 1, B, ...) each.

    Args:
        features: Numbers of an observation.
        masked: Whether some options may not be chosen.
    """

    def __init__(
        self, layout: Layout, members: int, rows: int, features: int, *, masked: bool
    ) -> None:
        self._layout = layout

        def made(width: int) -> Buffer:
            return Buffer(members, rows, width, device=layout.device)

        self.obs, self.next_obs = made(features), made(features)
        self.action = made(layout.num_heads)
        """In unit form, in the learner's order."""
        self.reward, self.discount = made(1), made(1)
        self.mask = made(layout.mask_width) if masked else None
        """Which options could be chosen; None: all always can."""
        self.next_mask = made(layout.mask_width) if masked else None

    def load(self, batch: ReplayBatch) -> None:
        """Takes in tensors (P, B, ...), observations as networks see them."""
        put(self.obs, batch.obs)
        put(self.next_obs, batch.next_obs)
        put(self.action, self._layout.to_learner(batch.action))
        put(self.reward, batch.reward.unsqueeze(-1))
        put(self.discount, batch.discount.unsqueeze(-1))
        if self.mask is not None and self.next_mask is not None:
            put_mask(self.mask, self._layout.mask(batch.legal))
            put_mask(self.next_mask, self._layout.mask(batch.next_legal))


class OffPolicyLearner(Learner):
    """A population of learners that take gradient steps on transitions drawn from replay."""

    plan: ReplayPlan
    target_store: Store
    """Parameters of the target network."""

    def __init__(self, config: OffPolicyConfig, task: Task) -> None:
        super().__init__(config, task)
        self.plan, self.random_shift = config.replay_plan(), config.random_shift
        self.counts_updates = self.counts_updates or bool(self.random_shift)
        self._conditions: HeadTable | None = None
        if self.layout.is_conditional:
            self._conditions = self.layout.bare_table()

    def _allocate(self, *, masked: bool) -> None:
        """Makes room for batches with or without masks."""
        self.masked, layout, rows = masked, self.layout, self.plan.batch_size
        masks = masked or layout.always_masks
        self.batch = Transitions(layout, self.keys.num_members, rows, self.obs_size, masked=masks)
        self.obs = self._scratch("obs", self.num_envs, self.obs_size, gradient=False)
        self.mask = None
        if masks:
            self.mask = self._scratch("mask", self.num_envs, layout.mask_width, gradient=False)
        self._shift: Buffer | None = None
        self._shifts: dict[int, Buffer] = {}
        if self.random_shift:
            self._shift = self._scratch("shift", rows, 4, gradient=False)
            self._shifts[id(self.batch.obs)] = self._shift.columns(0, 2)
            self._shifts[id(self.batch.next_obs)] = self._shift.columns(2, 2)

    def _record(self) -> None:
        """Records a gradient step."""
        self._update = Recorded(self.gradient_step, self.layout.device)

    def update(self, batch: ReplayBatch) -> LazyMetrics:
        """One gradient step on rows drawn from the past."""
        self._make_room_for(batch.legal)
        seen = {"obs": self.vector(batch.obs), "next_obs": self.vector(batch.next_obs)}
        self.batch.load(batch._replace(**seen))
        self._update(1, member_threads())
        return self.metrics

    @abstractmethod
    def gradient_step(self) -> None:
        """One step on the batch that is loaded."""

    @abstractmethod
    def metrics(self) -> Metrics:
        """What the last update reports: (P,) for a member, (P, H) for its heads."""

    def _seen(
        self, encoder: Encoder | None, obs: Buffer, name: str, *, learns: bool = False
    ) -> Buffer:
        """What networks see of observations; see `Encoder.forward`."""
        if encoder is None:
            return obs
        return encoder.forward(obs, name, learns=learns, shift=self._shifts.get(id(obs)))

    def _draw_shifts(self) -> None:
        """Draws by how much images of the batch are shifted."""
        if self._shift is not None:
            ops.uniform(self._shift, self.seeds, self.updates, Stream.SHIFT)

    def _use(self) -> Buffer | None:
        """Which heads the actions taken use, (P, 1, B, H): their condition holds; None: all."""
        if self._conditions is None:
            return None
        use = self._scratch("use", self.plan.batch_size, self.layout.num_heads, gradient=False)
        ops.in_use(self.batch.action, table=self._conditions, out=use)
        return use

    # --- keeping --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that later updates depend on, each with the member axis first."""
        state = {
            f"{name}.{key}" if name else key: x
            for name, optimizer in self.optimizers.items()
            for key, x in optimizer.state_dict().items()
        }
        return state | {"target": self.target_store.rows()} | self._clocks()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""
        for name, optimizer in self.optimizers.items():
            start = f"{name}." if name else ""
            optimizer.load_state_dict(
                {key.removeprefix(start): x for key, x in state.items() if key.startswith(start)}
            )
        self.target_store.load_rows(state["target"])
        self._set_clocks(state)
