"""Where and when a measurement was made."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def processor() -> str:
    """The name of the processor, and the widest vectors it has."""
    name, flags = platform.processor() or "unknown processor", ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        rows = dict(
            (part.strip() for part in line.split(":", 1))
            for line in info.read_text().split("\n\n")[0].splitlines()
            if ":" in line
        )
        name, flags = rows.get("model name", name), rows.get("flags", "")
    vectors = next((v for v in ("avx512f", "avx2", "sse2") if v in flags.split()), "")
    return f"{name} ({vectors.removesuffix('f')})" if vectors else name


def commit() -> str:
    """The commit measured, with a plus if there were changes on top of it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "src", "cpp", "benchmarks", ":!*/RESULTS.md")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")


def description(command: str) -> str:
    """A line of Markdown on machine, date, commit and command."""
    load = os.getloadavg()[0]
    return (
        f"{processor()}, {os.cpu_count()} cores, {platform.system()}, Python "
        f"{platform.python_version()}; {datetime.date.today().isoformat()}, commit {commit()}, "
        f"load average {load:.1f} at the start; `{command}`"
    )
