"""`headwise export`: write a trained policy as a file that runs without Headwise."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headwise.cli.flags import asked
from headwise.cli.runs import OfRun, checkpoint_of, load_run

_MASKS = {"auto": None, "yes": True, "no": False}


@dataclass(frozen=True, kw_only=True)
class Export(OfRun):
    """Export a trained policy to ONNX or torch.export, to run without Headwise.

    The file maps the environment's observation to its action: see docs/export.md.
    """

    out: Path | None = None
    """The file: .onnx for ONNX, .pt2 for torch.export; policy.onnx in the folder of the run if not
    given."""
    member: Literal["best"] | int = "best"
    """Which seed's policy: the best, or by index, where 0 is the first."""
    deterministic: bool = True
    """Take the greedy action; with --no-deterministic actions are sampled, from uniform random
    numbers that are one more input."""
    masks: Literal["auto", "yes", "no"] = "auto"
    """Whether the action mask is one more input; auto: if the environment gives one."""


def main(argv: Sequence[str]) -> int:
    """Exports as the words of the command line say."""
    given = asked(Export, argv, "export")
    out = given.out or checkpoint_of(given.run).with_name("policy.onnx")
    again = ["headwise", "export", *argv]
    agent = load_run(given.run, given.env, given.device, again, plays=False)
    member = agent.best_member if given.member == "best" else given.member
    agent.member(member).export(out, deterministic=given.deterministic, masks=_MASKS[given.masks])
    sys.stdout.write(f"the policy of seed {agent.seeds[member]} is in {out}\n")
    return 0
