"""The command line: `headwise train | eval | play | export | envs | bench | ...`.

A command is a module of this folder with a function `main(argv)`; to add one, write the file and
give it a line in `COMMANDS`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from headwise.errors import HeadwiseError
from headwise.registry import unknown

COMMANDS = {
    "train": "Train an agent, or resume training.",
    "eval": "Evaluate a trained agent in new episodes.",
    "play": "Watch a trained agent, or record a video of it.",
    "export": "Export a trained policy to ONNX or torch.export.",
    "study": "Run a study: many runs, resumable, on one machine or many.",
    "report": "Make figures, tables and a web page from studies.",
    "envs": "List the environments: actions, views, reference scores.",
    "bench": "Benchmark environments and training on your hardware.",
}
"""Commands by name, each with a line of help."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status. Mistakes end in one message, not in a traceback."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(words)
    except HeadwiseError as error:
        sys.stderr.write(f"headwise: {error}\n")
        return 2
    except KeyboardInterrupt as interrupt:
        sys.stderr.write(f"headwise: {str(interrupt) or 'stopped'}\n")
        return 130
    except BrokenPipeError:  # `headwise envs | head`
        return 0


def _run(words: list[str]) -> int:
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write(_overview())
        return 0
    if words[0] in ("-V", "--version"):
        from headwise import __version__

        sys.stdout.write(f"headwise {__version__}\n")
        return 0
    name, *rest = ("--help" if word == "-h" else word for word in words)
    if name not in COMMANDS:
        raise unknown("command", name, COMMANDS)
    command = importlib.import_module(f"headwise.cli.{name}")
    status = command.main(rest)
    return int(status or 0)


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()]
    return "\n".join(
        [
            "usage: headwise COMMAND [OPTIONS]",
            "",
            "Reinforcement learning for actions made of several parts (Dict, Tuple, ...).",
            "",
            *lines,
            "",
            "To begin: headwise train --env CartPole-v1 --total-timesteps 50000",
            "Options:  headwise COMMAND --help",
            "",
        ]
    )
