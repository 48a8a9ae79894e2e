"""The whole sweep of the paper with tiny budgets: every one of the 220 cells is in the store."""

from pathlib import Path

import pytest

from headwise.study import Options, Store, conduct, load_study

pytest.importorskip("envpool", reason="Lander needs it: pip install 'headwise[lander]'")

PAPER = Path(__file__).parents[2] / "studies" / "paper.py"
SHARDS = 4
"""In parts, so that the processes of a test run share it."""


@pytest.mark.parametrize("shard", range(1, SHARDS + 1))
def test_every_cell_runs(shard, tmp_path):
    study = load_study(PAPER, smoke=True)
    assert len(study.runs()) == 220
    options = Options(executor="inline", shard=f"{shard}/{SHARDS}")
    summary = conduct(study, tmp_path, options)
    assert (summary.asked, summary.finished, summary.failed) == (55, 55, 0)
    store = Store(tmp_path)
    finished = [run for run in study.runs() if store.is_finished(run.id)]
    assert len(finished) == 55
    for run in finished:
        result = store.result(run.id)
        assert result["updates"] >= 2, run.name
        assert result["diverged"] is False, run.name
        assert len(store.metrics(run.id).step), run.name
