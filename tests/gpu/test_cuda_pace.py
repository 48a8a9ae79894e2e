"""The choice of a device and the projection of the paper study, on a GPU."""

import logging
import sys
from pathlib import Path

from cuda_cells import need_gpu

import headwise as hw
from headwise.study import Options, Store, conduct
from headwise.study.load import load_study
from headwise.study.place import choose_place
from headwise.study.planner import choose, pack_runs

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import paper  # noqa: E402

need_gpu()


def tiny(only):
    return choose(load_study("paper", smoke=True).runs(), only)


def test_cells_are_measured_on_streams():
    packs = pack_runs(tiny("shoot-dep/discrete/*/vdn*"))
    assert len(packs) == 3
    groups = list(paper.Bench("cuda", at_once=2, seconds=0.05).measure(packs))
    assert [len(group) for group in groups] == [2, 1]
    for cell in (cell for group in groups for cell in group):
        assert cell.trouble is None
        assert min(cell.building, cell.reporting, cell.alone, cell.together) > 0.0


def test_an_agent_takes_the_faster_device_and_trains_there(caplog, tmp_path):
    settings = {"net_arch": (32, 32), "seeds": 2, "learning_starts": 64, "buffer_size": 2000}
    with caplog.at_level(logging.INFO, "headwise.device"):
        agent = hw.Agent("dqn", "HybridShoot", device="auto", **settings)
    assert caplog.messages[0].startswith(f"device {agent.device}: ")
    assert "failed" not in caplog.messages[0]
    agent.learn(400, progress=False)
    assert agent.loop.keys.device.type == agent.device
    agent.save(tmp_path / "agent.zip")
    assert hw.Agent.load(tmp_path / "agent.zip", device="auto").steps == 400


def test_a_study_chooses_and_goes_on_where_it_began(tmp_path):
    study = load_study("paper", smoke=True)
    only = "platform/discrete/dqn/shared*"
    runs = tiny(only)
    place = choose_place(None, "auto", runs, Store(tmp_path), 16)
    assert (place.executor, place.device) in {("streams", "cuda"), ("local", "cpu")}
    assert "failed" not in place.why
    assert conduct(study, tmp_path, Options(device="cuda", only=only)).finished == len(runs)
    place = choose_place(None, "auto", runs, Store(tmp_path), 16)
    assert place == ("streams", "cuda", "device cuda: the study was begun there")
