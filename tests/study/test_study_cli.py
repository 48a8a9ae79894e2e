"""`headwise study`: run, status, export, as a user types them."""

import csv
import errno
import json
import os
import shutil

import pyarrow.parquet as parquet
import pytest

from headwise import ENGINE
from headwise.cli import main
from headwise.cli import study as study_cli
from headwise.study import Store
from headwise.study.live import Live
from headwise.study.locks import Locks
from headwise.study.planner import Pack

STUDY = """
from headwise.study import Study

def make(smoke=False, total_timesteps=64):
    study = Study.grid(
        "mine" + ("-smoke" if smoke else ""),
        environments=["HybridShoot"],
        views=["hybrid"],
        algorithms=["dqn"],
        factorizations=["vdn", "shared"],
        total_timesteps=32 if smoke else total_timesteps,
        seeds=2,
        num_envs=4,
        settings={"net_arch": (8, 8), "learning_starts": 8, "batch_size": 8, "buffer_size": 64},
    )
    return study.without(factorization="shared") if smoke else study
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "mine.py").write_text(STUDY)
    return tmp_path


def call(*words):
    return main(["study", *words])


def test_run_status_and_export(here, capsys):
    assert call("run", "mine", "--executor", "inline") == 0
    assert "4 of 4 runs are finished in runs/mine" in capsys.readouterr().err
    assert call("status", "mine") == 0
    assert "HybridShoot" in capsys.readouterr().err
    assert call("export", "mine") == 0
    assert len(capsys.readouterr().out.splitlines()) == 5
    assert call("export", "mine", "--format", "marl-eval", "--out", "out/curves.json") == 0
    curves = json.loads((here / "out/curves.json").read_text())
    assert set(curves["HybridShoot"]["HybridShoot/hybrid"]) == {"dqn/vdn", "dqn/shared"}


def test_a_study_is_found_by_its_file_and_its_name_wherever_its_folder_is_asked_for(here, capsys):
    other = STUDY.replace('"mine"', '"yours"')
    (here / "other.py").write_text(other)
    (here / "studies" / "third.py").write_text(other)
    assert call("run", "other.py", "--executor", "inline", "--only", "vdn*seed0") == 0
    for named in ("yours", "runs/yours", "other.py", "third", "studies/third.py"):
        capsys.readouterr()
        assert call("export", named) == 0
        assert len(capsys.readouterr().out.splitlines()) == 5


def test_what_cannot_be_written_is_one_message_and_leaves_what_was_there(here, capsys, monkeypatch):
    assert call("run", "mine", "--executor", "inline", "--only", "vdn*seed0") == 0
    (here / "file").write_text("")
    for words in (
        ("export", "mine", "--out", "file/x.csv"),
        ("archive", "mine", "--out", "/proc/x"),
    ):
        assert call(*words) == 2
        assert "cannot write" in capsys.readouterr().err
    (here / "x.csv").write_text("before")

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert call("export", "mine", "--out", "x.csv") == 2
    assert "cannot write x.csv; got No space left on device" in capsys.readouterr().err
    assert (here / "x.csv").read_text() == "before"
    assert not [path for path in here.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("result.json", ("export", "mine")),
        ("result.json", ("run", "mine", "--dry-run")),
        ("episodes.parquet", ("archive", "mine")),
        ("config.json", ("export", "mine", "--format", "marl-eval")),
    ],
)
def test_a_damaged_run_is_one_message(here, capsys, name, words):
    assert call("run", "mine", "--executor", "inline", "--only", "vdn*seed0") == 0
    (path,) = (here / "runs/mine/runs").glob(f"*/{name}")
    path.write_text("[1]")
    capsys.readouterr()
    assert call(*words) == 2
    assert f"cannot read {path.relative_to(here)}" in one_line(capsys)


def test_studies_are_listed(here, capsys):
    (here / "studies" / "mine.py").write_text('"""What is mine?"""\n')
    assert call("list") == 0
    said = capsys.readouterr().out
    assert "What is mine?" in said
    assert "lambda_sweep" in said


def test_archive_and_restore(here, capsys):
    assert call("run", "mine", "--executor", "inline", "--only", "vdn") == 0
    assert call("archive", "mine") == 0
    assert "wrote mine.parquet: 2 of 4 runs, " in capsys.readouterr().err
    assert call("archive", "runs/mine", "--out", "results/mine.parquet") == 0
    shutil.rmtree(here / "runs")
    assert call("restore", "results/mine.parquet", "mine.parquet") == 0
    said = capsys.readouterr().err
    assert "results/mine.parquet: 2 new runs; 2 are finished in runs/mine" in said
    assert "mine.parquet: 0 new runs; 2 are finished in runs/mine" in said
    assert call("run", "mine", "--executor", "inline") == 0
    assert "4 of 4 runs are finished in runs/mine" in capsys.readouterr().err
    assert call("restore", "mine.parquet", "--out", "elsewhere") == 0
    assert len(list((here / "elsewhere/runs").iterdir())) == 2
    for words, complaint in (
        (("restore",), "nothing to restore"),
        (("restore", "absent.parquet"), "cannot read absent.parquet; got No such file"),
        (("restore", "studies/mine.py"), "studies/mine.py is no archived study"),
        (("archive", "absent"), "there is no study in absent"),
    ):
        assert call(*words) == 2
        assert complaint in capsys.readouterr().err


def test_no_name_in_a_file_leads_out_of_the_folder(here, capsys):
    assert call("run", "mine", "--executor", "inline", "--only", "vdn") == 0
    assert call("archive", "mine") == 0
    archive = here / "mine.parquet"
    table = parquet.read_table(archive)
    said = table.schema.metadata[b"headwise.study"].replace(b'"name":"mine"', b'"name":"../x"')
    table = table.replace_schema_metadata({b"headwise.study": said})  # as earlier versions wrote it
    parquet.write_table(table, archive)
    before = sorted(here.rglob("*"))
    assert call("restore", "mine.parquet") == 2
    assert "name that no study can have" in one_line(capsys)
    study = here / "runs" / "mine" / "study.json"
    study.write_text(study.read_text().replace('"name": "mine"', '"name": "../x"'))
    assert call("archive", "mine") == 2
    assert "name that no study can have" in one_line(capsys)
    assert sorted(here.rglob("*")) == before


def test_smoke_arguments_and_another_folder(here, capsys):
    assert call("run", "studies/mine.py", "--smoke", "--executor", "inline", "--out", "x") == 0
    assert "2 of 2 runs are finished in x" in capsys.readouterr().err
    assert (
        call(
            "run", "mine", "--args", "total_timesteps=16", "--executor", "inline", "--only", "seed1"
        )
        == 0
    )
    assert "2 of 2 runs are finished in runs/mine" in capsys.readouterr().err
    plan = json.loads((here / "runs/mine/study.json").read_text())["plan"]
    assert [run["total_timesteps"] for run in plan] == [16] * 4


def test_checkpoints_are_kept_counted_and_taken_by_other_commands(here, capsys):
    words = ("run", "mine", "--executor", "inline")
    assert call(*words, "--only", "shared*seed0") == 0
    assert "checkpoint" not in capsys.readouterr().err
    assert call("status", "mine") == 0
    assert "0 of 1 finished runs have a checkpoint" in capsys.readouterr().err
    without = "1 of 1 finished runs have no checkpoint. Runs that are trained with"
    assert call(*words, "--keep-checkpoints", "--dry-run") == 0
    assert without in one_line(capsys)
    assert call(*words, "--keep-checkpoints") == 0
    said = one_line(capsys)
    assert without in said
    assert "3 have a checkpoint: runs/mine/runs/ID/checkpoint.zip" in said
    assert call("status", "mine") == 0
    assert "3 of 4 finished runs have a checkpoint" in capsys.readouterr().err

    for run in Store("runs/mine").plan():
        folder = f"runs/mine/runs/{run.id}"
        kept = (run.factorization, run.seed) != ("shared", 0)
        assert main(["eval", folder, "--episodes", "2", "--json"]) == (0 if kept else 2)
        said = capsys.readouterr()
        if kept:
            assert list(json.loads(said.out)["returns"]) == [str(run.seed)]
        else:
            assert "headwise study run --keep-checkpoints" in said.err


def one_line(capsys):
    """What was said, as if the terminal were wide."""
    return " ".join(capsys.readouterr().err.split())


def test_a_dry_run_says_what_it_costs_and_leaves_nothing(here, capsys):
    assert call("run", "mine", "--dry-run", "--workers", "2") == 0
    said = capsys.readouterr().err
    assert "4 runs in 2 populations, 4 to do" in said
    assert "steps/s/core" in said
    assert not (here / "runs").exists()


def test_products_are_rounded_as_told_and_what_is_missing_is_said(here, capsys):
    assert (
        call("run", "mine", "--executor", "inline", "--device", "cpu", "--matmul-precision", "tf32")
        == 0
    )
    said = " ".join(capsys.readouterr().err.split())
    assert "matmul precision tf32: only GPUs have it, and this is cpu; float32 is used" in said
    store = Store(here / "runs" / "mine")
    assert {store.fingerprint(r.id)["float32_products"] for r in store.plan()} == {"high"}


def told_of_another_engine(folder, engine):
    """Makes the finished runs ones of that engine; None is of runs that say nothing of it."""
    store = Store(folder)
    for run in store.plan():
        path = store.runs / run.id / "fingerprint.json"
        if path.exists():
            made = json.loads(path.read_text()) | {"engine": engine}
            if engine is None:
                del made["engine"]
            path.write_text(json.dumps(made))
    return store


@pytest.mark.parametrize("engine", [None, 1])
def test_a_study_of_another_engine_goes_on_only_if_told(here, capsys, engine):
    run = ("run", "mine", "--executor", "inline", "--device", "cpu")
    assert call(*run, "--only", "vdn") == 0
    store = told_of_another_engine(here / "runs" / "mine", engine)
    before = sorted(path.name for path in store.runs.iterdir())
    assert call(*run, "--only", "vdn") == 0  # nothing is left to do, so nothing is mixed
    for more in ((), ("--dry-run",)):
        capsys.readouterr()
        assert call(*run, *more) == 2
        said = " ".join(capsys.readouterr().err.split())
        folder = store.folder.relative_to(here)
        assert (
            f"2 of 2 finished runs in {folder} are of engine 1, and this is "
            "engine 2, which comes to other numbers from the same seed." in said
        )
        assert "--mix-engines" in said
    assert sorted(path.name for path in store.runs.iterdir()) == before
    assert call(*run, "--mix-engines") == 0
    assert "warning: 2 of 2 finished runs" in " ".join(capsys.readouterr().err.split())
    engines = [store.engine(run.id) for run in store.plan()]
    assert sorted(engines) == [1, 1, ENGINE, ENGINE]
    assert call("export", "mine", "--out", "mine.csv") == 0
    rows = list(csv.DictReader((here / "mine.csv").read_text().splitlines()))
    assert [int(row["engine"]) for row in rows] == engines


def test_a_study_of_this_engine_goes_on_without_a_word(here, capsys):
    run = ("run", "mine", "--executor", "inline", "--device", "cpu")
    assert call(*run, "--only", "vdn") == 0
    assert call(*run) == 0
    assert "engine" not in capsys.readouterr().err


def test_a_dry_run_tells_what_would_fail_and_leaves_what_has_failed(here, capsys):
    mixed = STUDY.replace('"vdn", "shared"', '"vdn", "joint"').replace('["dqn"]', '["dqn", "sac"]')
    (here / "studies" / "mine.py").write_text(mixed)
    words = ("run", "mine", "--executor", "inline")
    assert call(*words, "--dry-run") == 1
    said = one_line(capsys)
    assert "8 runs in 4 populations, 8 to do" in said
    assert "would fail: HybridShoot/hybrid/sac/joint, 2 runs: the joint factorization" in said
    assert call(*words) == 1
    capsys.readouterr()
    assert call(*words, "--dry-run") == 0
    assert "0 to do; 2 have failed and are left alone without --retry-failed" in one_line(capsys)
    assert call(*words, "--dry-run", "--retry-failed") == 1
    assert "2 to do; 2 have failed and are tried again" in one_line(capsys)


def test_failures_set_the_exit_status_and_are_explained(here, capsys):
    broken = STUDY.replace('"batch_size": 8', '"batch_size": 8, "temperature": 0.1')
    (here / "studies" / "mine.py").write_text(broken.replace('"shared"', '"qplex"'))
    assert call("run", "mine", "--executor", "inline") == 1
    assert "2 failed" in capsys.readouterr().err
    assert call("status", "mine", "--trace", "--only", "qplex") == 0
    said = capsys.readouterr().err
    assert "ConfigError" in said
    assert "Traceback" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "mein"), "Did you mean 'mine'"),
        (("run", "mine", "--shard", "5/2"), "a shard is"),
        (("run", "mine", "--args", "total_timestep=3"), "Did you mean 'total_timesteps'"),
        (
            ("run", "mine", "--args", "total_timesteps"),
            "no argument of a study; got total_timesteps",
        ),
        (("run", "mine", "--only", ","), "no pattern"),
        (("status", "nowhere"), "no study in nowhere"),
        (("status", "nowhere.py"), "no such study"),
        (("status", "studies/mine.py"), "'mine' has no folder yet"),
        (("export", "mine"), "`headwise study run mine` makes it"),
        (("archive", "mine"), "'mine' has no folder yet"),
    ],
)
def test_mistakes_are_one_message(here, capsys, words, message):
    assert call(*words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said


def test_status_watches_until_nobody_works(here, capsys, monkeypatch):
    assert call("run", "mine", "--executor", "inline", "--only", "vdn") == 0
    store = Store("runs/mine")
    left = next(run for run in store.plan() if not store.is_finished(run.id))
    live, pack = Live(store.folder), Pack((left,))
    live.stepped(pack, 16, [2.5])
    with Locks(store.folder) as other:
        other.take(left.id)
        monkeypatch.setattr(study_cli.time, "sleep", lambda _: other.release(left.id))
        capsys.readouterr()
        assert call("status", "mine", "--watch") == 0
    said = capsys.readouterr().err
    assert "return so far" in said
    assert "2.5" in said
    assert said.rindex("mean return") > said.index("return so far")


def test_runs_says_how_to_go_on(here, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    assert call("run", "mine", "--executor", "inline", "--only", "vdn") == 0
    assert call("run", "mine", "--executor", "inline", "--out", "runs/all") == 0
    for name, file in (("agent", "checkpoint.zip"), ("odd", "study.json")):
        (here / "runs" / name).mkdir()
        (here / "runs" / name / file).write_text("{")
    capsys.readouterr()
    assert call("runs") == 0
    told = {
        line.split()[0]: " ".join(line.split()[1:]) for line in capsys.readouterr().out.splitlines()
    }
    assert told["runs/mine"] == "study 2 of 4 runs headwise study run mine"
    assert told["runs/all"] == "study 4 of 4 runs done: headwise report runs/all"
    assert "which is no checkpoint" in told["runs/agent"]
    assert "is no JSON" in told["runs/odd"]
