"""The whole sweep of the paper with tiny budgets: 220 cells in the store, and in the report."""

import csv

from headwise.report.write import write_report
from headwise.study import Options, Store, conduct, load_study


def test_every_cell_runs(tmp_path):
    study = load_study("paper", smoke=True)
    summary = conduct(study, tmp_path / "store", Options(executor="inline"))
    assert (summary.asked, summary.finished, summary.failed) == (220, 220, 0)
    store = Store(tmp_path / "store")
    for run in study.runs():
        result = store.result(run.id)
        assert result["updates"] >= 2, run.name
        assert result["diverged"] is False, run.name
        assert result["act_flops"] > 0, run.name
        assert len(store.metrics(run.id).step), run.name

    write_report([tmp_path / "store"], tmp_path / "report", formats=())
    with open(tmp_path / "report" / "tables" / "scores-paper-smoke.csv") as file:
        assert len(list(csv.DictReader(file))) == 220
