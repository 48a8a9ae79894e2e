"""Studies of layout 1: read as they are, brought to layout 2, gone on with; and checkpoints."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from layout_1 import PRINTS, as_in_layout_1, golden, write_study
from study_goldens import tiny

import headwise as hw
from headwise.added import canonical_json
from headwise.cli.study import main
from headwise.errors import ConfigError, StoreError
from headwise.report.runs import read_store
from headwise.study import Options, Store, conduct
from headwise.study.archive import read_archive, write_archive
from headwise.study.archive_file import write_archive_file
from headwise.study.locks import Locks
from headwise.study.migrate import migrate
from headwise.upgrade import upgrade


def bytes_of(folder):
    """The files of every run but for what it is, by the run's id today."""
    store = Store(folder)
    return {
        id_: {
            path.name: path.read_bytes()
            for path in sorted(store.record(id_).folder.iterdir())
            if path.name != "config.json"
        }
        for id_ in store.run_ids()
    }


def test_a_folder_of_layout_1_is_read_as_it_is(tmp_path):
    runs = write_study(tmp_path / "s")
    store, planned = Store(tmp_path / "s"), {run.id: run for run in tiny().runs()}
    assert store.plan() == list({run.id: run for run in store.plan()}.values())
    assert {run.id: run for run in store.plan()} == planned
    assert set(store.run_ids()) == set(planned)
    assert store.ids_beside() == []
    assert all(map(store.is_finished, planned))
    records = {record.id: record for record in store.records()}
    assert records.keys() == planned.keys()
    for id_, (config, scalars, tables) in runs.items():
        record = records[upgrade({**config, "id": id_})["id"]]
        assert record.why == ""
        assert record.config == upgrade(config)
        assert record.result == scalars
        assert record.steps == config["steps"]
        assert list(record.episodes()[0]) == tables["episodes"]["step"]
    assert len(read_store(tmp_path / "s").runs) == len(runs)


def test_nothing_is_put_into_it_until_it_is_migrated(tmp_path):
    write_study(tmp_path / "s")
    with pytest.raises(StoreError, match=r"layout 1; allowed: layout 2\. `headwise study migrate"):
        conduct(tiny(), tmp_path / "s", Options(executor="inline", device="cpu"))


