"""Triton kernels in its interpreter, which runs them on a CPU; `tests/gpu` compiles them.

triton comes with the builds of torch for GPUs, and is no dependency of its own.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_cases import checks

from headwise.ops import triton as room
from headwise.ops.operation import operations


@pytest.fixture(scope="module")
def troubles():
    """In a process of its own: whoever imports triton decides whether it interprets."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    program = [sys.executable, str(Path(__file__).parent / "kernel_cases.py")]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(program, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", checks())
def test_a_kernel_does_what_it_stands_for(name, troubles):
    assert troubles[name] is None, troubles[name]


def test_every_file_of_kernels_is_checked():
    files = {path.stem for path in Path(room.__file__).parent.glob("*.py")}
    tested = {operation.triton for _, operation in operations.items() if operation.triton}
    assert files == tested | {"__init__", "adam", "philox", "functions"}
