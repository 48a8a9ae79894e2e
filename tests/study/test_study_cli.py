"""`headwise study`: run, status, export, as a user types them."""

import json
import shutil

import pytest

from headwise.cli import main
from headwise.study import Store

STUDY = """
from headwise.study import Study

def make(smoke=False, steps=64):
    study = Study.grid(
        "mine" + ("-smoke" if smoke else ""),
        environments=["HybridShoot"],
        views=["hybrid"],
        algorithms=["dqn"],
        factorizations=["vdn", "shared"],
        steps=32 if smoke else steps,
        seeds=2,
        num_envs=4,
        settings={"hidden": (8, 8), "warmup": 8, "batch_size": 8, "replay": 64},
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


def test_smoke_arguments_and_another_folder(here, capsys):
    assert call("run", "studies/mine.py", "--smoke", "--executor", "inline", "--out", "x") == 0
    assert "2 of 2 runs are finished in x" in capsys.readouterr().err
    assert call("run", "mine", "--args", "steps=16", "--executor", "inline", "--only", "seed1") == 0
    assert "2 of 2 runs are finished in runs/mine" in capsys.readouterr().err
    plan = json.loads((here / "runs/mine/study.json").read_text())["plan"]
    assert [run["steps"] for run in plan] == [16] * 4


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
    assert call("run", "mine", "--executor", "inline", "--device", "cpu", "--products", "tf32") == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "warning: products tf32: only GPUs have them, and this is cpu; float32 is used" in said
    store = Store(here / "runs" / "mine")
    assert {store.fingerprint(r.id)["float32_products"] for r in store.plan()} == {"high"}


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
        (("run", "mine", "--args", "stepps=3"), "Did you mean 'steps'"),
        (("run", "mine", "--args", "steps"), "needs a value"),
        (("status", "nowhere"), "no study in nowhere"),
    ],
)
def test_mistakes_are_one_message(here, capsys, words, message):
    assert call(*words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
