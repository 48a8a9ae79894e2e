"""Functions that Triton's interpreter lacks, for kernels that are tested on a CPU."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def expm1(x):
    """exp(x) - 1 for x at most 1, to a few units in the last place: near zero by its series."""
    small = x * (1.0 + x * (0.5 + x * (1.6666667e-1 + x * (4.1666668e-2 + x * 8.3333338e-3))))
    return tl.where(tl.abs(x) < 0.1, small, tl.exp(x) - 1.0)
