"""What `make wheel` and `make wheel-test` do before anything is built."""

import importlib
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def tool(monkeypatch):
    """Imports a script of tools/ by name."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module


def test_the_wheel_that_is_tried_is_the_newest_that_pip_would_take(tool, tmp_path):
    newest = tool("wheel_test").newest
    names = ["cp311-cp311-manylinux_2_34_x86_64", "cp312-abi3-manylinux_2_28_x86_64.linux_x86_64"]
    for name in names:
        (tmp_path / f"headwise-0.1.0-{name}.whl").touch()
    for tag, name in (("cp311-cp311-manylinux_2_34_x86_64", 0), ("cp312-abi3-linux_x86_64", 1)):
        debug = f"Compatible tags: 2\n  py3-none-any\n  {tag}\n"
        assert newest(tmp_path, debug).name == f"headwise-0.1.0-{names[name]}.whl"
    with pytest.raises(SystemExit, match="make wheel"):
        newest(tmp_path, "  cp313-cp313-linux_x86_64\n")


def test_the_readme_is_tried_line_by_line_but_for_its_steps(tool):
    lines = tool("wheel_test").lines
    compile(lines(export=True), "README", "exec")
    assert "4_096" in lines(export=True)
    assert ".export(" in lines(export=True)
    assert ".export(" not in lines(export=False)


def test_every_extra_for_users_is_imported(tool):
    extras = tool("wheel_test").extras()
    assert extras["onnx"] == ["onnx", "onnxruntime", "onnxscript"]
    assert "headwise" not in extras["report"]
    assert "dev" not in extras


def test_a_python_that_does_not_run_gets_no_wheel(tool, tmp_path):
    wheel = tool("wheel")
    assert not wheel.runs(str(tmp_path / "python3.99"))
    with pytest.raises(SystemExit):
        wheel.main([str(tmp_path / "python3.99"), "--out", str(tmp_path)])
    assert not list(tmp_path.glob("*.tar.gz"))


def test_nothing_can_be_compiled_where_a_wheel_is_tried(tool):
    broken = tool("wheel_test").BROKEN
    assert subprocess.run([broken["CC"]]).returncode != 0
    assert subprocess.run([broken["CXX"]]).returncode != 0
