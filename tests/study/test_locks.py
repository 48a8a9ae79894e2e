"""Locks: one runner for each run, and none for the dead."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from tiny_study import contents, leftovers, tiny_cell, tiny_study

from headwise.errors import StoreError
from headwise.study import Options, Store, conduct, conductor, locks
from headwise.study.locks import Locks

INLINE = Options(executor="inline")


def test_a_lock_is_exclusive_and_can_be_given_back(tmp_path):
    with Locks(tmp_path) as one, Locks(tmp_path) as two:
        assert one.take("a")
        assert one.take("a")
        assert not two.take("a")
        assert two.take("b")
        assert one.held_elsewhere(["a", "b", "c"]) == ["b"]
        two.release("a")  # not hers to give
        assert not two.take("a")
        one.release("a")
        assert two.take("a")
        assert not one.missing


def test_leaving_lets_go_of_everything(tmp_path):
    with Locks(tmp_path) as one:
        one.take("a")
        with one.planning():
            assert len(list((tmp_path / ".locks").iterdir())) == 3
    assert list((tmp_path / ".locks").iterdir()) == []


RUNNER = """
import os, signal, sys, time
from pathlib import Path
from headwise.study.locks import Locks
locks = Locks(Path(sys.argv[1])).__enter__()
assert locks.take("a")
if sys.argv[2] == "alone":
    print(0, flush=True)
elif os.fork() == 0:  # as environments in processes of their own
    print(os.getpid(), flush=True)
