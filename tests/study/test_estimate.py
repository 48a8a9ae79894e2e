"""What a study will cost: by finished runs where there are some, by trying where there are none."""

import json
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
    left = [run for run in study.runs() if run.seed]
    costs, hopeless = estimate(study.runs(), left, store, 16, 2)
    assert hopeless == []
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
    costs, _ = estimate(runs, runs, Store(tmp_path), max_members=2, workers=1)
    assert tried == [2, 2]  # two populations of each cell, one of them tried
    assert [c.seconds for c in costs] == pytest.approx([20.0, 20.0])


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        ({}, True),
        ({"device": "cpu"}, True),
        ({"device": "cuda"}, False),
        ({"device": "cuda:1"}, False),
        ({"float32_products": "medium"}, False),
        ({"engine": 1}, False),
    ],
)
def test_only_runs_of_this_engine_such_a_device_and_such_products_tell_the_cost(
    tmp_path, monkeypatch, made, counts
):
    """A run restored from a GPU says nothing of what the next one takes here."""
    study = tiny_study(seeds=2, cells=[tiny_cell()])
    conduct(study, tmp_path, Options(executor="inline", only="seed0"))
    store, (first, second) = Store(tmp_path), study.runs()
    path = store.runs / first.id / "fingerprint.json"
    path.write_text(json.dumps(store.fingerprint(first.id) | made))
    monkeypatch.setattr(module, "measured_seconds", lambda pack, device: 1234.0)
    ((cost,), _) = estimate([first, second], [second], store, 16, 1)
    assert (cost.seconds != 1234.0) is counts


def test_a_cell_that_cannot_be_built_is_named_and_the_others_are_measured(tmp_path):
    cells = [tiny_cell(), tiny_cell("sac", "joint"), tiny_cell("ppo", "shared")]
    runs = tiny_study(seeds=2, cells=cells).runs()
    costs, (hopeless,) = estimate(runs, runs, Store(tmp_path), max_members=1, workers=1)
    assert [(c.algorithm, c.runs) for c in costs] == [("dqn", 2), ("ppo", 2)]
    assert (hopeless.cell, hopeless.runs) == ("shoot/hybrid/sac/joint", 2)
    assert "joint factorization needs discrete heads" in hopeless.why


@pytest.mark.parametrize("algorithm", ["dqn", "ppo"])
def test_an_estimate_is_of_the_right_size(algorithm):
    cell = tiny_cell(algorithm, "vdn", total_timesteps=2000)
    if algorithm == "ppo":
        cell.settings["n_steps"] = 250
    (pack,) = pack_runs(tiny_study(seeds=2, cells=[cell]).runs())
    guess = measured_seconds(pack)
    begun = time.perf_counter()
    loop = module.make_pack_loop(pack)
    loop.run(pack.steps)
    assert guess == pytest.approx(time.perf_counter() - begun, rel=3.0, abs=0.5)
