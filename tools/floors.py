"""The oldest version of every dependency that `pyproject.toml` allows, as pip's constraints.

    python tools/floors.py pettingzoo report --torch 2.13.0   # the runtime and two extras

`make floors` installs what this prints and runs `tools/smoke.py` with it.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
_NEEDED = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?>=([\w.]+)")
# Torch for Linux brings gigabytes for GPUs along, if its CPU build is not asked for by name. Only
# torch's own index has that build under that name.
_CPU = "+cpu" if sys.platform.startswith("linux") else ""


def floors(
    extras: list[str], torch: str | None = None, *, any_build: bool = False
) -> dict[str, str]:
    """The oldest version of each dependency, by name.

    Args:
        extras: Which extras are wanted beside the runtime.
        torch: Which torch instead of the oldest.
        any_build: Whether another build of torch will do than the one for CPUs alone.
    """
    project = tomllib.loads(PROJECT.read_text())["project"]
    optional = project["optional-dependencies"]
    oldest: dict[str, str] = {}
    for requirement in sum((optional[extra] for extra in extras), project["dependencies"]):
        found = _NEEDED.match(requirement)
        if found is not None:
            oldest[found[1]] = found[2]
        elif requirement.startswith("headwise["):
            oldest |= floors(re.findall(r"\w+", requirement)[1:], torch, any_build=any_build)
        else:
            sys.exit(f"pyproject.toml: {requirement!r} has no oldest version")
    oldest["torch"] = torch or oldest["torch"]
    if not any_build:
        oldest["torch"] = oldest["torch"].removesuffix(_CPU) + _CPU
    return oldest


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="The oldest versions that are allowed.")
    asked.add_argument("extras", nargs="*")
    asked.add_argument("--torch", default=None)
    asked.add_argument("--any-build", action="store_true", help="torch may be for GPUs, too")
    given = asked.parse_args()
    found = floors(given.extras, given.torch, any_build=given.any_build)
    for name, version in found.items():
        print(f"{name}=={version}")
