"""What a run looks like at one moment, fetched to the host once for all who want to know."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from headwise.training.loop import Loop

FloatArray = NDArray[np.float64]

RECENT = 100
"""Episodes that a current score is the mean of, or fewer before there are so many."""


@dataclass(frozen=True)
class Report:
    """The numbers of every member at one moment, under the names the field has for them."""

    step: int
    """Environment steps that each member has taken."""
    total: int
    """Environment steps that each is to take."""
    seeds: tuple[int, ...]
    values: Mapping[str, FloatArray]
    """Numbers (P,) by name: `rollout/ep_rew_mean`, `train/...`, `heads/<head>/...`, `time/fps`;
    `eval/mean_return` in the report of a step at which there was an evaluation."""
    alive: NDArray[np.bool_]
    """Which members have not diverged, (P,)."""
    last_returns: tuple[FloatArray, ...] = ()
    """The returns of each member's last episodes, (n,) with n up to 1000, the latest last."""

    def member(self, member: int) -> Report:
        """The report of one member alone."""
        mine = slice(member, member + 1)
        return replace(
            self,
            seeds=self.seeds[mine],
            values={name: values[mine] for name, values in self.values.items()},
            alive=self.alive[mine],
            last_returns=self.last_returns[mine],
        )

    @property
    def returns(self) -> FloatArray:
        """The mean return of each member's last episodes, (P,); NaN before the first."""
        return self.values["rollout/ep_rew_mean"]

    def __repr__(self) -> str:
        returns = ", ".join(f"{x:.4g}" for x in self.returns)
        return f"Report(step={self.step} of {self.total}, seeds={self.seeds}, returns=[{returns}])"


def metric_columns(loop: Loop) -> dict[str, FloatArray]:
    """What the last update reported, one column (P,) for each name, fetched to the host.

    A metric of heads is one of each head: `heads/<head>/<metric>`.
    """
    values: dict[str, FloatArray] = {}
    names = loop.binning.spec.names
    for name, tensor in loop.metrics.items():
        numbers = tensor.detach().cpu().double().numpy()
        if numbers.ndim == 1:
            values[name] = numbers
            continue
        metric = name.removeprefix("heads/")
        # A policy over joint actions has one column for all heads.
        columns = names if numbers.shape[-1] == len(names) else ("joint",)
        for head, column in zip(columns, numbers.T, strict=True):
            values[f"heads/{head}/{metric}"] = column
    return values


def make_report(
    loop: Loop, total: int, fps: float, more: Mapping[str, FloatArray] = MappingProxyType({})
) -> Report:
    """Looks at a loop.

    Args:
        loop: The run.
        total: Environment steps that each member is to take.
        fps: Environment steps of all members in a second.
        more: Other numbers (P,) by name.
    """
    members = loop.keys.num_members
    last = [loop.episodes.last(member) for member in range(members)]
    recent = [[_mean(x[-RECENT:]) for x in mine] for mine in last]
    values: dict[str, FloatArray] = {
        "rollout/ep_rew_mean": np.array([mean for mean, _ in recent]),
        "rollout/ep_len_mean": np.array([mean for _, mean in recent]),
        "time/fps": np.full(members, fps),
        "time/total_timesteps": np.full(members, float(loop.env_steps)),
        "train/n_updates": np.full(members, float(loop.updates)),
    }
    values |= metric_columns(loop) | dict(more)
    alive = loop.algorithm.alive.cpu().numpy()
    returns = tuple(mine for mine, _ in last)
    return Report(loop.env_steps, total, loop.keys.seeds, values, alive, returns)


def _mean(numbers: FloatArray) -> float:
    return float(numbers.mean()) if len(numbers) else math.nan
