"""Operations that ONNX lacks, made of ones that it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

# Giles, "Approximating the erfinv function" (2010), in single precision: erfinv(x) = x p(w) with
# w = -log(1 - x^2), one polynomial about w = 2.5 for the middle, one about sqrt(w) = 3 for the
# tails. The highest power comes first.
_MIDDLE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 2.1858087e-04,
    -1.25372503e-03, -4.17768164e-03, 2.46640727e-01, 1.50140941,
)  # fmt: skip
_TAIL = (
    -2.00214257e-04, 1.00950558e-04, 1.34934322e-03, -3.67342844e-03, 5.73950773e-03,
    -7.6224613e-03, 9.43887047e-03, 1.00167406, 2.83297682,
)  # fmt: skip


def inverse_erf(x: Tensor) -> Tensor:
    """`torch.erfinv` inside (-1, 1), to a few units in the last place of a float32."""
    wide = x.double()
    w = -torch.log((1.0 - wide) * (1.0 + wide))
    in_middle = w < 5.0
    place = torch.where(in_middle, w - 2.5, w.sqrt() - 3.0).unsqueeze(-1)
    middle, tail = (torch.tensor(c, dtype=torch.float64) for c in (_MIDDLE, _TAIL))
    coefficients = torch.where(in_middle.unsqueeze(-1), middle, tail)
    # Powers all at once: a chain of products would be most of an exported graph.
    powers = place ** torch.arange(len(_MIDDLE) - 1, -1, -1, dtype=torch.float64)
    return ((powers * coefficients).sum(-1) * wide).to(x.dtype)


class PlainOperations(TorchFunctionMode):
    """While it is entered, what ONNX lacks is computed by the functions of this file."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Replaces `torch.erfinv`; everything else is as it was."""
        if func in (torch.erfinv, torch.special.erfinv, Tensor.erfinv):
            return inverse_erf(*args)
        return func(*args, **(kwargs or {}))
