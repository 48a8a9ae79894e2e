"""`headwise eval`: measure a trained agent in new episodes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console
from rich.table import Table

from headwise.cli.runs import load_run
from headwise.training.products import Products, not_as_asked, products_as


@dataclass(frozen=True)
class Eval:
    """Measure a trained agent in new episodes."""

    run: tyro.conf.Positional[Path]
    """The folder of the run, or a checkpoint."""
    episodes: int = 100
    """Episodes of each seed."""
    sample: bool = False
    """Draw actions from the policy, instead of taking the best."""
    seed: int = 0
    """Another number gives other episodes."""
    json: bool = False
    """Print numbers for programs."""
    device: str = "cpu"
    """Where learners live: cpu or cuda."""
    products: Products | None = None
    """What is multiplied is rounded to float32, tf32 (GPU) or bf16 (some CPUs); as torch is set if
    not given."""


def main(argv: Sequence[str]) -> int:
    """Evaluates as the words of the command line say."""
    asked = tyro.cli(Eval, prog="headwise eval", args=list(argv))
    agent = load_run(asked.run, asked.device)
    if missing := not_as_asked(asked.products, asked.device):
        sys.stderr.write(f"warning: {missing}\n")
    with products_as(asked.products):
        found = agent.evaluate(asked.episodes, deterministic=not asked.sample, seed=asked.seed)
    if asked.json:
        low, high = found.interval
        pairs = zip(found.seeds, found.returns, strict=True)
        by_seed = {str(seed): row.tolist() for seed, row in pairs}
        told = {"iqm": found.iqm, "low": low, "high": high, "returns": by_seed}
        sys.stdout.write(json.dumps(told) + "\n")
        return 0
    console = Console()
    console.print(str(found), highlight=False)
    table = Table("seed", "mean return", "lowest", "highest", "mean length", box=None)
    for seed, returns, lengths in zip(found.seeds, found.returns, found.lengths, strict=True):
        numbers = (returns.mean(), returns.min(), returns.max(), lengths.mean())
        table.add_row(str(seed), *(f"{x:.4g}" for x in numbers))
    console.print(table)
    return 0
