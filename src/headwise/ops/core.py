"""The compiled operations, in the build for this processor's instruction set."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from headwise import _core

if TYPE_CHECKING:
    from headwise._ops import Buffer as CoreBuffer
    from headwise._ops import Network as CoreNetwork
    from headwise._ops import Program as CoreProgram
else:
    CoreBuffer = CoreNetwork = CoreProgram = object

__all__ = ["CoreBuffer", "CoreNetwork", "CoreProgram", "core", "has_bf16", "isa"]

isa: str = _core.best_isa()
"""Which instruction set it is built for; HEADWISE_ISA asks for less than the machine has."""

core: Any = importlib.import_module(f"headwise._ops_{isa}")
"""The module; all builds compute the same bits."""


def has_bf16() -> bool:
    """Whether this processor multiplies matrices in bfloat16, and the build knows how."""
    return False
