import csv
import json
import sys
import types

import numpy as np
import pytest

import headwise as hw
from headwise.cli import main
from headwise.training.loggers.mlflow import metric_name
from headwise.training.report import Report


def report(step, **values):
    shown = {"rollout/ep_rew_mean": [1.5, np.nan], "heads/arm[0]/entropy": [0.25, 0.5], **values}
    numbers = {name: np.array(row, dtype=np.float64) for name, row in shown.items()}
    return Report(step, 1000, (3, 8), numbers, np.array([True, True]))


EXPECTED = [
    (100, 3, "rollout/ep_rew_mean", 1.5),  # what is not there yet, NaN, is left out
    (100, 3, "heads/arm[0]/entropy", 0.25),
    (100, 8, "heads/arm[0]/entropy", 0.5),
]


def write(logger, *steps, start=0):
    logger.open((3, 8), start)
    for step in steps:
        logger.write(report(step))
    logger.flush()
    logger.close()


def read_csv(path):
    with open(path) as file:
        rows = list(csv.DictReader(file))
    return [(int(r["step"]), int(r["seed"]), r["name"], float(r["value"])) for r in rows]


def read_jsonl(path):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        (row["step"], row["seed"], name, value)
        for row in rows
        for name, value in row.items()
        if name not in ("step", "seed")
    ]


def read_parquet(path):
    from pyarrow import parquet

    table = parquet.read_table(path)
    columns = (table[name].to_pylist() for name in ("step", "seed", "name", "value"))
    return list(zip(*columns, strict=True))


