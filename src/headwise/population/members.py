"""Members as rows: taking some out of a population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
