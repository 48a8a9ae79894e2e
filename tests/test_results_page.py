"""The page of results/ is made again of what lies there, and of the decoupler's part as it was."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "results" / "report.html"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("page", ROOT / "tools" / "page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_the_page_draws_and_tells_is_that_of_the_files(tool):
    """The stored page has the decoupler's part itself, so it is its own source for that."""
    kept = PAGE.read_text()
    again = tool.page(kept)
    for part in (tool._DATA, "<td.*?</td>", "<figure data-figure.*?>"):
        assert re.findall(part, again, re.S) == re.findall(part, kept, re.S)


def test_every_figure_of_the_paper_is_drawn(tool):
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>',
                         PAGE.read_text(), re.S)  # fmt: skip
    figures = {figure["name"]: figure["panels"] for figure in json.loads(data)["figures"]}
    single = [panels for name, panels in figures.items() if name.startswith("environment-")]
    assert len(single) == 15  # figures 22 to 36
    assert [len(panels) for panels in single] == [3] * 15
    lines = [line for panels in single for panel in panels for line in panel["series"]]
    kinds = [re.search(r"\((mean|engine 2)|$", line["label"])[1] for line in lines]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        None: 86, "engine 2": 48, "mean": 85,
    }  # fmt: skip
    said = " ".join((ROOT / "docs" / "paper.md").read_text().split())
    assert "lines in them 86 are drawn from stored runs; 48 from runs of the same settings" in said
    assert "of 85 there is the mean without its runs" in said
    means = figures["curves-by-type-and-family-paper"]
    assert [panel["title"] for panel in means if ":" in panel["title"]] == [
        "DQN, continuous: 4 of 5 tasks"
    ]
    assert {"curves-by-family-paper", "curves-by-action-type-paper"} < set(figures)
    assert sum(name.startswith(("decoupler-", "importance-", "lambda-")) for name in figures) == 9
