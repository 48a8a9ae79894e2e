"""The file of mean curves has a line for the cells without stored ones, and what it must."""

import csv
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from headwise.report import read_store
from headwise.study.measures import NUM_POINTS

ROOT = Path(__file__).parents[1]
FILE = ROOT / "results" / "paper_mean_curves.csv"
CELL = ("environment", "view", "algorithm", "factorization")
NEVER = ("shoot-indep", "continuous", "dqn", "qplex")  # a line without a point


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def cell_of(row):
    return tuple(row[name] for name in CELL)


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("mean_curves", ROOT / "tools" / "mean_curves.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def lines():
    """By cell: how many runs, how many steps, and mean, low and high."""
    found = {}
    for row in rows_of(FILE):
        values = np.array([float(row[str(i)]) for i in range(1, NUM_POINTS + 1)])
        kept = found.setdefault(cell_of(row), (int(row["runs"]), int(row["steps"]), {}))
        assert kept[:2] == (int(row["runs"]), int(row["steps"]))
        assert row["of"] not in kept[2]
        kept[2][row["of"]] = values
    return found


@pytest.fixture(scope="module")
def runs():
    """The runs of the sweep by cell: steps, and whether the curve is stored."""
    found = {}
    for run in read_store(ROOT / "results" / "paper.parquet").runs:
        cell = run.task, run.view, run.algorithm, run.factorization
        found.setdefault(cell, []).append((run.steps, np.isfinite(run.curve()).any()))
    return found


def test_it_has_the_cells_without_curves_and_no_other(lines, runs):
    bare = {cell for cell, those in runs.items() if not any(stored for *_, stored in those)}
    whole = {cell for cell, those in runs.items() if all(stored for *_, stored in those)}
    assert len(runs) == len(bare) + len(whole) == 220
    assert set(lines) == bare - {NEVER}
    assert NEVER in bare
    assert len(lines) == 133


def test_lines_are_means_of_two_to_five_runs_over_the_whole_budget(lines, runs):
    for cell, (seeds, steps, values) in lines.items():
        assert 2 <= seeds <= 5
        assert {steps} == {steps_of_run for steps_of_run, *_ in runs[cell]}
        assert set(values) == {"mean", "low", "high"}
        assert all(np.isfinite(v).all() for v in values.values()), cell
        assert (values["low"] <= values["mean"]).all()
        assert (values["mean"] <= values["high"]).all()


def test_lines_of_all_runs_end_near_their_final_returns(lines, runs):
    """Other episodes are in both means, so they are near each other and not the same."""
    scores = {}
    for row in rows_of(ROOT / "results" / "paper.csv"):
        scores.setdefault(cell_of(row), []).append(float(row["final_return"]))
    spans = {}
    for (environment, *_), (_, _, values) in lines.items():
        spans.setdefault(environment, []).append(values["mean"])
    spans = {env: np.max(means) - np.min(means) for env, means in spans.items()}
    compared = [cell for cell, (seeds, *_) in lines.items() if seeds == len(runs[cell]) == 5]
    assert len(compared) == 79
    for cell in compared:
        gap = lines[cell][2]["mean"][-1] - np.mean(scores[cell])
        assert abs(gap) < 0.05 * spans[cell[0]], cell


def test_the_tool_makes_such_a_file(tool):
    line = {"key": "vdn", "num_runs": 2, "y": [1.0 + i for i in range(NUM_POINTS)]}
    line |= {"low": [0.5] * NUM_POINTS, "high": [60.0] * NUM_POINTS}
    nothing = {"key": "qplex", "num_runs": 0, "y": [None] * NUM_POINTS}
    panel = {"tags": {"environment": "push", "view": "hybrid", "algorithm": "sac"},
             "x": [20.0, 1000.0], "series": [line, nothing]}  # fmt: skip
    data = {"figures": [{"name": "environment-push", "panels": [panel]},
                        {"name": "curves-by-family", "panels": [panel]}]}  # fmt: skip
    html = f'<script type="application/json" id="data">{json.dumps(data)}</script>'
    head, mean, low, high = tool.as_csv(tool.panels_of(html)).splitlines()
    assert head == FILE.read_text().splitlines()[0]
    assert mean.startswith("push,hybrid,sac,vdn,2,1000,mean,1.0,2.0,3.0")
    assert low.startswith("push,hybrid,sac,vdn,2,1000,low,0.5,0.5")
    assert high.endswith(",60.0")
