"""Threads that cannot be had, and threads that belong to another process."""

import subprocess
import sys

import pytest

MAKE = """
import gc, os, resource, signal, threading
import numpy as np
from headwise.envs.native.engine import Engine

def made(threads):
    env = Engine("CoopPush", 4096, num_threads=threads)
    env.seed(np.arange(4096), np.zeros(4096))
    env.reset()
    return env

def seen(env):
    env.step()
    return env.obs.tobytes()
"""


def run_python(code):
    """In a process of its own: this one must not fork, nor go without threads."""
    done = subprocess.run([sys.executable, "-c", MAKE + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("threads", [2, 16])
def test_a_forked_child_may_use_and_delete_the_environment(threads):
    """The threads stay with the parent; the child's own may lie where theirs were remembered."""
    said = run_python(f"""
env = made({threads})
seen(env)
child = os.fork()
if child == 0:
    signal.alarm(60)
    seen(env)
    others = [threading.Thread(target=str) for _ in range(30)]
    [other.start() for other in others]
    [other.join() for other in others]
    del env
    gc.collect()
    seen(made(2))
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
again = made(1)
seen(again)
print(seen(env) == seen(again))
""")
    assert said.split() == ["7", "True"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the limit is not kept")
def test_where_no_more_threads_are_to_be_had_the_others_do_the_work():
    """With room for two dozen stacks, of a thousand threads most cannot be started."""
    said = run_python("""
alone = made(1)
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + 200 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (most, most))
many = made(1000)
print([seen(many) == seen(alone) for _ in range(3)])
""")
    assert said == "[True, True, True]\n"