FILES = {
    "csv": (hw.CSVLogger, "x.csv", read_csv),
    "jsonl": (hw.JSONLLogger, "x.jsonl", read_jsonl),
    "parquet": (hw.ParquetLogger, "x", read_parquet),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_hold_every_number_by_step_seed_and_name(kind, tmp_path):
    make, name, read = FILES[kind]
    write(make(tmp_path / "runs" / name), 100)
    assert read(tmp_path / "runs" / name) == EXPECTED


@pytest.mark.parametrize("kind", FILES)
def test_a_resumed_run_takes_back_what_came_after_its_checkpoint(kind, tmp_path):
    make, name, read = FILES[kind]
    write(make(tmp_path / name), 100, 200, 300)
    write(make(tmp_path / name), 300, 400, start=200)
    assert sorted({row[0] for row in read(tmp_path / name)}) == [100, 200, 300, 400]
    assert len(read(tmp_path / name)) == 4 * len(EXPECTED)
    write(make(tmp_path / name), 100)  # resumed before the first checkpoint: all is taken back
    assert read(tmp_path / name) == EXPECTED


def test_a_full_disk_takes_nothing_from_what_is_written(tmp_path, monkeypatch):
    """The rows that stay are written before the part they are in is deleted."""
    write(hw.ParquetLogger(tmp_path / "x"), 100, 200, 300)
    before = read_parquet(tmp_path / "x")
    logger = hw.ParquetLogger(tmp_path / "x")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(logger._parquet, "write_table", full)
        with pytest.raises(OSError, match="No space"):
            logger.open((3, 8), 200)
    assert read_parquet(tmp_path / "x") == before
    logger.open((3, 8), 200)
    assert sorted({row[0] for row in read_parquet(tmp_path / "x")}) == [100, 200]


@pytest.mark.parametrize("kind", [*FILES, "tensorboard"])
def test_the_numbers_of_another_run_are_noticed(kind, tmp_path):
    make, name, _ = FILES.get(kind, (hw.TensorBoardLogger, "x", None))
    make(tmp_path / name).check_unused()
    write(make(tmp_path / name))  # a run that ended before its first report
    if kind != "tensorboard":
        make(tmp_path / name).check_unused()
    write(make(tmp_path / name), 100)
    with pytest.raises(hw.ConfigError, match=r"another run already; got .*Agent\.load"):
        make(tmp_path / name).check_unused()


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_line_cut_off_by_a_kill_is_dropped(kind, tmp_path):
    make, name, read = FILES[kind]
    write(make(tmp_path / name), 100)
    with open(tmp_path / name, "a") as file:
        file.write('{"step": 10' if kind == "jsonl" else "10")
    write(make(tmp_path / name), 300, start=200)
    assert sorted({row[0] for row in read(tmp_path / name)}) == [100, 300]


def test_odd_names_stay_one_column(tmp_path):
    logger = hw.CSVLogger(tmp_path / "x.csv")
    logger.open((3, 8), 0)
    logger.write(report(100, **{'a,"b"': [1.0, 2.0]}))
    logger.close()
    assert (100, 8, 'a,"b"', 2.0) in read_csv(tmp_path / "x.csv")


def test_tensorboard_has_a_run_for_each_seed_under_the_names_of_the_field(tmp_path):
    from tensorboard.backend.event_processing import event_accumulator as events

    write(hw.TensorBoardLogger(tmp_path), 100, 200, 300)
    write(hw.TensorBoardLogger(tmp_path), 300, 400, start=200)
    for seed, tags in (
        (3, {"rollout/ep_rew_mean", "heads/arm[0]/entropy"}),
        (8, {"heads/arm[0]/entropy"}),
    ):
        log = events.EventAccumulator(str(tmp_path / f"seed_{seed}"))
        log.Reload()
        assert set(log.Tags()["scalars"]) == tags
        scalars = log.Scalars("heads/arm[0]/entropy")
        assert [s.step for s in scalars] == [100, 200, 300, 400]
        assert {s.value for s in scalars} == {0.25 if seed == 3 else 0.5}


def test_weights_and_biases_gets_a_run_for_each_seed(monkeypatch):
    calls = []

    class Run:
        def __init__(self, **settings):
            calls.append(("init", settings))

        def log(self, values, step):
            calls.append(("log", values, step))

        def finish(self):
            calls.append(("finish",))

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=lambda **s: Run(**s)))
    write(hw.WandbLogger("project", "night", mode="offline"), 100)
    assert [call[1]["name"] for call in calls[:2]] == ["night-seed3", "night-seed8"]
    assert calls[0][1]["group"] == "night"
    assert calls[0][1]["reinit"] == "create_new"
    assert calls[0][1]["mode"] == "offline"
    assert calls[0][1]["id"] == "night-seed3"
    assert calls[0][1]["resume"] == "never"  # another run of that name is not written over
    assert calls[2] == ("log", {"rollout/ep_rew_mean": 1.5, "heads/arm[0]/entropy": 0.25}, 100)
    assert calls[-2:] == [("finish",), ("finish",)]
    calls.clear()
    more = {"id": "a/1", "group": "g", "config": {"learning_rate": 0.1}, "tags": ("x",)}
    write(hw.WandbLogger("project", "night", **more), 300, start=200)
    (_, first), *_ = calls
    assert (first["id"], first["name"], first["resume"]) == ("a-1-seed3", "night-seed3", "allow")
    assert (first["group"], first["config"], first["tags"]) == ("g", {"learning_rate": 0.1}, ["x"])


