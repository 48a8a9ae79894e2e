"""The examples of the docs run, and give what they say."""

import re
from pathlib import Path

import synthetic

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
    ledger, store = examples("report.md")
    names = {}
    exec(ledger, names)
    assert names["judge"](names["claim"], names["Evidence"]((), ())).verdict == "holds"
    synthetic.factorial(tmp_path / "runs" / "paper", seeds=1)
    monkeypatch.chdir(tmp_path)
    exec(store, names)
    assert names["store"].table.num_rows == 14
    assert names["returns"].size == 1000