def test_migrated_it_has_the_same_results_under_new_names(tmp_path, capsys):
    lost = next(iter(golden()))
    runs = write_study(tmp_path / "s", leave_out=[lost])
    before = bytes_of(tmp_path / "s")
    assert main(["migrate", str(tmp_path / "s")]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "layout 1 became 2, 7 runs were renamed" in said
    old, config = next((id_, run[0]) for id_, run in runs.items() if id_ != lost)
    assert f"{old} is {upgrade({**config, 'id': old})['id']}" in said
    assert bytes_of(tmp_path / "s") == before
    names = {path.name for path in (tmp_path / "s" / "runs").iterdir()}
    assert names == set(before)
    assert json.loads((tmp_path / "s" / "study.json").read_text())["version"] == 2
    assert main(["migrate", str(tmp_path / "s")]) == 0
    assert "nothing to do" in capsys.readouterr().err


def test_a_migrated_study_goes_on_with_what_is_missing(tmp_path):
    lost = [id_ for id_, run in golden().items() if run[0]["algorithm"] == "dqn"][:1]
    write_study(tmp_path / "s", leave_out=lost)
    migrate(tmp_path / "s")
    options = Options(executor="inline", device="cpu", only="dqn")
    assert conduct(tiny(), tmp_path / "s", options).finished == 2
    store = Store(tmp_path / "s")
    assert all(store.is_finished(run.id) for run in tiny().runs())


@pytest.mark.parametrize("moment", range(1, 25, 3))
def test_it_may_be_killed_at_any_moment(moment, tmp_path, monkeypatch):
    """Every file that is replaced and every folder that is renamed is a moment."""
    write_study(tmp_path / "s")
    before, calls = bytes_of(tmp_path / "s"), []

    def stopping(own):
        def stopped(*args):
            calls.append(args)
            if len(calls) == moment:
                raise KeyboardInterrupt
            return own(*args)

        return stopped

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", stopping(__import__("os").replace))
        patched.setattr(Path, "rename", stopping(Path.rename))
        try:
            migrate(tmp_path / "s")
        except KeyboardInterrupt:
            assert bytes_of(tmp_path / "s") == before
            assert all(record.why == "" for record in Store(tmp_path / "s").records())
    migrate(tmp_path / "s")
    assert bytes_of(tmp_path / "s") == before
    assert {path.name for path in (tmp_path / "s" / "runs").iterdir()} == set(before)


def test_nobody_else_may_be_at_work(tmp_path):
    write_study(tmp_path / "s")
    with (
        Locks(tmp_path / "s") as locks,
        locks.planning(),
        pytest.raises(StoreError, match="another process is at work"),
    ):
        migrate(tmp_path / "s")


def test_a_run_whose_configuration_was_changed_is_damaged(tmp_path):
    runs = write_study(tmp_path / "s")
    id_ = next(iter(runs))
    path = tmp_path / "s" / "runs" / id_ / "config.json"
    path.write_text(json.dumps({**runs[id_][0], "steps": 65}))
    damaged = [record for record in Store(tmp_path / "s").records() if record.why]
    assert [record.folder.name for record in damaged] == [id_]
    study = json.loads((tmp_path / "s" / "study.json").read_text())
    study["plan"][0]["seed"] = 5
    (tmp_path / "s" / "study.json").write_text(json.dumps(study))
    with pytest.raises(StoreError, match="id is not the hash"):
        Store(tmp_path / "s").plan()


def test_an_archive_of_layout_1_is_read_and_archived_anew(tmp_path):
    rows, runs = [], golden()
    for config, scalars, _ in runs.values():
        texts = {"config": config, "result": scalars, "fingerprint": PRINTS}
        rows.append({name: canonical_json(data) for name, data in texts.items()})
        rows[-1] |= {"error": None, "curve": np.arange(50.0).tolist()}
    beside = list(runs)[:1]
    study = {"name": "tiny", "version": 1, "about": "", "thresholds": [0.0]}
    write_archive_file(tmp_path / "x.parquet", study, beside, rows)
    old = read_archive(tmp_path / "x.parquet")
    write_archive(old, tmp_path / "y.parquet")
    new = read_archive(tmp_path / "y.parquet")
    for store in (old, new):
        assert store.study()["version"] == 2
        assert len(store.plan()) == 7
        ids = {upgrade({**config, "id": id_})["id"] for id_, (config, *_) in runs.items()}
        assert set(store.run_ids()) == ids
        assert store.ids_beside() == [upgrade({**runs[i][0], "id": i})["id"] for i in beside]
        assert all(record.why == "" for record in store.records(all_runs=True))


@pytest.mark.parametrize("algo", ["ppo", "dqn", "sac"])
def test_a_checkpoint_of_layout_1_goes_on_to_the_bit(algo, tmp_path):
    small = {
        "ppo": {"n_steps": 8, "batch_size": 16, "normalize_advantage": False},
        "dqn": {"learning_starts": 16, "batch_size": 8, "buffer_size": 200},
        "sac": {"learning_starts": 16, "batch_size": 8, "buffer_size": 200, "ent_coef": "auto"},
    }[algo]
    agent = hw.Agent(
        algo, "HybridShoot", num_envs=4, net_arch=(8,), normalize_obs=True, **small
    ).learn(64, progress=False)
    for name in ("x.zip", "y.zip"):
        agent.save(tmp_path / name)
    as_in_layout_1(tmp_path / "x.zip")
    old, new = (hw.Agent.load(tmp_path / name) for name in ("x.zip", "y.zip"))
    assert old.config == new.config == agent.config
    for one in (old, new):
        one.learn(64, progress=False)
    ours, theirs = (one.loop.state_dict() for one in (old, new))
    assert ours.keys() == theirs.keys()
    for part, tensors in ours.items():
        for name, x in tensors.items():
            same = torch.equal(torch.nan_to_num(x), torch.nan_to_num(theirs[part][name]))
            assert same or part == "metrics", (part, name)


def test_a_layout_of_the_future_is_refused(tmp_path):
    write_study(tmp_path / "s")
    study = json.loads((tmp_path / "s" / "study.json").read_text())
    (tmp_path / "s" / "study.json").write_text(json.dumps({**study, "version": 3}))
    with pytest.raises(StoreError, match="another layout; got 3; allowed: 1 or 2"):
        Store(tmp_path / "s").plan()
    write_archive_file(
        tmp_path / "x.parquet", {"name": "x", "version": 3, "about": "", "thresholds": []}, (), []
    )
    with pytest.raises(ConfigError, match="another layout; got 3"):
        read_archive(tmp_path / "x.parquet")
