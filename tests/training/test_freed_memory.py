"""What is freed stays with the process: the second time it costs no page."""

import os
import subprocess
import sys

CODE = """
import resource, sys
import torch
from headwise.training.freed_memory import keep_freed_memory

def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def take():
    torch.ones(1 << 20)  # 4 MiB

if sys.argv[1] == "keep":
    keep_freed_memory()
    keep_freed_memory()
for _ in range(20):
    take()
before = pages()
for _ in range(10):
    take()
print(pages() - before)
"""


def test_nothing_is_asked_for_twice():
    # Ten times 1024 pages are taken, and otherwise given back. What glibc does by itself changes
    # with what was freed before, so it is given a threshold.
    env = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "131072"}
    found = [
        int(subprocess.check_output([sys.executable, "-c", CODE, word], env=env))
        for word in ("keep", "not")
    ]
    assert found[0] < 100
    assert found[1] > 1000
