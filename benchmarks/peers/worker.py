"""The half of a peer's benchmark that runs in the peer's own Python: measures when it is told to.

A script beside this one makes a step function for its arguments and calls `serve`. Each line of
input is a number of seconds; each line of output is how many steps per second were done.
"""

import sys
import time


def serve(step, num_envs):
    """Measures `step`, which steps so many environments, once for each line of input."""
    for _ in range(3):
        step()
    print("ready", flush=True)
    for line in sys.stdin:
        seconds = float(line)
        start = time.perf_counter()
        step()
        batch = max(1, int(0.005 / max(time.perf_counter() - start, 1e-7)))
        start, calls = time.perf_counter(), 0
        while True:
            now = time.perf_counter()
            if now - start >= seconds:
                break
            for _ in range(batch):
                step()
            calls += batch
        print(calls * num_envs / (now - start), flush=True)
