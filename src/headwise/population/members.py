"""Members as rows: taking some out of a population, and putting populations together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from headwise.errors import ConfigError


def select_members(state: Mapping[str, Tensor], members: Sequence[int]) -> dict[str, Tensor]:
    """The state of the members named, in that order. Tensors have the member axis first."""
    sizes = {tensor.shape[0] for tensor in state.values()}
    if len(sizes) > 1:
        raise ConfigError("parts of the state disagree about the members", got=sorted(sizes))
    size = sizes.pop()
    for member in members:
        if not 0 <= member < size:
            raise ConfigError("there is no such member", got=member, allowed=f"0 to {size - 1}")
    index = list(members)
    return {name: tensor[index] for name, tensor in state.items()}


def join_members(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """One population of all members of several, in order."""
    first = states[0]
    for state in states[1:]:
        if state.keys() != first.keys():
            raise ConfigError("populations with different parts cannot be joined", got=list(state))
        for name in first:
            if state[name].shape[1:] != first[name].shape[1:]:
                raise ConfigError(
                    f"members with different shapes cannot be joined, at {name!r}",
                    got=tuple(state[name].shape[1:]),
                    allowed=str(tuple(first[name].shape[1:])),
                )
    return {name: torch.cat([state[name] for state in states]) for name in first}
