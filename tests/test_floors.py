"""The oldest versions that are allowed: what `make floors` installs, and what was found too old."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def floors(*words):
    done = subprocess.run(
        [sys.executable, ROOT / "tools/floors.py", *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split("==") for line in done.stdout.split())


@pytest.mark.parametrize(
    ("name", "too_old"),
    [
        ("gymnasium", "1.2.1"),  # Discrete takes no dtype: no agent of CartPole can be loaded
        ("tyro", "0.9.29"),  # no tyro.conf.DisallowNone: no command line
        ("torch", "2.8.0"),  # no torch.backends.mkldnn.matmul.fp32_precision: no `products`
        ("torch", "2.9.0"),  # warns whenever it is asked for the precision of products
    ],
)
def test_what_was_found_too_old_is_not_allowed(name, too_old):
    def numbers(version):
        return tuple(map(int, version.removesuffix("+cpu").split(".")))

    for extras in ([], ["lander"]):
        assert numbers(floors(*extras)[name]) > numbers(too_old)


def test_torch_comes_without_what_is_for_gpus():
    cpu = "+cpu" if sys.platform.startswith("linux") else ""
    assert floors("--torch", "2.13.0")["torch"] == f"2.13.0{cpu}"
    assert floors()["torch"].endswith(cpu)


def test_without_the_index_of_cpu_builds_none_is_asked_for():
    """No other index has one, so that pip would find nothing."""
    assert floors("--torch", "2.13.0", "--any-build")["torch"] == "2.13.0"
    for index, asked in (("", True), ("https://download.pytorch.org/whl/cpu", False)):
        told = subprocess.run(
            ["make", "-n", "floors", "TORCH=2.13.0", f"TORCH_INDEX={index}"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert ("--any-build" in told) == asked


def test_an_extra_brings_the_extras_that_it_needs():
    assert {"matplotlib", "scipy", "pyarrow", "torch"} <= set(floors("report"))
