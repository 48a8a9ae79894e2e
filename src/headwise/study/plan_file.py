"""What the `study.json` of a folder says, of this layout or of the one before. No torch here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headwise.errors import ConfigError, StoreError
from headwise.files import parse_json
from headwise.study.names import STUDY_NAMES, is_study_name
from headwise.upgrade import LAYOUT, LAYOUTS, upgrade, upgraded_id

_PLAN_AGAIN = "Delete that file and run the study again; finished runs are not repeated."


def read_study(folder: Path) -> dict[str, Any]:
    """What `study.json` says, in this layout; raises if there is none, or it is damaged."""
    path, data = folder / "study.json", read_as_it_is(folder)
    if data["version"] == LAYOUT:
        return data
    try:
        return {**data, "version": LAYOUT, "plan": [upgrade(entry) for entry in data["plan"]]}
    except ConfigError as error:
        raise StoreError(f"cannot read {path}", got=str(error), fix=_PLAN_AGAIN) from error


def read_as_it_is(folder: Path) -> dict[str, Any]:
    """What `study.json` says, in the layout that it has."""
    path = folder / "study.json"
    try:
        return _checked(path, parse_json(path.read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(
            f"there is no study in {folder}",
            fix="Give the folder that `headwise study run` wrote; it holds a study.json.",
        ) from None
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"cannot read {path}", got=error.strerror) from error
    except ValueError as error:
        raise StoreError(f"{path} is no JSON", got=str(error), fix=_PLAN_AGAIN) from error


def refuse_layout_1(folder: Path) -> None:
    """Raises if nothing can be put into a study's folder because it has an earlier layout."""
    if (version := read_as_it_is(folder)["version"]) != LAYOUT:
        raise StoreError(
            f"the study in {folder} was started by an earlier version, whose settings have other "
            "names",
            got=f"layout {version}",
            allowed=f"layout {LAYOUT}",
            fix=f"`headwise study migrate {folder}` renames them and keeps all runs.",
        )


def old_folders(folder: Path) -> dict[str, str]:
    """What the folders of runs are called that have another name than the run's id, by that id.

    There are some where the layout is an earlier one.
    """
    try:
        data = read_as_it_is(folder)
        if data["version"] == LAYOUT:
            return {}
        planned = {entry["id"]: upgrade(entry)["id"] for entry in data["plan"]}
        there = sorted(path.name for path in (folder / "runs").iterdir())
    except (OSError, ConfigError, StoreError):  # which is said when it is read
        return {}
    ids = {name: planned.get(name) or _id(folder / "runs" / name) for name in there}
    return {run_id: name for name, run_id in ids.items() if run_id not in (None, name)}


def _id(folder: Path) -> str | None:
    """The id of the run in a folder; None if its configuration cannot be read."""
    try:
        return upgraded_id(parse_json((folder / "config.json").read_bytes()))
    except (OSError, ValueError, ConfigError):
        return None


def _checked(path: Path, data: Any) -> dict[str, Any]:
    """What a `study.json` says, if it is one; raises if not."""
    version = data.get("version") if isinstance(data, dict) else None
    if isinstance(version, int) and version not in LAYOUTS:
        raise StoreError(
            f"{path} has another layout",
            got=version,
            allowed=" or ".join(map(str, LAYOUTS)),
            fix="Another version of Headwise wrote it; use that one.",
        )
    good = version in LAYOUTS and isinstance(data.get("name"), str)
    plan = data.get("plan") if good else None
    if not isinstance(plan, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get("id"), str) for entry in plan
    ):
        raise StoreError(
            f"{path} does not describe a study",
            got=data,
            allowed="an object with name, version and plan",
            fix=_PLAN_AGAIN,
        )
    assert isinstance(data, dict)
    if not is_study_name(data["name"]):
        raise StoreError(
            f"{path} has a name that no study can have",
            got=repr(data["name"]),
            allowed=STUDY_NAMES,
            fix="The file was changed by hand, or comes from a source you should not trust.",
        )
    return data
