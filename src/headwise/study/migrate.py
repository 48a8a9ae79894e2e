"""A study's folder of an earlier layout becomes one of this one, run by run."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from headwise.errors import StoreError
from headwise.files import disk_troubles, json_bytes, parse_json, remove, replace_file, sync_folder
from headwise.study.locks import Locks
from headwise.study.plan_file import old_folders, read_as_it_is, read_study
from headwise.upgrade import LAYOUT, upgrade


class Migrated(NamedTuple):
    """What was done."""

    before: int
    """The layout that the folder had."""
    renamed: dict[str, str]
    """The ids of runs today, by those that they had."""


def migrate(folder: Path) -> Migrated:
    """Brings a study's folder to this layout: new names of settings, and so new ids of runs.

    Results stay as they are, to the byte. It may be ended at any time: until all runs are done the
    folder is one of the earlier layout, which can be read, and another call goes on.
    """
    data = read_as_it_is(folder)
    if data["version"] == LAYOUT:
        return Migrated(LAYOUT, {})
    study, runs = read_study(folder), folder / "runs"
    with Locks(folder) as locks, locks.planning() as alone:
        if not alone:
            raise StoreError(
                f"another process is at work in {folder}",
                fix="Wait for the runner to end, or stop it; finished runs are safe.",
            )
        names = {name: run_id for run_id, name in old_folders(folder).items()}
        with disk_troubles(folder):
            for name, run_id in sorted(names.items()):
                path = runs / name / "config.json"
                if path.is_file():  # else it failed before it was known what it was
                    new = upgrade(parse_json(path.read_bytes()))
                    replace_file(path, json_bytes(new))
                if (runs / run_id).exists():
                    remove(runs / name)
                else:
                    (runs / name).rename(runs / run_id)
            sync_folder(runs)
            replace_file(folder / "study.json", json_bytes(study))
    return Migrated(data["version"], names)
