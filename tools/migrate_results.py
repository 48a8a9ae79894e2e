"""Brings `results/` from layout 1 of studies to today's: ids and settings of runs have other names.

    python tools/migrate_results.py

Most of the CSV files have ids without configurations, and an id is a hash: only a plan of the same
studies by the same rules tells what it stands for. `tools/ids_v1.json.gz` keeps what every run was
in layout 1: `{id: Run.to_json()}`, sorted by id. It is not written anew. Labels are no part of a
run's identity; one that several studies have is as the first of `studies` calls it.

A file that was brought to today's layout already stays as it is.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headwise.study import Store, Study, load_study
from headwise.study.archive import read_archive, write_archive
from headwise.study.run import Run
from headwise.upgrade import RENAMED, upgrade

ROOT = Path(__file__).parents[1]
IDS = ROOT / "tools" / "ids_v1.json.gz"

_STRAIGHT = {"actor_gradient": "straight_through"}
OF_SAC: tuple[dict[str, Any], ...] = (
    {},
    _STRAIGHT,
    _STRAIGHT | {"target_entropy_end": 0.2},
    _STRAIGHT | {"target_entropy": 0.2},
    _STRAIGHT | {"target_entropy": 0.2, "activation": "tanh"},
)
"""What `learning --args family=sac` was run with, and `family=dqn`, a fifth of the steps each."""
OF_DQN: tuple[dict[str, Any], ...] = (
    {},
    {"dueling": False},
    {"dueling": False, "net_arch": (256, 256, 256)},
)


def studies() -> Iterator[Study]:
    """Every study that results come from, with the arguments that `results/README.md` names."""
    for name in (
        "paper", "decoupler_factorial", "lambda_sweep", "importance_recovery",
        "decoupler_cross_family",
    ):  # fmt: skip
        yield load_study(name)
    for name in (
        "costs", "joint_options", "target_entropy", "sac_settings", "entropy_bonus",
        "actor_gradient",
    ):  # fmt: skip
        yield _experiment(name)
    yield _experiment("entropy_bonus", target_entropy=0.2)
    yield _experiment("learning", seeds=8)
    yield _experiment("learning", family="off_policy", seeds=5)
    yield _experiment("learning", family="sac", part=1, seeds=5)
    for settings in OF_SAC:
        yield _experiment("learning", family="sac", seeds=5, settings=settings)
    for settings in OF_DQN:
        yield _experiment("learning", family="dqn", seeds=5, settings=settings)
    for name in ("critic_target", "signed_weights", "divergence", "centering"):
        yield load_study(name)


def _experiment(name: str, **arguments: Any) -> Study:
    """One that is kept beside its results."""
    return load_study(ROOT / "results" / "studies" / f"{name}.py", **arguments)


def rows() -> Iterator[dict[str, str]]:
    """Every row of results that is a run."""
    for path in sorted((ROOT / "results").glob("*.csv")):
        with path.open(newline="") as file:
            yield from (row for row in csv.DictReader(file) if "run" in row)


def configurations() -> dict[str, dict[str, Any]]:
    """What each of them was, by id."""
    planned: dict[str, Run] = {}
    for study in studies():
        for run in study.runs():
            planned.setdefault(run.id, run)
    return {id_: planned[id_].to_json() for id_ in sorted({row["run"] for row in rows()})}


def read() -> dict[str, dict[str, Any]]:
    """What the file holds."""
    found: dict[str, dict[str, Any]] = json.loads(gzip.decompress(IDS.read_bytes()))
    return found


def migrated() -> dict[str, dict[str, Any]]:
    """What every run was by its id of layout 1, in the words and with the id of today."""
    return {id_: upgrade({**config, "id": id_}) for id_, config in read().items()}


def in_todays_words(text: str, ids: Mapping[str, str]) -> str:
    """A table with the ids and the columns of today."""
    head, _, body = text.partition("\n")
    names = RENAMED[""] | RENAMED["sac"]
    columns = ",".join(names.get(name, name) for name in head.split(","))
    return f"{columns}\n" + re.sub(
        r"\b[0-9a-f]{16}$", lambda m: ids.get(m[0], m[0]), body, flags=re.M
    )


def main() -> None:
    """Rewrites the tables and the archives."""
    ids = {before: config["id"] for before, config in migrated().items()}
    for path in sorted((ROOT / "results").glob("*.csv")):
        before = path.read_text()
        path.write_text(after := in_todays_words(before, ids))
        print(f"{path.name}: {'as it was' if after == before else 'rewritten'}")
    for path in sorted((ROOT / "results").glob("*.parquet")):
        write_archive(Store(path), path)
        print(f"{path.name}: {len(read_archive(path).run_ids()):,} runs")


if __name__ == "__main__":
    main()
