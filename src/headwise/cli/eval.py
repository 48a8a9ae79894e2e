"""`headwise eval`: evaluate a trained agent in new episodes."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from headwise.cli.flags import asked
from headwise.cli.runs import OfRun, load_run
from headwise.training.matmul_precision import MatmulPrecision, matmul_precision_as, not_as_asked


@dataclass(frozen=True, kw_only=True)
class Eval(OfRun):
    """Evaluate a trained agent in new episodes: the score of each seed, and of all together."""

    episodes: int = 100
    """Episodes of each seed."""
    max_steps: int | None = None
    """Steps after which an episode is cut off; its return by then counts. No limit if not given."""
    deterministic: bool = True
    """Take the greedy action; --no-deterministic samples from the policy."""
    seed: int = 0
    """Seed of the episodes."""
    json: bool = False
    """Print JSON."""
    matmul_precision: MatmulPrecision | None = None
    """Precision of matrix multiplication: float32, tf32 (GPUs) or bf16 (CPUs with AVX512-BF16);
    PyTorch's setting if not given."""


def main(argv: Sequence[str]) -> int:
    """Evaluates as the words of the command line say."""
    given = asked(Eval, argv, "eval")
    agent = load_run(given.run, given.env, given.device, ["headwise", "eval", *argv])
    if missing := not_as_asked(given.matmul_precision, agent.loop.keys.device):
        sys.stderr.write(f"warning: {missing}\n")
    with matmul_precision_as(given.matmul_precision):
        found = agent.evaluate(
            given.episodes,
            deterministic=given.deterministic,
            seed=given.seed,
            max_steps=given.max_steps,
        )
    if given.json:
        from headwise.training.loggers.base import seed_labels

        # JSON has no NaN, which is what a single episode has for an interval.
        low, high = (None if math.isnan(end) else end for end in found.interval)
        pairs = zip(seed_labels(found.seeds), found.returns, strict=True)
        by_seed = {label: row.tolist() for label, row in pairs}
        told = {"iqm": found.iqm, "low": low, "high": high, "returns": by_seed}
        sys.stdout.write(json.dumps(told) + "\n")
        return 0
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(str(found), highlight=False)
    table = Table("seed", "mean return", "lowest", "highest", "mean length", box=None)
    for seed, returns, lengths in zip(found.seeds, found.returns, found.lengths, strict=True):
        numbers = (returns.mean(), returns.min(), returns.max(), lengths.mean())
        table.add_row(str(seed), *(f"{x:.4g}" for x in numbers))
    console.print(table)
    return 0
