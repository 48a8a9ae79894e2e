"""The tools that keep the house clean, run as tests: one command, one summary."""

import importlib.metadata
import itertools
import json
import platform
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

import headwise

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
CODE = ["src", "tests", "examples", "benchmarks", "tools"]
CPP = sorted(
    str(p)
    for top in ("cpp", "tests")
    for p in (ROOT / top).rglob("*.[hc]*")
    if p.suffix in {".h", ".cpp"}
)
WORKFLOWS = sorted(str(p) for p in (ROOT / ".github/workflows").glob("*.yml"))


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
        ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS],
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


@pytest.mark.parametrize("strict", ["OFF", "ON"])
def test_how_the_module_is_compiled(tmp_path, strict):
    """With CXXFLAGS of a user's own: kernels for other processors need a known baseline.

    And a warning that only some later compiler knows must not stop anyone but us.
    """
    run("cmake", "-S", ".", "-B", str(tmp_path), "-G", "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={BIN / 'ninja'}", f"-DPython_EXECUTABLE={sys.executable}",
        "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS=-march=native -mtune=native",
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", f"-DHEADWISE_STRICT={strict}")  # fmt: skip
    commands = json.loads((tmp_path / "compile_commands.json").read_text())
    (words,) = (one["command"].split() for one in commands if one["file"].endswith("bindings.cpp"))
    assert ("-Werror" in words) == (strict == "ON")
    (compiler,) = tmp_path.glob("CMakeFiles/*/CMakeCXXCompiler.cmake")
    is_gcc = 'CMAKE_CXX_COMPILER_ID "GNU"' in compiler.read_text()
    if is_gcc and platform.machine() == "x86_64":
        assert [word for word in words if word.startswith("-march")][-1] == "-march=x86-64"
        assert [word for word in words if word.startswith("-mtune")][-1] == "-mtune=generic"


def test_workflows_call_targets_that_there_are():
    makefile = (ROOT / "Makefile").read_text()
    called = {t for path in WORKFLOWS for t in re.findall(r"make ([\w-]+)", Path(path).read_text())}
    assert called >= {"test", "docs", "floors", "wheel", "wheel-test", "sanitize"}
    assert [target for target in called if f"\n{target}:" not in makefile] == []


def test_hosted_tests_run_every_python_that_is_promised():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert f"python: {json.dumps(promised)}" in (ROOT / ".github/workflows/ci.yml").read_text()


def test_every_direct_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [project["dependencies"], *project["optional-dependencies"].values()]
    pins = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().split()}
    for requirement in itertools.chain(*wanted):
        name = requirement.split(">=")[0].split("[")[0].split(";")[0].strip()
        assert name == "headwise" or name in pins, name


def test_what_is_published_is_what_is_needed_to_build(tmp_path):
    code = f"import scikit_build_core.build as build; build.build_sdist({str(tmp_path)!r})"
    run("python", "-c", code)
    with tarfile.open(tmp_path / f"headwise-{headwise.__version__}.tar.gz") as archive:
        folders = {name.split("/")[1] for name in archive.getnames() if name.count("/") > 1}
    assert folders >= {"cpp", "src"}
    assert not folders & {"benchmarks", "docs", "results", "studies", "tests", "tools"}


def test_the_version_is_the_same_everywhere():
    assert f"\nversion: {headwise.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert importlib.metadata.version("headwise") == headwise.__version__
    assert f"\n## {headwise.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_the_readme_is_a_page():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
