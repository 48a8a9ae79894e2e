#!/bin/sh
# Installs Headwise from this folder, without a network: a virtual environment that sees the torch
# of the Python given, what else is needed, the extension built here, and a short check of it all.
#
#   sh install.sh [--python python3] [--source headwise] [--venv SOURCE/.venv] [--device cuda]
#
# Without --device the check runs on the GPU if there is one; --source is another copy of the sources.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
source=$here/headwise
venv=
device=
usage="sh install.sh [--python P] [--source S] [--venv V] [--device D]"

fail() { # what is wrong, what to do
  printf 'install.sh: %s\n  fix: %s\n' "$1" "$2" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  [ $# -gt 1 ] || fail "$1 needs a value" "$usage"
  case $1 in
    --python) python=$2 ;;
    --source) source=$(cd "$2" && pwd) || fail "there is no folder $2" "$usage" ;;
    --venv) venv=$2 ;;
    --device) device=$2 ;;
    *) fail "there is no option $1" "$usage" ;;
  esac
  shift 2
done
venv=${venv:-$source/.venv}

# What must be here already, each with its own complaint.
command -v "$python" > /dev/null || fail "there is no $python" "give one with --python"
told() { # what the bundle says of itself, with commas between
  "$python" -c 'import json, sys
value = json.load(open(sys.argv[1]))[sys.argv[2]]
print(value if isinstance(value, str) else ",".join(value))' "$here/bundle.json" "$1"
}
wanted=$(told python)
found=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
[ "$found" = "$wanted" ] || fail "the wheels are for Python $wanted, and $python is $found" \
  "give another with --python, or make the bundle with PYTHON_VERSION=$found"
# Where its packages are. --system-site-packages would not do: where the Python given lives in an
# environment itself, those are the packages of the Python below it.
places=$("$python" -c 'import os, sys, numpy, torch
places = [os.path.dirname(os.path.dirname(x.__file__)) for x in (torch, numpy)]
places += [x for x in sys.path if x.endswith(("site-packages", "dist-packages"))]
print(*dict.fromkeys(places), sep="\n")' 2> /dev/null) || fail "$python has no torch, or no numpy" \
  "give a Python that has both with --python"
"$python" -c 'import lzma' 2> /dev/null || fail "$python was built without lzma" \
  "give another with --python"
headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
[ -f "$headers/Python.h" ] || fail "Python's headers are not in $headers" \
  "install them (the package is often called python3-dev)"
compiler=${CXX:-}
for name in c++ g++ clang++; do
  [ -n "$compiler" ] || ! command -v "$name" > /dev/null || compiler=$name
done
[ -n "$compiler" ] || fail "there is no C++ compiler" "install one, or name it in CXX"

# No registry is asked, whatever pip is told elsewhere.
export PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1
unset PIP_FIND_LINKS PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_CONSTRAINT PIP_REQUIRE_VIRTUALENV || true
unset PYTHONPATH PYTHONHOME || true

wheels=$here/wheels
"$python" -m tarfile -e "$here/wheels.tar.xz" "$wheels" 2> /dev/null ||
  fail "the wheels could not be unpacked into $wheels" "see that the disk has room"
if ! command -v cmake > /dev/null && [ -z "$(ls "$wheels"/cmake-*.whl 2> /dev/null)" ]; then
  fail "there is no CMake" "install it (3.18 or newer), or make the bundle with ALSO=cmake"
fi

echo "a virtual environment in $venv"
"$python" -m venv --without-pip "$venv" || fail "$python cannot make virtual environments" \
  "install its module venv (the package is often called python3-venv)"
bin=$(cd "$venv/bin" && pwd)
printf '%s\n' "$places" > \
  "$("$bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/the_other_python.pth"
pip() { "$bin/python" -m pip --quiet "$@" --find-links "$wheels"; }

echo "packages"
"$bin/python" "$(echo "$wheels"/pip-*.whl)/pip" --quiet install --find-links "$wheels" pip
# shellcheck disable=SC2046
pip install scikit-build-core nanobind ninja $(told also | tr , ' ')
extras=$(told extras)
echo "the extension is being built; a minute or two"
PATH=$bin:$PATH pip install --no-build-isolation --editable "$source${extras:+[$extras]}"

echo "a short check"
if [ -z "$device" ]; then
  device=$("$bin/python" -c 'import torch; print("cuda" if torch.cuda.is_available() else "cpu")')
fi
"$bin/headwise" envs > /dev/null
check=$(mktemp -d)
trap 'rm -rf "$check"' EXIT
"$bin/headwise" train --algo dqn --factorization vdn --view discrete --seeds 2 --total-timesteps 4000 \
  --learning-starts 1000 --device "$device" --no-progress --out "$check/run"
echo "Headwise works on $device: $bin/headwise"
