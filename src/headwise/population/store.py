"""Parameters of several networks in one buffer, where they begin, and Adam on them.

The optimizer, clipping, target networks and checkpoints then work on one buffer instead of dozens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from headwise import ops
from headwise.errors import ConfigError
from headwise.ops import Buffer, Network
from headwise.population.keys import Keys, Stream, to_normal
from headwise.population.reduce import per_member
from headwise.population.torch_net import TorchNet


class Free:
    """Numbers that are learned and belong to no network, (P, 1, 1, width).

    Args:
        first: What they begin with.
    """

    def __init__(self, width: int, first: float) -> None:
        self.width, self.first = width, first
        self.size = -(-width // 16) * 16
        self.buffer: Buffer | None = None

    @property
    def num_parameters(self) -> int:
        """How many numbers a member learns."""
        return self.width

    def place(self, parameters: Buffer) -> None:
        """Takes its place among the members' parameters."""
        self.buffer = parameters.columns(0, self.width)


Part = Network | Free | TorchNet


class Store:
    """The parameters of parts of a learner, (P, 1, 1, S), and their gradients.

    First values are those of `torch.nn.Linear`, or orthogonal without bias where a layer has a
    gain. A layer's number is its address in the INIT stream: two stores of the same parts begin
    equal from the same seeds, and no two layers of a learner begin alike.

    Args:
        first: The number of the first layer.
    """

    def __init__(self, keys: Keys, parts: Sequence[Part], first: int = 0) -> None:
        self.keys, self.parts = keys, list(parts)
        self.parameters = Buffer(
            keys.num_members, 1, sum(part.size for part in parts), gradient=True, device=keys.device
        )
        number, at = first, 0
        for part in parts:
            own = self.parameters.columns(at, part.size)
            part.place(own)
            at += part.size
            if isinstance(part, Free):
                own.tensor.fill_(part.first)
                own.tensor[..., part.width :] = 0.0
            elif isinstance(part, TorchNet):
                part.begin(keys)
            else:
                number = self._begin(part, own.tensor, number)
        self.next = number
        """The number of the first layer that is not here."""

    def _begin(self, net: Network, flat: Tensor, number: int) -> int:
        for (weight, bias), layer in zip(net.weights(flat), net.layers, strict=True):
            inputs, start = weight.shape[-2], 0
            for width in layer.parts or (layer.width,):
                shape = (net.copies, (inputs + 1) * width)
                unit = self.keys.uniform(Stream.INIT, number, shape)
                number += 1
                first, rest = unit[..., :-width], unit[..., -width:]
                grid = torch.unflatten(first, -1, (inputs, width))
                own = slice(start, start + width)
                if layer.gain is not None:
                    weight[..., own] = layer.gain * _orthogonal(to_normal(grid))
                else:
                    bound = 1.0 / math.sqrt(inputs)
                    weight[..., own] = (grid * 2.0 - 1.0) * bound
                    bias[..., 0, own] = (rest * 2.0 - 1.0) * bound
                start += width
        return number

    @property
    def num_parameters(self) -> int:
        """How many numbers a member learns."""
        return sum(
            part.copies
            * sum((n + 1) * la.width for n, la in zip(part.inputs, part.layers, strict=True))
            if isinstance(part, Network)
            else part.num_parameters
            for part in self.parts
        )

    def rows(self) -> Tensor:
        """All of them for keeping, (P, S)."""
        return self.parameters.tensor.flatten(1).clone()

    def load_rows(self, rows: Tensor) -> None:
        """Goes back to what was kept."""
        load(self.parameters, rows)


