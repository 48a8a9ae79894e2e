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
    """Write a trained policy as a file that runs without Headwise.

    From the environment's observation to its action, in one file: docs/export.md says what goes in
    and comes out.
    """

    out: Path | None = None
    """The file: .onnx for ONNX, .pt2 for torch; policy.onnx in the folder of the run if not
    given."""
    member: Literal["best"] | int = "best"
    """Whose policy: the best known, or a member by number, where 0 is the first seed."""
    deterministic: bool = True
    """Take the best action; with --no-deterministic uniform numbers are one more input, and actions
    are drawn by them."""
    masks: Literal["auto", "yes", "no"] = "auto"
    """Whether masks of legal options are one more input; auto: where the environment gives them."""


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
