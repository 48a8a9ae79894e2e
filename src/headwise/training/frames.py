"""Large observations of a replay memory, each stored once though two transitions show it."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.population import take_rows
from headwise.training.zeros import zeros

_LEAST = 16
"""Successors apart of each slot that there is room for at first."""


class Frames:
    """What was seen before and after every transition in a ring of rows, for every slot.

    The successor of a row is the observation of the next one, unless something else was seen there:
    because an episode ended, was cut off or lost. Which of both is told by the bits, whatever ends
    an episode. Successors of the other kind, and that of the newest row, lie apart, numbered in the
    order of their rows, in a ring of their own that grows while its rows are in use.

    Args:
        like: Observations (P, E, W).
        rows: Transitions of each slot (N).
    """

    def __init__(self, like: Tensor, rows: int) -> None:
        members, slots, width = like.shape
        self.rows, self._device = rows, like.device
        self.picks = like.device.type == "cpu"
        """Whether it may look at what was found; captured code may not."""
        self.obs = zeros((members, rows, slots, width), torch.float32, like.device)
        """What each row begins with, (P, N, E, W)."""
        self.apart = zeros((members, min(rows, _LEAST), slots, width), torch.float32, like.device)
        """Successors that are no row's observation, (P, C, E, W)."""
        self.number = torch.full((members, rows, slots), -1, device=like.device)
        """Which of them a row has, (P, N, E), modulo C; -1 where the next row shows it."""
        self.newest = torch.zeros((members, slots), dtype=torch.long, device=like.device)
        """The number of the successor of the newest row, (P, E)."""
        self._most = 0  # that any slot may have in use, as far as is known without asking
        self._members = torch.arange(members, device=like.device).unsqueeze(-1)
        self._slots = torch.arange(slots, device=like.device)

    @property
    def num_bytes(self) -> int:
        """The memory that it takes when it is full."""
        return self.obs.nbytes + self.apart.nbytes + self.number.nbytes

    # --- writing --------------------------------------------------------------------------------

    def write(
        self,
        obs: Tensor,
        next_obs: Tensor,
        row: Tensor,
        count: Tensor,
        valid: Tensor | None,
    ) -> None:
        """One transition of each slot; `make_room` comes after it.

        Args:
            obs: What was seen, (P, E, W).
            next_obs: What was seen then.
            row: Where each slot writes, (P, E).
            count: How many rows each has written.
            valid: Where a transition took place; None where everywhere.
        """
        known = self.apart.flatten(0, 2).index_select(0, self._apart(self.newest))
        same = _same_bits(known.view(obs.shape), obs)
        follows, begins = same & (count > 0), ~same & (count > 0)
        if valid is not None:
            follows, begins = follows & valid, begins & valid
        before = self._members, (row - 1) % self.rows, self._slots
        self.number[before] = torch.where(follows, -1, self.number[before])
        self.newest.add_(begins)
        here = self._members, row, self._slots
        told = self.newest if valid is None else torch.where(valid, self.newest, self.number[here])
        self.number[here] = told
        _put(self.obs, self._index(row, self.rows), obs, valid)
        _put(self.apart, self._apart(self.newest), next_obs, valid)

    def make_room(self) -> bool:
        """Sees to it that one more successor finds room; whether all now lies somewhere else."""
        held = self.apart.shape[1]
        self._most += 1
        if self._most < held or held == self.rows:
            return False
        used = torch.where(self.number < 0, self.newest.unsqueeze(1), self.number)
        self._most = int((self.newest - used.amin(1)).max()) + 1
        if 4 * self._most <= 3 * held:
            return False
        old, more = self.apart, min(max(held + held // 2, _LEAST), self.rows)
        ring = torch.arange(held, device=self._device).view(1, -1, 1)
        newest = self.newest.unsqueeze(1)
        numbers = newest - (newest - ring) % held  # of what lies there, (P, C, E)
        index = (self._members.unsqueeze(-1) * more + numbers % more) * len(self._slots)
        self.apart = zeros((len(old), more, *old.shape[2:]), torch.float32, self._device)
        to = (index + self._slots).flatten()
        self.apart.flatten(0, 2).index_copy_(0, to, old.flatten(0, 2))
        return True

    # --- drawing --------------------------------------------------------------------------------

    def before(self, row: Tensor, slot: Tensor) -> Tensor:
        """What was seen at rows of slots (P, B), as (P, B, W)."""
        return take_rows(self.obs.flatten(1, 2), row * len(self._slots) + slot)

    def after(self, row: Tensor, slot: Tensor) -> Tensor:
        """What was seen after them."""
        slots, held = len(self._slots), self.apart.shape[1]
        number = take_rows(self.number.flatten(1, 2), row * slots + slot)
        found = self.before((row + 1) % self.rows, slot)
        if self.picks:
            member, which = (number >= 0).nonzero(as_tuple=True)
            own = member, number[member, which] % held, slot[member, which]
            found[member, which] = self.apart[own]
            return found
        other = take_rows(self.apart.flatten(1, 2), number % held * slots + slot)
        return torch.where((number < 0).unsqueeze(-1), found, other)

    # --- keeping --------------------------------------------------------------------------------

    def state_dict(self, filled: int) -> dict[str, Tensor]:
        """What is in the first rows."""
        held = min(self.apart.shape[1], int(self.newest.max()) + 1)
        return {
            "obs": self.obs[:, :filled].clone(),
            "apart": self.apart[:, :held].clone(),
            "number": self.number[:, :filled].clone(),
            "newest": self.newest.clone(),
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to what `state_dict` gave, or to observations and successors side by side."""
        if "next_obs" in state:
            state = folded(state)
        filled = state["obs"].shape[1]
        self.obs[:, :filled].copy_(state["obs"])
        self.number.fill_(-1)
        self.number[:, :filled].copy_(state["number"])
        self.newest.copy_(state["newest"])
        self.apart = state["apart"].to(self._device, copy=True)
        self._most = self.apart.shape[1]
        self.make_room()

    def _index(self, row: Tensor, rows: int) -> Tensor:
        """Where rows (P, E) lie in a ring of so many, as numbers of rows of all members."""
        return ((self._members * rows + row) * len(self._slots) + self._slots).flatten()

    def _apart(self, number: Tensor) -> Tensor:
        held = self.apart.shape[1]
        return self._index(number % held, held)


def unfolded(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """A saved memory with all successors beside the observations, (P, N, E, W) both."""
    kept = {name: x for name, x in state.items() if name not in ("apart", "number", "newest")}
    number, apart = state["number"], state["apart"]
    successors = state["obs"].roll(-1, 1)
    member, row, slot = (number >= 0).nonzero(as_tuple=True)
    lies = number[member, row, slot] % apart.shape[1]
    successors[member, row, slot] = apart[member, lies, slot]
    return kept | {"next_obs": successors}


def folded(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The way back."""
    obs, successors = state["obs"], state["next_obs"]
    same, (members, filled, slots) = _same_bits(obs.roll(-1, 1), successors), obs.shape[:3]
    number = torch.full(obs.shape[:3], -1, device=obs.device)
    newest = torch.zeros((members, slots), dtype=torch.long, device=obs.device)
    lying: list[tuple[int, int, Tensor]] = []
    for member in range(members):
        for slot in range(slots):
            following, count = (int(state[name][member, slot]) for name in ("next", "count"))
            if not count:
                continue
            rows = (following - count + torch.arange(count, device=obs.device)) % filled
            alone = ~same[member, rows, slot]
            alone[-1] = True
            own = alone.long().cumsum(0) - 1
            number[member, rows, slot] = torch.where(alone, own, -1)
            newest[member, slot] = own[-1]
            lying.append((member, slot, rows[alone]))
    held = int(newest.max()) + 1
    apart = torch.zeros((members, held, slots, obs.shape[-1]), device=obs.device)
    for member, slot, rows in lying:
        apart[member, : len(rows), slot] = successors[member, rows, slot]
    kept = {name: x for name, x in state.items() if name != "next_obs"}
    return kept | {"apart": apart, "number": number, "newest": newest}


def _same_bits(one: Tensor, other: Tensor) -> Tensor:
    """Where rows (..., W) are the same to the bit."""
    return (one.view(torch.int32) == other.contiguous().view(torch.int32)).all(-1)


def _put(ring: Tensor, index: Tensor, x: Tensor, valid: Tensor | None) -> None:
    """Writes (P, E, W) to places of a ring (P, N, E, W), where it is valid."""
    flat, x = ring.flatten(0, 2), x.reshape(-1, x.shape[-1])
    if valid is not None:
        x = torch.where(valid.reshape(-1, 1), x, flat.index_select(0, index))
    flat.index_copy_(0, index, x)
