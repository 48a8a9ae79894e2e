"""The contract of operations: a compiled way computes what the definition says, member by member.

It holds for all that are registered. Gradients are those of the definition in float64; a member is
the same alone and among others, recorded or not, on every instruction set.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from operation_cases import Case, Played, cases, every_case, expected
from torch import Tensor

import headwise.algorithms  # noqa: F401  (registers the operations of learners)
from headwise.ops.core import core
from headwise.ops.operation import Operation, operations

ERROR = 1e-5
"""The largest error, of the largest number of a member."""


def assert_close(found: Tensor, wanted: Tensor, name: str) -> None:
    """Each member's numbers, except impossible options, whose logits are beyond all others."""
    assert found.shape == wanted.shape, name
    never = wanted < -1e29
    assert torch.equal(found < -1e29, never), f"{name}: which options are impossible"
    one, other = (x.double().masked_fill(never, 0.0).flatten(1) for x in (found, wanted))
    size = other.abs().amax(-1).clamp_min(1e-3)
    error = (one - other).abs().amax(-1) / size
    assert (error < ERROR).all(), f"{name} is off by {error.tolist()}"  # NaN is not less


def assert_same(found: Sequence[Tensor], wanted: Sequence[Tensor], what: str) -> None:
    """The same bits."""
    for k, (x, y) in enumerate(zip(found, wanted, strict=True)):
        assert torch.equal(x.view(torch.int32), y.view(torch.int32)), f"{what}, number {k}"


def check(operation: Operation, case: Case) -> None:
    """The contract of an operation in one case."""
    plain, (outputs, gradients) = Played(operation, case), expected(operation, case)
    for k, (x, y) in enumerate(zip(plain.numbers, outputs, strict=True)):
        assert_close(x, y, f"output {k}")
    for k, (x, y) in enumerate(zip(plain.gradients, gradients, strict=True)):
        assert_close(x, y, f"gradient {k}")
    added = Played(operation, case, added=True)
    for k, (x, y) in enumerate(zip(added.gradients, gradients, strict=True)):
        assert_close(x - 0.5, y, f"gradient {k}, added")
    if not plain.is_compiled:
        return
    window = Played(operation, case, windowed=True)
    recorded = Played(operation, case, recorded=True)
    for other, what in ((window, "columns of something wider"), (recorded, "recorded")):
        assert_same(other.numbers, plain.numbers, what)
        assert_same(other.gradients, plain.gradients, what)
    for members in ((0,), (1,), (2, 1)):
        some, own = Played(operation, case, members), list(members)
        assert_same(some.numbers, [x[own] for x in plain.numbers], f"members {members}")
        assert_same(some.gradients, [x[own] for x in plain.gradients], f"members {members}")


@pytest.mark.parametrize("name", operations.names())
def test_contract(name: str) -> None:
    assert name in cases, f"no case of the operation {name!r} in tests/ops/operation_cases.py"
    operation = operations.get(name)
    assert operation.compiled == hasattr(core, name), "what it says of the compiled module"
    compiled = 0
    for case in every_case(name):
        check(operation, case)
        compiled += Played(operation, case).is_compiled
    assert bool(compiled) == operation.compiled, "the compiled way"


def test_all_instruction_sets_compute_the_same() -> None:
    digests = set()
    for isa in ("avx512", "avx2", "baseline"):
        environment = os.environ | {"HEADWISE_ISA": isa, "OMP_NUM_THREADS": "1"}
        program = [sys.executable, str(Path(__file__).parent / "operation_cases.py")]
        digests.add(
            subprocess.run(program, env=environment, check=True, capture_output=True).stdout
        )
    assert len(digests) == 1
