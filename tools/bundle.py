"""`make bundle`: the project and what it needs, as one file for a machine without registries.

torch and numpy stay out: a machine with an accelerator has its own. See docs/gpu.md.
"""

from __future__ import annotations

import argparse
import io
import json
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSTALLER = Path(__file__).with_name("install.sh")
VERSION = "src/headwise/__init__.py"
THERE_ALREADY = ("torch", "numpy")
"""Left out unless asked for: large, and the machine's own fit its accelerator."""
BUILD = ("ninja", "pip")
"""Beside what pyproject names: small, and not to be counted on. CMake is large and often there."""
GLIBC = range(28, 16, -1)
"""Minor versions of the C library, newest first, whose wheels may come along."""


def main(argv: Sequence[str] | None = None) -> None:
    """Writes the bundle and says where it is, and how large."""
    here = ".".join(map(str, sys.version_info[:2]))
    parser = argparse.ArgumentParser(prog="bundle", description=__doc__)
    parser.add_argument("--python-version", default=here, help="of the other machine, as in 3.12")
    parser.add_argument("--extras", default="study", help="of pyproject.toml, with commas between")
    parser.add_argument("--also", default="", help="more packages, with commas between: cmake,...")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    options = parser.parse_args(argv)
    if not re.fullmatch(r"3\.\d+", options.python_version):
        parser.error(f"--python-version {options.python_version}: allowed is a version as 3.12")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras, also = _words(options.extras), _words(options.also)
    offered = project["project"]["optional-dependencies"]
    if unknown := [name for name in extras if name not in offered]:
        parser.error(f"no extra {', '.join(unknown)}; there are {', '.join(offered)}")
    path = write(project, options.python_version, extras, also, options.out)
    _say(f"{path} has {path.stat().st_size / 2**20:.1f} MiB")


def write(
    project: dict[str, object],
    python_version: str,
    extras: Sequence[str],
    also: Sequence[str],
    folder: Path,
) -> Path:
    """Writes the bundle into a folder and returns its path."""
    tag = "cp" + python_version.replace(".", "")
    name = f"headwise-bundle-{_version()}-{tag}"
    with tempfile.TemporaryDirectory() as place:
        wheels = Path(place)
        _say(f"fetching wheels for Python {python_version}")
        wanted = [*requirements(project, extras), *BUILD, *also]
        fetch(wanted, python_version, wheels)
        for wheel in wheels.glob("*.whl"):
            if package_of(wheel) in set(THERE_ALREADY) - set(also):
                wheel.unlink()
        files = sorted(wheels.glob("*.whl"))
        _say(f"compressing {len(files)} wheels and the sources; a minute or a few")
        packed = compressed(files)
    told = {
        "python": python_version,
        "extras": list(extras),
        "also": list(also),
        "commit": _commit(),
        "wheels": [wheel.name for wheel in files],
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.tar"
    unfinished = path.with_suffix(".part")
    with tarfile.open(unfinished, "w") as bundle:
        bundle.add(INSTALLER, f"{name}/install.sh")
        _put(bundle, f"{name}/bundle.json", json.dumps(told, indent=2).encode())
        _put(bundle, f"{name}/wheels.tar.xz", packed)
        for source in sources():
            bundle.add(ROOT / source, f"{name}/headwise/{source}", recursive=False)
    unfinished.replace(path)
    return path


def requirements(project: dict[str, object], extras: Sequence[str]) -> Iterator[str]:
    """What is needed to build, to run, and for the extras; not torch, and not headwise itself."""
    about: dict[str, object] = project["project"]  # type: ignore[assignment]
    offered: dict[str, list[str]] = about["optional-dependencies"]  # type: ignore[assignment]
    yield from project["build-system"]["requires"]  # type: ignore[index]
    lines = [*about["dependencies"], *(x for extra in extras for x in offered[extra])]  # type: ignore[misc]
    for line in lines:
        ours = re.fullmatch(r"headwise\[(.+)\]", line)
        if ours:
            yield from requirements(project, _words(ours[1]))
        elif re.match(r"[\w.-]+", line)[0] not in THERE_ALREADY:  # type: ignore[index]
            yield line


def fetch(wanted: Sequence[str], python_version: str, folder: Path) -> None:
    """Downloads wheels, and those they need, for another Python than this one."""
    machine = platform.machine()
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in GLIBC] + [f"manylinux2014_{machine}"]
    command = [
        sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check",
        "--dest", str(folder), "--constraint", str(ROOT / "constraints.txt"),
        "--only-binary", ":all:", "--implementation", "cp", "--python-version", python_version,
        *(word for name in platforms for word in ("--platform", name)), *wanted,
    ]  # fmt: skip
    done = subprocess.run(command)
    if done.returncode:
        sys.exit("pip could not fetch the wheels, see above; it needs a registry or PIP_FIND_LINKS")


def compressed(wheels: Sequence[Path]) -> bytes:
    """The wheels as one tar.xz.

    They are stored in it without compression of their own, since what is compressed twice is no
    smaller: a third less than the wheels as they come.
    """
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:xz") as archive:
        for wheel in wheels:
            plain = io.BytesIO()
            with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(plain, "w") as target:
                for entry in source.infolist():
                    data = source.read(entry)
                    entry.compress_type = zipfile.ZIP_STORED
                    target.writestr(entry, data)
            _put(archive, wheel.name, plain.getvalue())
    return out.getvalue()


def sources() -> list[str]:
    """The project's files as they are now: what git tracks or would track, changes and all."""
    listed = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = sorted({name for name in listed.split("\0") if (ROOT / name).is_file()})
    if not names:
        sys.exit(f"a bundle is made of the files of a git repository, and {ROOT} is none")
    return names


def package_of(wheel: Path) -> str:
    """The package's name, normalized, from the name of its wheel."""
    return wheel.name.split("-")[0].lower().replace("_", "-")


def _version() -> str:
    """As pyproject.toml says where it stands."""
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / VERSION).read_text(), re.MULTILINE)
    assert found, VERSION
    return found[1]


def _commit() -> str:
    changed = "+" if _git("status", "--porcelain") else ""
    return _git("rev-parse", "--short", "HEAD").strip() + changed


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout


def _put(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    main()
