"""Exports: marl-eval's JSON and a CSV, checked against the store."""

import csv
import io
import json

import numpy as np
import pytest
from tiny_study import tiny_study

from headwise.study import Store
from headwise.study.export import marl_eval_json, results_csv
from headwise.study.result import EpisodeTable, MetricTable, RunFailure, RunResult


@pytest.fixture
def store(tmp_path):
    study = tiny_study().change(algorithm="ppo", labels={"preset": "sound"})
    store = Store(tmp_path)
    store.begin(study.to_json())
    none = MetricTable(np.empty(0, np.int64), [], np.empty(0, np.float32))
    for run in study.runs()[:3]:
        episodes = EpisodeTable(
            np.array([8, 16, 40], np.int64),
            np.array([1, 3, 10 + run.seed], np.float32),
            np.array([8, 8, 24], np.int32),
        )
        store.put(RunResult(run, episodes, none, {"final_return": 4.5}, {}))
    store.put_failure(RunFailure(study.runs()[3], "ValueError", "no", "", {}))
    return store


def test_marl_eval(store):
    data = json.loads(marl_eval_json(store))
    assert list(data) == ["HybridShoot"]
    assert list(data["HybridShoot"]) == ["shoot/hybrid"]
    algorithms = data["HybridShoot"]["shoot/hybrid"]
    assert {name: list(runs) for name, runs in algorithms.items()} == {
        "dqn/vdn": ["seed_0", "seed_1"],
        "ppo/shared/sound": ["seed_0"],
    }
    entry = algorithms["dqn/vdn"]["seed_1"]
    assert entry.pop("absolute_metrics") == {"mean_episode_return": [4.5]}
    assert list(entry) == [f"step_{k}" for k in range(1, 51)]
    counts = [step["step_count"] for step in entry.values()]
    assert counts == [round(64 * k / 50) for k in range(1, 51)]
    returns = [step["mean_episode_return"][0] for step in entry.values()]
    assert returns == Store(store.folder).curve(store.plan()[1].id).tolist()
    # Steps 8 and 16 are in the sixth and the twelfth fiftieth, 40 in the 31st.
    assert (returns[0], returns[5], returns[11], returns[-1]) == (1.0, 1.0, 3.0, 11.0)


def test_marl_eval_leaves_out_runs_without_a_curve(store):
    for run in store.plan()[:2]:
        (store.runs / run.id / "episodes.parquet").unlink()
    data = json.loads(marl_eval_json(store))
    assert list(data["HybridShoot"]["shoot/hybrid"]) == ["ppo/shared/sound"]


def test_csv(store):
    rows = list(csv.DictReader(io.StringIO(results_csv(store))))
    assert [row["id"] for row in rows] == [run.id for run in store.plan()]
    assert [row["state"] for row in rows] == ["finished"] * 3 + ["failed"]
    assert rows[0]["final_return"] == "4.5"
    assert rows[3]["final_return"] == ""
    assert rows[2]["label_preset"] == "sound"
    assert rows[0]["label_preset"] == ""
    assert rows[1]["seed"] == "1"


def test_what_a_spreadsheet_would_run_is_text(store):
    study = store.study()
    for entry in study["plan"]:
        entry["labels"] = {"preset": "=1+1", "gap": "-0.5"}
    (store.folder / "study.json").write_text(json.dumps(study))
    row = next(csv.DictReader(io.StringIO(results_csv(store))))
    assert (row["label_preset"], row["label_gap"]) == ("'=1+1", "-0.5")
