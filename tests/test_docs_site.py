"""The site: every public name is in the reference, named files exist, and nothing is fetched."""

import re
from pathlib import Path

import pytest

import headwise as hw

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.mark.parametrize("name", hw.__all__)
def test_every_public_name_is_in_the_reference(name):
    page = (DOCS / "reference/index.md").read_text()
    assert re.search(rf"^(::: headwise\.{name}$|\[`headwise\.{name}`\]\()", page, re.MULTILINE)


def test_the_reference_names_nothing_else():
    page = (DOCS / "reference/index.md").read_text()
    assert set(re.findall(r"^(?:::: |\[`)headwise\.(\w+)", page, re.MULTILINE)) == set(hw.__all__)


def test_every_file_that_the_architecture_names_exists():
    page = (DOCS / "architecture.md").read_text()
    named = set(re.findall(r"`([\w/]+\.(?:py|h))`", page))
    assert len(named) > 20
    tops = (ROOT, ROOT / "src/headwise")
    assert [file for file in named if not any((top / file).is_file() for top in tops)] == []


def test_every_room_is_described():
    page = (DOCS / "architecture.md").read_text()
    table = page[page.index("| room |") : page.index("The C++ side")]
    rooms = {path.parent.name for path in (ROOT / "src/headwise").glob("*/__init__.py")}
    described = set(
        re.findall(r"`(\w+)`", table.replace("(`native`)", "").replace("`foreign`", ""))
    )
    assert rooms - described == set()


def test_no_page_loads_anything_from_elsewhere():
    texts = [(ROOT / "mkdocs.yml").read_text().split("extra_css")[1]]
    texts += [path.read_text() for path in DOCS.rglob("*.css")]
    texts += [path.read_text() for path in (DOCS / "javascripts").glob("*.js")]
    for text in texts:
        assert not re.search(r"(?:url\(|src=|:\s|import )[\"']?https?://", text)


def test_pictures_of_the_front_page_are_small():
    picture = DOCS / "assets/agents.webp"
    assert 100_000 < picture.stat().st_size < 2_000_000
    assert picture.read_bytes()[8:12] == b"WEBP"
