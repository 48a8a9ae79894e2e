"""The benchmark of updates: that it counts and measures what it says, not how fast anything is."""

import os
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import updates  # noqa: E402
from benchmarks.__main__ import SECTIONS  # noqa: E402

from headwise.ops import Buffer, Layer, Network  # noqa: E402

TINY = {"net_arch": (24, 32), "batch_size": 16, "learning_starts": 64, "buffer_size": 4096}
CELLS = [
    updates.Cell(
        "PPO", "ppo", "vdn", None, {"net_arch": (24,), "batch_size": 64, "n_steps": 16}, 2
    ),
    updates.Cell("DQN", "dqn", "ar", "discrete", TINY),
    updates.Cell("SAC", "sac", "vdn", "hybrid", TINY, most=None, most_us=80.0),
]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def products(*shapes, members=3):
    return sum(2.0 * members * rows * inputs * outputs for rows, inputs, outputs in shapes)


def test_products_of_networks_are_counted_without_padding():
    seen = [[[(0, 5)], [(0, 5)]], [[], [(1, 2)]]]
    net = Network([5, 4], [Layer(7, "tanh"), Layer(3)], 3, 11, copies=2, sees=seen)
    net.place(Buffer(3, 1, net.size, gradient=True))
    x = [Buffer(3, 11, 5), Buffer(3, 11, 4, gradient=True)]
    first, second = (11, 5, 7), (11, 7, 7)  # what each copy sees
    with updates.counted() as work:
        net.forward(x)
    forward = products(first, second, (11, 7, 3), (11, 7, 3))
    assert work.flops == forward
    with updates.counted() as work:
        net.forward(x, [1], columns=2)
    assert work.flops == products(second, (11, 7, 2))
    net.forward(x)
    with updates.counted() as work:
        net.backward(x)
    by_inputs = products((11, 2, 7), (11, 7, 3), (11, 7, 3))  # of the leaf that has a gradient
    assert work.flops == forward + by_inputs
    with updates.counted() as work:
        net.backward(x, weights=False)
    assert work.flops == by_inputs
    assert work.bytes > 0.0
    calls = Network.forward, Network.backward
    assert all(call.__module__ == "headwise.ops.network" for call in calls)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_an_update_is_one_step_of_the_optimizer(cell):
    update = updates.Update(cell)
    (optimizer, *_) = update.learner.optimizers.values()
    before, count = int(optimizer.count.longs.max()), update._run(2)
    assert int(optimizer.count.longs.max()) - before == count
    assert update.work.flops > 1000.0
    assert 1e-6 < update.time(0.01) < 1.0


def test_all_cells_take_turns_beside_the_peak(tmp_path):
    found = updates.measure(CELLS, rounds=2, seconds=0.01)
    for one, cell in zip(found, CELLS, strict=True):
        assert one.cell is cell
        assert len(one.seconds) == len(one.peaks) == 2
        ratios = [s * p / one.work.flops for s, p in zip(one.seconds, one.peaks, strict=True)]
        assert one.ratios == ratios
        assert min(ratios) > 1.0  # nothing is faster than its products at the peak
        assert one.row()[0] == cell.name
    assert [one.row()[-1] for one in found] == ["<= 1.3 x", "<= 1.3 x", "<= 80 us"]
    updates.chart(found, tmp_path / "x" / "chart.svg")
    text = (tmp_path / "x" / "chart.svg").read_text()
    assert text.count("<svg") == 1


def test_a_run_renews_its_section_and_draws_the_chart(tmp_path, monkeypatch):
    renewed = {}
    monkeypatch.setattr(updates, "renew", renewed.__setitem__)
    monkeypatch.setattr(updates, "CELLS", CELLS[1:2])
    monkeypatch.setattr(updates, "CHART", tmp_path / "chart.svg")
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None)
    assert SECTIONS["updates"] is updates
    section = updates.run(None, rounds=1, seconds=0.01, command="it")
    assert renewed == {"updates": section}
    for word in ("| DQN |", "`it`", "GF/s", "commit"):
        assert word in section
    assert (tmp_path / "chart.svg").exists()


def test_peers_take_turns_with_ours(monkeypatch):
    closed = []

    class Peer:
        def __init__(self, python, script, arguments):
            assert (ROOT / "benchmarks" / "peers" / f"{script}.py").exists()
            assert python == "theirs"
            self.library, *self.sizes = arguments

        def __call__(self, seconds):
            return {"sb3": 2.0, "sbx": 4.0}[self.library]

        def close(self):
            closed.append(self.library)

    monkeypatch.setattr(updates, "Peer", Peer)
    monkeypatch.setattr(updates, "PEERS", [(CELLS[1], ("dqn", 24))])
    rows = updates.against("theirs", rounds=1, seconds=0.01)
    assert [row[2] for row in rows] == ["Stable-Baselines3", "SBX"]
    assert [row[3] for row in rows] == ["500,000", "250,000"]
    assert float(rows[0][4].split("**")[1]) > 1.0  # it takes longer than ours
    assert closed == ["sb3", "sbx"]


def test_cells_of_peers_are_what_their_sizes_say():
    for cell, (algorithm, hidden, rows, *_) in updates.PEERS:
        assert cell.algorithm == algorithm
        assert cell.settings["net_arch"] == (hidden, hidden)
        assert rows in (cell.settings.get("batch_size"), cell.settings.get("batch_size"))
