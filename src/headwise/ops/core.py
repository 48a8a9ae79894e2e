"""The compiled operations, in the build for this processor's instruction set."""

from __future__ import annotations

import importlib
from typing import Any, TypeAlias

from headwise import _core

CoreBuffer: TypeAlias = Any
CoreProgram: TypeAlias = Any
"""What the compiled module has classes for; there is one of each for every instruction set."""

isa: str = _core.best_isa()
"""Which instruction set it is built for; HEADWISE_ISA asks for less than the machine has."""

core: Any = importlib.import_module(f"headwise._ops_{isa}")
"""The module; all builds compute the same bits."""


def triton(name: str) -> Any:
    """A module of Triton kernels; imported when it is first asked for, as only GPUs need it."""
    return importlib.import_module(f"headwise.ops.triton.{name}")


def has_bf16() -> bool:
    """Whether this processor multiplies matrices in bfloat16, and the build knows how."""
    return bool(core.has_bf16())
