"""Reading a study's folder."""

import json
import subprocess
import sys

import numpy as np
import pytest
import synthetic

from headwise.errors import ConfigError
from headwise.report import read_store


@pytest.fixture
def folder(tmp_path):
    done = [synthetic.decoupler_run("ppo", "vdn", "range", seed, 80.0) for seed in (3, 1)]
    left = synthetic.config("ContextualDecoupler", "ppo", "vdn", 7, 100_000)
    failed = synthetic.config("ContextualDecoupler", "dqn", "vdn", 8, 100_000)
    return synthetic.write_store(tmp_path / "s", "mine", done, "Why?", [left], [failed])


def test_a_store_has_its_runs_in_the_order_of_the_plan(folder):
    store = read_store(folder)
    assert (store.name, store.about, store.num_planned) == ("mine", "Why?", 4)
    assert [run.seed for run in store] == [3, 1]
    assert [f.error["type"] for f in store.failures] == ["EnvError"]
    run = store.runs[0]
    assert (run.view, run.algorithm, run.estimator, run.critic) == (
        "discrete", "ppo", "range", "online",
    )  # fmt: skip


def test_tables(folder):
    run = read_store(folder).runs[0]
    step, returns = run.episodes()
    assert step.shape == returns.shape == (1000,)
    assert step[-1] == 100_000
    at, values = run.metric("credit/accuracy")
    assert at.size == values.size == 48
    assert run.metric("nothing")[0].size == 0
    assert run.score == pytest.approx(returns[-100:].mean(), abs=1e-4)
    assert np.isnan(run.number("act_flops"))
    table = read_store(folder).table
    assert table.num_rows == 2
    assert {"id", "task", "seed", "steps", "final_return", "diverged"} <= set(table.column_names)
    assert table.column("seed").to_pylist() == [3, 1]


def test_names_of_estimators(tmp_path):
    runs = [
        synthetic.decoupler_run("ppo", f, "range", 0, 1.0, settings={"importance": name})
        for f, name in [("vdn", "auto"), ("qplex", "auto"), ("qplex", "range_slope")]
    ]
    store = read_store(synthetic.write_store(tmp_path / "s", "s", runs))
    assert [run.estimator for run in store] == ["range", "grad", "range"]


def test_a_folder_without_a_study(tmp_path):
    with pytest.raises(ConfigError, match=r"no study in this folder; got .*headwise study run"):
        read_store(tmp_path)


def test_a_study_that_has_not_begun(tmp_path):
    (tmp_path / "study.json").write_text(json.dumps({"name": "new", "version": 1, "plan": []}))
    assert read_store(tmp_path).runs == ()


@pytest.mark.parametrize("name", ["result.json", "config.json", "episodes.parquet"])
def test_a_broken_file_is_named(folder, name):
    run = read_store(folder).runs[0]
    (run.folder / name).write_bytes(b"{ nonsense")
    with pytest.raises(ConfigError, match=name.replace(".", r"\.") + ".*Delete the run's folder"):
        read_store(folder).runs[0].episodes()


def test_episodes_may_be_deleted(folder):
    run = read_store(folder).runs[0]
    assert len(run.episodes()[0]) > 0
    (run.folder / "episodes.parquet").unlink()
    assert [len(column) for column in run.episodes()] == [0, 0]


def test_reading_and_reporting_need_no_torch():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import headwise.report.write\n"
        "assert 'headwise._core' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_room_is_cheap():
    code = (
        "import sys, headwise.report\n"
        "assert not {'matplotlib', 'pyarrow', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
