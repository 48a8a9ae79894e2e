"""What an operation is: its definition in plain torch, and a compiled way to the same numbers.

The definition is a function of tensors (P, N, B, W). It is what the operation means, the oracle of
its tests, and what a GPU and uncommon shapes run; its backward is autograd's. On the CPU the
compiled module has one function forward and one back, whose bodies see one member.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias

import torch
from torch import Tensor

from headwise.ops.buffers import Buffer, Trace
from headwise.ops.core import core, triton
from headwise.registry import Registry

Given: TypeAlias = Buffer | None
Outputs: TypeAlias = Buffer | Sequence[Buffer]

operations: Registry[Operation] = Registry("operation")


class Operation:
    """An operation on buffers: `mix(value, advantage, weights, out=q)`.

    Inputs are buffers in the place of the definition's tensors, None where one is left out.
    Settings are its keywords. What it returns is written to `out`, one buffer or several.
    `backward` takes the same, reads the gradients of `out` and writes those of the inputs that have
    room for one.

    Args:
        definition: From tensors and settings to tensors.
        fits: Whether the compiled way takes these settings; None: it takes all.
        compiled: Whether there is a compiled way: `NAME` and `NAME_backward` of the module.
        triton: The module of `headwise.ops.triton` that has the same two functions for a GPU, where
            it was measured to pay.
    """

    def __init__(
        self,
        definition: Callable[..., Tensor | tuple[Tensor, ...]],
        *,
        fits: Callable[..., bool] | None,
        compiled: bool,
        triton: str | None = None,
    ) -> None:
        self.compiled, self.triton = compiled, triton
        self.definition = definition
        self.name = definition.__name__
        self.__doc__ = definition.__doc__
        self._fits = fits
        self._forward = getattr(core, self.name) if compiled else None
        self._backward = getattr(core, f"{self.name}_backward", None) if compiled else None
        self.switched_off = False
        """Whether the definition runs everywhere: for tests, and to see what compiling gains."""
        kinds = [p.kind for p in inspect.signature(definition).parameters.values()]
        self._num_inputs = kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)

    def __call__(self, *inputs: Given, out: Outputs, **settings: Any) -> None:
        """Writes the outputs."""
        assert len(inputs) == self._num_inputs, f"{self.name} takes {self._num_inputs} inputs"
        outputs = [out] if isinstance(out, Buffer) else out
        if self._is_compiled(outputs, settings):
            assert self._forward is not None
            self._forward(*_cores(inputs), *_cores(outputs), **_compiled(settings))
        elif self._is_triton(outputs):
            self._kernels(self.name)(*inputs, *outputs, **settings)
        else:
            emit(lambda: self._define(inputs, outputs, settings))

    def backward(self, *inputs: Given, out: Outputs, add: bool = False, **settings: Any) -> None:
        """Writes the gradients of inputs, or adds to them, of the last call with this `out`."""
        outputs = [out] if isinstance(out, Buffer) else out
        if self._is_compiled(outputs, settings):
            assert self._backward is not None, f"{self.name} has no backward"
            self._backward(*_cores(inputs), *_cores(outputs), add=add, **_compiled(settings))
        elif self._is_triton(outputs) and not add:
            self._kernels(f"{self.name}_backward")(*inputs, *outputs, **settings)
        else:
            emit(lambda: self._back(inputs, outputs, settings, add))

    def _back(
        self,
        inputs: Sequence[Given],
        outputs: Sequence[Buffer],
        settings: dict[str, Any],
        add: bool,
    ) -> None:
        if outputs[0].graph is None:  # kernels went forward, and they do not add
            self._define(inputs, outputs, settings)
        self._autograd(inputs, outputs, add)

    def _is_compiled(self, outputs: Sequence[Buffer], settings: dict[str, Any]) -> bool:
        here = self._forward is not None and not self.switched_off and outputs[0].is_compiled
        return here and (self._fits is None or self._fits(**settings))

    def _is_triton(self, outputs: Sequence[Buffer]) -> bool:
        on_gpu = outputs[0].device.type == "cuda" and Trace.now is None
        return on_gpu and self.triton is not None and not self.switched_off

    def _kernels(self, name: str) -> Callable[..., None]:
        assert self.triton is not None
        function: Callable[..., None] = getattr(triton(self.triton), name)
        return function

    def _define(
        self, inputs: Sequence[Given], outputs: Sequence[Buffer], settings: dict[str, Any]
    ) -> None:
        traced = Trace.now is not None  # then nothing ever goes back
        learns = [x is not None and x.has_gradient and not traced for x in inputs]
        given = [
            None if x is None else given_to_graph(x, learns=wants)
            for x, wants in zip(inputs, learns, strict=True)
        ]
        with nullcontext() if traced else torch.set_grad_enabled(any(learns)):
            result = self.definition(*given, **settings)
        result = result if isinstance(result, tuple) else (result,)
        for x, y in zip(outputs, result, strict=True):
            x.write(y.detach())
        outputs[0].graph = None if traced else (given, result)

    def _autograd(self, inputs: Sequence[Given], outputs: Sequence[Buffer], add: bool) -> None:
        given, result = outputs[0].graph
        outputs[0].graph = None
        pairs = [
            (y, x.gradient)
            for x, y in zip(outputs, result, strict=True)
            if y.requires_grad and x.has_gradient
        ]
        wanted = [(x, t) for x, t in zip(inputs, given, strict=True) if x and t.requires_grad]
        gradients = torch.autograd.grad(
            [y for y, _ in pairs], [t for _, t in wanted], [g for _, g in pairs], allow_unused=True
        )
        for (x, _), gradient in zip(wanted, gradients, strict=True):
            if gradient is None:
                if not add:
                    x.gradient.zero_()
            elif add:
                x.gradient.add_(gradient)
            else:
                x.gradient.copy_(gradient)


def given_to_graph(x: Buffer, *, learns: bool) -> Tensor:
    """A buffer's numbers as an input of autograd, whose graph others may write to the buffer after.

    Torch would refuse to go back through numbers that changed, columns that others have included.
    As with compiled operations, it is for the caller to leave alone what is gone back through.
    """
    return x.tensor if Trace.now is not None else x.tensor.data.requires_grad_(learns)


def operation(
    *, fits: Callable[..., bool] | None = None, compiled: bool = True, triton: str | None = None
) -> Callable[[Callable[..., Tensor | tuple[Tensor, ...]]], Operation]:
    """Makes an operation of its definition, and registers it for the contract test."""

    def make(definition: Callable[..., Tensor | tuple[Tensor, ...]]) -> Operation:
        made = Operation(definition, fits=fits, compiled=compiled, triton=triton)
        operations.register(made.name)(made)
        return made

    return make


def emit(step: Callable[[], None]) -> None:
    """Does something that is not compiled, and lets a program that is recording keep it."""
    step()
    if Trace.now is None:
        core.emit_python(step)


def _cores(buffers: Sequence[Given]) -> list[Any]:
    return [None if x is None else x.core for x in buffers]


def _compiled(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as the compiled module knows them."""
    return {name: getattr(x, "core", x) for name, x in settings.items()}
