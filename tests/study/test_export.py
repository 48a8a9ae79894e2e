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
        # Of 64 steps: two episodes in the first quarter, none in the second, one in the third.
        episodes = EpisodeTable(
            np.array([8, 16, 40], np.int64),
            np.array([1, 3, 10 + run.seed], np.float32),
            np.array([8, 8, 24], np.int32),
        )
        store.put(RunResult(run, episodes, none, {"final_return": 4.5}, {}))
    store.put_failure(RunFailure(study.runs()[3], "ValueError", "no", "", {}))
    return store


def test_marl_eval(store):
    data = json.loads(marl_eval_json(store, points=4))
    assert list(data) == ["HybridShoot"]
    assert list(data["HybridShoot"]) == ["shoot/hybrid"]
    algorithms = data["HybridShoot"]["shoot/hybrid"]
    assert {name: list(runs) for name, runs in algorithms.items()} == {
        "dqn/vdn": ["seed_0", "seed_1"],
        "ppo/shared/sound": ["seed_0"],
    }
    assert algorithms["dqn/vdn"]["seed_1"] == {
        "step_1": {"step_count": 16, "mean_episode_return": [2.0]},
        "step_2": {"step_count": 32, "mean_episode_return": [2.0]},
        "step_3": {"step_count": 48, "mean_episode_return": [11.0]},
        "step_4": {"step_count": 64, "mean_episode_return": [11.0]},
        "absolute_metrics": {"mean_episode_return": [4.5]},
    }


def test_csv(store):
    rows = list(csv.DictReader(io.StringIO(results_csv(store))))
    assert [row["id"] for row in rows] == [run.id for run in store.plan()]
    assert [row["state"] for row in rows] == ["finished"] * 3 + ["failed"]
    assert rows[0]["final_return"] == "4.5"
    assert rows[3]["final_return"] == ""
    assert rows[2]["label_preset"] == "sound"
    assert rows[0]["label_preset"] == ""
    assert rows[1]["seed"] == "1"
