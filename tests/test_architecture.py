"""The shape of the house (docs/concepts.md): who may import whom, and what stays free of torch."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "headwise"
ROOMS = [
    "errors", "added", "upgrade", "foreign_names", "described", "registry", "checks", "cores",
    "averages", "csv_cells", "files", "spaces", "envs", "ops", "population", "heads", "nets",
    "factorizations", "algorithms", "training", "export", "agent", "study",
    "report", "studies", "cli",
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
        if other not in ("_core", "__version__", "ENGINE", *ROOMS[: ROOMS.index(room) + 1])
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_downwards(path):
    assert violations(path, path.read_text()) == []


def test_the_check_itself_sees_an_upward_import():
    assert violations(SOURCE / "envs" / "x.py", "from headwise.algorithms import dqn")
    assert violations(SOURCE / "spaces" / "x.py", "import headwise.training.loop")
    assert violations(SOURCE / "spaces" / "x.py", "def f():\n    from headwise import study")
    assert not violations(SOURCE / "study" / "x.py", "from headwise.training import loop")


# --- no circles between folders -------------------------------------------------------------------

IN_CIRCLES = {
    ("envs", "envs/native"),
    ("report", "report/claims"),
    ("report", "report/figures"),
    ("report", "report/tables"),
    ("study", "study/executors"),
    ("training", "training/loggers"),
}
"""Folders that import each other today; there may only be fewer of them."""


def imported_folders(texts):
    """Which folders of its room each folder imports, from the texts of files by path."""
    modules = {
        tuple(Path(path).with_suffix("").parts): Path(path).parent.as_posix() for path in texts
    }
    modules |= {name[:-1]: folder for name, folder in modules.items() if name[-1] == "__init__"}
    found = {}
    for path, text in texts.items():
        own = Path(path).parent.as_posix()
        for node in ast.walk(ast.parse(text)):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                where = tuple(name.split("."))[1:] if name.startswith("headwise.") else ()
                while where and where not in modules:
                    where = where[:-1]
                other = modules.get(where, own)
                if other != own and other.split("/")[0] == own.split("/")[0]:
                    found.setdefault(own, set()).add(other)
    return found


def in_circles(imported):
    """Pairs of folders of which each reaches the other, in order of names."""

    def reached(start):
        seen, ahead = set(), [start]
        while ahead:
            new = imported.get(ahead.pop(), set()) - seen
            seen |= new
            ahead += new
        return seen

    from_each = {folder: reached(folder) for folder in imported}
    pairs = {(folder, other) for folder, others in from_each.items() for other in others}
    return {(a, b) for a, b in pairs if a < b and (b, a) in pairs}


def test_folders_of_a_room_do_not_import_each_other():
    imported = imported_folders({str(p.relative_to(SOURCE)): p.read_text() for p in FILES})
    for folder, inside in IN_CIRCLES:
        assert inside in imported[folder], f"{inside} is in no circle now: take it off the list"
        assert folder in imported[inside], f"{inside} is in no circle now: take it off the list"
        imported[folder].remove(inside)
    assert in_circles(imported) == set()


def test_the_check_itself_sees_a_circle():
    up = {"ops/x.py": "from headwise.ops.triton.adam import step"}
    down = {"ops/triton/adam.py": "def f():\n    from headwise.ops import x", "ops/__init__.py": ""}
    assert in_circles(imported_folders(up | down)) == {("ops", "ops/triton")}
    assert not in_circles(imported_folders(up | {"ops/triton/adam.py": ""}))
    assert not in_circles(imported_folders(down | {"ops/x.py": ""}))
    a = {"ops/a/x.py": "import headwise.ops.b.y", "ops/b/y.py": "from headwise.ops.c import z"}
    assert in_circles(imported_folders(a | {"ops/c/z.py": "from headwise.ops.a.x import f"})) == {
        ("ops/a", "ops/b"), ("ops/a", "ops/c"), ("ops/b", "ops/c"),
    }  # fmt: skip


def test_every_file_is_in_a_room():
    assert {room_of(path) for path in FILES} <= {*ROOMS, "__init__"}


def test_no_drawer_for_odds_and_ends():
    odds = {"utils", "util", "common", "helpers", "misc"}
    assert not [path for path in FILES if path.stem in odds or path.parent.name in odds]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_are_of_readable_size(path):
    assert len(path.read_text().splitlines()) <= MAX_LINES


# --- only population/ names dimension 0 -----------------------------------------------------------

REDUCTIONS = {
    "mean", "sum", "std", "var", "amax", "amin", "median", "prod", "norm", "vector_norm",
    "logsumexp", "softmax", "log_softmax", "quantile",
}  # fmt: skip
ACROSS = {"BatchNorm1d", "BatchNorm2d", "clip_grad_norm_", "clip_grad_value_"}
WITHOUT_TENSORS = ("numpy", "np", "math", "builtins")
LEARNERS = [p for p in FILES if room_of(p) in ("heads", "nets", "factorizations", "algorithms")]


def number_in(node):
    """The whole number that an expression is, if it is one."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def words_of(function):
    """What is called, word by word; an expression that a method is called on is one empty word."""
    if isinstance(function, ast.Attribute):
        return [*words_of(function.value), function.attr]
    return [function.id] if isinstance(function, ast.Name) else [""]


