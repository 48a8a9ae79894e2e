"""A study of the zoom view: trained, kept, evaluated as its agents are, and reported."""

from dataclasses import replace

import numpy as np
from tiny_study import tiny_cell, tiny_study

from headwise.agent import Agent
from headwise.report import write_report
from headwise.report.cells import cells_of
from headwise.report.runs import read_store
from headwise.study import Evaluate, Options, Store, conduct


def test_a_study_of_the_zoom_view(tmp_path):
    cells = (tiny_cell("dqn", "ar", view="zoom"), tiny_cell("ppo", "shared", view="zoom"))
    cells = [replace(cell, evaluate=Evaluate(every=0.5, episodes=3, last=5)) for cell in cells]
    study = tiny_study(cells=cells)
    conduct(study, tmp_path / "x", Options(executor="inline", device="cpu", keep_checkpoints=True))
    store = Store(tmp_path / "x")
    for run in study.runs():
        agent = Agent.load(store.checkpoint(run.id))
        names = ("select", *(f"aim_{axis}[{k}]" for axis in "xy" for k in range(3)))
        assert agent.face.spec.names == names
        assert agent.evaluate(episodes=5).scores.tolist() == [store.result(run.id)["eval_return"]]
    found = cells_of(read_store(tmp_path / "x").runs)
    assert {cell.view for cell in found} == {"zoom"}
    assert all(np.isfinite(cell.scores).all() for cell in found)
    assert "zoom" in write_report(tmp_path / "x", formats=("png",)).read_text()
