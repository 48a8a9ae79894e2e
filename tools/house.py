"""The house in figures: lines, questions about devices, cycles, and how far a gradient step goes.

    python tools/house.py

The files on the way of a gradient step are those of `headwise` in which a function runs while a
learner takes one: the text that somebody reads who wants to know what happens there.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "headwise"
CORE = ("ops", "algorithms", "factorizations", "heads", "nets", "population")
MAY_ASK = ("ops/", "population/", "training/capture", "training/device")
"""Where a question about devices is at home."""
ASKS = re.compile(r"device\.type\b|is_cuda\b|\bis_compiled\b|\bfits\(")

TOUCHED = {
    "factorization": ["src/headwise/factorizations/NAME.py"],
    "algorithm": ["src/headwise/algorithms/NAME.py, or a folder of that name"],
    "operation": ["the file of whoever uses it, with `@operation(compiled=False)`"],
    "operation with a compiled body": [
        "src/headwise/ops/NAME.py", "src/headwise/ops/__init__.py", "cpp/ops/NAME.h",
        "cpp/ops/bind.cpp", "tests/ops/operation_cases.py",
    ],
    "encoder": ["src/headwise/nets/encoders/NAME.py"],
}  # fmt: skip
"""What a new one of each kind is written into (docs/extending.md)."""


def sources() -> dict[str, str]:
    """The text of every file of the package, by its path below it."""
    return {p.relative_to(SOURCE).as_posix(): p.read_text() for p in sorted(SOURCE.rglob("*.py"))}


def lines_by_room(texts: dict[str, str]) -> Counter[str]:
    """Lines of each folder at the top."""
    lines: Counter[str] = Counter()
    for path, text in texts.items():
        lines[path.split("/")[0] if "/" in path else "(top)"] += len(text.splitlines())
    return lines


def device_questions(texts: dict[str, str]) -> Counter[str]:
    """Lines that ask where a tensor is, by file, where that is not the file's business."""
    return Counter(
        path
        for path, text in texts.items()
        if not path.startswith(MAY_ASK)
        for line in text.splitlines()
        if ASKS.search(line)
    )


def cycles(texts: dict[str, str]) -> list[str]:
    """Pairs of folders that import each other."""
    folders = {path.rpartition("/")[0] for path in texts}
    edges = set()
    for path, text in texts.items():
        own = path.rpartition("/")[0]
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("headwise."):
                where = str(node.module).split(".")[1:]
                while where and "/".join(where) not in folders:
                    where.pop()
                edges.add((own, "/".join(where)))
    edges = {edge for edge in edges if all(edge)}  # the front door may name everything
    return sorted(f"{a} <-> {b}" for a, b in edges if a < b and (b, a) in edges)


def step_of(algorithm: str, factorization: str) -> Callable[[], object]:
    """One gradient step of a small learner of hybrid actions (DQN: discrete ones)."""
    from headwise import ActionSpec, Choice, ObsSpec, Range
    from headwise.algorithms import algorithms
    from headwise.algorithms.base import Task
    from headwise.factorizations import factorizations
    from headwise.population import Keys

    second = Choice(3) if algorithm == "dqn" else Range(-1.0, 1.0)
    task = Task(
        spec=ActionSpec.of([Choice(4), second]), obs_spec=ObsSpec.flat(5), num_slots=4,
        total_steps=1000, factorization=factorizations.get(factorization)(), keys=Keys([0]),
    )  # fmt: skip
    learner = algorithms.get(algorithm).small().build(task)
    if algorithm == "ppo":
        batch = learner.batch.part(0, learner.batch_size)
        return lambda: learner.gradient_step(batch)
    return learner.gradient_step


def files_on_the_way(step: Callable[[], object]) -> list[str]:
    """The files of the package in which functions run during a step."""
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add(frame.f_code.co_filename)

    step()  # what is made at the first time is not on the way
    sys.setprofile(note)
    try:
        step()
    finally:
        sys.setprofile(None)
    inside = (Path(name) for name in seen if "/headwise/" in name)
    return sorted(path.as_posix().rpartition("/headwise/")[2] for path in inside)


def main() -> None:
    """Prints all of it."""
    texts = sources()
    lines, asks, pairs = lines_by_room(texts), device_questions(texts), cycles(texts)
    core = ", ".join(f"{room} {lines[room]:,}" for room in CORE)
    print(f"the core: {sum(lines[room] for room in CORE):,} lines ({core})")
    rest = ", ".join(f"{k} {n:,}" for k, n in lines.most_common() if k not in CORE)
    print(f"other rooms: {sum(lines.values()) - sum(lines[room] for room in CORE):,} ({rest})")
    of_core = sum(n for path, n in asks.items() if path.startswith(CORE))
    print(f"questions about devices outside their rooms: {asks.total()}, {of_core} in the core")
    print("  " + ", ".join(f"{path} {n}" for path, n in asks.most_common()))
    print(f"pairs of folders that import each other: {len(pairs)} ({', '.join(pairs)})")
    for algorithm in ("ppo", "dqn", "sac"):
        for factorization in ("shared", "vdn", "qplex", "ar"):
            files = files_on_the_way(step_of(algorithm, factorization))
            print(f"{algorithm} {factorization}: {len(files)} files on the way of a gradient step")
            if factorization == "vdn":
                print("  " + " ".join(files))
    for kind, files in TOUCHED.items():
        print(f"a new {kind}: {len(files)} ({'; '.join(files)})")


if __name__ == "__main__":
    main()
