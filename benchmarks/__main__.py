"""The command line: `python -m benchmarks envs --peers peers/bin/python`, `population`, ..."""

from __future__ import annotations

import argparse
import os
import sys

from benchmarks import (
    adapters,
    envs,
    gpu,
    images,
    imitation,
    one_seed,
    paper,
    population,
    predict,
    rollout,
    scores,
    structure,
    training,
    updates,
)
from headwise.study.executors.streams import MOST

SECTIONS = {
    "adapters": adapters,
    "envs": envs,
    "gpu": gpu,
    "images": images,
    "imitation": imitation,
    "one_seed": one_seed,
    "paper": paper,
    "population": population,
    "rollout": rollout,
    "predict": predict,
    "scores": scores,
    "structure": structure,
    "training": training,
    "updates": updates,
}


def main() -> None:
    """Measures what was asked for and prints it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=envs.__doc__)
    parser.add_argument("what", choices=SECTIONS, nargs="?", default="envs")
    parser.add_argument(
        "--peers",
        default=os.environ.get("HEADWISE_PEERS"),
        help="the Python of a virtual environment with the peers (or set HEADWISE_PEERS)",
    )
    parser.add_argument("--rounds", type=int, default=7, help="how often both sides take turns")
    parser.add_argument(
        "--seconds", "--seconds-per-cell", type=float, help="how long a turn, or a cell, lasts"
    )
    parser.add_argument("--ablate", action="store_true", help="gpu: what each Triton kernel gains")
    only = parser.add_argument_group("paper")
    only.add_argument("--device", default="cuda", help="where to train")
    only.add_argument("--cells", help="a pattern (`*`, `?`) of cells; RESULTS.md stays as it is")
    only.add_argument(
        "--at-once",
        type=int,
        default=paper.AT_ONCE,
        choices=range(1, MOST + 1),
        metavar=f"1..{MOST}",
        help="populations that train at once",
    )
    options = parser.parse_args()
    if options.what == "paper":
        seconds = options.seconds or paper.SECONDS
        words = [f"--seconds {seconds:g}", f"--device {options.device}"]
        words += [f"--at-once {options.at_once}"]
        more = {"device": options.device, "cells": options.cells, "at_once": options.at_once}
    else:
        seconds, more = options.seconds or 1.0, {}
        words = [f"--rounds {options.rounds}", f"--seconds {seconds:g}"]
        if options.what == "gpu":
            more = {"ablate": options.ablate}
            words += ["--ablate"] * options.ablate
    if options.peers:
        words.append("--peers peers/bin/python")
    command = f"python -m benchmarks {options.what} " + " ".join(words)
    text = SECTIONS[options.what].run(
        options.peers, rounds=options.rounds, seconds=seconds, command=command, **more
    )
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
