"""Leases: one runner for each run, and none for the dead."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from headwise.study import leases
from headwise.study.leases import Leases


def test_a_lease_is_exclusive_and_can_be_given_back(tmp_path):
    with Leases(tmp_path) as one, Leases(tmp_path) as two:
        assert one.take("a")
        assert one.take("a")
        assert not two.take("a")
        assert two.take("b")
        assert one.held_elsewhere(["a", "b", "c"]) == ["b"]
        two.release("a")  # not hers to give
        assert not two.take("a")
        one.release("a")
        assert two.take("a")


def test_leaving_lets_go_of_everything(tmp_path):
    with Leases(tmp_path) as one:
        one.take("a")
    assert list((tmp_path / ".leases").iterdir()) == []
    assert list((tmp_path / ".runners").iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from headwise.study.leases import Leases
Leases(Path(sys.argv[1])).__enter__().take("a")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_runner_of_this_machine_is_succeeded_at_once(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False)
    assert done.returncode == -9
    assert (tmp_path / ".leases" / "a").exists()
    with Leases(tmp_path) as heir:
        assert heir.take("a")


def test_a_number_of_a_process_that_is_used_again_is_no_sign_of_life(tmp_path):
    with Leases(tmp_path) as mine:
        dead = tmp_path / ".runners" / "dead"
        identity = json.loads((tmp_path / ".runners" / mine.token).read_text())
        dead.write_text(json.dumps({**identity, "started": "12345"}))
        (tmp_path / ".leases" / "a").write_text("dead")
        assert mine.take("a")


@pytest.mark.parametrize(("silent_for", "taken"), [(5.0, False), (500.0, True)])
def test_a_runner_elsewhere_is_given_up_when_it_has_been_silent(tmp_path, silent_for, taken):
    with Leases(tmp_path, patience=60.0) as mine:
        other = tmp_path / ".runners" / "elsewhere"
        other.write_text(json.dumps({"machine": "another", "pid": 1, "started": "1"}))
        (tmp_path / ".leases" / "a").write_text("elsewhere")
        then = time.time() - silent_for
        os.utime(other, (then, then))
        assert mine.held_elsewhere(["a"]) == ([] if taken else ["a"])
        assert mine.take("a") is taken


def test_a_runner_gives_signs_of_life(tmp_path):
    with Leases(tmp_path, heartbeat=0.05) as mine:
        path = tmp_path / ".runners" / mine.token
        os.utime(path, (0, 0))
        deadline = time.monotonic() + 5.0
        while path.stat().st_mtime < 1.0:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_runner_that_was_given_up_is_seen_again_when_it_wakes(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "_machine", lambda: "another")
    asleep = Leases(tmp_path, heartbeat=1000.0, patience=60.0)
    with asleep:
        assert asleep.take("a")
        monkeypatch.undo()
        path = tmp_path / ".runners" / asleep.token
        identity = path.read_text()
        os.utime(path, (0, 0))
        with Leases(tmp_path, patience=60.0) as other:
            assert not path.exists()
            assert other.take("a")
            assert asleep.take("b")  # it woke up, and goes on
            assert path.read_text() == identity
            assert not other.take("b")
            assert other.held_elsewhere(["b"]) == ["b"]
            asleep.release("a")  # that is another's now
            assert (tmp_path / ".leases" / "a").read_text() == other.token
    assert not path.exists()


def test_a_beat_of_the_heart_brings_a_runners_file_back(tmp_path):
    with Leases(tmp_path, heartbeat=0.05) as mine:
        path = tmp_path / ".runners" / mine.token
        identity = path.read_text()
        path.unlink()
        deadline = time.monotonic() + 5.0
        while not path.exists() or path.read_text() != identity:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_lease_without_a_name_lapses(tmp_path):
    with Leases(tmp_path) as mine:
        path = tmp_path / ".leases" / "a"
        path.write_text("")
        assert not mine.take("a")  # someone may be about to write a name
        then = time.time() - 60.0
        os.utime(path, (then, then))
        assert mine.take("a")


def test_of_many_heirs_one_inherits(tmp_path):
    heirs = [Leases(tmp_path) for _ in range(8)]
    for heir in heirs:
        heir.__enter__()
    for round_ in range(20):
        name = f"run{round_}"
        (tmp_path / ".leases" / name).write_text("dead")
        start, got = threading.Barrier(len(heirs)), []

        def inherit(heir, name=name, start=start, got=got):
            start.wait()
            if heir.take(name):
                got.append(heir)

        threads = [threading.Thread(target=inherit, args=(heir,)) for heir in heirs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) >= 1
        owner = (tmp_path / ".leases" / name).read_text()
        assert owner in [heir.token for heir in got]
    for heir in heirs:
        heir.__exit__(None, None, None)
