"""Training against the learners that people use today, on two cores."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from benchmarks.machine import description
from benchmarks.peer import Peer
from benchmarks.results import renew, table
from benchmarks.timing import Meter, race
from headwise.ops.core import has_bf16
from headwise.training.matmul_precision import MatmulPrecision

STEPS = 100_352  # of a run of the decoupler study: 49 rollouts
SEEDS = 16


@dataclass(frozen=True)
class Contest:
    """Runs that differ in their seed: ours and a peer's, each in two processes of one thread.

    We train the runs of a process as one population, as a study does; a peer one after the other.
    """

    what: str
    peer: str
    script: str
    arguments: Sequence[object]
    """Of a peer's process."""
    ours: Sequence[object]
    """Of our process, before the members and the one thread."""
    more: str
    """Of our process, after them and the products: an estimator, or settings as JSON."""
    target: float
    seeds: int = SEEDS
    matmul_precision: MatmulPrecision = "float32"
    """Of our process; a peer's are always float32."""

    @property
    def shares(self) -> tuple[int, int]:
        """The runs of each process."""
        return math.ceil(self.seeds / 2), self.seeds // 2


def decoupler_cells() -> dict[str, Contest]:
    """The three kinds of cell in the factorial; vdn and qplex have three estimators each."""
    found = {}
    for name, variant, estimator in (
        ("shared", "none", "uniform"),
        ("vdn", "VDN", "range"),
        ("qplex", "QMIX", "grad"),
    ):
        found[name] = Contest(
            f"decoupler study, PPO {name}",
            f"flexibuddiesrl 1.0.4 ({variant})",
            "train_flexi",
            ("ppo", variant, "decoupler"),
            ("ppo", name, "decoupler"),
            estimator,
            5,
        )
    return found


def shoot_cells() -> list[Contest]:
    """Five seeds on HybridShoot, [256, 256], batches of 256, an update every fourth step."""
    cells = []
    # What a peer has as well: a plain network, an actor that follows the slope of relaxed options.
    plain, straight = {"dueling": False}, {"actor_gradient": "straight_through"}
    for algorithm, name, view, settings, peer, script, arguments, target in (
        ("dqn", "vdn", "discrete", plain, "Stable-Baselines3 2.9.2 DQN", "train_sb3", ("dqn",), 2),
        ("dqn", "vdn", "discrete", {}, "flexibuddiesrl 1.0.4 (VDN)", "train_flexi",
         ("dqn", "VDN", "shoot"), 3),
        ("sac", "shared", "continuous", straight, "Stable-Baselines3 2.9.2 SAC", "train_sb3",
         ("sac",), 2),
        ("sac", "shared", "discrete", straight, "flexibuddiesrl 1.0.4 (Concat)", "train_flexi",
         ("sac", "V", "shoot"), 3),
    ):  # fmt: skip
        network = ", plain network" if settings is plain else ""
        what = f"HybridShoot {view}, {algorithm.upper()} {name}{network}, 5 seeds"
        ours, more = (algorithm, name, view), json.dumps(settings)
        full = Contest(what, peer, script, arguments, ours, more, target, seeds=5)
        cells.append(full)
        if has_bf16():
            cells.append(
                replace(full, what=f"{what}, products in bfloat16", matmul_precision="bf16")
            )
    return cells


def together(processes: Sequence[Peer], shares: Sequence[int]) -> Meter:
    """Steps per second of all runs from their beginning to the end of the last of them."""

    def measure(seconds: float) -> float:
        with ThreadPoolExecutor(len(processes)) as pool:
            rates = pool.map(lambda process: process(seconds), processes)
        longest = max(share / rate for share, rate in zip(shares, rates, strict=True))
        return sum(shares) / longest

    return measure


def measure(contest: Contest, python: str, rounds: int, seconds: float) -> list[float]:
    """Environment steps per second of all runs: ours, the peer's, and the ratio's range."""
    shares = contest.shares
    ours = [
        Peer(
            sys.executable,
            "../ours",
            (*contest.ours, share, 1, contest.matmul_precision, contest.more),
        )
        for share in shares
    ]
    theirs = [Peer(python, contest.script, contest.arguments) for _ in shares]
    meters = [together(ours, shares), together(theirs, shares)]
    result = race(meters, rounds=rounds, seconds=seconds)
    for process in (*ours, *theirs):
        process.close()
    return [*result.rates, result.ratios[0], *result.spread[0]]


def run(peers: str | None, *, rounds: int, seconds: float, command: str) -> str:
    """Measures every contest and renews RESULTS.md."""
    if peers is None:
        return "Training is measured against peers: give their Python with --peers."
    head = description(command)
    rows, minutes = [], [0.0, 0.0]
    cells = decoupler_cells()
    for contest in (*cells.values(), *shoot_cells()):
        ours, theirs, ratio, low, high = measure(contest, peers, rounds, seconds)
        rows.append(
            [contest.what, f"{ours:,.0f}", contest.peer, f"{theirs:,.0f}",
             f"**{ratio:.2f}** ({low:.2f} to {high:.2f})", f">= {contest.target:g}"]
        )  # fmt: skip
        sys.stderr.write(" | ".join(rows[-1]) + "\n")
        for name, cell in cells.items():
            if contest is cell:
                runs = SEEDS * (1 if name == "shared" else 3)
                for k, rate in enumerate((ours, theirs)):
                    minutes[k] += runs * STEPS / rate / 60
    text = [
        "## Training",
        "Environment steps per second of all runs, from their beginning to the end of the last "
        f"one; medians of {rounds} turns of {seconds:g} s, a ratio is taken within a turn. Both "
        "sides have two processes of one thread, the best that either can do with two cores: of "
        "16 runs (decoupler) 8 in each, of 5 (HybridShoot) 3 and 2. Ours trains them as a "
        "population, as `headwise study run` does, a peer's one after the other. Products are "
        "float32 on both sides, but for ours in rows that say bfloat16 (`--matmul-precision "
        "bf16`): the peer's are float32 there too.",
        head + ".",
        table(["task", "ours", "peer", "peer's", "ratio of times", "target"], rows),
        f"The factorial of 7 cells and 16 seeds (112 runs, 11.2 million steps) takes "
        f"**{minutes[0]:.1f} minutes** at these rates (target: under 5), the authors' package "
        f"{minutes[1]:.0f} minutes: **{minutes[1] / minutes[0]:.1f} times** as long (target: 5).",
    ]
    section = "\n\n".join(text)
    renew("training", section)
    return section