class Adam:
    """Adam over a store; nothing crosses members.

    The gradient of a member is clipped to `max_norm` by its own length. A member whose gradient is
    not finite has diverged: from then on it and what follows it are left as they were, and the
    others never notice.

    Args:
        learning_rate: One number, or a buffer of every member's, (P, 1, 1, 1).
        max_norm: The maximum gradient norm; 0 does not clip.
        alive: Which members have not diverged, (P, 1, 1, 1), where that is another optimizer's to
            say as well.
    """

    def __init__(
        self,
        store: Store,
        learning_rate: float | Buffer,
        *,
        max_norm: float = 0.0,
        alive: Buffer | None = None,
    ) -> None:
        self.store, self.max_norm = store, max_norm
        members, device = store.keys.num_members, store.keys.device
        size = store.parameters.width
        self.mean = Buffer(members, 1, size, device=device)
        self.square = Buffer(members, 1, size, device=device)
        self.count = Buffer(members, 1, 2, device=device)
        if not isinstance(learning_rate, Buffer):
            learning_rate = settings(store.keys, learning_rate, "learning_rate")
        self.learning_rate = learning_rate
        self.norm = Buffer(members, device=device)
        """The length of each member's last gradient, before clipping, (P, 1, 1, 1)."""
        self.alive = alive or settings(store.keys, 1.0, "alive")
        """Ones; zero where a member has diverged."""

    def step(self, follower: Store | None = None, tau: float = 0.0) -> None:
        """One step along the gradients; another store moves the part `tau` of the way."""
        ops.adam_step(
            self.store.parameters, self.mean, self.square, self.count, self.learning_rate,
            self.alive, self.norm, max_norm=self.max_norm,
            follower=None if follower is None else follower.parameters, tau=tau,
        )  # fmt: skip

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that a later step depends on, each with the member axis first."""
        kept = {"mean": self.mean, "square": self.square, "learning_rate": self.learning_rate}
        state = {name: x.tensor.flatten(1).clone() for name, x in kept.items()}
        alive = self.alive.tensor.flatten() > 0.0
        count = self.count.longs.flatten().clone()
        return state | {"values": self.store.rows(), "alive": alive, "count": count}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state. Optimizers that share `alive` diverge together."""
        self.store.load_rows(state["values"])
        for name in ("mean", "square", "learning_rate"):
            load(getattr(self, name), state[name])
        self.alive.tensor.copy_(state["alive"].view(self.alive.tensor.shape))
        self.count.longs.copy_(state["count"].view(self.count.longs.shape))


def load(buffer: Buffer, rows: Tensor) -> None:
    """Writes what was kept (P, S) into a buffer."""
    shape = buffer.tensor.flatten(1).shape
    if rows.shape != shape:
        raise ConfigError(
            "the parameters do not fit the network",
            got=f"{tuple(rows.shape)} (members, numbers)",
            allowed=str(tuple(shape)),
        )
    buffer.tensor.copy_(rows.view(buffer.tensor.shape))


def settings(keys: Keys, value: float | Sequence[float] | Tensor, name: str) -> Buffer:
    """A setting of every member in a buffer, (P, 1, 1, 1), which schedules may write."""
    buffer = Buffer(keys.num_members, device=keys.device)
    if not isinstance(value, Tensor):
        value = per_member(value, keys.num_members, name, keys.device)
    buffer.tensor.copy_(value.view(-1, 1, 1, 1))
    return buffer


def seeds_of(keys: Keys) -> Buffer:
    """The members' seeds as operations read them, the bits of an int64 (P, 1, 1, 2)."""
    buffer = Buffer(keys.num_members, 1, 2, device=keys.device)
    buffer.longs.copy_(keys.bits.view(-1, 1, 1, 1))
    return buffer


def _orthogonal(rows: Tensor) -> Tensor:
    """The orthogonal factor of each matrix (..., in, out), with the signs that make it uniform."""
    tall = rows if rows.shape[-2] >= rows.shape[-1] else rows.transpose(-1, -2)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several would sum in another order
    try:
        factors = torch.linalg.qr(tall)
    finally:
        torch.set_num_threads(threads)
    q: Tensor = factors.Q * torch.diagonal(factors.R, dim1=-2, dim2=-1).sign().unsqueeze(-2)
    return q if rows.shape[-2] >= rows.shape[-1] else q.transpose(-1, -2)
