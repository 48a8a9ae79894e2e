"""Where a result was made: versions, machine, commit. Nothing of it changes the result's id."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from headwise import ENGINE, __version__

_PACKAGES = ("torch", "numpy", "gymnasium", "envpool", "pyarrow", "ray")


def fingerprint() -> dict[str, Any]:
    """The machine and the software, and how torch is set now."""
    return {**_fixed(), "float32_products": torch.get_float32_matmul_precision()}


@cache
def _fixed() -> dict[str, Any]:
    """What is measured once in a process."""
    return {
        "headwise": __version__,
        "engine": ENGINE,
        "python": platform.python_version(),
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
        "commit": _commit(),
        "machine": {
            "system": platform.platform(),
            "host": platform.node(),
            "processor": _processor(),
            "cores": os.cpu_count(),
        },
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the source, with a `+` if files were changed; None outside a checkout.

    Where Headwise is installed in an environment that lies in another repository, Git would
    answer for that one; so it is asked whether it knows this very file.
    """
    here = Path(__file__).parent

    def git(*words: str) -> str:
        command = ["git", "-C", str(here), *words]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "--", __file__)
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(here.parent))
        return git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
