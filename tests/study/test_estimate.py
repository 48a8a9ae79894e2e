"""What a study will cost: by finished runs where there are some, by trying where there are none."""

import time

import pytest
from tiny_study import tiny_cell, tiny_study

from headwise.study import Options, Store, conduct
from headwise.study import estimate as module
from headwise.study.estimate import estimate, measured_seconds
from headwise.study.planner import pack_runs


def test_finished_runs_tell_the_cost_of_their_cell(tmp_path, monkeypatch):
    study = tiny_study(seeds=3)
    conduct(study, tmp_path, Options(executor="inline", only="seed0"))
    store = Store(tmp_path)
    monkeypatch.setattr(module, "measured_seconds", lambda *words: pytest.fail("no need to try"))
    costs = estimate(study.runs(), store, 16, 2)
    assert [(c.environment, c.algorithm, c.runs, c.steps) for c in costs] == [
        ("shoot", "dqn", 2, 128),
        ("shoot", "ppo", 2, 128),
    ]
    wall = store.result(study.runs()[0].id)["wall_s"]
    assert costs[0].seconds == pytest.approx(2 * wall)
    assert costs[0].rate == pytest.approx(64 / wall)


def test_unknown_cells_are_tried_once_each(tmp_path, monkeypatch):
    tried = []

    def measured(pack, device):
        tried.append(len(pack.runs))
        return 10.0

    monkeypatch.setattr(module, "measured_seconds", measured)
    runs = tiny_study(seeds=4).runs()
    costs = estimate(runs, Store(tmp_path), max_members=2, workers=1)
    assert tried == [2, 2]  # two populations of each cell, one of them tried
    assert [c.seconds for c in costs] == pytest.approx([20.0, 20.0])


@pytest.mark.parametrize("algorithm", ["dqn", "ppo"])
def test_an_estimate_is_of_the_right_size(algorithm):
    cell = tiny_cell(algorithm, "vdn", steps=2000)
    if algorithm == "ppo":
        cell.settings["rollout"] = 1000
    (pack,) = pack_runs(tiny_study(seeds=2, cells=[cell]).runs())
    guess = measured_seconds(pack)
    begun = time.perf_counter()
    loop = module.make_pack_loop(pack)
    loop.run(pack.steps)
    assert guess == pytest.approx(time.perf_counter() - begun, rel=3.0, abs=0.5)
