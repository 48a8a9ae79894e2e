"""The way in for an unusual network: any `nn.Module`, one per member, run by `torch.vmap`.

Slower than stacked layers outside a CUDA graph, and the oracle of their test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state


class Lifted(nn.Module):
    """P copies of a module with the same call shape as a stacked layer: (P, B, F) to (P, B, F')."""

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        parameters, buffers = stack_module_state(list(members))
        self._names = list(parameters)
        self._buffers_by_name = buffers
        self.stacked = nn.ParameterList(
            [nn.Parameter(parameters[name].detach()) for name in self._names]
        )
        # The skeleton lends its code; its own parameters are never used, so it is hidden in a list.
        self._skeleton = [members[0]]

    def forward(self, *inputs: Tensor) -> Any:
        """Runs member p on row p of every input."""

        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor], *args: Tensor) -> Any:
            return functional_call(self._skeleton[0], (parameters, buffers), args)

        parameters = dict(zip(self._names, self.stacked, strict=True))
        return torch.vmap(one, randomness="error")(parameters, self._buffers_by_name, *inputs)


def lift(make: Callable[[int], nn.Module], num_members: int) -> Lifted:
    """A population of modules from a function that makes the p-th one."""
    return Lifted([make(member) for member in range(num_members)])
