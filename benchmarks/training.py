"""Training against the learners that people use today, on two cores."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from benchmarks.machine import description
from benchmarks.peer import Peer
from benchmarks.results import renew, table
from benchmarks.timing import Meter, race

STEPS = 100_352  # of a run of the decoupler study: 49 rollouts
SEEDS = 16


@dataclass(frozen=True)
class Contest:
    """What a peer does in two processes of one thread, and what we do in ours."""

    what: str
    peer: str
    script: str
    arguments: Sequence[object]
    ours: Sequence[Sequence[object]]
    """Arguments of each of our processes."""
    target: float
    seeds: int = SEEDS

    @property
    def waiting(self) -> float:
        """How much longer a peer takes than by its rate, if the runs do not come out even.

        Of five runs, two at a time, the last is alone: three rounds instead of two and a half.
        """
        return 2 * math.ceil(self.seeds / 2) / self.seeds


def decoupler_cells() -> dict[str, Contest]:
    """The three kinds of cell in the factorial; vdn and qplex have three estimators each."""
    found = {}
    for name, variant, estimator in (
        ("shared", "none", "uniform"),
        ("vdn", "VDN", "range"),
        ("qplex", "QMIX", "grad"),
    ):
        arguments = ("ppo", name, "decoupler", SEEDS // 2, 1, estimator)
        found[name] = Contest(
            f"decoupler study, PPO {name}",
            f"flexibuddiesrl 1.0.4 ({variant})",
            "train_flexi",
            ("ppo", variant, "decoupler"),
            (arguments, arguments),
            5,
        )
    return found


def shoot_cells() -> list[Contest]:
    """Five seeds on HybridShoot, [256, 256], batches of 256, an update every fourth step."""
    cells = []
    for algorithm, name, view, peer, script, arguments, target in (
        ("dqn", "vdn", "discrete", "Stable-Baselines3 2.9.2 DQN", "train_sb3", ("dqn",), 2),
        ("dqn", "vdn", "discrete", "flexibuddiesrl 1.0.4 (VDN)", "train_flexi",
         ("dqn", "VDN", "shoot"), 3),
        ("sac", "shared", "continuous", "Stable-Baselines3 2.9.2 SAC", "train_sb3", ("sac",), 2),
        ("sac", "shared", "discrete", "flexibuddiesrl 1.0.4 (Concat)", "train_flexi",
         ("sac", "V", "shoot"), 3),
    ):  # fmt: skip
        what = f"HybridShoot {view}, {algorithm.upper()} {name}, 5 seeds"
        ours = ((algorithm, name, view, 5, 2),)
        cells.append(Contest(what, peer, script, arguments, ours, target, seeds=5))
    return cells


def together(processes: Sequence[Peer]) -> Meter:
    """The summed rate of processes that work at the same time."""

    def measure(seconds: float) -> float:
        with ThreadPoolExecutor(len(processes)) as pool:
            return sum(pool.map(lambda process: process(seconds), processes))

    return measure


def measure(contest: Contest, python: str, rounds: int, seconds: float) -> list[float]:
    """Environment steps per second of all members: ours, the peer's, and the ratio's range."""
    ours = [Peer(sys.executable, "../ours", arguments) for arguments in contest.ours]
    theirs = [Peer(python, contest.script, contest.arguments) for _ in range(2)]
    result = race([together(ours), together(theirs)], rounds=rounds, seconds=seconds)
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
             f"{ratio:.2f} ({low:.2f} to {high:.2f})", f"**{ratio * contest.waiting:.1f}**",
             f">= {contest.target:g}"]
        )  # fmt: skip
        sys.stderr.write(" | ".join(rows[-1]) + "\n")
        for name, cell in cells.items():
            if contest is cell:
                runs = SEEDS * (1 if name == "shared" else 3)
                for k, rate in enumerate((ours, theirs)):
                    minutes[k] += runs * STEPS / rate / 60
    text = [
        "## Training",
        f"Environment steps per second of all runs together, medians of {rounds} turns of "
        f"{seconds:g} s; a ratio is taken within a turn. A peer runs two processes of one thread, "
        "the best it can do with two cores; we run two populations of 8 (decoupler) or one "
        "population of 5 (HybridShoot). The ratio of times is that of all runs from the first to "
        "the last: of five runs, two at a time, the fifth is alone.",
        head + ".",
        table(["task", "ours", "peer", "peer's", "ratio", "ratio of times", "target"], rows),
        f"The factorial of 7 cells and 16 seeds (112 runs, 11.2 million steps) takes "
        f"**{minutes[0]:.1f} minutes** at these rates (target: under 5), the authors' package "
        f"{minutes[1]:.0f} minutes: **{minutes[1] / minutes[0]:.1f} times** as long (target: 5).",
    ]
    section = "\n\n".join(text)
    renew("training", section)
    return section
