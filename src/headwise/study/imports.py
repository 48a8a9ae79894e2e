"""What a worker process loads before it trains: where a study's own things are registered.

A worker begins with Headwise alone. An algorithm, a factorization or an environment of the user is
there once the code has run that registers it: the study's file, or else the module it is in.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym

from headwise.algorithms import algorithms
from headwise.envs.make import environments
from headwise.envs.probes import probes
from headwise.errors import ConfigError
from headwise.factorizations import factorizations
from headwise.study.run import Run
from headwise.study.source import KNOWN_IDS, MODULES, run_file
from headwise.study.study import Study

_KNOWN = ("headwise", "gymnasium")
"""Packages whose things are there from the beginning."""


def imports_of(study: Study, runs: Sequence[Run]) -> tuple[str, ...]:
    """Files and modules that workers load for these runs; none if all they use is Headwise's.

    The study's file does it. A study that was made in Python has none; then it is the modules in
    which what it uses is defined. An id like `module:Id-v0` says itself what is imported for it.
    """
    used = {(run.env, run.algorithm, run.factorization) for run in runs}
    homes = {home for names in sorted(used) for home in _homes(*names)}
    own = sorted(home for home in homes if home.partition(".")[0] not in _KNOWN)
    new_ids = {run.env for run in runs if run.env in gym.registry} - KNOWN_IDS
    if study.file is not None:
        return (str(study.file),) if own or new_ids else ()
    return tuple(_import_of(home) for home in own)


def check_imports(imports: Sequence[str]) -> None:
    """Refuses what a process of its own can never load."""
    if "__main__" in imports:
        raise ConfigError(
            "the study uses something that is registered in a notebook or an interactive session, "
            "where worker processes cannot see it",
            fix="Move it into a file that you import, or train here with the executor `inline`.",
        )


@cache
def load_imports(imports: tuple[str, ...]) -> None:
    """Runs files and imports modules, once in a process."""
    for name in imports:
        if not name.endswith(".py"):
            _import(name)
        elif Path(name).is_file():
            run_file(Path(name))
        else:
            raise ConfigError(
                "the study's file is not on the machine of this worker",
                got=name,
                fix="It registers what the run uses: put it, and what lies beside it, in the same "
                "place on every machine.",
            )


def _homes(env: str, algorithm: str, factorization: str) -> Iterator[str]:
    """The modules in which what a run uses is defined."""
    yield _module_of(algorithms.get(algorithm))
    yield _module_of(factorizations.get(factorization))
    probe = env.removeprefix("probe/")
    if env in environments:
        yield _module_of(environments.get(env))
    elif probe != env and probe in probes:
        yield _module_of(probes.get(probe))
    elif (spec := gym.registry.get(env)) is not None:
        made_by = spec.entry_point
        yield made_by.partition(":")[0] if isinstance(made_by, str) else _module_of(made_by)


def _module_of(thing: Any) -> str:
    return str(getattr(thing, "__module__", None) or "headwise")


def _import_of(home: str) -> str:
    """How another process gets at a module: by its file where it has no name to import."""
    if home != "__main__" and not home.startswith(MODULES):
        return home
    file = getattr(sys.modules.get(home), "__file__", None)
    return home if file is None else str(Path(file).resolve())


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(
            "a worker cannot import a module that the study uses",
            got=f"{name} ({error})",
            fix="Install it where workers are, or run the study as a file that lies beside it: "
            "`headwise study run FILE`.",
        ) from error
