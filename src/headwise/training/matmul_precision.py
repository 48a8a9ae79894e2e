"""How far products of matrices are rounded before they are summed: not at all, to TF32, or to bf16.

Torch keeps this as one setting of the process, which our own kernels follow as well. It is
imported when it is asked, so that a command line can name the words without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from headwise.errors import ConfigError

if TYPE_CHECKING:
    import torch

MatmulPrecision: TypeAlias = Literal["float32", "tf32", "bf16"]

_TORCH_SAYS: dict[MatmulPrecision, str] = {"float32": "highest", "tf32": "high", "bf16": "medium"}
_TF32_SINCE = (8, 0)
"""The compute capability of the first GPUs that have it."""


def matmul_precision_now() -> MatmulPrecision:
    """What torch is set to."""
    import torch

    now = torch.get_float32_matmul_precision()
    return next(name for name, word in _TORCH_SAYS.items() if word == now)


def set_matmul_precision(name: MatmulPrecision) -> None:
    """Sets torch to it, for the whole process."""
    if name not in _TORCH_SAYS:
        raise ConfigError(
            "there is no such matmul precision",
            got=repr(name),
            allowed=", ".join(get_args(MatmulPrecision)),
        )
    import torch

    torch.set_float32_matmul_precision(_TORCH_SAYS[name])
    # On the CPU the layers do it themselves; torch would round everything else as well, and some
    # processors would only pretend to have the numbers.
    torch.backends.mkldnn.matmul.fp32_precision = "ieee"  # type: ignore[attr-defined]


@contextmanager
def matmul_precision_as(name: MatmulPrecision | None) -> Iterator[None]:
    """Sets torch to it for a while; None leaves torch as it is."""
    if name is None:
        yield
        return
    before = matmul_precision_now()
    set_matmul_precision(name)
    try:
        yield
    finally:
        set_matmul_precision(before)


def not_as_asked(name: MatmulPrecision | None, device: torch.device | str) -> str:
    """What happens instead where a device lacks the precision asked for; nothing where it has it.

    Args:
        name: What was asked for; None asks for nothing.
        device: Where learners live.
    """
    import torch

    from headwise.ops.core import has_bf16

    kind = torch.device(device).type
    if name is None or name == "float32":
        return ""
    if kind == "cuda":
        if torch.cuda.get_device_capability(device) < _TF32_SINCE:
            return (
                f"matmul precision {name}: this GPU has neither TF32 nor bfloat16; float32 is used"
            )
        return "matmul precision bf16: on a GPU it is TF32; tf32 is used" if name == "bf16" else ""
    if name == "tf32":
        return f"matmul precision tf32: only GPUs have it, and this is {kind}; float32 is used"
    if kind == "cpu" and has_bf16():
        return ""
    return f"matmul precision bf16: this {kind} has no AVX512-BF16, which it needs; float32 is used"
