"""Algorithms: from data to updates. They never log or step an environment.

`ppo`, `dqn` and `sac` have a folder each: settings, learner and what the learner is made of.

**How to read a step.** A learner is a list of operations on buffers, forward and then backward:

    ops.value_error(q, target, weights, coef=1.0, huber=False, out=loss)
    ops.value_error.backward(q, target, weights, coef=1.0, huber=False, out=loss)
    network.backward(inputs)
    optimizer.step()

The first call writes `loss`. The second takes the same arguments, reads the gradient of `out` and
overwrites those of the inputs that have room for one: here `q`, the network's output. The third
goes on from there and overwrites the gradients of parameters, so none is set to zero. What an
operation computes is its definition in plain torch, in `headwise.ops`; no graph of autograd goes
from one operation to the next. A loss has several columns: the first is the loss, whose gradient is
set to one once (dL/dL = 1); the others are reported only.

A `Scratch` gives the same buffer for the same name and shape, so `backward` finds there what the
forward call has written. `Recorded(body)` runs `body` in Python once and repeats its operations
without Python from then on: `self._epoch(times=3, threads=2)`. So no number that Python knows may
change from one time to the next; learning rates, schedules and clocks are buffers.

Shapes are (P, N, B, W): members, copies of a network such as twins, rows, columns. All letters are
on the page Concepts (`docs/concepts.md`). E[...] in a comment is the mean over rows.

Importing this package imports every module in its folder, so a new algorithm is registered by
existing.
"""

import importlib
import pkgutil

from headwise.algorithms.base import Algorithm, AlgorithmConfig, algorithms

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["Algorithm", "AlgorithmConfig", "algorithms"]
