"""Triton kernels in its interpreter, which runs them on a CPU; on a GPU `tests/gpu` compiles them.

triton comes with the builds of torch for a GPU, and is no dependency of its own.
"""

import importlib
import math

import pytest
import torch
from kernel_cases import (
    STEPS,
    check_adam,
    check_operation,
    check_replay,
    check_uniforms,
)
from operation_cases import every_case

from headwise.ops.operation import operations

pytest.importorskip("triton")
if torch.cuda.is_available():
    pytest.skip("kernels are compiled here: tests/gpu", allow_module_level=True)

WITH_KERNELS = [name for name, operation in operations.items() if operation.triton is not None]
DIFFERENTIABLE = [(name, k) for name in WITH_KERNELS for k in range(len(every_case(name)))]


@pytest.fixture(scope="module", autouse=True)
def _interpreted():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        yield


def kernels(module):
    return importlib.import_module(f"headwise.ops.triton.{module}")


@pytest.mark.parametrize(("name", "case"), DIFFERENTIABLE)
def test_an_operation_with_kernels(name, case):
    check_operation(operations.get(name), every_case(name)[case], "cpu")


@pytest.mark.parametrize(("max_norm", "follows", "size"), STEPS)
def test_adam(max_norm, follows, size):
    check_adam("cpu", kernels("adam").adam_step, max_norm, size, follows=follows)


def test_uniform_numbers():
    check_uniforms("cpu", kernels("philox").fill_uniforms)


def test_replay():
    check_replay("cpu")


def test_expm1():
    """To a few units in the last place, also next to zero."""
    import triton
    import triton.language as tl

    expm1 = kernels("functions").expm1

    @triton.jit
    def each(x, y, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(y + at, expm1(tl.load(x + at)))

    size = torch.logspace(-8.0, math.log10(80.0), 512)
    x = torch.cat([-size, size])
    y = torch.empty_like(x)
    each[(1,)](x, y, BLOCK=len(x))
    torch.testing.assert_close(y.double(), torch.expm1(x.double()), rtol=5e-7, atol=0.0)


def test_every_room_of_kernels_is_tested():
    from pathlib import Path

    from headwise.ops import triton as room

    files = {path.stem for path in Path(room.__file__).parent.glob("*.py")}
    tested = {operations.get(name).triton for name in WITH_KERNELS}
    assert files == tested | {"__init__", "adam", "philox", "functions"}
