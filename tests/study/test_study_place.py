"""Where a study trains: what was asked for, where it began, or what was measured."""

import pytest
import torch
from tiny_study import tiny_cell, tiny_study

from headwise.cli.study import main
from headwise.study import Options, Store, conduct, estimate, place
from headwise.study.place import choose_place

ASKED = tiny_study().runs()


@pytest.fixture
def with_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)


@pytest.fixture
def timed(monkeypatch):
    """A population takes 8 s on one core and 3 s on the GPU."""
    tried = []

    def measured_seconds(pack, device):
        tried.append((pack.runs[0].algorithm, device))
        return {"cpu": 8.0, "cuda": 3.0}[device]

    monkeypatch.setattr(place, "measured_seconds", measured_seconds)
    monkeypatch.setattr(place, "usable_cores", lambda: 2)
    return tried


def found(store, executor=None, device="auto"):
    return choose_place(executor, device, ASKED, store, 16)


def test_what_is_asked_for_is_not_measured(tmp_path, with_gpu, monkeypatch):
    monkeypatch.setattr(place, "faster_device", lambda measure: pytest.fail("measured"))
    store = Store(tmp_path)
    assert found(store, None, "cpu") == ("local", "cpu", "")
    assert found(store, None, "cuda") == ("streams", "cuda", "")
    assert found(store, "inline", "cuda:1") == ("inline", "cuda:1", "")
    assert found(store, "local") == ("local", "cpu", "")
    assert found(store, "ray") == ("ray", "cpu", "")
    assert found(store, "streams") == ("streams", "cuda", "")


def test_without_cuda_nothing_is_measured(tmp_path, timed, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert found(Store(tmp_path)) == ("local", "cpu", "")
    assert found(Store(tmp_path), "inline") == ("inline", "cpu", "")
    assert not timed


def test_a_population_of_each_algorithm_is_tried_on_both(tmp_path, with_gpu, timed, monkeypatch):
    """Two cores train two populations in the time of one: 4 s each, and the GPU takes 3."""
    executor, device, why = found(Store(tmp_path))
    assert (executor, device) == ("streams", "cuda")
    assert why == "device cuda: 1.3 times as fast as cpu, as measured now"
    assert sorted(timed) == [("dqn", "cpu"), ("dqn", "cuda"), ("ppo", "cpu"), ("ppo", "cuda")]
    monkeypatch.setattr(place, "usable_cores", lambda: 4)
    assert found(Store(tmp_path))[:2] == ("local", "cpu")
    assert found(Store(tmp_path), "inline")[:2] == ("inline", "cuda")  # one process, one core


def test_what_cannot_be_built_is_not_tried(tmp_path, with_gpu, timed):
    cells = [tiny_cell("sac", "joint"), tiny_cell("sac", "ar"), tiny_cell("ppo", "joint")]
    runs = tiny_study(cells=cells).runs()
    assert choose_place(None, "auto", runs, Store(tmp_path), 16).device == "cuda"
    assert sorted(timed) == [("sac", "cpu"), ("sac", "cuda")]
    assert choose_place(None, "auto", runs[-2:], Store(tmp_path), 16) == ("local", "cpu", "")


def test_a_study_keeps_to_where_it_began(tmp_path, monkeypatch, timed):
    conduct(tiny_study(), tmp_path, Options(executor="inline", device="cpu", only="seed0"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    expected = ("local", "cpu", "device cpu: the study was begun there")
    assert found(Store(tmp_path)) == expected
    assert not timed


def test_it_is_said(tmp_path, with_gpu, timed, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(place, "usable_cores", lambda: 64)
    (tmp_path / "mine.py").write_text(
        "from headwise.study import Environment, Study\n"
        "study = Study.grid('mine', environments=[Environment('HybridShoot')], "
        "views=['discrete'], algorithms=['dqn'], factorizations=['vdn'], total_timesteps=32, "
        "seeds=1, settings={'net_arch': (8,), 'learning_starts': 16})\n"
    )
    assert main(["run", "mine.py", "--dry-run", "--device", "cpu"]) == 0
    said = capsys.readouterr().err
    assert "cores like this one" in said
    assert "steps/s/core" in said
    monkeypatch.setattr(estimate, "measured_seconds", lambda pack, device: 7.0)
    assert main(["run", "mine.py", "--dry-run", "--device", "cuda"]) == 0
    said = capsys.readouterr().err
    assert "cost on cuda, one population at a time" in said
    assert "7 s" in said  # not shared among streams
    assert main(["run", "mine.py", "--workers", "1"]) == 0
    assert "device cpu: 24.0 times as fast as cuda" in capsys.readouterr().err
