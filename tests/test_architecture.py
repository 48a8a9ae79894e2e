"""The shape of the house (docs/concepts.md): who may import whom, and what stays free of torch."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "headwise"
ROOMS = [
    "errors", "registry", "spaces", "envs", "population", "nets", "factorizations", "algorithms",
    "training", "study", "report", "cli",
]  # fmt: skip
"""From the ground up: a room imports only from itself and from rooms before it."""

FILES = sorted(path for path in SOURCE.rglob("*.py"))
MAX_LINES = 400


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(tree):
    """The rooms of headwise that a module imports, at whatever depth of its text."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            names = [node.module]
            if node.module == "headwise":
                names = [f"headwise.{alias.name}" for alias in node.names]
        for name in names:
            if name == "headwise" or name.startswith("headwise."):
                yield name.split(".")[1] if "." in name else "", node.lineno


def violations(path, text):
    room = room_of(path)
    if room == "__init__":  # the front door may name everything
        return []
    return [
        f"{path.name}:{line}: {room} imports {other}"
        for other, line in imported_rooms(ast.parse(text))
        if other not in ("_core", *ROOMS[: ROOMS.index(room) + 1])
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_downwards(path):
    assert violations(path, path.read_text()) == []


def test_the_check_itself_sees_an_upward_import():
    assert violations(SOURCE / "envs" / "x.py", "from headwise.algorithms import dqn")
    assert violations(SOURCE / "spaces" / "x.py", "import headwise.training.loop")
    assert violations(SOURCE / "spaces" / "x.py", "def f():\n    from headwise import study")
    assert not violations(SOURCE / "study" / "x.py", "from headwise.training import loop")


def test_every_file_is_in_a_room():
    assert {room_of(path) for path in FILES} <= {*ROOMS, "__init__"}


def test_no_drawer_for_odds_and_ends():
    odds = {"utils", "util", "common", "helpers", "misc"}
    assert not [path for path in FILES if path.stem in odds or path.parent.name in odds]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_are_of_readable_size(path):
    assert len(path.read_text().splitlines()) <= MAX_LINES


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)


@pytest.mark.parametrize("module", ["headwise", "headwise.spaces", "headwise.envs"])
def test_torch_and_the_compiled_module_wait_until_needed(module):
    run_python(
        f"import sys; sys.modules['torch'] = None; import {module}\n"
        "assert 'headwise._core' not in sys.modules"
    )


def test_importing_is_fast():
    code = (
        "import time, gymnasium\n"  # its own import is not ours to speed up
        "start = time.perf_counter()\n"
        "import headwise\n"
        "print(time.perf_counter() - start)"
    )
    assert min(float(run_python(code).stdout) for _ in range(3)) < 0.1
