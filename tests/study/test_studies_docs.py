"""The examples of docs/studies.md that are no whole study run, and mean what they say."""

import re
from pathlib import Path

import headwise as hw
from headwise.study import Evaluate, Options, Store, conduct

PAGE = Path(__file__).parents[2] / "docs" / "studies.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
SMALL = {"net_arch": (8, 8), "n_steps": 16, "batch_size": 16}


def test_a_study_is_written_evaluated_and_logged(tmp_path):
    first, grid, seldom = BLOCKS[:3]
    names = {}
    exec(first, names)
    study = names["study"]
    assert len(study.runs()) == 2 * 2 * 3
    assert {cell.settings["n_epochs"] for cell in study.cells} == {5, hw.PPO().n_epochs} != {5}
    exec(seldom, names)
    assert {cell.evaluate for cell in names["never"].cells} == {None}
    assert {cell.evaluate for cell in names["seldom"].cells} == {Evaluate(0.25, 5, 50, 1000)}
    (logging,) = (block for block in BLOCKS if "def loggers(" in block)
    exec(logging, names)
    tiny = names["seldom"].with_seeds(1).change(total_timesteps=64, settings=SMALL, num_envs=2)
    conduct(tiny, tmp_path, Options(executor="inline"), loggers=names["loggers"])
    assert len(list((tmp_path / "mine").glob("*.csv"))) == 4
    store = Store(tmp_path)
    assert all(len(store.result(run.id)["evaluations"]["step"]) == 4 for run in tiny.runs())
    exec(grid, names)
    assert names["study"].name == "mine"
