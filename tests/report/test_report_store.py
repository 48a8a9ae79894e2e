"""Reading a study's folder."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
import synthetic

from headwise.errors import ConfigError, StoreError
from headwise.report import read_store
from headwise.report.runs import pooled
from headwise.studies.paper.decoupler_runs import trait
from headwise.study.tables import read_table, table_bytes


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
    traits = ("view", "algorithm", "estimator", "critic")
    assert tuple(trait(run, name) for name in traits) == (
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


def test_runs_that_are_not_in_the_plan_are_left_out_unless_asked_for(folder):
    study = json.loads((folder / "study.json").read_text())
    kept, dropped, *rest = study["plan"]
    (folder / "study.json").write_text(json.dumps({**study, "plan": [kept, *rest]}))
    store = read_store(folder)
    assert [run.id for run in store] == [kept["id"]]
    assert (store.num_planned, store.num_beside) == (3, 1)
    store = read_store(folder, all_runs=True)
    assert [run.id for run in store] == [kept["id"], dropped["id"]]
    assert (store.num_planned, store.num_beside) == (4, 0)


def test_folders_of_one_study_are_one(tmp_path):
    runs = [synthetic.decoupler_run("ppo", "vdn", "range", seed, 80.0) for seed in range(4)]
    configs = [run[0] for run in runs]
    parts = [
        synthetic.write_store(tmp_path / "a", "mine", runs[:2], unfinished=configs[2:]),
        synthetic.write_store(tmp_path / "b", "mine", runs[1:3], unfinished=[configs[0]],
                              failed=[configs[3]]),
    ]  # fmt: skip
    (store,) = pooled(map(read_store, parts))
    assert (store.name, store.num_planned) == ("mine", 4)
    assert sorted(run.seed for run in store) == [0, 1, 2]  # the one that is in both counts once
    assert [failure.config["seed"] for failure in store.failures] == [3]


def test_other_studies_of_the_same_name_are_told_apart(tmp_path):
    stores = [
        synthetic.write_store(tmp_path / where / "s", "mine",
                              [synthetic.decoupler_run("ppo", "vdn", "range", seed, 80.0)])
        for seed, where in enumerate("xyz")
    ]  # fmt: skip
    found = pooled([*map(read_store, stores)])
    names = ["mine (s)", "mine (s 2)", "mine (s 3)"]
    assert [store.name for store in found] == names
    assert [run.study for store in found for run in store] == names


def test_what_the_action_is_where_no_view_was_asked_for(tmp_path):
    names = ("ContextualDecoupler", "Platform", "Arm")
    runs = [
        (synthetic.config(env, "ppo", "vdn", 0, 10, view=None), ([10], [1.0]), {},
         {"final_return": 1.0})
        for env in names
    ]  # fmt: skip
    store = read_store(synthetic.write_store(tmp_path / "s", "s", runs))
    assert [run.view for run in store] == ["discrete", "hybrid", "as it is"]


def test_names_of_estimators(tmp_path):
    runs = [
        synthetic.decoupler_run("ppo", f, "range", 0, 1.0, settings={"importance": name})
        for f, name in [("vdn", "auto"), ("qplex", "auto"), ("qplex", "range_slope")]
    ]
    store = read_store(synthetic.write_store(tmp_path / "s", "s", runs))
    assert [trait(run, "estimator") for run in store] == ["range", "grad", "range"]


def test_a_folder_without_a_study(tmp_path):
    with pytest.raises(ConfigError, match=r"no study in this folder; got .*headwise study run"):
        read_store(tmp_path)


def test_a_study_that_has_not_begun(tmp_path):
    (tmp_path / "study.json").write_text(json.dumps({"name": "new", "version": 1, "plan": []}))
    assert read_store(tmp_path).runs == ()


FILES = ["result.json", "config.json", "fingerprint.json", "episodes.parquet", "metrics.parquet"]


@pytest.mark.parametrize("name", FILES)
def test_a_broken_file_is_named_and_costs_its_run_alone(folder, name):
    first, second = read_store(folder).runs
    (first.folder / name).write_bytes(b"{ nonsense")
    store = read_store(folder)
    assert [run.id for run in store] == [second.id]
    assert store.num_planned == 4
    (damaged,) = store.damaged
    assert damaged.id == first.id
    assert re.search(name.replace(".", r"\.") + ".*Delete the run's folder", damaged.why)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("result.json", '{"final_return": "many"}'),
        ("result.json", '{"final_return": {"mean": 1}}'),
        ("result.json", "[" * 100_000),
        ("config.json", '{"env": "Platform", "seed": 0}'),
        ("curve.json", '{"returns": [1, 2]}'),
    ],
)
def test_a_file_that_says_something_else_costs_its_run_alone(folder, name, text):
    first, second = read_store(folder).runs
    (first.folder / name).write_text(text)
    store = read_store(folder)
    assert [run.id for run in store] == [second.id]
    assert [run.id for run in store.damaged] == [first.id]


def test_a_flipped_bit_of_a_table_is_found(folder):
    first, second = read_store(folder).runs
    path = first.folder / "episodes.parquet"
    path.write_bytes(table_bytes(read_table(path)))
    assert len(read_store(folder).runs) == 2
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert [run.id for run in read_store(folder)] == [second.id]


def test_a_folder_whose_name_is_not_the_hash_of_its_configuration(folder):
    first, second = read_store(folder).runs
    left = read_store(folder).plan - {first.id, second.id}
    other = first.folder.with_name(min(left - {f.id for f in read_store(folder).failures}))
    first.folder.rename(other)
    config = json.loads((second.folder / "config.json").read_text())
    (second.folder / "config.json").write_text(json.dumps({**config, "total_timesteps": 5}))
    store = read_store(folder)
    assert store.runs == ()
    assert {run.id for run in store.damaged} == {other.name, second.id}
    assert all("not the hash of its configuration" in run.why for run in store.damaged)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("env_settings", [1, 2]),
        ("settings", 1.5),
        ("settings", {"gae_lambda": "long"}),
        ("settings", {"gae_lambda": [0.9, 0.8]}),
        ("total_timesteps", 10**30),
        ("seed", "x"),
        ("num_envs", float("inf")),
    ],
)
def test_a_configuration_of_no_run_costs_its_run_alone(tmp_path, name, value):
    """Its folder has the name that is its hash."""
    good = [synthetic.decoupler_run("ppo", "vdn", "range", seed, 80.0) for seed in range(2)]
    config, *others = good[0]
    bad = {**config, name: value}
    store = read_store(synthetic.write_store(tmp_path / "s", "s", [*good, (bad, *others)]))
    assert [run.config for run in store] == [config for config, *_ in good]
    assert [run.id for run in store.damaged] == [synthetic.run_id(bad)]


def test_labels_are_checked_though_they_are_not_hashed(folder):
    first = read_store(folder).runs[0]
    config = json.loads((first.folder / "config.json").read_text())
    (first.folder / "config.json").write_text(json.dumps({**config, "labels": [1]}))
    assert [run.id for run in read_store(folder).damaged] == [first.id]


def test_a_failure_that_cannot_be_read_costs_nothing_else(folder):
    failed = read_store(folder).failures[0].id
    (folder / "runs" / failed / "error.json").write_text("{")
    store = read_store(folder)
    assert ([run.id for run in store.damaged], store.failures) == ([failed], ())
    assert len(store.runs) == 2


def test_a_run_that_one_of_two_folders_has_whole_is_not_missing(tmp_path):
    runs = [synthetic.decoupler_run("ppo", "vdn", "range", seed, 80.0) for seed in range(2)]
    parts = [synthetic.write_store(tmp_path / name, "mine", runs) for name in "ab"]
    first, second = read_store(parts[0]).runs
    (first.folder / "result.json").write_text("{")
    (store,) = pooled(map(read_store, parts))
    assert {run.id for run in store} == {first.id, second.id}
    assert store.damaged == ()


@pytest.mark.parametrize(
    "text",
    ["[]", "{ nonsense", '{"version": 1}', '{"plan": {}}', '{"plan": [{"seed": 1}]}', "[" * 10**5],
)
def test_a_broken_plan_costs_no_run(folder, text):
    (folder / "study.json").write_text(text)
    with pytest.raises(StoreError, match=r"study\.json.*Delete that file and run the study again"):
        read_store(folder)


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
