"""Studies log with what agents log with: a run for each run, with its settings, group and tags."""

import csv
import sys
import types
from dataclasses import replace

import numpy as np
import pytest
from tiny_study import contents, tiny_cell, tiny_study

import headwise as hw
from headwise.study import Evaluate, Options, Store, conduct
from headwise.study.live import Live
from headwise.study.planner import Pack

INLINE = Options(executor="inline", device="cpu")
REPORT = hw.Report(10, 20, (3,), {"x": np.ones(1)}, np.ones(1, np.bool_))
CELLS = [replace(tiny_cell(), evaluate=Evaluate(every=0.5, episodes=2, last=3)), tiny_cell("ppo")]


def study():
    return tiny_study(seeds=2, cells=CELLS)


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_every_run_has_its_file_and_results_are_the_same(tmp_path):
    conduct(study(), tmp_path / "calm", INLINE)
    conduct(study(), tmp_path / "told", replace(INLINE, log=("csv", "jsonl", "tensorboard")))
    assert contents(tmp_path / "told") == contents(tmp_path / "calm")
    store, logs = Store(tmp_path / "told"), tmp_path / "told" / "logs"
    for run in study().runs():
        name = f"shoot-hybrid-{run.algorithm}-{run.factorization}-seed{run.seed}-{run.id[:8]}"
        table = rows(logs / "csv" / f"{name}.csv")
        assert {row["seed"] for row in table} == {str(run.seed)}
        last = {row["name"]: float(row["value"]) for row in table if int(row["step"]) >= 64}
        result = store.result(run.id)
        assert last["train/n_updates"] == result["updates"]
        if run.algorithm == "dqn":
            assert last["eval/mean_return"] == result["eval_return"]
        assert (logs / "jsonl" / f"{name}.jsonl").stat().st_size
        assert list((logs / "tensorboard" / name / f"seed_{run.seed}").glob("events.*"))


def test_what_begins_once_more_leaves_nothing_of_before(tmp_path):
    from tensorboard.backend.event_processing import event_accumulator as events

    for _ in range(2):
        logger = hw.TensorBoardLogger(tmp_path)
        logger.open([3], 0)
        logger.write(REPORT)
        logger.close()
    log = events.EventAccumulator(str(tmp_path / "seed_3"))
    log.Reload()
    assert len(log.Scalars("x")) == 1


def test_services_get_settings_group_and_tags(tmp_path, monkeypatch):
    begun = []

    class Run:
        def __init__(self, **settings):
            begun.append(settings)

        def log(self, values, step):
            pass

        def finish(self):
            pass

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=lambda **s: Run(**s)))
    conduct(study(), tmp_path / "one", replace(INLINE, log=("wandb",)))
    conduct(study(), tmp_path / "two", replace(INLINE, log=("wandb",)))
    assert len({settings["id"] for settings in begun}) == len(begun) == 8  # none is written over
    runs = {run.id: run for run in study().runs()}
    for settings in begun:
        run = runs[settings["config"]["id"]]
        assert settings["id"].startswith(run.id)
        assert settings["project"] == "tiny"
        assert settings["group"] == run.cell
        assert settings["tags"] == ["shoot", run.algorithm, run.factorization]
        assert settings["config"]["settings"]["learning_rate"] == run.settings["learning_rate"]
        assert settings["config"]["seed"] == run.seed
        assert settings["resume"] == "never"


def mine(logged):
    """Loggers of my own."""
    return [hw.CSVLogger(logged.folder / "mine" / f"{logged.run.id}.csv")]


@pytest.mark.parametrize("executor", ["inline", "local"])
def test_any_function_makes_loggers(tmp_path, executor):
    conduct(study(), tmp_path, Options(executor=executor, workers=2), loggers=mine)
    for run in study().runs():
        assert rows(tmp_path / "mine" / f"{run.id}.csv")


def test_who_is_under_way_can_be_seen(tmp_path):
    live, pack = Live(tmp_path), Pack(study().runs()[:2])
    first, second = (run.id for run in pack.runs)
    assert live.read() == {}
    live.stepped(pack, 32, [1.5, float("nan")])
    live.stepped(pack, 48, [2.5, 3.5])  # too soon to be written
    assert live.read() == {first: (32, 1.5), second: (32, None)}
    (tmp_path / ".live" / "x.json").write_text("{")
    assert len(Live(tmp_path).read()) == 2
    live.sweep(lambda ids: ids[:1])  # somebody is at it
    assert len(live.read()) == 2
    live.sweep(lambda ids: [])
    assert live.read() == {}
    live = Live(tmp_path)
    live.stepped(pack, 32, [])
    assert live.read()[second] == (32, None)
    live.gone(pack)
    assert live.read() == {}
