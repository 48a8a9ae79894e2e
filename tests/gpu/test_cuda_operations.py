"""Operations on a GPU compute what their definitions say, by kernels where there are some."""

import sys
from pathlib import Path

import pytest
import torch
from cuda_cells import GPU, need_gpu

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))

import headwise.algorithms.ppo.learner  # noqa: F401  (registers its operations)
from headwise.ops.operation import operations

need_gpu()

from kernel_cases import check_played, checks  # noqa: E402
from operation_cases import every_case  # noqa: E402

NAMES = [name for name in operations.names() if name != "heads_of_joint"]
"""All whose settings can go to another device; `test_cuda_learners.py` has that one."""


def on_gpu(settings):
    """Settings whose tables make their tensors on the GPU."""
    for x in settings.values():
        table = getattr(x, "table", x)
        if hasattr(table, "device"):
            table.device = torch.device(GPU)
            for name in [n for n, made in vars(table).items() if isinstance(made, torch.Tensor)]:
                delattr(table, name)  # made on the CPU when the case was, and anew where it is now
    return settings


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("added", [True, False])
def test_an_operation(name, kernels, added, monkeypatch):
    """With and without its Triton kernels, gradients written or added."""
    operation = operations.get(name)
    monkeypatch.setattr(operation, "switched_off", not kernels)
    for here, there in zip(every_case(name), every_case(name), strict=True):
        settings = on_gpu(there.settings)

        def play(inputs, outputs, learns=bool(here.learns), settings=settings):
            out = outputs[0] if len(outputs) == 1 else outputs
            operation(*inputs, out=out, **settings)
            if learns:
                operation.backward(*inputs, out=out, add=added, **settings)

        check_played(operation, here, GPU, play, before=0.5 * added)


@pytest.mark.parametrize("name", checks())
def test_a_kernel(name):
    checks()[name](GPU)
