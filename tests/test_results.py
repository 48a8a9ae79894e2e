"""What is written about our own sweep is what its archive says."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def scores():
    spec = importlib.util.spec_from_file_location("scores", ROOT / "tools" / "scores.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def runs(scores):
    return scores.runs_of(ROOT / "results" / "paper.parquet")


def test_the_table_of_runs_is_that_of_the_archive(scores, runs):
    assert (ROOT / "results" / "paper.csv").read_text() == scores.as_csv(runs)


def test_the_table_of_scores_is_that_of_the_archive(scores, runs):
    assert scores.as_table(runs) in (ROOT / "benchmarks" / "RESULTS.md").read_text()
