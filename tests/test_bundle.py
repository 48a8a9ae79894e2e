"""The offline bundle: made here, and installed where there is nothing but Python and torch."""

import base64
import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import headwise

ROOT = Path(__file__).parents[1]
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
TAG = HERE.replace(".", "")
HIDDEN = {"PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1"}
"""No registry is to be had: what is not in the folder given does not exist."""


def needed_by(*names):
    """These packages and all that they need, as they are installed here."""
    found, left = {}, list(names)
    while left:
        name = left.pop().lower().replace("_", "-")
        if name in found:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system
        needs = [line for line in found[name].requires or [] if "extra ==" not in line]
        left += [re.match(r"[\w.-]+", line)[0] for line in needs]
    return found


def rows(dist):
    """What belongs into a package's wheel: path and content."""
    scripts = f"{dist.name.replace('-', '_')}-{dist.version}.data/scripts"
    generated = {point.name for point in dist.entry_points if point.group == "console_scripts"}
    for file in dist.files:
        path = Path(file.locate())
        if file.name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json") or (
            file.suffix == ".pyc" or not path.is_file()
        ):
            continue
        if file.parts[0] == "..":
            if "bin" in file.parts and file.name not in generated:
                yield f"{scripts}/{file.name}", path.read_bytes()
        else:
            yield file.as_posix(), path.read_bytes()


