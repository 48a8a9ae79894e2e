"""Operations on a GPU compute what their definitions say, by kernels where there are some."""

import sys
from pathlib import Path

import pytest
from cuda_cells import GPU, need_gpu

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))

import headwise.algorithms.ppo.learner  # noqa: F401  (registers its operations)
from headwise.ops.operation import operations

need_gpu()

from kernel_cases import checks  # noqa: E402
from operation_cases import Played, every_case, expected  # noqa: E402
from test_operations import assert_close  # noqa: E402


NAMES = [name for name in operations.names() if name != "heads_of_joint"]
"""All whose settings are not themselves on a device; `test_cuda_learners.py` has that one."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernels", [True, False])
def test_an_operation(name, kernels, monkeypatch):
    """With and without its Triton kernels, gradients written or added."""
    operation = operations.get(name)
    monkeypatch.setattr(operation, "switched_off", not kernels)
    for case in every_case(name):
        outputs, gradients = expected(operation, case)
        for added in (False, True):
            played = Played(operation, case, device=GPU, added=added)
            for k, (x, y) in enumerate(zip(played.numbers, outputs, strict=True)):
                assert_close(x, y, f"output {k}")
            for k, (x, y) in enumerate(zip(played.gradients, gradients, strict=True)):
                assert_close(x - 0.5 * added, y, f"gradient {k}")


@pytest.mark.parametrize("name", checks())
def test_a_kernel(name):
    checks()[name](GPU)
