"""A learner's action as the named outputs of a deployed policy: the arrays of the action space."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from headwise.errors import SpaceError
from headwise.spaces import ActionCodec, ActionSpec, Choice, View
from headwise.spaces.convert import ActionLeaf


class NamedActions:
    """Actions in the learner's form, in the environment's units and structure.

    It does in tensors what `View.to_native` and `ActionCodec.to_env_batch` do in numpy: ranges from
    [-1, 1] to their bounds, bins to their values, options to the numbers they have outside.

    Args:
        spec: The action as the training environment has it.
        codec: The action space, head for head as `spec`, or as what `view` sees.
        view: How `spec` sees the actions of the codec, if not as they are.
    """

    def __init__(self, spec: ActionSpec, codec: ActionCodec, view: View | None = None) -> None:
        seen = codec.spec if view is None else view.spec
        if seen.cardinalities != spec.cardinalities:
            raise SpaceError("the action space has other heads", got=str(seen), allowed=str(spec))
        self.leaves = {leaf.path: leaf for leaf in codec.leaves}
        # Bounds of the codec's own spec: those of a compiled environment went through float32.
        self._is_choice = torch.tensor(seen.is_choice)
        self._low, self._high = torch.tensor(seen.low), torch.tensor(seen.high)
        self._natives = None if view is None else _natives(view.flat)
        zoom = None if view is None else view.zoom
        self._digits = None if zoom is None else torch.tensor(zoom.matrix)

    def __call__(self, unit: Tensor) -> dict[str, Tensor]:
        """Actions (B, H) in the learner's form as arrays (B, ...) by name."""
        wide = unit.double()
        spanned = self._low + 0.5 * (wide + 1.0) * (self._high - self._low)
        bounded = torch.minimum(torch.maximum(spanned, self._low), self._high)
        heads = torch.where(self._is_choice, wide, bounded)
        if self._digits is not None:
            heads = heads @ self._digits
        if self._natives is not None:
            pairs = zip(self._natives, heads.unbind(-1), strict=True)
            heads = torch.stack([x if native is None else native(x) for native, x in pairs], dim=-1)
        outputs = {}
        for path, leaf in self.leaves.items():
            values = heads[..., leaf.columns]
            if leaf.offset.any():
                values = values + torch.tensor(leaf.offset)
            if leaf.integral:
                values = values.round()
            if leaf.free is not None:
                values = _filled(values, heads[..., :1], leaf)
            outputs[path] = values.to(output_type(leaf.dtype)).view(-1, *leaf.shape)
        return outputs


def output_type(dtype: np.dtype[np.generic]) -> torch.dtype:
    """The type of an output: that of the space."""
    return torch.from_numpy(np.zeros(1, dtype=dtype)).dtype


def _filled(values: Tensor, any_head: Tensor, leaf: ActionLeaf) -> Tensor:
    """The elements of an array that are heads, with those between them that never change."""
    assert leaf.free is not None
    fixed = torch.tensor(leaf.low.reshape(-1)[~leaf.free], dtype=torch.float64)
    order = np.argsort(np.concatenate([np.flatnonzero(leaf.free), np.flatnonzero(~leaf.free)]))
    both = torch.cat([values, any_head * 0.0 + fixed], dim=-1)
    return both.index_select(-1, torch.tensor(order))


class _Bins:
    """A bin's number to the value that it stands for."""

    def __init__(self, values: Tensor) -> None:
        self._values = values

    def __call__(self, column: Tensor) -> Tensor:
        return self._values.index_select(-1, column.long())


class _Driven:
    """A number from -1 to 1 to the option in whose equal part of it it falls."""

    def __init__(self, options: int) -> None:
        self._options = options

    def __call__(self, column: Tensor) -> Tensor:
        part = torch.floor((column + 1.0) / 2.0 * self._options)
        return part.clamp_max(self._options - 1.0)


def _natives(view: View) -> list[_Bins | _Driven | None]:
    """What makes each head of a view the native one; None where it is already."""
    found: list[_Bins | _Driven | None] = []
    for column, (native, head) in enumerate(zip(view.native.heads, view.spec.heads, strict=True)):
        if isinstance(head, Choice) and not isinstance(native, Choice):
            probes = np.tile(view.spec.idle, (head.n, 1))
            probes[:, column] = np.arange(head.n)
            found.append(_Bins(torch.tensor(view.to_native(probes)[:, column])))
        elif isinstance(native, Choice) and not isinstance(head, Choice):
            found.append(_Driven(native.n))
        else:
            found.append(None)
    return found