time.sleep(60)
"""


def runner(folder, kind="alone"):
    return subprocess.Popen(
        [sys.executable, "-c", RUNNER, folder, kind], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("kind", ["alone", "parent"])
def test_a_killed_runner_is_succeeded_at_once_and_a_stopped_one_is_not(tmp_path, kind):
    with runner(tmp_path, kind) as first:
        child = int(first.stdout.readline())
        with Locks(tmp_path) as heir:
            assert not heir.take("a")
            first.send_signal(signal.SIGSTOP)
            assert not heir.take("a")
            assert heir.held_elsewhere(["a"]) == ["a"]
            first.kill()
            first.wait()
            if child:
                os.kill(child, 0)  # it lives, and has closed what it was born with
            assert heir.held_elsewhere(["a"]) == []
            assert heir.take("a")
        if child:
            os.kill(child, signal.SIGKILL)


def test_what_the_dead_left_is_cleared_away(tmp_path):
    with runner(tmp_path) as first:
        assert first.stdout.readline() == "0\n"
        first.kill()
    assert [path.name for path in (tmp_path / ".locks").iterdir()] == ["a"]
    with Locks(tmp_path):
        assert list((tmp_path / ".locks").iterdir()) == []


def test_of_many_heirs_one_inherits(tmp_path):
    """Though each removes the file as it lets go."""
    heirs, inside, most = [Locks(tmp_path).__enter__() for _ in range(8)], [], []

    def work(heir):
        for _ in range(200):
            if heir.take("a"):
                inside.append(heir)
                most.append(len(inside))
                inside.remove(heir)
                heir.release("a")

    threads = [threading.Thread(target=work, args=(heir,)) for heir in heirs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
    assert list((tmp_path / ".locks").iterdir()) == []


@pytest.fixture(params=[errno.ENOLCK, errno.ENOSYS])
def without_locks(request, monkeypatch):
    def flock(handle, how):
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(locks.fcntl, "flock", flock)


def test_a_file_system_without_locks_is_said_once_and_stops_nobody(tmp_path, without_locks):
    said = []

    class Told(conductor.StudyProgress):
        def say(self, text):
            said.append(text)

    summary = conduct(tiny_study(), tmp_path, INLINE, Told())
    assert summary.finished == 4
    (text,) = said
    assert "has no locks" in text
    assert "--shard" in text


def test_without_locks_nobody_takes_scratch_for_left_over(tmp_path, without_locks):
    scratch = tmp_path / ".scratch" / "0123.abc"
    scratch.mkdir(parents=True)
    conduct(tiny_study(), tmp_path, INLINE)
    assert scratch.exists()


def test_any_other_trouble_is_told(tmp_path, monkeypatch):
    def flock(handle, how):
        raise OSError(errno.EIO, "no disk")

    with Locks(tmp_path) as mine:
        monkeypatch.setattr(locks.fcntl, "flock", flock)
        with pytest.raises(StoreError, match=r"cannot be used; got .*no disk"):
            mine.take("a")


def test_locks_can_be_ignored(tmp_path):
    study = tiny_study(seeds=1)
    with Locks(tmp_path) as hung:
        for run in study.runs():
            assert hung.take(run.id)
        assert conduct(study, tmp_path, Options(executor="inline", wait=False)).elsewhere == 2
        ignoring = Options(executor="inline", wait=False, ignore_locks=True)
        assert conduct(study, tmp_path, ignoring).finished == 2
        assert hung.held_elsewhere(run.id for run in study.runs()) == []
        with Locks(tmp_path) as other:  # whoever ignored them has not let go of them
            assert not other.take(study.runs()[0].id)


# --- the plan -------------------------------------------------------------------------------------


def planned(folder):
    return {entry["id"] for entry in Store(folder).study()["plan"]}


def ids(study):
    return {run.id for run in study.runs()}


def test_a_plan_may_shrink_unless_another_runner_is_at_work(tmp_path):
    store, small, large = Store(tmp_path), tiny_study(seeds=1), tiny_study(seeds=3)
    store.begin(large.to_json())
    store.begin(small.to_json())
    assert planned(tmp_path) == ids(small)
    store.begin(large.to_json(), join=True)
    store.begin(small.to_json(), join=True)
    assert planned(tmp_path) == ids(large)
    with Locks(tmp_path) as one, Locks(tmp_path) as two:
        store.begin(large.to_json(), one)
        store.begin(small.to_json(), two)
        assert planned(tmp_path) == ids(large)
        store.begin(small.to_json())
        assert planned(tmp_path) == ids(large)
    store.begin(small.to_json())
    assert planned(tmp_path) == ids(small)


BEGINS = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tiny_study import tiny_cell, tiny_study
from headwise.study import Store
from headwise.study.locks import Locks
cells = [tiny_cell(learning_rate=0.1 + k) for k in range(int(sys.argv[3]))]
studies = [tiny_study(seeds=1, cells=[cell]) for cell in cells]
print("ready", flush=True)
sys.stdin.readline()
with Locks(Path(sys.argv[2])) as locks:
    Store(sys.argv[2]).begin(studies[-1].to_json(), locks)
    print("done", flush=True)
    sys.stdin.readline()  # at work until all have begun
"""


