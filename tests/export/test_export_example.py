import ast
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "export_onnx.py"


def test_the_example_trains_exports_and_runs():
    assert len(EXAMPLE.read_text().splitlines()) <= 40
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLE], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    arm, gripper = done.stdout.removeprefix("arm: ").split(" gripper: ")
    # It has learned which way to point, and when to close.
    (x, y), _ = ast.literal_eval(arm)
    assert x > 0.4
    assert y < 0.0
    assert ast.literal_eval(gripper) == [0, 1]
