"""Draws the rooms of src/headwise for docs/architecture.md, from the imports: `make pictures`.

A room stands above all that it imports. Arrows that follow from others are left out, and the files
that lie in no folder are one box.
"""

from __future__ import annotations

import ast
from pathlib import Path

import diagram

SOURCE = Path(__file__).parents[1] / "src" / "headwise"
SINGLE = "single files"
"""errors, registry, checks and the like: modules that are not folders."""
ROW, COLUMN, LEFT, RIGHT = 56, 150, 100, 320
"""Where boxes stand: the world and its spaces left, learning and its use right."""


def imports(source: Path = SOURCE) -> dict[str, set[str]]:
    """Which rooms each room imports, at whatever depth of the text; the front door has no room."""
    found: dict[str, set[str]] = {}
    for path in sorted(source.rglob("*.py")):
        room = room_of(path.relative_to(source).parts[0], source)
        others = found.setdefault(room, set()) if room else set()
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module == "headwise":
                names = [f"headwise.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            parts = [name.split(".")[1] for name in names if name.startswith("headwise.")]
            others |= {
                other for part in parts if (other := room_of(part, source)) not in ("", room)
            }
    return found


def room_of(part: str, source: Path) -> str:
    """The room of a module by the first part of its name; none for the front door and C++."""
    name = part.removesuffix(".py")
    if (source / name).is_dir():
        return name
    return SINGLE if name != "__init__" and (source / f"{name}.py").is_file() else ""


def levels(found: dict[str, set[str]]) -> dict[str, int]:
    """How high each room stands: one above the highest that it imports."""
    known: dict[str, int] = {}

    def level(room: str) -> int:
        if room not in known:
            known[room] = 1 + max((level(other) for other in found[room]), default=-1)
        return known[room]

    for room in found:
        level(room)
    return known


def needed(found: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The arrows that do not follow from others."""

    def below(room: str) -> set[str]:
        return found[room].union(*(below(other) for other in found[room]))

    return [
        (room, other)
        for room in sorted(found)
        for other in sorted(found[room])
        if not any(other in below(between) for between in found[room] - {other})
    ]


def panel(found: dict[str, set[str]]) -> tuple[tuple[int, int], diagram.Panel]:
    """The picture and its size."""
    heights = levels(found)
    top = max(heights.values())
    rows = [sorted(room for room in heights if heights[room] == top - i) for i in range(top + 1)]
    boxes = []
    for number, row in enumerate(rows):
        left = [room for room in row if kind_of(room) == "state"]
        right = [room for room in row if room not in left]
        for lane, rooms in ((LEFT, left), (RIGHT, right)):
            for place, room in enumerate(rooms):
                x = lane + COLUMN * place
                boxes.append(diagram.Box(room, kind_of(room), x, 30 + ROW * number))
    width = round(max(box.x for box in boxes)) + 90
    return (width, ROW * len(rows) + 8), diagram.Panel("", 0, 0, boxes, needed(found))


def kind_of(room: str) -> str:
    """A color for what a room is about."""
    learning = ("factorizations", "algorithms", "heads", "nets", "ops", "population")
    use = ("agent", "cli", "export", "training")
    if room in learning:
        return "value"
    if room in use:
        return "action"
    return "weight" if room.startswith(("stud", "report")) else "state"


def main() -> None:
    """Writes the picture."""
    size, drawn = panel(imports())
    diagram.write("rooms", "The rooms of src/headwise, each above those it imports", size, [drawn])


if __name__ == "__main__":
    main()
