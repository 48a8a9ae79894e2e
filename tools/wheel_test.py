"""`make wheel-test`: what a wheel is for a user who has no compiler.

In a bare environment with CC and CXX broken the wheel in dist/ is installed, the README's lines
run, and all that the extras bring imports. With `--sdist` the sdist is built as well, from the
packages in a folder alone, so that it needs no more than it declares.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINS = ROOT / "constraints.txt"
BROKEN = {"CC": "/bin/false", "CXX": "/bin/false", "OMP_NUM_THREADS": "1"}
SHORTER = {"200_000": "4_096"}
"""What the README's lines take forty seconds for; here only that they run is asked."""
IMPORTS = """
import importlib, sys
from importlib.metadata import packages_distributions
owned = packages_distributions().items()
owners = {module: {o.lower().replace("_", "-") for o in who} for module, who in owned}
for name in sys.argv[1:]:
    modules = [m for m in owners if name in owners[m] and m.isidentifier() and m[0] != "_"]
    assert modules, f"{name} has no module"
    for module in {name.replace("-", "_")} & set(modules) or modules:
        importlib.import_module(module)
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Tries a wheel and says what was tried; whatever fails ends it."""
    parser = argparse.ArgumentParser(prog="wheel_test", description=__doc__)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    parser.add_argument("--python", default=sys.executable, help="whose environment it is")
    parser.add_argument("--without", default="", help="extras to leave out, with commas between")
    parser.add_argument("--sdist", type=Path, help="a folder of wheels to build the sdist with")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as place:
        env = Bare(Path(place) / "venv", options.python)
        wheel = newest(options.dist, env.pip("debug", "--verbose"))
        env.pip("install", "-c", str(PINS), str(wheel))
        run(env, "the README's lines, but the export", lines(export=False))
        env.pip("install", "-c", str(PINS), f"{wheel}[onnx]")
        run(env, "the README's lines", lines(export=True))
        headwise = env.bin / "headwise"
        call([str(headwise), "envs"], env.folder)
        for extra, names in extras().items():
            if extra in options.without.split(","):
                continue
            env.pip("install", "-c", str(PINS), f"{wheel}[{extra}]")
            run(env, f"imports of [{extra}]", IMPORTS, *names)
        if options.sdist:
            (source,) = options.dist.glob("headwise-*.tar.gz")
            alone = Bare(Path(place) / "alone", options.python, {})
            alone.pip(
                "wheel", "--no-deps", "--no-index", "--find-links", str(options.sdist),
                "--wheel-dir", place, str(source),
            )  # fmt: skip
            say("the sdist builds from the folder alone")


class Bare:
    """A fresh virtual environment in which nothing can be compiled."""

    def __init__(self, folder: Path, python: str, broken: dict[str, str] = BROKEN) -> None:
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        self.folder, self.broken = folder, broken
        self.bin = folder / ("Scripts" if sys.platform == "win32" else "bin")

    def pip(self, *words: str) -> str:
        """Runs pip of the environment and returns what it wrote."""
        command = [str(self.bin / "python"), "-m", "pip", "--disable-pip-version-check", *words]
        quiet = ["--quiet"] if words[0] == "install" else []
        return call([*command, *quiet], self.folder, self.broken)


def newest(dist: Path, debug: str) -> Path:
    """The wheel in a folder that pip of the environment would take."""
    allowed = re.findall(r"^\s+(\w+-\w+-\w+)$", debug, re.MULTILINE)
    for wheel in sorted(dist.glob("headwise-*.whl"), key=lambda p: p.stat().st_mtime, reverse=True):
        python, abi, platforms = wheel.stem.split("-")[2:]
        if any(f"{python}-{abi}-{name}" in allowed for name in platforms.split(".")):
            return wheel
    sys.exit(f"no wheel in {dist} is for this Python; `make wheel` builds one")


def lines(export: bool) -> str:
    """The README's first example, on fewer steps."""
    (code,) = re.findall(r"```python\n(.+?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    for long, short in SHORTER.items():
        assert long in code, f"the README has no {long}"
        code = code.replace(long, short)
    if not export:
        code = "\n".join(line for line in code.splitlines() if ".export(" not in line)
    return code


def extras() -> dict[str, list[str]]:
    """What each extra brings by name, without those for developers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = {}
    for extra, requirements in project["optional-dependencies"].items():
        here = [r for r in requirements if "platform_system" not in r or sys.platform == "linux"]
        names = [re.split(r"[>=\[; ]", requirement)[0].lower() for requirement in here]
        if extra not in ("dev", "test", "release"):
            found[extra] = [name for name in names if name != "headwise"]
    return found


def run(env: Bare, what: str, code: str, *words: str) -> None:
    """Runs Python code in the environment, in its folder and not in the checkout."""
    call([str(env.bin / "python"), "-c", code, *words], env.folder)
    say(f"{what}: fine")


def call(command: list[str], folder: Path, environment: dict[str, str] = BROKEN) -> str:
    """Runs a command and returns what it wrote; a failure shows it and ends."""
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(command)[:200]}")
    return done.stdout


def say(text: str) -> None:
    """Writes a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
