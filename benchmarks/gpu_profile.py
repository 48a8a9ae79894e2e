"""Where an update on a GPU spends its time: its kernels, those that take longest first.

python -m benchmarks.gpu_profile "DQN vdn" 64     # a cell of `benchmarks/gpu.py`, and members
"""

from __future__ import annotations

import sys

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.gpu import CELLS, PRECISIONS, bundle, parts, ready

ROUNDS = 2


def main() -> None:
    """Profiles the updates of one cell, products in TF32."""
    names = [cell.name for cell in CELLS]
    if len(sys.argv) != 3 or sys.argv[1] not in names or not sys.argv[2].isdigit():
        sys.exit(f"give one of {', '.join(map(repr, names))}, and a number of members")
    if not torch.cuda.is_available():
        sys.exit("there is no CUDA device to measure")
    torch.set_float32_matmul_precision(next(iter(PRECISIONS)))
    cell, members = CELLS[names.index(sys.argv[1])], int(sys.argv[2])
    loop = ready(cell, members)
    steps = ROUNDS * parts(loop)
    for _ in range(5):
        loop.learn(bundle(loop))
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(ROUNDS):
            loop.learn(bundle(loop))
        torch.cuda.synchronize()
    kernels = sorted(found.key_averages(), key=lambda kernel: -kernel.self_device_time_total)
    total = sum(kernel.self_device_time_total for kernel in kernels) / steps
    sys.stdout.write(f"{cell.name}, {members} members: {total:.0f} us an update\n")
    for kernel in kernels[:20]:
        each = kernel.self_device_time_total / steps
        sys.stdout.write(f"{each:8.1f} us {kernel.count / steps:6.2f} x  {kernel.key[:80]}\n")


if __name__ == "__main__":
    main()