def names_dimension_zero(text):
    """Lines that reduce over dimension 0, over all dimensions, or over one counted from the left.

    A learner counts dimensions from the right, so that its text is that of one member. The sum of
    the members' losses, on which `backward` is called, is the only thing that may cross them.
    """
    tree = ast.parse(text)
    last_sums = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith((".backward", ".grad")):
            last_sums |= {id(argument) for argument in node.args}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = words_of(node.func)
        if name[-1] in ACROSS:
            yield node.lineno, name[-1]
        for keyword in node.keywords:
            number = number_in(keyword.value) if keyword.arg in ("dim", "axis") else None
            if number is not None and number >= 0 and name[0] not in WITHOUT_TENSORS:
                yield node.lineno, f"{keyword.arg}={number}"
        if len(name) < 2 or name[-1] not in REDUCTIONS or name[0] in WITHOUT_TENSORS:
            continue
        given = node.args[1:] if name[0] == "torch" else node.args
        named = any(k.arg in ("dim", "axis") for k in node.keywords)
        if not given and not named and id(node) not in last_sums:
            yield node.lineno, f"{name[-1]} over everything"
        number = number_in(given[0]) if given else None
        if number is not None and number >= 0:
            yield node.lineno, f"{name[-1]} over dimension {number}"


@pytest.mark.parametrize("path", LEARNERS, ids=lambda p: str(p.relative_to(SOURCE)))
def test_only_population_names_dimension_zero(path):
    assert list(names_dimension_zero(path.read_text())) == []


@pytest.mark.parametrize(
    "text",
    [
        "x.mean()", "x.sum(0)", "torch.amax(x)", "x.softmax(dim=0)", "torch.cat([a, b], dim=1)",
        "torch.nn.utils.clip_grad_norm_(p, 1.0)", "nn.BatchNorm1d(3)", "x.std(0, keepdim=True)",
    ],
)  # fmt: skip
def test_the_check_itself_sees_dimension_zero(text):
    assert list(names_dimension_zero(text))


@pytest.mark.parametrize(
    "text",
    [
        "x.mean(-1)", "x.sum((-1, -2))", "torch.cat([a, b], dim=-1)", "np.sum(x)",
        "torch.autograd.backward(loss.sum())", "torch.logsumexp(x, dim=-1)", "max(1, 2)",
    ],
)  # fmt: skip
def test_the_check_itself_lets_the_rest_be(text):
    assert not list(names_dimension_zero(text))


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


# --- the paper's own environments are named in its own room ---------------------------------------

ENVIRONMENTS = ("decoupler", "hybridshoot", "platform", "cooppush", "lander", "shoot", "coop_push")


def names_an_environment(text):
    """The lines that name an environment of ours."""
    lines = enumerate(text.splitlines(), 1)
    return [(n, line.strip()) for n, line in lines if any(e in line.lower() for e in ENVIRONMENTS)]


@pytest.mark.parametrize("room", ["algorithms", "report"])
def test_rooms_that_serve_every_study_know_no_environment(room):
    found = {
        str(path.relative_to(SOURCE)): lines
        for path in (SOURCE / room).rglob("*.py")
        if (lines := names_an_environment(path.read_text()))
    }
    assert found == {}


def test_the_check_itself_sees_an_environment():
    line = "if run.env == 'HybridShoot':"
    assert names_an_environment(f"x = 1\n    {line}") == [(2, line)]
    assert not names_an_environment("if run.env == mine:")
