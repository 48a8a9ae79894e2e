"""Users' environments as the training loop sees them: a population over vector environments."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from headwise.envs.foreign import diagnose
from headwise.envs.foreign.adapter import Adapter
from headwise.envs.foreign.codec import EnvCodec
from headwise.envs.foreign.made import difference, in_common
from headwise.envs.foreign.snapshot import header_of, packed, unpacked
from headwise.envs.foreign.vector import AsyncEnvs, SyncEnvs
from headwise.envs.legal import check_legal
from headwise.envs.masks import Legal
from headwise.envs.seeds import slot_seeds
from headwise.envs.types import Allocate, Final, Leaves, LostEpisodesError, Step, StepBatch
from headwise.errors import EnvError, HeadwiseError

_INSTEAD = (
    "Give the environment get_state() -> bytes and set_state(bytes); without them, restore the "
    "learner, call reset() and go on from new episodes."
)
MOST_NEW_PROCESSES = 3
"""How often an environment may get new processes where the old ones have ended."""
logger = logging.getLogger("headwise")
_LARGE = 1e76
"""Squares of what fits float32 add up to no more, if there are few."""
_users: WeakValueDictionary[int, ForeignVecEnv] = WeakValueDictionary()
"""Who began the episodes that go on in an object, by its id; entries keep their object alive."""


class ForeignVecEnv:
    """Any Gymnasium or PettingZoo environment, for P members with E slots each.

    The seed of a slot is a function of its member's seed and its number alone, so a member sees the
    same episodes alone and in any population.

    Args:
        name: What messages call it.
        make: Makes what is stepped, whose slots are those of the members in order; once more where
            processes have ended.
        seeds: One seed for each member.
        num_slots: Environment slots of each member.
        codec: What translates observations, actions and masks.
        stepped: The object that is stepped, or the first of them, if others may step it as well.
        allocate: Makes the arrays, for those who want them in pinned memory.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Sequence[Adapter]],
        seeds: Sequence[int],
        num_slots: int,
        codec: EnvCodec,
        *,
        stepped: object = None,
        allocate: Allocate = np.zeros,
    ) -> None:
        self.name = name
        self.num_members, self.num_slots = len(seeds), num_slots
        self.codec = codec
        self.spec, self.obs_spec = codec.spec, codec.obs_spec
        self.first_legal: Legal | None = None
        """The masks of the observations that `reset` returned, (P, E, H, K), if there are any."""
        self._member_seeds = list(seeds)
        self._seeds: list[int] | None = slot_seeds(seeds, num_slots)
        self._make, self._remade, self._ended = make, 0, False
        self.adapters = list(make())
        """What is stepped: the slots of all members, in order."""
        stepped = self.adapters[0].vector if stepped is None else stepped
        self._stepped = getattr(stepped, "unwrapped", stepped)
        ends = np.cumsum([0, *(adapter.num_envs for adapter in self.adapters)])
        assert ends[-1] == self.num_members * num_slots
        self._rows = [slice(int(start), int(stop)) for start, stop in pairwise(ends)]
        self._slots = [self.num_members, num_slots]
        self._action_shape = (self.num_members, num_slots, self.spec.num_heads)
        self._allocate = allocate
        self._resets_later = any(adapter.resets_later for adapter in self.adapters)
        shape = self.num_members, num_slots, self.obs_spec.size
        self._use(StepBatch.of_shape(*shape, allocate))
        self._batch.valid[...] = True
        self._return = np.zeros((self.num_members, num_slots))
        self._length = np.zeros((self.num_members, num_slots), dtype=np.int32)
        self._tells_state: bool | None = None
        self._begun = self._closed = False

    def reseed(self, seeds: Sequence[int]) -> None:
        """Lets the next `reset` begin the randomness of every slot anew, by its member's seed."""
        assert len(seeds) == self.num_members
        self._member_seeds = list(seeds)
        self._seeds = slot_seeds(seeds, self.num_slots)

    def reset(self) -> NDArray[np.float32]:
        """Starts an episode in every slot; returns the observations (P, E, O)."""
        self._check_open()
        while True:
            seeds, self._seeds = self._seeds, None  # a second time, randomness goes on
            try:
                if self._ended:
                    self.adapters, self._ended = list(self._make()), False
                shown = [
                    adapter.reset(None if seeds is None else seeds[rows])
                    for adapter, rows in zip(self.adapters, self._rows, strict=True)
                ]
                break
            except Exception as error:
                self._begin_anew(error)
        masks = [legal for _, legal in shown]
        for adapter, rows, (leaves, _) in zip(self.adapters, self._rows, shown, strict=True):
            self._show(adapter, leaves, rows.start)
        self._return[...] = 0.0
        self._length[...] = 0
        self._take_first_masks(masks)
        if self._tells_state is None:
            self._tells_state = all(saved is not None for saved in self._saved(of_one=True))
        self._begun = True
        _users[id(self._stepped)] = self
        return self._batch.obs

    @property
    def is_taken(self) -> bool:
        """Whether another has begun episodes in the same object since this one did."""
        return self._begun and _users.get(id(self._stepped)) is not self

    def step(self, action: NDArray[np.float32]) -> StepBatch:
        """One step of every slot, with actions (P, E, H) in the learner's form."""
        self._check_open()
        if not self._begun:
            raise EnvError(f"{self.name}: step before reset", fix="Call reset() first.")
        if action.shape != self._action_shape:
            what = f"{self.name}: actions of the wrong shape"
            raise EnvError(what, got=action.shape, allowed=str(self._action_shape))
        flat = action.reshape(-1, action.shape[-1])
        # All are translated before the first is taken, so that a bad one leaves all as they were.
        translated = [self.codec.to_env_batch(flat[rows]) for rows in self._rows]
        steps = []
        for adapter, one in zip(self.adapters, translated, strict=True):
            try:
                steps.append(adapter.step(one))
            except Exception as error:
                self._begin_anew(error)
                raise LostEpisodesError(
                    f"{self.name}: every slot begins a new episode", fix="Call reset()."
                ) from error
        return self._batch_of(steps)

    def rest(self, slots: NDArray[np.bool_]) -> None:
        """Skips slots (P, E) that are not evaluated, where they are stepped one by one."""
        vector = self.adapters[0].vector
        if isinstance(vector, SyncEnvs):
            vector.rest(slots.ravel())

    # --- from Steps to a batch: the only place where observations become vectors ----------------

    def _batch_of(self, steps: Sequence[Step]) -> StepBatch:
        has_ends = False
        for adapter, step, rows in zip(self.adapters, steps, self._rows, strict=True):
            self._take(adapter, step, rows)
            has_ends = has_ends or step.final is not None
        batch, over = self._alike, None
        if has_ends:
            batch = self._batch
            np.copyto(batch.next_obs, batch.obs)
            for step, rows in zip(steps, self._rows, strict=True):
                if step.final is not None:
                    self._take_final(step.final, rows)
        if batch is self._batch or self._resets_later:
            over = batch.terminated | batch.truncated
        if batch.legal is not None and batch.next_legal is not None:
            ended = np.zeros_like(batch.valid) if over is None else over
            waits = np.concatenate([one.waits for one in self.adapters]).reshape(ended.shape)
            check_legal(batch.legal, self.spec, self.codec.all_legal, waits)
            check_legal(batch.next_legal, self.spec, self.codec.all_legal, ended)
        self._keep_account(over)
        return batch

    def _take(self, adapter: Adapter, step: Step, rows: slice) -> None:
        """Writes down a step, but for the successors that are not acted on."""
        part = self._parts[rows.start]
        self._show(adapter, step.obs, rows.start)
        # Squares, because BLAS adds them up without a word about what is too large.
        if not np.vdot(step.reward, step.reward) <= _LARGE:
            diagnose.bad_reward(self.name, step.reward, lambda row: self._place(rows.start + row))
        part.reward[...] = step.reward
        part.terminated[...] = step.terminated
        part.truncated[...] = step.truncated
        if self._resets_later:
            part.valid[...] = step.valid
        if step.legal is not None or self._batch.legal is not None:
            self._take_masks(step, rows)

    def _take_final(self, final: Final, rows: slice) -> None:
        slots, to = final.slots, self._parts[rows.start].next_obs
        is_one, first = len(slots) == 1, int(slots[0])  # written where it goes
        last = to[first : first + 1] if is_one else np.empty((len(slots), to.shape[1]), to.dtype)

        def slot(row: int) -> int:
            return int(rows.start + slots[row])

        self.codec.observations.write(final.obs, last, lambda row: self._where(slot(row)))
        self._check(last, slot)
        if not is_one:
            to[slots] = last

    def _show(self, adapter: Adapter, leaves: Leaves, start: int) -> None:
        """Takes in what to act on next, in the slots from one on."""
        out, slot = self._parts[start].obs, start.__add__
        if not adapter.in_place:
            self.codec.observations.write(leaves, out, lambda row: self._where(slot(row)))
        self._check(out, slot)

    def _check(self, out: NDArray[np.float32], slot: Callable[[int], int]) -> None:
        """Refuses what is not finite."""
        if self.obs_spec.is_bytes:
            return
        for part in self.obs_spec.numbers:
            seen = out[:, part] if self.obs_spec.packed else out
            if not isfinite(np.vdot(seen, seen)):
                diagnose.not_finite(self.name, out, self.codec, lambda row: self._place(slot(row)))

    def _take_masks(self, step: Step, rows: slice) -> None:
        self._hold_masks()
        part, all_legal = self._parts[rows.start], self.codec.all_legal
        assert part.legal is not None
        assert part.next_legal is not None
        part.legal[...] = part.next_legal[...] = all_legal if step.legal is None else step.legal
        if step.final is not None:
            told = step.final.legal
            part.next_legal[step.final.slots] = all_legal if told is None else told

    def _hold_masks(self) -> None:
        """From the first mask on there always are some; where none is given, all is legal."""
        if self._batch.legal is not None:
            return
        shape = (self.num_members, self.num_slots, *self.codec.all_legal.shape)
        legal, next_legal = (self._allocate(shape, np.bool_) for _ in range(2))
        legal[...] = next_legal[...] = self.codec.all_legal
        self._use(self._batch._replace(legal=legal, next_legal=next_legal))

    def _use(self, batch: StepBatch) -> None:
        """Takes arrays into use."""
        self._batch = batch
        self._alike = batch._replace(next_obs=batch.obs)
        """The same where every successor is what is acted on next."""
        flat = batch.flat().arrays()
        self._parts = {
            rows.start: StepBatch(**{name: x[rows] for name, x in flat.items()})
            for rows in self._rows
        }
        """The rows of each vector environment, by the first of them."""
        for adapter, rows in zip(self.adapters, self._rows, strict=True):
            adapter.gather_in(self._parts[rows.start].obs)

    def _take_first_masks(self, masks: Sequence[Legal | None]) -> None:
        if self._batch.legal is None and all(mask is None for mask in masks):
            return
        self._hold_masks()
        all_legal = self.codec.all_legal
        shape = (self.num_members, self.num_slots, *all_legal.shape)
        self.first_legal = np.empty(shape, dtype=np.bool_)
        for mask, rows in zip(masks, self._rows, strict=True):
            self.first_legal.reshape(-1, *all_legal.shape)[rows] = (
                all_legal if mask is None else mask
            )
        never = np.zeros(shape[:2], dtype=np.bool_)
        check_legal(self.first_legal, self.spec, all_legal, never)

    def _place(self, row: int) -> str:
        return f"slot {row % self.num_slots} of member {row // self.num_slots}"

    def _where(self, row: int) -> str:
        return f"{self.name} in {self._place(row)}"

    # --- processes that end ---------------------------------------------------------------------

    def _begin_anew(self, error: Exception) -> None:
        """Ends all processes, so that a reset makes new ones; raises what that cannot help."""
        vector = self.adapters[0].vector
        if not isinstance(vector, AsyncEnvs):
            raise error
        vector.close(terminate=True)
        self._begun, self._ended = False, True
        if isinstance(error, HeadwiseError):  # of what the environment gives: it would again
            raise error
        self._remade += 1
        if self._remade > MOST_NEW_PROCESSES:
            raise error
        self._seeds = slot_seeds(self._member_seeds, self.num_slots, self._remade)
        logger.warning(
            "%s: its processes have ended (%s). New ones begin new episodes, for the %d. time of "
            "%d at most.",
            self.name,
            f"{type(error).__name__}: {error}".rstrip(": "),
            self._remade,
            MOST_NEW_PROCESSES,
        )

    @property
    def can_snapshot(self) -> bool:
        """Whether every environment can write down its state."""
        if self._tells_state is None:  # nothing to tell before the first reset
            return all(self._told("has_hooks") or [False])
        return self._tells_state

    def snapshot(self) -> bytes:
        """The whole state of every slot, as their environments tell it."""
        self._check_open()
        if not self._begun:
            raise EnvError(f"{self.name}: snapshot before reset", fix="Call reset() first.")
        blobs = [blob for blob in self._saved() if blob is not None]
        if len(blobs) < self._return.size:
            raise EnvError(f"{self.name} cannot be resumed exactly", fix=_INSTEAD)
        parts = [*blobs, *(np.ascontiguousarray(x).tobytes() for x in self._kept())]
        return packed(parts, slots=self._slots, made=in_common(self._told("stayed")))

    def restore(self, snapshot: bytes) -> None:
        """Goes back to a snapshot."""
        if not self.can_snapshot:
            raise EnvError(f"{self.name} cannot be resumed exactly", fix=_INSTEAD)
        parts = unpacked(self.name, snapshot, self._slots)
        self.reset()  # environments refuse to step before it
        kept = self._kept()
        expected = [array.nbytes for array in kept]
        blobs, arrays = parts[: -len(kept)], parts[-len(kept) :]
        if [len(x) for x in arrays] != expected or len(blobs) != self._return.size:
            raise EnvError(f"{self.name}: the snapshot is of another environment")
        vector = self.adapters[0].vector
        if isinstance(vector, AsyncEnvs):
            vector.set_attr("saved", blobs)
        elif isinstance(vector, SyncEnvs):
            for state, blob in zip(vector.states, blobs, strict=True):
                state.saved = blob
        for array, data in zip(kept, arrays, strict=True):
            array[...] = np.frombuffer(data, array.dtype).reshape(array.shape)

    def made_otherwise(self, snapshot: bytes) -> str:
        """How these were made otherwise than those of a snapshot, in words; nothing if alike.

        A snapshot of an earlier version does not tell, so that nothing is known of it.
        """
        made, told = self._told("made"), header_of(snapshot)[0].get("made")
        if not made or not isinstance(told, dict):
            return ""
        return difference(in_common(made), {n: x for n, x in told.items() if isinstance(x, dict)})

    def close(self) -> None:
        """Closes every environment."""
        for adapter in self.adapters:
            adapter.close()
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise EnvError(f"{self.name}: it is closed", fix="Make a new one.")

    # --- what a step leaves behind --------------------------------------------------------------

    def _keep_account(self, over: Legal | None) -> None:
        """Adds up episodes; None where none has ended and every slot has gone on."""
        batch = self._batch
        self._return += batch.reward
        self._length += 1
        if self._resets_later and not batch.valid.all():
            self._return[~batch.valid] = self._length[~batch.valid] = 0
        batch.episode_return[...] = self._return
        batch.episode_length[...] = self._length
        if over is not None:
            self._return[over] = self._length[over] = 0

    # --- what a snapshot is made of -------------------------------------------------------------

    def _kept(self) -> list[NDArray[np.float64] | NDArray[np.int32]]:
        return [self._return, self._length]

    def _saved(self, *, of_one: bool = False) -> list[bytes | None]:
        return self._told("saved", of_one=of_one) or [None]

    def _told(self, what: str, *, of_one: bool = False) -> list[Any]:
        """What every slot says of itself; nothing for vector environments of others' making."""
        vector = self.adapters[0].vector
        if isinstance(vector, AsyncEnvs):
            return [] if self._ended else list(vector.call("told", what))
        states = vector.states if isinstance(vector, SyncEnvs) else []
        return [getattr(state, what) for state in (states[:1] if of_one else states)]
