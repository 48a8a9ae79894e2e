"""Off-policy memory: a ring of transitions for every slot, side by side in one tensor."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor

from headwise.algorithms.base import ReplayBatch
from headwise.errors import CheckpointError
from headwise.population import along, take_rows
from headwise.population.warps import warps_for
from headwise.training.frames import Frames, unfolded
from headwise.training.replay_slots import arranged, fits
from headwise.training.transition import MASKS, Transition, untold_masks
from headwise.training.zeros import zeros

_ROWS = 16  # that a program of the kernel draws
_NUMBERS = ("obs", "action", "reward", "next_obs", "terminated", "truncated")
_FLAGS = ("terminated", "truncated")
_SEEN = ("obs", "next_obs")
WIDEST = 4096
"""Numbers of a transition up to which a kernel draws it: a tile of 16 such rows is 2**16, and far
larger ones no compiler of kernels takes."""
FRAMES_FROM = 1024
"""Words of an observation from which storing it once pays, and not with both neighbors."""


class Replay:
    """The last transitions of every slot, drawn from uniformly and with replacement.

    Every slot has its own place to write. A step that was no transition (a slot that was only
    reset) is not written, so it is never drawn. All numbers of a transition lie side by side in a
    row of one tensor (P, N, E, W), so that a batch is drawn by one gather.

    Large observations lie beside that tensor, each once: it is the successor of one transition and
    what the next begins with. What is drawn is the same. Memory is taken as it fills.

    Args:
        capacity: Transitions kept for each member, over all its slots.
        num_slots: Slots of each member (E).
        n_step: Steps between the observation and the successor of a row drawn.
        frames_from: Words of an observation from which it is stored once.
    """

    def __init__(
        self, capacity: int, num_slots: int, n_step: int = 1, *, frames_from: int = FRAMES_FROM
    ) -> None:
        self.rows = max(capacity // num_slots, n_step + 1)
        self.num_slots = num_slots
        self.n_step = n_step
        self.frames: Frames | None = None
        """Large observations."""
        self._frames_from = frames_from
        self._store: Tensor = torch.zeros(0)
        self._places: dict[str, tuple[slice, tuple[int, ...]]] = {}
        self._tensors: dict[str, Tensor] = {}
        self._arrays: dict[str, tuple[Tensor, NDArray[Any]]] = {}  # on the CPU: the same memory
        self._next: Tensor = torch.zeros(0)
        self._count: Tensor = torch.zeros(0)
        self._steps = 0
        self._even = True  # every slot writes to the same row: a plain slice

    @property
    def num_bytes(self) -> int:
        """The memory that transitions take when it is full."""
        seen = 0 if self.frames is None else self.frames.num_bytes
        beside = sum(self._tensors[name].nbytes for name in self._beside())
        return self._store.nbytes + beside + seen

    def bytes_of_one(self, obs_size: int, num_heads: int) -> int:
        """The memory that one transition takes, without masks and what ends of episodes take."""
        seen = 4 * obs_size + 8 if obs_size >= self._frames_from else 8 * obs_size
        return seen + 4 * (num_heads + 3)

    def _beside(self) -> list[str]:
        """What has a tensor of its own."""
        return [name for name in self._tensors if name not in self._places]

    @property
    def steps(self) -> int:
        """Steps of every slot that were taken in, since it began."""
        return self._steps

    # --- writing --------------------------------------------------------------------------------

    def add(self, step: Transition) -> None:
        """Takes in one step of every slot; tensors are copied."""
        self.write(step)
        self.count()

    def count(self) -> bool:
        """Counts a step that was written; whether things now lie somewhere else."""
        self._steps += 1
        return self.frames is not None and self.frames.make_room()

    def write(self, step: Transition) -> None:
        """The part of `add` that works on tensors, for captured code."""
        parts = step.parts()
        if not self._tensors:
            self._allocate(parts)
        parts = {name: parts[name] for name in (*self._places, *MASKS) if name in parts}
        self._hold_masks(parts)
        parts |= untold_masks(parts, self._tensors)
        is_captured = self._store.device.type == "cuda"  # a graph, which reads no Python state
        whole = not is_captured and (bool(step.valid.all()) if step.whole is None else step.whole)
        if self.frames is not None:
            valid = None if whole else step.valid
            self.frames.write(step.obs, step.next_obs, self._next, self._count, valid)
        elif is_captured:
            masks = {name: x for name, x in parts.items() if name in MASKS}
            self._write_where_valid(masks, step.valid)  # before the kernel moves the cursors on
            self._write_kernel(step)
            self._even = False
            return
        self._even = self._even and whole
        if self._even:
            for name, x in parts.items():  # NumPy's way to write a row costs half of torch's
                self._array(name)[:, self._steps % self.rows] = x.numpy()
            self._next.fill_((self._steps + 1) % self.rows)
            self._count.fill_(min(self._steps + 1, self.rows))
            return
        self._write_where_valid(parts, step.valid)
        written = step.valid.long()
        self._next.add_(written).remainder_(self.rows)  # in place: captured code reads it there
        self._count.add_(written).clamp_max_(self.rows)

    def _array(self, name: str) -> NDArray[Any]:
        tensor = self._tensors[name]
        if self._arrays.get(name, (None,))[0] is not tensor:
            self._arrays[name] = tensor, tensor.numpy()
        return self._arrays[name][1]

    def _write_where_valid(self, parts: dict[str, Tensor], valid: Tensor) -> None:
        where = self._cursors()
        for name, x in parts.items():
            counts = valid.view(*valid.shape, *[1] * (x.dim() - 2))
            # What is there stays: once the ring is full, it is a slot's oldest transition.
            kept = self._tensors[name][where]
            self._tensors[name][where] = torch.where(counts, x.to(kept.dtype), kept)

    def _write_kernel(self, step: Transition) -> None:
        from headwise.training.kernels.replay import write

        obs, action = step.obs.contiguous(), step.acted.action.contiguous()
        members, slots, width = obs.shape
        write[(members, slots)](
            self._store, self._next, self._count, obs, action, step.reward.contiguous(),
            step.next_obs.contiguous(), step.terminated.contiguous(), step.truncated.contiguous(),
            step.valid.contiguous(), self.rows, self._store.shape[-1], width, action.shape[-1],
            OBS=_power_of_two(width), ACTION=_power_of_two(action.shape[-1]),
            num_warps=warps_for(width),
        )  # fmt: skip

    def cut(self) -> None:
        """Marks what was taken in last as cut off, because something else follows."""
        if self._steps:
            members, row, slots = self._cursors()
            last = (members, (row - 1) % self.rows, slots)
            self._tensors["truncated"][last] = 1.0 - self._tensors["terminated"][last]

    # --- drawing --------------------------------------------------------------------------------

    def sample(self, uniform: Tensor, gamma: Tensor) -> ReplayBatch:
        """Rows (P, B, ...) from uniforms (P, B, 2) and the members' discounts (P,)."""
        if self.n_step == 1 and self.frames is None and not self._beside():
            way = way_to_draw(self._store.device.type, self._store.shape[-1])
            if way == "kernel":
                return self._draw_kernel(uniform, gamma)
            if way == "compiled":
                return self._draw_compiled(uniform, gamma)
        slot = (uniform[..., 0] * self.num_slots).long()
        count, following = self._count.gather(-1, slot), self._next.gather(-1, slot)
        usable = (count - self.n_step + 1).clamp_min(1)
        age = (uniform[..., 1] * usable).long()
        row = (following - count + age) % self.rows
        picked, last = self._take(row * self.num_slots + slot), row
        reward, terminated = picked["reward"], picked["terminated"]
        next_legal = picked.get("next_legal")
        discount = along(gamma, reward).expand_as(reward)
        if self.n_step > 1:
            going = (terminated + picked["truncated"]) == 0.0
            for k in range(1, self.n_step):
                going = going & (age + k < count)  # a young ring may hold fewer steps than that
                more = self._take((row + k) % self.rows * self.num_slots + slot)
                reward = reward + going * discount * more["reward"]
                last = torch.where(going, (row + k) % self.rows, last)
                if next_legal is not None:
                    wide = going[..., None, None]
                    next_legal = torch.where(wide, more["next_legal"], next_legal)
                terminated = torch.where(going, more["terminated"], terminated)
                discount = torch.where(going, discount * along(gamma, reward), discount)
                going = going & ((more["terminated"] + more["truncated"]) == 0.0)
        if self.frames is not None:
            obs, next_obs = self.frames.before(row, slot), self.frames.after(last, slot)
        else:
            obs, next_obs = picked["obs"], picked["next_obs"]
            if last is not row:
                next_obs = self._take(last * self.num_slots + slot)["next_obs"]
        return ReplayBatch(
            obs=obs,
            action=picked["action"],
            reward=reward,
            next_obs=next_obs,
            discount=discount * (1.0 - terminated),
            legal=picked.get("legal"),
            next_legal=next_legal,
        )

    def _take(self, index: Tensor) -> dict[str, Tensor]:
        """The transitions (P, B, ...) at places of the ring (P, B), by name."""
        taken = self._split(take_rows(self._store.flatten(1, 2), index))
        for name in self._beside():
            taken[name] = take_rows(self._tensors[name].flatten(1, 2), index)
        return taken

    def _draw_kernel(self, uniform: Tensor, gamma: Tensor) -> ReplayBatch:
        """A draw as one CUDA kernel, for single steps without masks."""
        from headwise.training.kernels.replay import draw

        members, batch, _ = uniform.shape
        width = self._store.shape[-1]
        drawn = torch.empty(members, batch, width, device=uniform.device)
        discount = torch.empty(members, batch, device=uniform.device)
        draw[(members, -(-batch // _ROWS))](
            self._store, self._next, self._count, uniform.contiguous(), gamma, drawn, discount,
            self.rows, self.num_slots, width, batch, self._places["terminated"][0].start,
            ROWS=_ROWS, WIDTH=_power_of_two(width),
        )  # fmt: skip
        return self._drawn(drawn, discount)

    def _draw_compiled(self, uniform: Tensor, gamma: Tensor) -> ReplayBatch:
        """A draw by one call of the compiled module."""
        from headwise import _core

        drawn = torch.empty(*uniform.shape[:-1], self._store.shape[-1])
        discount = torch.empty(uniform.shape[:-1])
        _core.replay_draw(
            self._store.numpy(),
            self._next.numpy(),
            self._count.numpy(),
            uniform.contiguous().numpy(),
            gamma.contiguous().numpy(),
            self._places["terminated"][0].start,
            drawn.numpy(),
            discount.numpy(),
        )
        return self._drawn(drawn, discount)

    def _drawn(self, rows: Tensor, discount: Tensor) -> ReplayBatch:
        """Rows (P, B, W) of single steps without masks, as a batch."""
        picked = self._split(rows)
        return ReplayBatch(
            obs=picked["obs"],
            action=picked["action"],
            reward=picked["reward"],
            next_obs=picked["next_obs"],
            discount=discount,
            legal=None,
            next_legal=None,
        )

    def _split(self, rows: Tensor) -> dict[str, Tensor]:
        """Numbers (..., W) by name, as views."""
        parts = {}
        for name, (columns, shape) in self._places.items():
            part = rows[..., columns]
            parts[name] = part if shape else part.squeeze(-1)
        return parts

    # --- keeping --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Everything kept, each with the member axis first; nothing before the first step."""
        if not self._steps:
            return {}
        steps = torch.full((self._next.shape[0],), self._steps, device=self._next.device)
        even = torch.full_like(steps, self._even, dtype=torch.bool)
        filled = min(self._steps, self.rows)
        kept = {name: x[:, :filled].clone() for name, x in self._tensors.items()}
        kept |= {name: kept[name].bool() for name in _FLAGS}
        if self.frames is not None:
            kept |= self.frames.state_dict(filled)
        cursors = {"next": self._next.clone(), "count": self._count.clone()}
        return kept | cursors | {"steps": steps, "even": even}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state, which may be of other slots or of another size."""
        filled = state["obs"].shape[1]
        for name in ("next", "count"):
            if not ((state[name] >= 0) & (state[name] <= filled)).all():
                raise CheckpointError(f"the cursors {name!r} of the memory point outside of it")
        width, as_is = state["obs"].shape[-1], fits(state, self.rows, self.num_slots)
        if "next_obs" not in state and not (as_is and width >= self._frames_from):
            state = unfolded(state)
        if not as_is:
            state = arranged(state, self.rows, self.num_slots)
        if not self._tensors:
            names = (*_NUMBERS, *MASKS)
            self._allocate({name: state[name][:, 0] for name in names if name in state})
        if self.frames is not None:
            self.frames.load_state_dict(state)
        kept = {name: state[name] for name in (*self._places, *MASKS) if name in state}
        for name, x in kept.items():
            self._tensors[name][:, : x.shape[1]].copy_(x)
        for name in untold_masks(kept, self._tensors):
            self._tensors[name].fill_(True)
        self._next.copy_(state["next"])
        self._count.copy_(state["count"])
        self._steps, self._even = int(state["steps"][0]), bool(state["even"].all())

    def _allocate(self, parts: dict[str, Tensor]) -> None:
        obs, column = parts["obs"], 0
        ring = (obs.shape[0], self.rows, obs.shape[1])
        if obs.shape[-1] >= self._frames_from:
            self.frames = Frames(obs, self.rows)
        for name in _NUMBERS:
            if self.frames is not None and name in _SEEN:
                continue
            shape = tuple(parts[name].shape[2:])
            self._places[name] = (slice(column, column + math.prod(shape)), shape)
            column += math.prod(shape)
        self._store = zeros((*ring, column), torch.float32, obs.device)
        self._tensors = self._split(self._store)
        for name in MASKS:
            if name in parts:
                shape = (*ring, *parts[name].shape[2:])
                self._tensors[name] = zeros(shape, parts[name].dtype, obs.device)
        self._next = torch.zeros(obs.shape[:2], dtype=torch.long, device=obs.device)
        self._count = torch.zeros_like(self._next)

    def _hold_masks(self, parts: dict[str, Tensor]) -> None:
        """Makes room for masks that come now and did not before, when everything was legal."""
        for name in MASKS:
            if name in parts and name not in self._tensors:
                shape = (*self._store.shape[:3], *parts[name].shape[2:])
                self._tensors[name] = zeros(shape, torch.bool, self._store.device)
                self._tensors[name][:, : min(self._steps, self.rows)] = True

    def _cursors(self) -> tuple[Tensor, Tensor, Tensor]:
        members, slots = self._next.shape
        device = self._next.device
        return (
            torch.arange(members, device=device).unsqueeze(-1),
            self._next,
            torch.arange(slots, device=device).expand(members, slots),
        )


def way_to_draw(device: str, width: int) -> Literal["kernel", "compiled", "gather"]:
    """How single steps without masks are drawn on a kind of device, by the numbers of each."""
    if device == "cuda":
        return "kernel" if width <= WIDEST else "gather"
    return "compiled" if device == "cpu" else "gather"


def _power_of_two(size: int) -> int:
    """The smallest power of two that is not below a size."""
    return 1 << (size - 1).bit_length()
