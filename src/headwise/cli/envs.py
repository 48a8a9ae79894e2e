"""`headwise envs`: the environments, their actions and what good play scores."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Column, Table

from headwise.cli.flags import asked
from headwise.envs.make import env_names, make_vec, plain_name
from headwise.envs.native import NATIVE_NAMES, env_id
from headwise.envs.native.engine import settings_of
from headwise.envs.reference import NAMES, reference_of, reference_score
from headwise.errors import EnvError
from headwise.registry import unknown
from headwise.spaces import ActionSpec


@dataclass(frozen=True)
class Envs:
    """List the environments; with a name, show the settings and actions of one."""

    name: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[NAME]")] = None
    """An environment whose settings and heads to show."""
    probes: bool = False
    """List the probe environments too: small tasks with known solutions, for tests."""


def main(argv: Sequence[str]) -> int:
    """Lists as the words of the command line say."""
    given = asked(Envs, argv, "envs")
    console = Console()
    if given.name is not None:
        _about(console, plain_name(given.name))
        return 0
    ids = Column("id and views", no_wrap=True, min_width=max(len(env_id(name)) for name in NAMES))
    table = Table(ids, "action", "random", "best", box=None, header_style="bold")
    missing: dict[str, None] = {}
    for name in NAMES:
        table.add_row(env_id(name))
        for view in reference_of(name).views:
            scores = reference_score(name, view=view)
            try:
                action = shortened(_heads(name, view))
            except EnvError as error:  # what it is made of is not installed; the others are there
                action = "not installed"
                missing[str(error)] = None
            means = (f"{score.mean:.3g}" for score in (scores.random, scores.best))
            table.add_row(f"  {view}", action, *means)
    if given.probes:
        for name in env_names():
            if name.startswith("probe/"):
                table.add_row(name, shortened(make_vec(name, [0], 1).spec))
    console.print(table)
    console.print(
        "\nDn is a discrete head with n actions, R a continuous one. Scores are mean returns of "
        "random actions and of the best known policy. `headwise envs NAME` shows one "
        "environment. Any Gymnasium id works too.",
        highlight=False,
    )
    for text in missing:
        console.print(text, highlight=False, markup=False)
    return 0


def _about(console: Console, name: str) -> None:
    if name not in (*NAMES, *env_names()):
        raise unknown("environment", name, env_names())
    console.print(f"[bold]{env_id(name) if name in NAMES else name}[/]", highlight=False)
    if name not in NAMES:
        console.print(str(make_vec(name, [0], 1).spec), highlight=False)
        return
    for view in reference_of(name).views:
        console.print(f"{view + ':':12} {_heads(name, view)}", highlight=False)
    console.print(f"best known:  {reference_of(name).how}", highlight=False)
    if name in NATIVE_NAMES:
        table = Table("setting", "default", "allowed", "help", box=None, header_style="bold")
        for setting, (default, allowed, text) in settings_of(name).items():
            table.add_row(setting, str(default), allowed, text)
        console.print(table)


def _heads(name: str, view: str) -> ActionSpec:
    env = make_vec(name, [0], 1, view=view)
    env.close()
    return env.spec


def shortened(spec: ActionSpec) -> str:
    """A spec in a few words: "D3, 2 x D10" for discrete heads, "4 x R" for continuous ones."""
    parts = []
    for options, heads in itertools.groupby(n for n in spec.cardinalities if n):
        number = len(list(heads))
        parts.append(f"D{options}" if number == 1 else f"{number} x D{options}")
    if spec.num_ranges:
        parts.append("R" if spec.num_ranges == 1 else f"{spec.num_ranges} x R")
    return ", ".join(parts)
