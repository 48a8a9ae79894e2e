"""Named inputs of a deployed policy, as a learner takes them."""

from __future__ import annotations

from itertools import accumulate

import torch
from torch import Tensor

from headwise.nets.preprocess import Seen
from headwise.spaces import ObsCodec
from headwise.spaces.observation import ObsLeaf

LONE = "observation"
"""The name of the input where an observation is one array; it begins the name of every other."""


class NamedObservations:
    """Observations as they come from the environment, one-hot and in one vector.

    It does in tensors what `ObsCodec` does in numpy, except that an option out of range, which the
    codec refuses, has no one in its one-hot; and where leaves are packed, all leaves stay apart,
    as `nets.preprocess.leaves_of` gives them, because no graph can pack bytes into words.

    Args:
        codec: The observation space.
    """

    def __init__(self, codec: ObsCodec) -> None:
        self.is_apart = bool(codec.spec.packed)
        """Whether leaves stay apart."""
        self.leaves = {_input_name(leaf.path): leaf for leaf in codec.leaves}
        self._one_hots = [
            None if leaf.counts is None else _OneHot(leaf.counts, leaf.starts)
            for leaf in codec.leaves
        ]

    def example(self, rows: int) -> dict[str, Tensor]:
        """A batch of the right shapes and types."""
        return {
            name: torch.zeros((rows, *leaf.shape), dtype=getattr(torch, input_type(leaf)))
            for name, leaf in self.leaves.items()
        }

    def __call__(self, observation: dict[str, Tensor]) -> Seen:
        """Arrays (B, ...) by name as vectors (B, O), or as leaves (B, ...) by path."""
        parts = {}
        for (name, leaf), one_hot in zip(self.leaves.items(), self._one_hots, strict=True):
            x = observation[name]
            flat = x.flatten(1) if leaf.shape else x.unsqueeze(-1)
            kept = x if self.is_apart else flat
            parts[leaf.path] = kept if one_hot is None else one_hot(flat)
        if self.is_apart:
            return parts
        return next(iter(parts.values())) if len(parts) == 1 else torch.cat([*parts.values()], -1)


def input_type(leaf: ObsLeaf) -> str:
    """The type of an input: numbers are float32 whatever the space says, options are int64.

    What is packed are bytes.
    """
    if leaf.is_packed:
        return "uint8"
    return "float32" if leaf.counts is None else "int64"


class _OneHot:
    """Options (B, elements) one-hot, side by side."""

    def __init__(self, counts: tuple[int, ...], starts: tuple[int, ...]) -> None:
        self._owner = torch.repeat_interleave(torch.tensor(counts))
        """The element that each column belongs to."""
        firsts = torch.tensor([0, *accumulate(counts)][:-1])
        shift = torch.tensor(starts) - firsts
        self._option = torch.arange(len(self._owner)) + shift[self._owner]
        """And the option that it stands for."""

    def __call__(self, options: Tensor) -> Tensor:
        return options.index_select(-1, self._owner).eq(self._option).float()


def _input_name(path: str) -> str:
    """`speed` in a Dict is `observation/speed`, so that no input is called as an output is."""
    return path if path == LONE or path.startswith(f"{LONE}[") else f"{LONE}/{path}"
