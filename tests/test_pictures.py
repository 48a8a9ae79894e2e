"""The diagrams of the docs are what their scripts draw from the code of today."""

import importlib
from pathlib import Path

import pytest

from headwise.factorizations import factorizations

ROOT = Path(__file__).parents[1]


@pytest.fixture
def tool(monkeypatch):
    """Imports a script of tools/ by name."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module


@pytest.mark.parametrize("name", ["rooms", "factorizations", "topologies"])
def test_every_diagram_is_current(name, tool, tmp_path, monkeypatch):
    assets = tool("diagram").ASSETS
    monkeypatch.setattr(tool("diagram"), "ASSETS", tmp_path)
    tool(f"draw_{name}").main()
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn
    for file in drawn:
        assert (tmp_path / file).read_text() == (assets / file).read_text(), "run `make pictures`"


def test_every_factorization_has_a_diagram(tool):
    assert set(tool("draw_factorizations").diagrams()) == set(factorizations.names())
    page = (ROOT / "docs/factorizations.md").read_text()
    for name in factorizations.names():
        for scheme in ("light", "dark"):
            assert f"assets/factorization-{name}-{scheme}.svg#only-{scheme}" in page


def test_a_room_stands_above_what_it_imports(tool, tmp_path):
    for path, text in {
        "__init__.py": "import headwise.b.x",
        "a/x.py": "def f():\n    from headwise import b, errors",
        "b/x.py": "from headwise.errors import E\nimport headwise.c",
        "c/__init__.py": "import headwise.errors",
        "errors.py": "",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    rooms = tool("draw_rooms")
    found = rooms.imports(tmp_path)
    ground = rooms.SINGLE
    assert found == {"a": {"b", ground}, "b": {"c", ground}, "c": {ground}, ground: set()}
    assert rooms.levels(found) == {"a": 3, "b": 2, "c": 1, ground: 0}
    assert rooms.needed(found) == [("a", "b"), ("b", "c"), ("c", ground)]
