"""Nothing but what every test needs."""

import torch

import headwise  # noqa: F401  (before anyone multiplies matrices: see its __init__)

torch.set_num_threads(1)  # pytest runs a process on each core
