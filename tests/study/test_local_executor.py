"""Processes: the same results, and nobody is missed for long when killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from tiny_study import contents, leftovers, tiny_cell, tiny_study

from headwise import ConfigError
from headwise.study import Options, Store, conduct
from headwise.study.executors.base import ExecutorSettings, Finished, Lost
from headwise.study.executors.local import LocalExecutor
from headwise.study.planner import pack_runs
from headwise.training.matmul_precision import matmul_precision_as


def children_of(pid):
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    if not listed.exists():
        pytest.skip("needs Linux's /proc")
    return [int(child) for child in listed.read_text().split()]


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)
    return found


def test_processes_do_what_one_process_does(tmp_path):
    study = tiny_study(seeds=3)
    conduct(study, tmp_path / "inline", Options(executor="inline", keep_checkpoints=True))
    summary = conduct(study, tmp_path / "local", Options(workers=2, keep_checkpoints=True))
    assert (summary.finished, summary.checkpoints) == (6, 6)
    assert contents(tmp_path / "local") == contents(tmp_path / "inline")
    store = Store(tmp_path / "local")
    assert {store.fingerprint(run.id)["threads"] for run in study.runs()} == {1}
    assert leftovers(tmp_path / "local") == []


@pytest.mark.parametrize(("precision", "word"), [("bf16", "medium"), (None, "highest")])
def test_processes_round_products_as_they_are_told(tmp_path, precision, word):
    study = tiny_study(seeds=1)
    conduct(study, tmp_path / "inline", Options(executor="inline", matmul_precision=precision))
    conduct(study, tmp_path / "local", Options(workers=1, matmul_precision=precision))
    assert contents(tmp_path / "local") == contents(tmp_path / "inline")
    for folder in ("inline", "local"):
        store = Store(tmp_path / folder)
        found = {store.fingerprint(run.id)["float32_products"] for run in study.runs()}
        assert found == {word}
    assert torch.get_float32_matmul_precision() == "highest"


def test_what_torch_is_set_to_reaches_processes(tmp_path):
    study = tiny_study(seeds=1)
    with matmul_precision_as("tf32"):
        conduct(study, tmp_path, Options(workers=1))
    store = Store(tmp_path)
    assert {store.fingerprint(r.id)["float32_products"] for r in study.runs()} == {"high"}


def test_a_killed_worker_is_replaced_and_its_pack_comes_back():
    packs = pack_runs(tiny_study(seeds=2, cells=[tiny_cell(total_timesteps=100_000)]).runs())
    killed, events = False, []
    with LocalExecutor(ExecutorSettings(workers=1)) as executor:
        for event in executor.run(lambda: packs.pop() if packs else None):
            if not killed and not isinstance(event, Finished):
                os.kill(executor._workers[0].process.pid, signal.SIGKILL)
                killed = True
            elif isinstance(event, Lost):
                events.append(event)
                packs.append(event.pack)
            elif isinstance(event, Finished):
                events.append(event)
    assert [type(event) for event in events] == [Lost, Finished]
    assert "-9" in events[0].reason


DRIVER = """
import sys
sys.path.insert(0, sys.argv[1])
from tiny_study import tiny_cell, tiny_study
from headwise.study import Options, conduct

if __name__ == "__main__":
    study = tiny_study(cells=[tiny_cell(total_timesteps=1_000_000)])
    conduct(study, sys.argv[2], Options(workers=2))
"""


def test_workers_do_not_outlive_a_killed_driver(tmp_path):
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    driver = subprocess.Popen([sys.executable, script, Path(__file__).parent, tmp_path / "store"])
    try:
        # Two workers, and the process in which Python keeps track of shared resources.
        workers = until(lambda: len(found := children_of(driver.pid)) >= 3 and found, 60.0)
    finally:
        driver.kill()
        driver.wait()
    until(lambda: not any(map(is_running, workers)))


def test_an_accelerator_is_not_shared_by_processes():
    with pytest.raises(ConfigError, match="processes gain nothing"):
        LocalExecutor(ExecutorSettings(device="cuda"))
