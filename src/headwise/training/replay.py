"""Off-policy memory: a ring of transitions for every slot, as tensors (P, N, E, ...)."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.algorithms.base import ReplayBatch
from headwise.population import along, take_rows
from headwise.training.transition import Transition

_KEPT = ("obs", "action", "reward", "next_obs", "terminated", "truncated", "legal", "next_legal")


class Replay:
    """The last transitions of every slot, drawn from uniformly and with replacement.

    Every slot has its own place to write. A step that was no transition (a slot that was only
    reset) is not written, so it is never drawn.

    Args:
        capacity: Transitions kept for each member, over all its slots.
        num_slots: Slots of each member (E).
        n_step: Steps between the observation and the successor of a row drawn.
    """

    def __init__(self, capacity: int, num_slots: int, n_step: int = 1) -> None:
        self.rows = max(capacity // num_slots, n_step + 1)
        self.num_slots = num_slots
        self.n_step = n_step
        self._tensors: dict[str, Tensor] = {}
        self._next: Tensor = torch.zeros(0)
        self._count: Tensor = torch.zeros(0)
        self._steps = 0
        self._even = True  # every slot writes to the same row: a plain slice

    def add(self, step: Transition) -> None:
        """Takes in one step of every slot; tensors are copied."""
        parts = {name: x for name, x in step.parts().items() if name in _KEPT}
        if not self._tensors:
            self._allocate(parts)
        whole = bool(step.valid.all()) if step.whole is None else step.whole
        self._even = self._even and whole
        if self._even:
            for name, x in parts.items():
                self._tensors[name][:, self._steps % self.rows].copy_(x)
        else:
            where = self._places()
            for name, x in parts.items():
                valid = step.valid.view(*step.valid.shape, *[1] * (x.dim() - 2))
                # What is there stays: once the ring is full, it is a slot's oldest transition.
                self._tensors[name][where] = torch.where(valid, x, self._tensors[name][where])
        written = step.valid.long()
        self._next.add_(written).remainder_(self.rows)  # in place: captured code reads it there
        self._count.add_(written).clamp_max_(self.rows)
        self._steps += 1

    def cut(self) -> None:
        """Marks what was taken in last as cut off, because something else follows."""
        if self._steps:
            members, row, slots = self._places()
            last = (members, (row - 1) % self.rows, slots)
            self._tensors["truncated"][last] = ~self._tensors["terminated"][last]

    def sample(self, uniform: Tensor, gamma: Tensor) -> ReplayBatch:
        """Rows (P, B, ...) from uniforms (P, B, 2) and the members' discounts (P,)."""
        slot = (uniform[..., 0] * self.num_slots).long()
        count, following = self._count.gather(-1, slot), self._next.gather(-1, slot)
        usable = (count - self.n_step + 1).clamp_min(1)
        age = (uniform[..., 1] * usable).long()
        row = (following - count + age) % self.rows
        index = row * self.num_slots + slot
        picked = {name: take_rows(x.flatten(1, 2), index) for name, x in self._tensors.items()}
        reward, next_obs = picked["reward"], picked["next_obs"]
        terminated, next_legal = picked["terminated"], picked.get("next_legal")
        discount = along(gamma, reward).expand_as(reward)
        going = ~(terminated | picked["truncated"])
        for k in range(1, self.n_step):
            going = going & (age + k < count)  # a young ring may hold fewer steps than that
            later = (row + k) % self.rows * self.num_slots + slot
            more = {n: take_rows(self._tensors[n].flatten(1, 2), later) for n in _FOLLOWED}
            reward = reward + going * discount * more["reward"]
            next_obs = torch.where(going.unsqueeze(-1), more["next_obs"], next_obs)
            if next_legal is not None:
                legal = take_rows(self._tensors["next_legal"].flatten(1, 2), later)
                next_legal = torch.where(going[..., None, None], legal, next_legal)
            terminated = torch.where(going, more["terminated"], terminated)
            discount = torch.where(going, discount * along(gamma, reward), discount)
            going = going & ~(more["terminated"] | more["truncated"])
        return ReplayBatch(
            obs=picked["obs"],
            action=picked["action"],
            reward=reward,
            next_obs=next_obs,
            terminated=terminated,
            discount=discount,
            legal=picked.get("legal"),
            next_legal=next_legal,
        )

    def state_dict(self) -> dict[str, Tensor]:
        """Everything kept, each with the member axis first."""
        steps = torch.full((self._next.shape[0],), self._steps, device=self._next.device)
        even = torch.full_like(steps, self._even, dtype=torch.bool)
        filled = min(self._steps, self.rows)
        kept = {name: x[:, :filled].clone() for name, x in self._tensors.items()}
        cursors = {"next": self._next.clone(), "count": self._count.clone()}
        return kept | cursors | {"steps": steps, "even": even}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""
        kept = {name: x for name, x in state.items() if name in _KEPT}
        if not self._tensors:
            self._allocate({name: x[:, 0] for name, x in kept.items()})
        for name, x in kept.items():
            self._tensors[name][:, : x.shape[1]].copy_(x)
        self._next.copy_(state["next"])
        self._count.copy_(state["count"])
        self._steps, self._even = int(state["steps"][0]), bool(state["even"].all())

    def _allocate(self, parts: dict[str, Tensor]) -> None:
        for name, x in parts.items():
            shape = (x.shape[0], self.rows, *x.shape[1:])
            self._tensors[name] = torch.zeros(shape, dtype=x.dtype, device=x.device)
        obs = parts["obs"]
        self._next = torch.zeros(obs.shape[:2], dtype=torch.long, device=obs.device)
        self._count = torch.zeros_like(self._next)

    def _places(self) -> tuple[Tensor, Tensor, Tensor]:
        members, slots = self._next.shape
        device = self._next.device
        return (
            torch.arange(members, device=device).unsqueeze(-1),
            self._next,
            torch.arange(slots, device=device).expand(members, slots),
        )


_FOLLOWED = ("reward", "next_obs", "terminated", "truncated")
