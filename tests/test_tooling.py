"""The tools that keep the house clean, run as tests: one command, one summary."""

import itertools
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
CODE = ["src", "tests", "examples", "benchmarks", "tools"]
CPP = sorted(
    str(p)
    for top in ("cpp", "tests")
    for p in (ROOT / top).rglob("*.[hc]*")
    if p.suffix in {".h", ".cpp"}
)


def run(*command):
    command = [BIN / command[0], *command[1:]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", *CODE],
        ["ruff", "format", "--check", *CODE],
        ["clang-format", "--dry-run", "--Werror", *CPP],
        ["codespell"],
        ["mypy"],
        ["pre-commit", "validate-config"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_clean(command):
    run(*command)


def test_docs_build_strictly(tmp_path):
    run("mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path))


def test_the_stub_of_the_compiled_module_is_current(tmp_path):
    fresh = tmp_path / "_core.pyi"
    run("python", "-m", "nanobind.stubgen", "-m", "headwise._core", "-o", str(fresh))
    assert fresh.read_text() == (ROOT / "src/headwise/_core.pyi").read_text(), "run `make stub`"


def test_every_direct_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [project["dependencies"], *project["optional-dependencies"].values()]
    pins = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().split()}
    for requirement in itertools.chain(*wanted):
        name = requirement.split(">=")[0].split("[")[0].split(";")[0].strip()
        assert name == "headwise" or name in pins, name


def test_the_readme_is_a_page():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
