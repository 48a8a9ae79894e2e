"""Packs that are under way are saved, and go on from there after a kill: to the same bytes."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_study import contents, leftovers, tiny_cell, tiny_study

from headwise.errors import ConfigError
from headwise.study import Evaluate, Options, Store, conduct
from headwise.study.conductor import SAVED
from headwise.study.executors.base import Finished, Lost, executors
from headwise.study.extras import Saves
from headwise.study.planner import Pack
from headwise.study.progress import StudyProgress
from headwise.study.saved import Saver, saved_packs
from headwise.study.train import train_pack
from headwise.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint

HOW = Evaluate(every=0.25, episodes=2, last=3)
CELLS = [
    replace(tiny_cell(), evaluate=HOW, normalization={"normalize_obs": True}),
    tiny_cell("ppo", "qplex"),
    tiny_cell("sac", "ar", view="continuous"),
]
INLINE = Options(executor="inline", device="cpu", keep_checkpoints=True, checkpoint_every=16)


def study():
    return tiny_study(seeds=3, cells=CELLS)


class Killed(StudyProgress):
    """Is stopped once a pack has taken so many steps, as often as it is told."""

    def __init__(self, at, times=1):
        super().__init__()
        self.at, self.times = at, times

    def stepped(self, pack, steps, returns=()):
        assert len(returns) == len(pack.runs)
        if steps >= self.at and self.times:
            self.times -= 1
            raise KeyboardInterrupt


@pytest.fixture
def resumed(monkeypatch):
    """The parts from which packs went on."""
    parts, resume = [], Saver.resume

    def recorded(self, loop):
        before = resume(self, loop)
        parts.append(0 if before is None else before.part)
        return before

    monkeypatch.setattr(Saver, "resume", recorded)
    return parts


def test_a_killed_study_goes_on_in_the_middle_of_a_run(tmp_path, resumed):
    conduct(study(), tmp_path / "calm", replace(INLINE, checkpoint_every=None))
    assert resumed == []
    killed = tmp_path / "killed"
    for at in (40, 60):
        with pytest.raises(KeyboardInterrupt):
            conduct(study(), killed, INLINE, Killed(at))
        assert len(list((killed / SAVED).iterdir())) == 1
    summary = conduct(study(), killed, INLINE)
    assert (summary.finished, summary.failed) == (9, 0)
    assert contents(killed) == contents(tmp_path / "calm")
    assert sum(part > 80 for part in resumed) == 2  # more than 25 of 64 steps were not done again
    assert list((killed / SAVED).iterdir()) == []
    assert leftovers(killed) == []


def test_a_save_of_a_pack_is_gone_on_with_by_the_same_pack(tmp_path):
    runs = study().runs()[:3]
    with pytest.raises(KeyboardInterrupt):
        conduct(study(), tmp_path, INLINE, Killed(40))
    (found,) = saved_packs(tmp_path / SAVED, study().runs())
    assert len(found.runs) == 3
    assert saved_packs(tmp_path / SAVED, found.runs[1:]) == []  # one of them is finished
    assert saved_packs(tmp_path / "nowhere", runs) == []


def test_what_cannot_be_read_is_no_save(tmp_path, resumed):
    with pytest.raises(KeyboardInterrupt):
        conduct(study(), tmp_path, INLINE, Killed(40))
    (path,) = (tmp_path / SAVED).iterdir()
    path.write_bytes(path.read_bytes()[:-100])
    assert conduct(study(), tmp_path, INLINE).finished == 9
    assert set(resumed) == {0}
    assert not path.exists()


def test_a_lost_worker_goes_on_from_the_save_once(tmp_path, monkeypatch):
    taken = []

    class Losing:
        num_workers = 1

        def __init__(self, settings):
            self.saves = settings.extras.saves

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def run(self, source):
            while (pack := source()) is not None:
                taken.append(len(pack.runs))
                path = self.saves.path(pack.runs)
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(b"a save")
                yield Lost(pack, "gone") if len(taken) < 3 else Finished(pack, train_pack(pack))

    monkeypatch.setitem(executors._entries, "losing", Losing)
    two = tiny_study(seeds=2, cells=[tiny_cell()])
    assert conduct(two, tmp_path, replace(INLINE, executor="losing")).finished == 2
    assert taken == [2, 2, 1, 1]  # the second time it may be that they are too many


def test_how_often_it_is_saved(tmp_path):
    saver = Saver(Saves(tmp_path, 100), Pack(study().runs()[:1]))
    saver._next = 100
    assert [saver.is_due(step) for step in (0, 96, 100, 104)] == [False, False, True, True]


def test_ray_has_no_disk_to_save_on(tmp_path):
    pytest.importorskip("ray")
    with pytest.raises(ConfigError, match="no disk in common"):
        conduct(study(), tmp_path, replace(INLINE, executor="ray"))
    with pytest.raises(ConfigError, match="checkpoint_every"):
        conduct(study(), tmp_path, replace(INLINE, checkpoint_every=0))


def test_times_are_summed(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        conduct(study(), tmp_path, INLINE, Killed(40))
    (path,) = (tmp_path / SAVED).iterdir()
    info, tensors = read_checkpoint(path)
    write_checkpoint(path, Checkpoint({**info, "seconds": 3000.0}, tensors))
    conduct(study(), tmp_path, INLINE)
    walls = [Store(tmp_path).result(run_id)["wall_s"] for run_id in info["runs"]]
    assert all(wall >= 1000.0 for wall in walls)
    assert np.ptp(walls) == 0
