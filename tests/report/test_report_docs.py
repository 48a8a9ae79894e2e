"""The examples of the docs run, and give what they say."""

import re
from pathlib import Path

import synthetic

from headwise.report import Results
from headwise.report.registry import own

DOCS = Path(__file__).parents[2] / "docs"


def examples(page):
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S)


def test_statistics(capsys):
    (code,) = examples("statistics.md")
    names = {}
    exec(code, names)
    assert capsys.readouterr().out == "0.55 [0.5024, 0.5976]\n0.8125 [0.5625, 1]\n"
    assert names["st"].seeds_needed(difference=0.05, sd_ours=0.06, sd_theirs=0.06) == 24


def test_report(tmp_path, monkeypatch):
    ledger, *_, store = examples("report.md")
    names = {}
    exec(ledger, names)
    assert names["judge"](names["claim"], names["Evidence"]((), ())).verdict == "holds"
    synthetic.factorial(tmp_path / "runs" / "paper", seeds=1)
    monkeypatch.chdir(tmp_path)
    exec(store, names)
    assert names["store"].table.num_rows == 14
    assert names["returns"].size == 1000


def test_results(tmp_path, monkeypatch, capsys):
    _, asked, anybody, mine, _ = examples("report.md")
    some = {name: synthetic.ENVIRONMENTS[name] for name in ("platform", "lander")}
    synthetic.sweep(tmp_path / "runs" / "paper", 3, 40, some)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Results, "metric", lambda self, name: self)  # made-up runs have none
    names = {}
    exec(asked, names)
    assert names["gain"].tasks == 4
    assert (tmp_path / "out" / "index.html").is_file()
    exec(anybody, names)
    said = capsys.readouterr().out
    assert "factorization" in said
    assert "2 tasks, 3 seeds" in said
    try:
        exec(mine, names)
        page = names["results"].report("again", formats=()).read_text()
    finally:
        own.clear()
    assert "VDN-PPO beats shared PPO." in page
    assert "What 264 runs say." in page
    assert "PPO on the hybrid view" in page
