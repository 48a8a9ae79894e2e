"""Torch modules of every member, whose parameters and gradients lie in the members' store.

This is the only place where autograd goes through a user's own network. Optimizers, clipping,
the quarantine of members, targets and checkpoints see numbers of a store, as of any network.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils._pytree import tree_map

from headwise.ops.buffers import Buffer, Trace
from headwise.ops.operation import emit
from headwise.ops.threads import member_threads
from headwise.population.keys import Keys, Stream

Observed: TypeAlias = Any
"""What a module is called with: tensors (P, B, ...) in dicts and tuples."""

_SEEDS = threading.Lock()


class TorchNet:
    """A module for each member: observations (P, 1, B, W) to features (P, 1, B, F).

    On the CPU members go one after another, or on threads side by side, each with a graph of its
    own: that is faster than `vmap`, and a member is alone as it is among others. On a GPU they are
    stacked by `torch.func`, as far as the module allows it.

    Args:
        make: Makes a module as it begins; it is called once for each member, under its seed.
        read: From rows (P, B, W), and uniform numbers (P, B, U) if there are any, to what the
            module is called with.
        number: Its address in the INIT stream.
    """

    def __init__(
        self,
        make: Callable[[], nn.Module],
        read: Callable[[Tensor, Tensor | None], Observed],
        number: int,
    ) -> None:
        self._make, self._read, self._number = make, read, number
        self.module = seeded(make, number)
        """One of them, whose own parameters are never used."""
        self._shapes = {name: w.shape for name, w in self.module.named_parameters()}
        self._modules: list[nn.Module] = []
        self._gradients: list[list[Tensor]] = []
        self._values: dict[str, Tensor] = {}
        self._stacked: dict[str, Tensor] = {}
        self._stacked_gradients: list[Tensor] = []
        self._pool: ThreadPoolExecutor | None = None
        self.stacks = False
        """Whether members are stacked, or go one by one."""

    @property
    def num_parameters(self) -> int:
        """How many numbers a member learns."""
        return sum(shape.numel() for shape in self._shapes.values())

    @property
    def size(self) -> int:
        """How many numbers a member's parameters take."""
        return -(-self.num_parameters // 16) * 16

    def place(self, parameters: Buffer) -> None:
        """Takes its place among the members' parameters."""
        self._values = self._views(parameters.tensor.flatten(1))
        if parameters.has_gradient:
            self._stacked_gradients = list(self._views(parameters.gradient.flatten(1)).values())
        self._gradients = [
            [x[p] for x in self._stacked_gradients] for p in range(parameters.members)
        ]
        self.module.to(parameters.device)
        self.stacks = parameters.device.type == "cuda" and parameters.members > 1

    def begin(self, keys: Keys) -> None:
        """First values: those that a module has which is made under a member's seed."""
        if any(view.is_meta for view in self._values.values()):
            return
        for p, seed in enumerate(_seeds(keys, self._number)):
            module = seeded(self._make, seed).to(keys.device)
            for (_, w), view in zip(module.named_parameters(), self._values.values(), strict=True):
                view[p].copy_(w.detach())
                w.data = view[p]
            self._modules.append(module)
        self._stacked = {name: x.data.requires_grad_() for name, x in self._values.items()}

    def forward(self, x: Buffer, out: Buffer, uniform: Buffer | None = None) -> None:
        """Writes features; where `out` has room for a gradient, `backward` may follow."""
        emit(lambda: self._define(x, out, uniform))

    def backward(self, out: Buffer) -> None:
        """From the gradient of features to those of the parameters, which it writes."""
        emit(lambda: self._autograd(out))

    def _views(self, flat: Tensor) -> dict[str, Tensor]:
        views, at = {}, 0
        for name, shape in self._shapes.items():
            views[name] = flat[:, at : at + shape.numel()].view(len(flat), *shape)
            at += shape.numel()
        return views

    def _define(self, x: Buffer, out: Buffer, uniform: Buffer | None) -> None:
        chance = None if uniform is None else uniform.tensor.squeeze(1)
        given = self._read(x.tensor.squeeze(1), chance)
        if Trace.now is not None:
            y = self._call({name: w[0] for name, w in self._values.items()}, _of(given, 0))
            out.write(y.unsqueeze(0).unsqueeze(0))
            return
        learns = out.has_gradient
        if self.stacks:
            with torch.set_grad_enabled(learns):
                stacked = vmap(self._call)(self._stacked, given)
            out.tensor.copy_(stacked.detach().unsqueeze(1))
            out.graph = [stacked] if learns else None
            return

        def of_member(p: int) -> Tensor:
            with torch.set_grad_enabled(learns):  # which is a thread's own
                y: Tensor = self._modules[p](_of(given, p))
            out.tensor[p, 0].copy_(y.detach())
            return y

        graphs = self._each(of_member)
        out.graph = graphs if learns else None

    def _autograd(self, out: Buffer) -> None:
        y, out.graph = out.graph, None
        if self.stacks:
            own = list(self._stacked.values())
            _back(y[0], own, out.gradient.squeeze(1), self._stacked_gradients)
            return
        self._each(
            lambda p: _back(
                y[p], list(self._modules[p].parameters()), out.gradient[p, 0], self._gradients[p]
            )
        )

    def _call(self, parameters: Mapping[str, Tensor], given: Observed) -> Tensor:
        result: Tensor = functional_call(self.module, dict(parameters), (given,))
        return result

    def _each(self, step: Callable[[int], Any]) -> list[Any]:
        """Does it for every member, on as many threads as members are spread over."""
        count = len(self._modules)
        threads = min(member_threads(), count)
        if threads <= 1:
            return [step(p) for p in range(count)]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(
                threads, initializer=torch.set_num_threads, initargs=(1,)
            )
        return list(self._pool.map(step, range(count)))


def _of(given: Observed, member: int) -> Observed:
    return tree_map(lambda x: x[member], given)


def _back(y: Tensor, own: Sequence[Tensor], gradient: Tensor, out: Sequence[Tensor]) -> None:
    """Writes the gradients of parameters; zeros where features do not depend on one."""
    found = torch.autograd.grad([y], own, [gradient], allow_unused=True)
    for view, one in zip(out, found, strict=True):
        view.zero_() if one is None else view.copy_(one)


def seeded(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """A module as it begins under a seed of torch, whose own chance is left as it was."""
    with _SEEDS, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def _seeds(keys: Keys, number: int) -> list[int]:
    """A seed of torch for each member, by its own seed and an address."""
    unit = keys.uniform(Stream.INIT, number, (2,)).double().cpu()
    return [int(high * 2**24) << 24 | int(low * 2**24) for high, low in unit.tolist()]
