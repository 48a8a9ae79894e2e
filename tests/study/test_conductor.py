"""Conducting studies: once each, in any packing, with any company, and past any failure."""

import json
import threading
import traceback

import pytest
from tiny_study import contents, leftovers, tiny_cell, tiny_study

from headwise import ConfigError
from headwise.study import Options, Store, conduct
from headwise.study import conductor as conductor_module
from headwise.study.executors import inline
from headwise.study.executors.base import Crashed, Finished, Lost, Stepped, executors
from headwise.study.train import train_by_turns, train_pack

INLINE = Options(executor="inline")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    conduct(tiny_study(seeds=3), folder, INLINE)
    return contents(folder)


@pytest.fixture
def trained(monkeypatch):
    """The runs that were really trained, by id."""
    ids = []

    def recorded(pack, *arguments, **more):
        ids.extend(run.id for run in pack.runs)
        return train_by_turns(pack, *arguments, **more)

    monkeypatch.setattr(inline, "train_by_turns", recorded)
    return ids


def test_every_run_is_in_the_store(tmp_path, undisturbed):
    summary = conduct(tiny_study(seeds=3), tmp_path, INLINE)
    assert (summary.asked, summary.finished, summary.failed, summary.elsewhere) == (6, 6, 0, 0)
    assert contents(tmp_path) == undisturbed
    assert leftovers(tmp_path) == []
    store = Store(tmp_path)
    for run in store.plan():
        result = store.result(run.id)
        assert result["episodes"] == len(store.episodes(run.id).step) > 5
        assert result["num_parameters"] > 100
        assert result["update_ms"] > 0
        assert result["act_ms"] > 0
        assert result["diverged"] is False
        assert result["updates"] == {"dqn": 12, "ppo": 2}[run.algorithm]
        assert "steps_to_0" in result
        names = set(store.metrics(run.id).name)
        assert names >= {"train/grad_norm"}
        if run.algorithm == "ppo":
            # 9 observations, two layers of 8, three options and the means of two numbers:
            # 9 * 8 + 8 * 8 + 8 * 5 = 176 multiplications, and as many additions.
            assert result["act_flops"] == 352
            assert "heads/select/entropy" in names
        made = store.fingerprint(run.id)
        assert len(made["packed_with"]) == 3
        assert run.id in made["packed_with"]
        assert made["packages"]["torch"]


def test_results_do_not_depend_on_the_packing(tmp_path, undisturbed):
    conduct(tiny_study(seeds=3), tmp_path, Options(executor="inline", max_members=1))
    assert contents(tmp_path) == undisturbed


def test_packed_settings_give_what_each_gives_alone(tmp_path):
    study = tiny_study(cells=[tiny_cell(learning_rate=0.01), tiny_cell(learning_rate=0.001)])
    conduct(study, tmp_path / "together", INLINE)
    store = Store(tmp_path / "together")
    assert all(len(store.fingerprint(run.id)["packed_with"]) == 4 for run in store.plan())
    conduct(study, tmp_path / "alone", Options(executor="inline", max_members=1))
    together, alone = contents(tmp_path / "together"), contents(tmp_path / "alone")
    assert together == alone
    assert len(set(together.values())) == 4


def test_finished_runs_are_never_repeated(tmp_path, trained):
    conduct(tiny_study(seeds=1), tmp_path, INLINE)
    assert len(trained) == 2
    conduct(tiny_study(seeds=1), tmp_path, INLINE)
    assert len(trained) == 2
    conduct(tiny_study(seeds=2), tmp_path, INLINE)
    assert len(trained) == 4 == len(set(trained))


def test_shards_and_patterns_make_up_the_whole(tmp_path, undisturbed, trained):
    study = tiny_study(seeds=3)
    assert conduct(study, tmp_path, Options(executor="inline", shard="2/2")).asked == 3
    assert conduct(study, tmp_path, Options(executor="inline", only="dqn*seed1")).asked == 1
    assert len(trained) == 4
    assert conduct(study, tmp_path, INLINE).finished == 6
    assert contents(tmp_path) == undisturbed


def crashing(monkeypatch, seed, times=99):
    """Makes training raise whenever a certain seed is among the members."""
    crashes = []

    def train(pack, *arguments, **more):
        if any(run.seed == seed for run in pack.runs) and len(crashes) < times:
            crashes.append(pack)
            raise RuntimeError(f"seed {seed} will not do")
        return train_by_turns(pack, *arguments, **more)

    monkeypatch.setattr(inline, "train_by_turns", train)
    return crashes


