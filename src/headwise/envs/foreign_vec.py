"""Users' environments as the training loop sees them: a population over vector environments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from headwise.envs.foreign_codec import EnvCodec
from headwise.envs.foreign_made import difference, in_common
from headwise.envs.foreign_port import Port
from headwise.envs.lander_vec import slot_seeds
from headwise.envs.masks import Legal, check_legal
from headwise.envs.types import Allocate, StepBatch
from headwise.errors import EnvError

_INSTEAD = (
    "Give the environment get_state() -> bytes and set_state(bytes); without them, restore the "
    "learner, call reset() and go on from new episodes."
)
_MAGIC = b"headwise/foreign/1\n"
_users: WeakValueDictionary[int, ForeignVecEnv] = WeakValueDictionary()
"""Who began the episodes that go on in an object, by its id; whoever is in here keeps it alive."""


class ForeignVecEnv:
    """Any Gymnasium or PettingZoo environment, for P members with E slots each.

    The seed of a slot is a function of its member's seed and its number alone, so a member sees the
    same episodes alone and in any population.

    Args:
        name: What messages call it.
        ports: The vector environments, whose slots are those of the members in order.
        seeds: One seed for each member.
        num_slots: Environment slots of each member.
        codec: What translates observations, actions and masks.
        stepped: The object that is stepped, or the first of them: others may step it as well.
        allocate: Makes the arrays, for those who want them in pinned memory.
    """

    def __init__(
        self,
        name: str,
        ports: Sequence[Port],
        seeds: Sequence[int],
        num_slots: int,
        codec: EnvCodec,
        *,
        stepped: object,
        allocate: Allocate = np.zeros,
    ) -> None:
        self.name = name
        self._stepped = getattr(stepped, "unwrapped", stepped)
        self.num_members, self.num_slots = len(seeds), num_slots
        self.codec = codec
        self.spec, self.obs_spec = codec.spec, codec.obs_spec
        self.first_legal: Legal | None = None
        """The masks of the observations that `reset` returned, (P, E, H, K), if there are any."""
        self._seeds: list[int] | None = slot_seeds(seeds, num_slots)
        self._ports = ports
        ends = np.cumsum([0, *(port.num_envs for port in ports)])
        assert ends[-1] == self.num_members * num_slots
        self._rows = [slice(int(start), int(stop)) for start, stop in pairwise(ends)]
        self._allocate = allocate
        self._batch = StepBatch.of_shape(self.num_members, num_slots, self.obs_spec.size, allocate)
        self._by_port = self._divided()
        self._return = np.zeros((self.num_members, num_slots))
        self._length = np.zeros((self.num_members, num_slots), dtype=np.int32)
        self._tells_state: bool | None = None
        self._begun = self._closed = False

    def reseed(self, seeds: Sequence[int]) -> None:
        """Lets the next `reset` begin the randomness of every slot anew, by its member's seed."""
        assert len(seeds) == self.num_members
        self._seeds = slot_seeds(seeds, self.num_slots)

    def reset(self) -> NDArray[np.float32]:
        """Starts an episode in every slot; returns the observations (P, E, O)."""
        self._check_open()
        seeds, self._seeds = self._seeds, None  # a second time, randomness goes on
        masks = []
        for port, rows, part in zip(self._ports, self._rows, self._by_port, strict=True):
            masks.append(port.reset(None if seeds is None else seeds[rows], part.obs))
        self._check_obs(self._batch.obs)
        self._return[...] = 0.0
        self._length[...] = 0
        self._take_first_masks(masks)
        if self._tells_state is None:
            self._tells_state = all(saved is not None for saved in self._saved())
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
        batch = self._batch
        shape = (self.num_members, self.num_slots, self.spec.num_heads)
        if action.shape != shape:
            raise EnvError(
                f"{self.name}: actions of the wrong shape", got=action.shape, allowed=str(shape)
            )
        flat = action.reshape(-1, self.spec.num_heads)
        # All are translated before the first is taken, so that a bad one leaves all as they were.
        translated = [self.codec.to_env_batch(flat[rows]) for rows in self._rows]
        for port, part, one in zip(self._ports, self._by_port, translated, strict=True):
            port.step(one, part)
        over = batch.terminated | batch.truncated
        self._check_obs(batch.next_obs)
        if over.any():
            self._check_obs(batch.obs)
        self._check_reward()
        if batch.legal is not None and batch.next_legal is not None:
            waits = np.concatenate([port.waits for port in self._ports]).reshape(over.shape)
            check_legal(batch.legal, self.spec, self.codec.all_legal, waits)
            check_legal(batch.next_legal, self.spec, self.codec.all_legal, over)
        self._keep_account(over)
        return batch

    @property
    def can_snapshot(self) -> bool:
        """Whether every environment can write down its state."""
        if self._tells_state is None:  # nothing to tell before the first reset
            return all(self._attribute("has_hooks") or [False])
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
        header = {
            "slots": [self.num_members, self.num_slots],
            "sizes": [len(x) for x in parts],
            "made": in_common(self._attribute("stayed")),
        }
        return _MAGIC + json.dumps(header).encode() + b"\n" + b"".join(parts)

    def restore(self, snapshot: bytes) -> None:
        """Goes back to a snapshot."""
        if not self.can_snapshot:
            raise EnvError(f"{self.name} cannot be resumed exactly", fix=_INSTEAD)
        parts = self._parts_of(snapshot)
        self.reset()  # environments refuse to step before it
        kept = self._kept()
        expected = [array.nbytes for array in kept]
        blobs, arrays = parts[: -len(kept)], parts[-len(kept) :]
        if [len(x) for x in arrays] != expected or len(blobs) != self._return.size:
            raise EnvError(f"{self.name}: the snapshot is of another environment")
        for port, rows in zip(self._ports, self._rows, strict=True):
            vector: Any = port.vector
            vector.set_attr("saved", blobs[rows])
        for array, data in zip(kept, arrays, strict=True):
            array[...] = np.frombuffer(data, array.dtype).reshape(array.shape)

    def made_otherwise(self, snapshot: bytes) -> str:
        """How these were made otherwise than those of a snapshot, in words; nothing if alike.

        A snapshot of an earlier version does not tell, so that nothing is known of it.
        """
        made, told = self._attribute("made"), self._header_of(snapshot)[0].get("made")
        if not made or not isinstance(told, dict):
            return ""
        return difference(in_common(made), {n: x for n, x in told.items() if isinstance(x, dict)})

    def close(self) -> None:
        """Closes every environment."""
        for port in self._ports:
            port.close()
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise EnvError(f"{self.name}: it is closed", fix="Make a new one.")

    # --- what a step leaves behind --------------------------------------------------------------

    def _keep_account(self, over: Legal) -> None:
        batch = self._batch
        self._return = np.where(batch.valid, self._return + batch.reward, 0.0)
        self._length = np.where(batch.valid, self._length + 1, 0).astype(np.int32)
        batch.episode_return[...] = self._return
        batch.episode_length[...] = self._length
        self._return[over] = 0.0
        self._length[over] = 0

    def _check_obs(self, obs_PEO: NDArray[np.float32]) -> None:
        good = np.isfinite(obs_PEO)
        if good.all():
            return
        member, slot, entry = map(int, np.argwhere(~good)[0])
        places = self.obs_spec.slices.items()
        where = next(name for name, part in places if part.start <= entry < part.stop)
        raise EnvError(
            f"{self.name}: the observation at {where!r} in slot {slot} of member {member} "
            "is not finite",
            got=obs_PEO[member, slot, entry],
            allowed="finite numbers that fit float32",
        )

    def _check_reward(self) -> None:
        good = np.isfinite(self._batch.reward)
        if good.all():
            return
        member, slot = map(int, np.argwhere(~good)[0])
        given = np.concatenate([port.reward for port in self._ports]).reshape(good.shape)
        got = given[member, slot]
        wrong = "too large for float32" if np.isfinite(got) else "not finite"
        raise EnvError(
            f"{self.name}: the reward in slot {slot} of member {member} is {wrong}",
            got=got,
            allowed="finite numbers that fit float32",
        )

    def _take_first_masks(self, masks: Sequence[Legal | None]) -> None:
        known = [mask for mask in masks if mask is not None]
        if not known:
            self.first_legal = None
            return
        if len(known) < len(masks):
            raise EnvError(f"{self.name}: some members have masks and others have none")
        shape = (self.num_members, self.num_slots, *self.codec.all_legal.shape)
        self.first_legal = np.concatenate(known).reshape(shape)
        never = np.zeros(shape[:2], dtype=np.bool_)
        check_legal(self.first_legal, self.spec, self.codec.all_legal, never)
        if self._batch.legal is None:
            self._batch = self._batch._replace(
                legal=self._allocate(shape, np.bool_), next_legal=self._allocate(shape, np.bool_)
            )
            self._by_port = self._divided()

    def _divided(self) -> list[StepBatch]:
        flat = self._batch.flat().arrays()
        return [StepBatch(**{n: x[rows] for n, x in flat.items()}) for rows in self._rows]

    # --- what a snapshot is made of -------------------------------------------------------------

    def _kept(self) -> list[NDArray[np.float64] | NDArray[np.int32]]:
        return [self._return, self._length]

    def _saved(self) -> list[bytes | None]:
        return self._attribute("saved") or [None]

    def _attribute(self, name: str) -> list[Any]:
        """What every slot says of itself; nothing for vector environments of others' making."""
        if not all(port.has_slots for port in self._ports):
            return []
        vectors: list[Any] = [port.vector for port in self._ports]
        return [said for vector in vectors for said in vector.get_attr(name)]

    def _parts_of(self, snapshot: bytes) -> list[bytes]:
        header, rest = self._header_of(snapshot)
        sizes: Any = header.get("sizes")
        mine = [self.num_members, self.num_slots]
        whole = isinstance(sizes, list) and all(isinstance(x, int) and x >= 0 for x in sizes)
        if not whole or header.get("slots") != mine or sum(sizes) != len(rest):
            raise EnvError(
                f"{self.name}: the snapshot is damaged or of another environment",
                got=f"{len(snapshot)} bytes",
                allowed=f"a snapshot of {mine[0]} members with {mine[1]} slots",
            )
        ends = np.cumsum([0, *sizes])
        return [rest[start:stop] for start, stop in pairwise(ends)]

    def _header_of(self, snapshot: bytes) -> tuple[dict[str, Any], bytes]:
        """What a snapshot says of itself, which is nothing if it is damaged, and all the rest."""
        told, _, rest = snapshot.removeprefix(_MAGIC).partition(b"\n")
        try:
            header = json.loads(told) if snapshot.startswith(_MAGIC) else {}
        except ValueError:
            header = {}
        return (header if isinstance(header, dict) else {}), rest
