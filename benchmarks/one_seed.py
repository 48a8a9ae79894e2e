"""One seed on one core, as `learn` of each library trains it: ours, Stable-Baselines3, SBX."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.machine import description
from benchmarks.peer import Peer
from benchmarks.results import renew, table
from benchmarks.timing import race

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from one_seed_tasks import TASKS

AIMS = (5.0, 1.8, 1.7, 1.3, 1.3, 1.35)
"""Times SBX's rate, task by task; Stable-Baselines3's is to be half of ours everywhere."""
SEEDS = 5


def run(peers: str | None, *, rounds: int, seconds: float, command: str) -> str:
    """Measures every task and renews RESULTS.md."""
    if peers is None:
        return "One seed is measured against peers: give their Python with --peers."
    head, rows = description(command), []
    for number, (name, aim) in enumerate(zip(TASKS, AIMS, strict=True)):
        sides = [
            Peer(sys.executable, "../one_seed_ours", (number, 1)),
            Peer(sys.executable, "../one_seed_ours", (number, SEEDS)),
            Peer(peers, "train_one_seed", ("sb3", number)),
            Peer(peers, "train_one_seed", ("sbx", number)),
        ]
        found = race(sides, rounds=rounds, seconds=seconds)
        for side in sides:
            side.close()
        ours, many, sb3, sbx = found.rates
        (low, high), ratio = found.spread[0], found.ratios[0]
        rows.append(
            [name, f"{ours:,.0f}", f"{sbx:,.0f}", f"**{ratio:.2f}** ({low:.2f} to {high:.2f})",
             f">= {aim:g}", f"{sb3:,.0f}", f"{ours / sb3:.2f}", f"{many / ours:.2f}"]
        )  # fmt: skip
        sys.stderr.write(" | ".join(rows[-1]) + "\n")
    columns = ["task", "ours, steps/s", "SBX", "ours / SBX", "aim", "SB3", "ours / SB3"]
    section = "\n\n".join(
        [
            "## One seed on one core",
            "Environment steps per second of `learn`, Gymnasium's environments and float32 on all "
            f"sides, every process pinned to the same core; medians of {rounds} turns of "
            f"{seconds:g} s, ratios to SBX within a turn (smallest to largest). The learning rate "
            "is next to nothing, so that all sides play the same random game. The last column: "
            f"steps of all seeds with {SEEDS} seeds as one population, over those of one.",
            head + ".",
            table([*columns, f"{SEEDS} seeds / 1"], rows),
        ]
    )
    renew("one_seed", section)
    return section