def test_of_many_that_begin_at_once_no_plan_is_lost(tmp_path):
    here = os.path.dirname(__file__)
    runners = [
        subprocess.Popen(
            [sys.executable, "-c", BEGINS, here, tmp_path, str(number + 1)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number in range(4)
    ]  # fmt: skip
    for word in ("ready\n", "done\n"):
        assert [runner.stdout.readline() for runner in runners] == [word] * 4
        for each in runners:
            each.stdin.write("go\n")
            each.stdin.flush()
    for each in runners:
        each.communicate()
        assert each.returncode == 0
    cells = [tiny_cell(learning_rate=0.1 + k) for k in range(4)]
    assert planned(tmp_path) == ids(tiny_study(seeds=1, cells=cells))
    assert leftovers(tmp_path) == []


def test_a_runner_that_is_stuck_with_the_plan_stops_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_PATIENCE", 0.05)
    with Locks(tmp_path) as stuck, stuck.planning():
        Store(tmp_path).begin(tiny_study().to_json())
    assert planned(tmp_path) == ids(tiny_study())


# --- what old and other runners leave -------------------------------------------------------------


def test_what_runners_of_earlier_versions_left_is_no_hindrance(tmp_path):
    """Whatever it says: they had leases, and files that named a process."""
    study = tiny_study()
    for name in (".leases", ".runners"):
        (tmp_path / name).mkdir()
        for run, text in zip(study.runs(), (b"\xff", b"5", b"{}", b""), strict=True):
            (tmp_path / name / run.id).write_bytes(text)
    assert conduct(study, tmp_path, INLINE).finished == 4


def test_scratch_that_another_took_away_is_written_again(tmp_path, monkeypatch):
    """A runner without locks, or a person, took it for a remnant."""
    conduct(tiny_study(), tmp_path / "calm", INLINE)
    taken, write = [], Store._write

    def interrupted(store, part, run, contents):
        write(store, part, run, contents)
        if len(taken) < 3:
            taken.append(part)
            store.sweep(lambda ids: [])
            assert not part.exists()

    monkeypatch.setattr(Store, "_write", interrupted)
    conduct(tiny_study(), tmp_path / "swept", INLINE)
    assert len(taken) == 3
    assert contents(tmp_path / "swept") == contents(tmp_path / "calm")
    assert leftovers(tmp_path / "swept") == []


ASYNC = """
import sys
sys.path.insert(0, sys.argv[1])
from test_locks import async_study
from headwise.study import Options, conduct
conduct(async_study(int(sys.argv[3])), sys.argv[2], Options(executor="inline"))
"""


def async_study(steps):
    """Its environments live in processes that the runner forked."""
    from headwise.study import Cell, Environment, Study

    where = Environment("MountainCar-v0", "car", {"vectorization": "async"})
    settings = {"net_arch": (8, 8), "buffer_size": 64, "batch_size": 8, "learning_starts": 16}
    cell = Cell(where, None, "dqn", "shared", total_timesteps=steps, num_envs=2, settings=settings)
    return Study("async", (cell,), (0,))


def test_environments_in_processes_keep_no_lock_of_a_killed_runner(tmp_path):
    study = async_study(10**8)
    (run,) = study.runs()
    here = os.path.dirname(__file__)
    with subprocess.Popen([sys.executable, "-c", ASYNC, here, tmp_path, str(10**8)]) as first:
        children = f"/proc/{first.pid}/task/{first.pid}/children"
        patience = time.monotonic() + 60.0
        while time.monotonic() < patience:
            with open(children) as file:
                born = [int(pid) for pid in file.read().split()]
            if (tmp_path / ".locks" / run.id).exists() and len(born) >= 2:
                break
            time.sleep(0.05)
        assert len(born) >= 2
        for child in born:  # they would end by themselves, once the pipe from their parent is
            os.kill(child, signal.SIGSTOP)
        first.kill()
    try:
        with Locks(tmp_path) as heir:
            assert heir.take(run.id)
    finally:
        for child in born:
            os.kill(child, signal.SIGKILL)


# --- lost workers ---------------------------------------------------------------------------------


def test_a_run_that_lost_its_workers_is_open_again_and_one_that_raised_is_not(tmp_path):
    study = tiny_study(seeds=1)
    conduct(study, tmp_path / "calm", INLINE)
    lost, raised = study.runs()
    store = Store(tmp_path / "here")
    store.begin(study.to_json())
    for run, kind in ((lost, "WorkerLost"), (raised, "ValueError")):
        error = {"type": kind, "message": "", "traceback": ""}
        assert store.put_files(run, {"fingerprint.json": {}, "error.json": error})
    summary = conduct(study, store.folder, INLINE)
    assert (summary.finished, summary.failed) == (1, 1)
    calm = contents(tmp_path / "calm")
    assert store.is_finished(lost.id)
    assert (
        store.result(lost.id)["final_return"]
        == Store(tmp_path / "calm").result(lost.id)["final_return"]
    )
    assert set(calm) == {lost.id, raised.id}
    assert leftovers(store.folder) == []
    (store.runs / raised.id / "error.json").write_text(json.dumps([1]))
    assert not store.is_open(raised.id, retry_failed=False)
