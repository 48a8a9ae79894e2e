"""`kill -9` at random moments of a study of 40 runs: the results are those of an undisturbed one.

Eight kills by default; `HEADWISE_KILLS=50 pytest tests/study/test_kills.py` for the full number.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tiny_study import contents, leftovers, tiny_cell, tiny_study

from headwise.study import Options, Store, conduct

KILLS = int(os.environ.get("HEADWISE_KILLS", "8"))
CELLS = (("dqn", "vdn"), ("ppo", "qplex"), ("sac", "shared"), ("dqn", "ar"))
RUNS = 40

NURSERY = """
# Imports everything once, then gives life to a runner for every line it is told: starting a Python
# for each would take longer than the study.
import os, sys
sys.path.insert(0, sys.argv[1])
import headwise.study.train, pyarrow.parquet
from test_kills import study
from headwise.study import Options, conduct

if __name__ == "__main__":
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            executor = line.strip()
            options = Options(executor=executor, workers=2, max_members=2, keep_checkpoints=True)
            conduct(study(), sys.argv[2], options)
            os._exit(0)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def study():
    return tiny_study("kills", seeds=RUNS // len(CELLS), cells=[tiny_cell(*c) for c in CELLS])


def finished(folder):
    return len(list((Path(folder) / "runs").glob("*/result.json")))


def test_kills_change_nothing(tmp_path):
    conduct(study(), tmp_path / "calm", Options(executor="inline", keep_checkpoints=True))
    script = tmp_path / "nursery.py"
    script.write_text(NURSERY)
    store = tmp_path / "killed"
    nursery = subprocess.Popen(
        [sys.executable, script, Path(__file__).parent, store],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def begin(executor):
        nursery.stdin.write(f"{executor}\n")
        nursery.stdin.flush()
        return int(nursery.stdout.readline())

    chance, progress = random.Random(8), []
    for kill in range(KILLS):
        executor = "local" if kill % 8 == 3 else "inline"
        runner = begin(executor)
        # After some more runs and a moment, but with runs left for the lives to come.
        before = finished(store)
        goal = before + chance.uniform(0.0, 2.0) * (RUNS - before) / (KILLS - kill + 1)
        patience = time.monotonic() + 20.0
        while finished(store) < min(goal, RUNS - 2) and time.monotonic() < patience:
            time.sleep(0.001)
        time.sleep(chance.uniform(0.0, 0.05))
        os.kill(runner, signal.SIGKILL)
        assert nursery.stdout.readline() == "-9\n", f"it was done before kill {kill}"
        progress.append(finished(store))
    print(f"runs that were finished at each kill: {progress}")
    begin("inline")
    assert nursery.stdout.readline() == "0\n"
    nursery.stdin.close()
    assert nursery.wait() == 0
    nursery.stdout.close()
    assert len(set(progress)) > min(KILLS, RUNS) // 3  # they came at different moments of it
    assert contents(store) == contents(tmp_path / "calm")
    assert len(contents(store)) == RUNS
    assert all(checkpoint for _, checkpoint in contents(store).values())
    assert leftovers(store) == []
    assert Store(store).plan() == list(study().runs())
