"""Runs of the sweep by the engine of today: what is stored, and what is said of them."""

import csv
import importlib.util
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from headwise.csv_cells import csv_text
from headwise.report.runs import read_store
from headwise.report.statistics import holm

ROOT = Path(__file__).parents[1]
ARCHIVE = ROOT / "results" / "paper_engine2.parquet"
TABLE = ROOT / "results" / "paper_engines.csv"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("engines", ROOT / "tools" / "engines.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_archive_has_finished_runs_of_engine_2_with_curves():
    store = read_store(ARCHIVE, all_runs=True)
    assert Counter(run.engine for run in store.runs) == {2: 250}
    assert not store.failures
    assert all(np.isfinite(run.curve()).all() for run in store.runs)
    assert Counter((run.task, run.algorithm, run.device) for run in store.runs) == {
        ("platform", "dqn", "cuda"): 80,
        ("platform", "sac", "cuda"): 60,
        ("platform", "ppo", "cpu"): 45,
        ("shoot-dep", "ppo", "cpu"): 30,
        ("shoot-indep", "ppo", "cpu"): 35,
    }


def test_its_planned_runs_are_runs_of_the_sweep():
    planned = read_store(ARCHIVE).runs
    assert len(planned) == 240
    assert {run.id for run in planned} < {
        run.id for run in read_store(ROOT / "results" / "paper.parquet").runs
    }


def test_the_table_is_that_of_the_archives(tool):
    assert TABLE.read_text() == csv_text([[*tool.COLUMNS], *map(list, tool.rows())])


@pytest.mark.parametrize("page", ["benchmarks/RESULTS.md", "docs/paper.md"])
def test_what_is_said_of_both_engines_is_in_the_table(page):
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    same = [row for row in rows if row["seeds"] == "the same"]
    (further,) = (row for row in rows if row["seeds"] != "the same")
    near = sum(abs(float(row["standard_errors"])) <= 2 for row in same)
    worst = max(same, key=lambda row: abs(float(row["standard_errors"])))
    p = min(holm([float(row["p"]) for row in same]))
    text = " ".join((ROOT / page).read_text().split())
    assert f"{near} of {len(same)} cells" in text
    assert (worst["environment"], worst["view"], worst["factorization"]) == (
        "platform", "discrete", "qplex",
    )  # fmt: skip
    assert all(further[name] == worst[name] for name in list(worst)[:4])
    for row in (worst, further):
        one, two, z = (float(row[n]) for n in ("engine_1", "engine_2", "standard_errors"))
        assert f"{one:.2f} to {two:.2f} ({z:.1f} standard errors)" in text
    assert f"p = {p:.2f} after Holm's correction" in text
