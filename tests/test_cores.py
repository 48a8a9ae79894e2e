"""The cores that are counted are those that this process may use."""

import os
import subprocess
import sys

import pytest

from headwise.cores import usable_cores


def test_there_is_one_at_least_and_no_more_than_the_machine_has():
    assert 1 <= usable_cores() <= os.cpu_count()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be pinned here")
def test_a_pinned_process_has_one_and_environments_start_no_thread_for_the_others():
    code = """
import os
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
from headwise.cores import usable_cores
from headwise.envs.native.engine import Engine
Engine("CoopPush", 1)
before = len(os.listdir("/proc/self/task"))
env = Engine("CoopPush", 4096)
print(usable_cores(), len(os.listdir("/proc/self/task")) - before)
env = Engine("CoopPush", 4096, num_threads=3)
print(len(os.listdir("/proc/self/task")) - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "0", "2"]
