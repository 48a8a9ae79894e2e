"""A real Ray cluster of two workers, one of which is killed mid-run.

In a process of its own: Ray keeps threads, signal handlers and warnings that are not ours to judge.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from test_imports import HEADS, STUDY
from tiny_study import contents, tiny_cell, tiny_study

from headwise import ConfigError
from headwise.study import Options, Store, conduct
from headwise.study.executors.base import ExecutorSettings, executors

CELLS = (("dqn", "vdn"), ("ppo", "shared"), ("sac", "ar"))


def study():
    cells = [tiny_cell(*cell, total_timesteps=192) for cell in CELLS]
    return tiny_study("ray", seeds=2, cells=cells)


CLUSTER = """
import os, sys, threading, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
from ray.cluster_utils import Cluster
from test_ray_executor import study
from headwise.study import Options, conduct
from headwise.study.progress import StudyProgress

if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})

    def busy(node):
        # A worker is at work when a child of its node's raylet bears the task's name.
        (raylet,) = node.all_processes["raylet"]
        for path in Path("/proc").glob("[0-9]*"):
            try:
                parent = path.joinpath("stat").read_text().rpartition(")")[2].split()[1]
                title = path.joinpath("cmdline").read_text()
            except OSError:
                continue
            if int(parent) == raylet.process.pid and title.startswith("ray::_train"):
                return True
        return False

    def kill(nodes):
        while not (busy_nodes := [node for node in nodes if busy(node)]):
            time.sleep(0.05)
        cluster.remove_node(busy_nodes[0], allow_graceful=False)
        print("killed", flush=True)

    class Watched(StudyProgress):
        def __enter__(self):
            # Now the driver is there, so it lives on the head and not on one of these.
            nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
            threading.Thread(target=kill, args=(nodes,), daemon=True).start()
            return super().__enter__()

        def dropped(self, pack):
            print("lost", len(pack.runs), flush=True)
            super().dropped(pack)

    options = Options(executor="ray", address=cluster.address, keep_checkpoints=True)
    summary = conduct(study(), sys.argv[2], options, Watched())
    print("finished", summary.finished, "failed", summary.failed, flush=True)
    print("checkpoints", summary.checkpoints, flush=True)
    ray.shutdown()
    cluster.shutdown()
"""


def test_a_cluster_that_loses_a_worker_finishes_the_study(tmp_path):
    script = tmp_path / "cluster.py"
    script.write_text(CLUSTER)
    done = subprocess.run(
        [sys.executable, script, Path(__file__).parent, tmp_path / "ray"],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    for said in ("killed", "lost 2", "finished 6 failed 0", "checkpoints 6"):
        assert said in done.stdout
    conduct(study(), tmp_path / "here", Options(executor="inline", keep_checkpoints=True))
    assert contents(tmp_path / "ray") == contents(tmp_path / "here")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_an_address_where_nobody_listens_is_told_at_once(address):
    executor = executors.get("ray")(ExecutorSettings(address=address))
    with pytest.raises(ConfigError, match="no Ray cluster to be reached"):
        executor.__enter__()


def test_ray_that_is_not_installed_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"headwise\[ray\]"):
        executors.get("ray")(ExecutorSettings())


LOCAL = """
import sys
from headwise.study import Options, conduct, load_study

if __name__ == "__main__":
    study = load_study(sys.argv[1])
    print(conduct(study, sys.argv[2], Options(executor="ray", workers=1)).finished)
"""


def test_without_an_address_one_is_started_here_and_its_workers_run_the_studys_file(tmp_path):
    script, folder = tmp_path / "local.py", tmp_path / "mine"
    script.write_text(LOCAL)
    folder.mkdir()
    (folder / "own.py").write_text(HEADS.format(name="own") + STUDY)
    (folder / "beside.py").write_text(HEADS.format(name="beside"))
    (folder / "lies_beside.py").write_text("")
    done = subprocess.run(
        [sys.executable, script, folder / "own.py", tmp_path / "ray"],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "2"
    assert len(list(Store(tmp_path / "ray").runs.iterdir())) == 2
