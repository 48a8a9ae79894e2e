"""The command line: `python -m benchmarks envs --peers peers/bin/python`, `population`, ..."""

from __future__ import annotations

import argparse
import os
import sys

from benchmarks import envs, gpu, population, scores, training

SECTIONS = {
    "envs": envs,
    "gpu": gpu,
    "population": population,
    "scores": scores,
    "training": training,
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
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a turn lasts")
    options = parser.parse_args()
    words = [f"--rounds {options.rounds}", f"--seconds {options.seconds:g}"]
    if options.peers:
        words.append("--peers peers/bin/python")
    command = f"python -m benchmarks {options.what} " + " ".join(words)
    text = SECTIONS[options.what].run(
        options.peers, rounds=options.rounds, seconds=options.seconds, command=command
    )
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