def test_mlflow_gets_a_run_for_each_seed(monkeypatch):
    calls, found = [], {}

    class Client:
        def __init__(self, tracking_uri):
            calls.append(("client", tracking_uri))

        def get_experiment_by_name(self, name):
            return None

        def create_experiment(self, name):
            return "e1"

        def create_run(self, experiment, run_name, tags):
            found[tags["headwise.run"]] = run_name
            calls.append(("run", run_name, tags))
            info = types.SimpleNamespace(run_id=run_name)
            return types.SimpleNamespace(info=info)

        def search_runs(self, experiments, wanted, max_results):
            name = wanted.split("'")[1]
            info = types.SimpleNamespace(run_id=found.get(name))
            return [types.SimpleNamespace(info=info)] if name in found else []

        def log_param(self, run, name, value):
            calls.append(("param", run, name, value))

        def log_batch(self, run, metrics):
            calls.append(("log", run, [m[:2] + m[3:] for m in metrics]))

        def set_terminated(self, run):
            calls.append(("end", run))

    fake = types.SimpleNamespace(
        MlflowClient=Client, entities=types.SimpleNamespace(Metric=lambda *args: args)
    )
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    told = {"tracking_uri": "file:x", "config": {"learning_rate": 0.1}, "tags": {"group": "g"}}
    write(hw.MLflowLogger("headwise", "night", **told), 100)
    assert calls[:3] == [
        ("client", "file:x"),
        ("run", "night-seed3", {"group": "g", "headwise.run": "night-seed3"}),
        ("param", "night-seed3", "learning_rate", "0.1"),
    ]
    assert next(call for call in calls if call[0] == "log") == (
        "log",
        "night-seed3",
        [("rollout/ep_rew_mean", 1.5, 100), ("heads/arm_0_/entropy", 0.25, 100)],
    )
    assert calls[-1] == ("end", "night-seed8")
    calls.clear()
    write(hw.MLflowLogger("headwise", "night"), 300, start=200)  # resumed: the same runs go on
    assert not [call for call in calls if call[0] in ("run", "param")]
    assert calls[-1] == ("end", "night-seed8")
    write(hw.MLflowLogger("headwise", "other"), 300, start=200)  # what there is none of is begun
    assert ("run", "other-seed3", {"headwise.run": "other-seed3"}) in calls
    assert metric_name("heads/arm[0]/entropy") == "heads/arm_0_/entropy"


@pytest.mark.parametrize(
    ("logger", "module"),
    [("WandbLogger", "wandb"), ("MLflowLogger", "mlflow"), ("TensorBoardLogger", "tensorboard")],
)
def test_a_missing_package_is_named_with_its_extra(logger, module, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, module, None)
    arguments = (tmp_path,) if logger == "TensorBoardLogger" else ("project", "name")
    with pytest.raises(hw.ConfigError, match=rf"pip install 'headwise\[{module}\]'"):
        getattr(hw, logger)(*arguments)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("path", ["/proc/nowhere/x", "\0", None, 7])
def test_paths_that_cannot_be_written_to(kind, path):
    with pytest.raises(hw.ConfigError, match="cannot write there"):
        FILES[kind][0](path)


def test_a_flipped_bit_of_a_part_is_said(tmp_path):
    write(hw.ParquetLogger(tmp_path / "x"), 100, 200)
    (part,) = (tmp_path / "x").glob("part-*.parquet")
    good = part.read_bytes()
    for place in (10, 60, 120):
        data = bytearray(good)
        data[place] ^= 16
        part.write_bytes(data)
        with pytest.raises(hw.ConfigError, match=r"cannot read the metrics .*got .*part-.*parquet"):
            hw.ParquetLogger(tmp_path / "x").open((3, 8), 100)


def test_the_command_line_sends_settings(tmp_path, monkeypatch):
    begun = []

    class Run:
        def __init__(self, **settings):
            begun.append(settings)

        def log(self, values, step):
            pass

        def finish(self):
            pass

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=lambda **s: Run(**s)))
    words = [
        "--env",
        "HybridShoot",
        "--total-timesteps",
        "64",
        "--num-envs",
        "2",
        "--n-steps",
        "16",
    ]
    words += [
        "--batch-size",
        "16",
        "--log",
        "wandb",
        "--out",
        str(tmp_path / "mine"),
        "--no-progress",
    ]
    assert main(["train", *words]) == 0
    (settings,) = begun
    assert (settings["project"], settings["id"]) == ("headwise", "mine-seed0")
    assert settings["config"]["settings"]["n_steps"] == 16