def make_wheel(dist, folder):
    """A wheel from an installed package, so that no test needs a registry."""
    tags = re.findall(r"^Tag: (.+)$", dist.read_text("WHEEL"), re.M)
    python, abi, _ = tags[0].split("-")
    platforms = ".".join(sorted({tag.split("-")[2] for tag in tags}))
    name = f"{dist.name.replace('-', '_')}-{dist.version}"
    record = []
    with zipfile.ZipFile(folder / f"{name}-{python}-{abi}-{platforms}.whl", "w") as wheel:
        for path, data in rows(dist):
            wheel.writestr(path, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")
        info = next(f.parts[0] for f in dist.files if f.name == "METADATA")
        record.append(f"{info}/RECORD,,")
        wheel.writestr(f"{info}/RECORD", "\n".join(record) + "\n")


def make_bundle(out, *words, **more):
    command = [sys.executable, ROOT / "tools/bundle.py", "--out", out, *words]
    environment = os.environ | HIDDEN | more
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """A bundle for this Python, without extras, as it lies on the other machine."""
    place = tmp_path_factory.mktemp("bundle")
    wheels = place / "wheels"
    wheels.mkdir()
    direct = "gymnasium tyro rich safetensors scikit-build-core nanobind ninja pip numpy iniconfig"
    for dist in needed_by(*direct.split()).values():
        make_wheel(dist, wheels)
    done = make_bundle(place, "--extras", "", "--also", "iniconfig", PIP_FIND_LINKS=str(wheels))
    assert done.returncode == 0, done.stderr
    (bundle,) = place.glob("*.tar")
    assert bundle.name == f"headwise-bundle-{headwise.__version__}-cp{TAG}.tar"
    assert f"{bundle.stat().st_size / 2**20:.1f} MiB" in done.stderr
    with tarfile.open(bundle) as archive:
        archive.extractall(place, filter="data")
    return place / bundle.stem


def make_machine(folder, *names):
    """A Python of its own that has these packages, what they need, and nothing else."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    packages = folder / "elsewhere" / "site-packages"
    packages.mkdir(parents=True)
    for dist in needed_by(*names).values():
        for top in {f.parts[0] for f in dist.files} - {"..", "__pycache__"}:
            (packages / top).symlink_to(dist.locate_file(top))
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "packages.pth").write_text(f"{packages}\n")
    return folder / "bin" / "python"


def install(unpacked, *words, **more):
    command = ["sh", unpacked / "install.sh", *words]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PIP_")} | more
    # A registry that answers nothing, should anyone ask.
    environment |= {"PIP_INDEX_URL": "http://127.0.0.1:9/simple"}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_the_bundle_has_the_sources_as_they_are_and_wheels_but_no_torch(unpacked):
    assert (unpacked / "headwise/cpp/bindings.cpp").read_bytes() == (
        ROOT / "cpp/bindings.cpp"
    ).read_bytes()
    assert (unpacked / "headwise/tests/test_bundle.py").exists()
    assert not (unpacked / "headwise/.venv").exists()
    told = json.loads((unpacked / "bundle.json").read_text())
    assert told["python"] == HERE
    names = {wheel.split("-")[0].lower() for wheel in told["wheels"]}
    assert {"gymnasium", "nanobind", "ninja", "pip", "scikit_build_core", "cloudpickle"} <= names
    assert not names & {"torch", "numpy", "pyarrow", "pytest"}
    with tarfile.open(unpacked / "wheels.tar.xz") as archive:
        assert archive.getnames() == told["wheels"]


@pytest.mark.timeout(900)  # it compiles
def test_it_installs_builds_and_trains_without_a_registry(unpacked, tmp_path):
    python = make_machine(tmp_path / "machine", "torch", "numpy")
    venv = tmp_path / "venv"
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # for CMake
    quick = tmp_path / "quick-c++"
    quick.write_text('#!/bin/sh\nexec c++ "$@" -O0\n')
    quick.chmod(0o755)
    words = ("--python", python, "--venv", venv)
    done = install(unpacked, *words, PATH=tools, CXX=str(quick))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4,000 steps of 2 seeds" in done.stdout
    assert f"Headwise works on cpu: {venv}/bin/headwise" in done.stdout
    code = "import headwise._core as m, gymnasium, torch; print(m, gymnasium, torch, sep='\\n')"
    found = subprocess.run([venv / "bin/python", "-c", code], capture_output=True, text=True)
    core, gymnasium, torch = found.stdout.splitlines()
    assert str(unpacked) in core or str(venv) in core, found.stderr
    assert str(venv) in gymnasium
    assert list(venv.glob("lib/*/site-packages/iniconfig"))  # asked for with --also
    assert str(tmp_path / "machine") in torch
    # What was left out says so; a study does before anything is trained.
    listed = subprocess.run([venv / "bin/headwise", "envs"], capture_output=True, text=True)
    assert "headwise/Platform-v0" in listed.stdout
    assert "Gymnasium's Box2D is not installed" in listed.stdout
    study = [venv / "bin/headwise", "study", "run", "demo", "--smoke"]
    done = subprocess.run(study, cwd=unpacked / "headwise", capture_output=True, text=True)
    assert done.returncode == 2
    assert "pyarrow is not installed" in done.stderr
    assert not (unpacked / "headwise/runs").exists()


def test_what_the_machine_lacks_is_named(unpacked, tmp_path):
    bare = make_machine(tmp_path / "bare")
    said = install(unpacked, "--python", bare).stderr
    assert "has no torch, or no numpy" in said
    assert "--python" in said
    assert (
        "there is no python-of-nobody" in install(unpacked, "--python", "python-of-nobody").stderr
    )
    assert "there is no option --pyhton" in install(unpacked, "--pyhton", "x").stderr
    assert "--venv needs a value" in install(unpacked, "--venv").stderr
    other = json.loads((unpacked / "bundle.json").read_text()) | {"python": "3.99"}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "bundle.json").write_text(json.dumps(other, indent=2))
    (elsewhere / "install.sh").write_bytes((unpacked / "install.sh").read_bytes())
    said = install(elsewhere, "--python", bare).stderr
    assert f"the wheels are for Python 3.99, and {bare} is {HERE}" in said
    assert f"PYTHON_VERSION={HERE}" in said


def test_a_compiler_cmake_and_headers_are_asked_for_before_anything_is_made(unpacked, tmp_path):
    python = make_machine(tmp_path / "machine", "torch", "numpy")
    few = tmp_path / "few"
    few.mkdir()
    for name in ("sh", "sed", "dirname", "ls"):
        (few / name).symlink_to(f"/bin/{name}")
    words = ("--python", python, "--venv", tmp_path / "venv")
    said = install(unpacked, *words, PATH=str(few), CXX="").stderr
    assert "there is no C++ compiler" in said
    said = install(unpacked, *words, PATH=str(few), CXX="g++").stderr
    assert "there is no CMake" in said
    assert "ALSO=cmake" in said
    assert not (tmp_path / "venv").exists()


def test_settings_that_make_no_sense_are_refused(tmp_path):
    done = make_bundle(tmp_path, "--extras", "stduy")
    assert done.returncode == 2
    assert "no extra stduy; there are" in done.stderr
    done = make_bundle(tmp_path, "--python-version", "312")
    assert done.returncode == 2
    assert "allowed is a version as 3.12" in done.stderr
    done = make_bundle(tmp_path, "--extras", "")
    assert done.returncode == 1
    assert "it needs a registry or PIP_FIND_LINKS" in done.stderr
    assert list(tmp_path.iterdir()) == []
