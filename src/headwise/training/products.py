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

Products: TypeAlias = Literal["float32", "tf32", "bf16"]

_TORCH_SAYS: dict[Products, str] = {"float32": "highest", "tf32": "high", "bf16": "medium"}
_TF32_SINCE = (8, 0)
"""The compute capability of the first GPUs that have it."""


def products_now() -> Products:
    """What torch is set to."""
    import torch

    now = torch.get_float32_matmul_precision()
    return next(name for name, word in _TORCH_SAYS.items() if word == now)


def set_products(name: Products) -> None:
    """Sets torch to it, for the whole process."""
    if name not in _TORCH_SAYS:
        raise ConfigError(
            "there are no such products", got=repr(name), allowed=", ".join(get_args(Products))
        )
    import torch

    torch.set_float32_matmul_precision(_TORCH_SAYS[name])
    # On the CPU the layers do it themselves; torch would round everything else as well, and some
    # processors would only pretend to have the numbers.
    torch.backends.mkldnn.matmul.fp32_precision = "ieee"  # type: ignore[attr-defined]


@contextmanager
def products_as(name: Products | None) -> Iterator[None]:
    """Sets torch to it for a while; None leaves torch as it is."""
    if name is None:
        yield
        return
    before = products_now()
    set_products(name)
    try:
        yield
    finally:
        set_products(before)


def not_as_asked(name: Products | None, device: torch.device | str) -> str:
    """What happens instead where a device lacks the products asked for; nothing where it has them.

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
            return f"products {name}: this GPU has neither TF32 nor bfloat16; float32 is used"
        return "products bf16: on a GPU they are TF32; tf32 is used" if name == "bf16" else ""
    if name == "tf32":
        return f"products tf32: only GPUs have them, and this is {kind}; float32 is used"
    if kind == "cpu" and has_bf16():
        return ""
    return f"products bf16: this {kind} has no AVX512-BF16, which they need; float32 is used"
