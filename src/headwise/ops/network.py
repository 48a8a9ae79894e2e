"""Perceptrons of every member: forward, and back to parameters and inputs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from headwise.ops.buffers import Buffer, Trace, check_sizes
from headwise.ops.core import core, has_bf16
from headwise.ops.functions import elu, indices
from headwise.ops.operation import emit, given_to_graph

Activation: TypeAlias = Literal["relu", "tanh", "elu"]

Runs: TypeAlias = tuple[tuple[int, int], ...]
"""Runs of columns, (first, count) each."""

_NUMBERS = {None: 0, "tanh": 1, "relu": 2, "elu": 3}


def rounds_products() -> bool:
    """Whether networks on the CPU round factors to bfloat16: where torch says so and it can be."""
    return torch.get_float32_matmul_precision() == "medium" and has_bf16()


@dataclass(frozen=True)
class Layer:
    """A linear layer, and the activation that follows."""

    width: int
    activation: Activation | None = None
    gain: float | None = None
    """The gain of orthogonal first values without bias; None: uniform within 1 / sqrt(inputs)."""
    parts: tuple[int, ...] | None = None
    """Widths of parts that begin each as a layer of its own; None: it is one."""


class Network:
    """Perceptrons of the same shape, several copies of them in each member (heads, twins).

    The first layer has several inputs (leaves) side by side. A layer's weights are (inputs, padded
    outputs), row by row, and then its bias, in a part of the members' parameters; layers follow one
    another, and so do copies.

    Args:
        rows: The most rows of a call.
        copies: Copies (N).
        sees: Runs of columns that each copy sees of each leaf; None: all of them.
        shows_hidden: Whether the outputs of hidden layers are read.
    """

    def __init__(
        self,
        leaves: Sequence[int],
        layers: Sequence[Layer],
        members: int,
        rows: int,
        *,
        copies: int = 1,
        sees: Sequence[Sequence[Sequence[tuple[int, int]]]] | None = None,
        shows_hidden: bool = False,
        device: torch.device | str = "cpu",
    ) -> None:
        self.leaves, self.layers = tuple(leaves), tuple(layers)
        self.members, self.copies = members, copies
        check_sizes(members, copies, rows, *leaves, *(layer.width for layer in layers))
        self.sees = sees
        self.device = torch.device(device)
        self.parameters: Buffer | None = None
        """The part of the members' parameters that is its own, (P, 1, 1, size)."""
        self.shows_hidden = shows_hidden
        self._core: Any = None
        if self.device.type == "cpu":
            widths = [layer.width for layer in layers]
            numbers = [_NUMBERS[layer.activation] for layer in layers]
            self._core = core.Network.make(
                self.leaves, widths, numbers, members, rows, copies, sees or []
            )
            self.outputs = [Buffer.over(self._core.layer(i)) for i in range(len(layers))]
        else:
            self.outputs = [
                Buffer(members, rows, layer.width, copies=copies, gradient=True, padded=True,
                       device=self.device)
                for layer in layers
            ]  # fmt: skip
        self.out = self.outputs[-1]
        """What came out, (P, N, rows, outputs); its gradient is where `backward` begins."""
        self._seen: list[Buffer] = []
        self._graphs: dict[tuple[int, ...], Any] = {}
        self._visible: Tensor | None = None

    @property
    def inputs(self) -> list[int]:
        """The inputs of each layer."""
        return [sum(self.leaves), *(layer.width for layer in self.layers[:-1])]

    @property
    def copy_size(self) -> int:
        """How many numbers a copy's parameters are."""
        pairs = zip(self.inputs, self.layers, strict=True)
        return sum((n + 1) * (-(-layer.width // 16) * 16) for n, layer in pairs)

    @property
    def size(self) -> int:
        """How many numbers a member's parameters are."""
        return self.copy_size * self.copies

    def place(self, parameters: Buffer) -> None:
        """Takes its place among the members' parameters."""
        self.parameters = parameters
        if self._core is not None:
            self._core.place(parameters.core)

    def weights(self, flat: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Weights (P, N, inputs, width) and biases (P, N, 1, width), views of (P, 1, 1, size)."""
        copies = flat.reshape(-1, self.copies, self.copy_size)
        result, at = [], 0
        for inputs, layer in zip(self.inputs, self.layers, strict=True):
            wide = -(-layer.width // 16) * 16
            own = copies[..., at : at + (inputs + 1) * wide]
            grid = torch.unflatten(own, -1, (inputs + 1, wide))[..., : layer.width]
            result.append((grid[..., :-1, :], grid[..., -1:, :]))
            at += (inputs + 1) * wide
        return result

    def rows(self, count: int) -> Buffer:
        """The first rows of `out`."""
        return self.out.rows(0, count)

    def forward(
        self, x: Sequence[Buffer], copies: Sequence[int] = (), *, columns: int = 0
    ) -> Buffer:
        """Writes the rows of `out` that inputs have, and returns them.

        Args:
            x: The inputs, (P, 1 or C, B, leaf).
            copies: The copies that go forward; all if none is named.
            columns: How many outputs are wanted, the first ones; 0 is all.
        """
        self._seen = list(x)
        if self._is_compiled:
            self._core.forward([leaf.core for leaf in x], list(copies), columns, rounds_products())
        else:
            emit(lambda: self._define(x, tuple(copies)))
        return self.rows(x[0].num_rows)

    def backward(
        self,
        x: Sequence[Buffer],
        copies: Sequence[int] = (),
        *,
        weights: bool = True,
        add: bool = False,
    ) -> None:
        """Writes the gradients of the parameters, and of those inputs that have room for one.

        Args:
            x: The inputs, which must be those of the last `forward`.
            copies: The copies that it goes through; all if none is named.
            weights: Whether parameters learn, or are held constant.
            add: Whether the inputs' gradients are added to, because another operation wrote them.
        """
        if len(x) != len(self._seen) or any(a is not b for a, b in zip(x, self._seen, strict=True)):
            raise ValueError("backward of other inputs than those of the last forward")
        if self._is_compiled:
            cores, rounds = [leaf.core for leaf in x], rounds_products()
            self._core.backward(cores, list(copies), weights, add, rounds)
        else:
            emit(lambda: self._autograd(x, tuple(copies), weights=weights, add=add))

    @property
    def _is_compiled(self) -> bool:
        compiled = self._core is not None and not network.switched_off
        return compiled and Trace.now is None

    def _define(self, x: Sequence[Buffer], copies: tuple[int, ...]) -> None:
        assert self.parameters is not None
        traced = Trace.now is not None  # then nothing ever goes back
        flat = given_to_graph(self.parameters, learns=self.parameters.has_gradient)
        given = [given_to_graph(leaf, learns=leaf.has_gradient) for leaf in x]
        with nullcontext() if traced else torch.enable_grad():
            result = definition(self, flat, given, copies)
        for buffer, y in zip(self.outputs, result, strict=True):
            if buffer is self.out or self.shows_hidden:
                own = buffer.rows(0, x[0].num_rows)
                if not copies:
                    own.write(y.detach())
                for k, copy in enumerate(copies):
                    own.copies(copy).write(y.detach()[:, k : k + 1])
        if not traced:
            self._graphs[copies] = flat, given, result[-1]

    def _autograd(
        self, x: Sequence[Buffer], copies: tuple[int, ...], *, weights: bool, add: bool
    ) -> None:
        assert self.parameters is not None
        flat, given, out = self._graphs.pop(copies)
        wanted = [(leaf, t) for leaf, t in zip(x, given, strict=True) if leaf.has_gradient]
        inputs = [t for _, t in wanted]
        gradient = self.out.gradient[..., : x[0].num_rows, :]
        gradient = _some(gradient, copies)
        result = torch.autograd.grad([out], [*inputs, *([flat] if weights else [])], [gradient])
        for (leaf, _), gradient in zip(wanted, result, strict=False):
            if add:
                leaf.gradient.add_(gradient)
            else:
                leaf.gradient.copy_(gradient)
        if weights:
            own = self.parameters.gradient.view(-1, self.copies, self.copy_size)
            new = result[-1].view_as(own)
            if copies:
                own.index_copy_(1, indices(copies, own), _some(new, copies))
            else:
                own.copy_(new)

    def visible(self, like: Tensor) -> Tensor | None:
        """Ones where a copy sees an input and zeros elsewhere, (C, 1, inputs)."""
        if self.sees is None:
            return None
        if self._visible is None or self._visible.dtype != like.dtype:
            result, start = torch.zeros(self.copies, 1, sum(self.leaves)), 0
            for width, leaf in zip(self.leaves, self.sees, strict=True):
                for copy, runs in enumerate(leaf):
                    for first, count in runs:
                        result[copy, 0, start + first : start + first + count] = 1.0
                start += width
            self._visible = result.to(like)
        return self._visible


def definition(
    net: Network, flat: Tensor, x: Sequence[Tensor], copies: tuple[int, ...] = ()
) -> list[Tensor]:
    """What comes out of each layer, (P, copies, B, width), of inputs (P, 1 or C, B, F) each."""
    h = torch.cat([_some(leaf.expand(-1, net.copies, -1, -1), copies) for leaf in x], dim=-1)
    visible = net.visible(h)
    h = h if visible is None else h * _some(visible.unsqueeze(0), copies)
    result = []
    for (weight, bias), layer in zip(net.weights(flat), net.layers, strict=True):
        h = torch.matmul(h, _some(weight, copies)) + _some(bias, copies)
        if layer.activation == "tanh":
            h = torch.tanh(h)
        elif layer.activation == "relu":
            h = torch.relu(h)
        elif layer.activation == "elu":
            h = elu(h)
        result.append(h)
    return result


def _some(x: Tensor, copies: tuple[int, ...]) -> Tensor:
    """The copies named of (P, N, ...); all of them if none is."""
    return x.index_select(1, indices(copies, x)) if copies else x


class _Switch:
    """Lets the definition run everywhere: for tests, and to see what compiling gains."""

    switched_off = False


network = _Switch()