def test_a_crash_is_a_row_and_not_the_end(tmp_path, monkeypatch, undisturbed):
    crashing(monkeypatch, seed=1)
    study = tiny_study(seeds=3)
    summary = conduct(study, tmp_path, INLINE)
    assert (summary.finished, summary.failed) == (4, 2)
    store = Store(tmp_path)
    for run in study.runs():
        assert store.is_failed(run.id) is (run.seed == 1)
        if run.seed == 1:
            error = store.error(run.id)
            assert (error["type"], error["message"]) == ("RuntimeError", "seed 1 will not do")
            assert "train_by_turns" in error["traceback"]
    assert leftovers(tmp_path) == []

    again = crashing(monkeypatch, seed=1)
    assert conduct(study, tmp_path, INLINE).failed == 2
    assert again == []  # a failed run is not tried again unasked
    monkeypatch.undo()
    summary = conduct(study, tmp_path, Options(executor="inline", retry_failed=True))
    assert (summary.finished, summary.failed) == (6, 0)
    assert contents(tmp_path) == undisturbed


def test_a_retry_that_fails_again_ends(tmp_path, monkeypatch):
    study = tiny_study(seeds=1, cells=[tiny_cell()])
    for retry in (False, True):
        crashes = crashing(monkeypatch, seed=0)
        summary = conduct(study, tmp_path, Options(executor="inline", retry_failed=retry))
        assert (summary.failed, len(crashes)) == (1, 1)


def test_a_cell_that_cannot_be_built_is_a_row_too(tmp_path):
    cells = [tiny_cell(), tiny_cell("sac", "joint", view="continuous")]
    summary = conduct(tiny_study(cells=cells, seeds=1), tmp_path, INLINE)
    assert (summary.finished, summary.failed) == (1, 1)
    (path,) = Store(tmp_path).runs.glob("*/error.json")
    assert json.loads(path.read_text())["type"] == "ConfigError"


class Unreliable:
    """Loses its workers as often as it is told to."""

    num_workers = 1

    def __init__(self, losses):
        self.losses, self.lost = losses, []

    def __call__(self, settings):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def run(self, source):
        while (pack := source()) is not None:
            yield Stepped(pack, 1)
            if len(self.lost) < self.losses:
                self.lost.append(pack)
                yield Lost(pack, "gone")
            else:
                yield Finished(pack, train_pack(pack))


def with_executor(monkeypatch, executor):
    monkeypatch.setitem(executors._entries, "mine", executor)
    return Options(executor="mine")


def test_lost_runs_come_again_in_smaller_populations(tmp_path, monkeypatch):
    executor = Unreliable(losses=2)
    study = tiny_study(seeds=4, cells=[tiny_cell()])
    summary = conduct(study, tmp_path, with_executor(monkeypatch, executor))
    assert (summary.finished, summary.failed) == (4, 0)
    assert [len(pack.runs) for pack in executor.lost] == [4, 2]


def test_a_run_that_loses_every_worker_fails_in_the_end(tmp_path, monkeypatch):
    executor = Unreliable(losses=99)
    summary = conduct(
        tiny_study(seeds=1, cells=[tiny_cell()]), tmp_path, with_executor(monkeypatch, executor)
    )
    assert (summary.finished, summary.failed, len(executor.lost)) == (0, 1, 3)
    (path,) = Store(tmp_path).runs.glob("*/error.json")
    assert json.loads(path.read_text())["type"] == "WorkerLost"


def test_two_runners_share_the_work(tmp_path, undisturbed, trained):
    study, errors = tiny_study(seeds=3), []

    def one():
        try:
            conduct(study, tmp_path, Options(executor="inline", max_members=1))
        except Exception:
            errors.append(traceback.format_exc())

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert contents(tmp_path) == undisturbed
    assert len(trained) == 6 == len(set(trained))
    assert leftovers(tmp_path) == []


def test_what_others_work_on_is_left_to_them(tmp_path, monkeypatch):
    study = tiny_study(seeds=2, cells=[tiny_cell()])
    conduct(study, tmp_path, Options(executor="inline", only="seed1"))
    with conductor_module.Locks(tmp_path) as other:
        other.take(study.runs()[0].id)
        summary = conduct(study, tmp_path, Options(executor="inline", wait=False))
        assert (summary.finished, summary.elsewhere) == (1, 1)
        monkeypatch.setattr(conductor_module, "_POLL", 0.01)
        timer = threading.Timer(0.1, other.release, [study.runs()[0].id])
        timer.start()
        assert conduct(study, tmp_path, INLINE).finished == 2


def test_an_interrupt_lets_go_of_locks(tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(inline, "train_by_turns", interrupted)
    with pytest.raises(KeyboardInterrupt):
        conduct(tiny_study(), tmp_path, INLINE)
    assert leftovers(tmp_path) == []


def test_mistakes_are_told(tmp_path):
    with pytest.raises(ConfigError, match="Did you mean 'local'"):
        conduct(tiny_study(), tmp_path, Options(executor="locl"))
    with pytest.raises(ConfigError, match="workers must be at least 1; got 0"):
        conduct(tiny_study(), tmp_path, Options(workers=0))


def test_a_crash_can_travel():
    pack = None
    try:
        raise ValueError("x")
    except ValueError as error:
        crash = Crashed.by(pack, error)
    assert (crash.kind, crash.message) == ("ValueError", "x")
    assert crash.traceback.startswith("Traceback")
