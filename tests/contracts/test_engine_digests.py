"""What is learned does not depend, in a single bit, on how it is computed.

A member learns the same alone and among others, on any number of threads, recorded or operation by
operation, and with operations built for any instruction set; and the same today as when the digests
were written (`tools/write_engine_digests.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from engine_cells import SEEDS
from engine_play import DIGESTS, cells, digest, machine, member, not_compiled, play, population

from headwise.ops.core import isa

KEPT = json.loads(DIGESTS.read_text())
CELLS = [
    "ppo-vdn-hybrid",
    "ppo-qplex-hybrid",
    "ppo-ar-hybrid-masked",
    "dqn-vdn-discrete",
    "sac-ar-hybrid",
    "sac-shared-hybrid",
]
ISAS = ("avx512", "avx2", "baseline")


@pytest.mark.parametrize("name", CELLS)
def test_one_digest(name: str) -> None:
    """The second of three members, alone and not; each way by itself."""
    cell, wanted = cells()[name], digest([member(population(name).state, 1)])
    assert digest([member(population(name).state, 0)]) != wanted
    ways = {"alone": digest([play(cell, [1]).state])}
    for members, row in (((1, 0), 0), ((2, 0, 1), 2)):
        ways[f"among {members}"] = digest([member(play(cell, members).state, row)])
    ways["not recorded"] = digest([play(cell, [1], records=False).state])
    ways["not recorded, together"] = digest([member(play(cell, records=False).state, 1)])
    torch.set_num_threads(2)
    try:
        ways["two threads"] = digest([member(play(cell).state, 1)])
    finally:
        torch.set_num_threads(1)
    assert ways == dict.fromkeys(ways, wanted)


def test_one_digest_on_every_instruction_set() -> None:
    wanted = {name: digest([population(name).state]) for name in CELLS}
    for which in ISAS[ISAS.index(isa) + 1 :] if isa in ISAS else ():
        assert elsewhere(CELLS, HEADWISE_ISA=which) == wanted, which


def test_torch_has_no_part_in_what_is_compiled() -> None:
    """Its kernels for lesser processors round otherwise, which compiled cells do not notice."""
    compiled = [name for name in cells() if not KEPT[name]["by_torch"]][::9]
    assert len(compiled) > 5
    wanted = {name: digest([population(name).state]) for name in compiled}
    assert elsewhere(compiled, ATEN_CPU_CAPABILITY="default") == wanted


def elsewhere(names: list[str], **machine: str) -> dict[str, str]:
    """The digests of cells in a process of its own, as if on another machine."""
    command = [sys.executable, str(Path(__file__).with_name("engine_play.py")), "1", *names]
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | machine
    found = subprocess.run(command, env=environment, check=True, capture_output=True).stdout
    return json.loads(found)


@pytest.mark.parametrize("name", cells())
def test_it_learns_what_it_did(name: str) -> None:
    """Where operations are compiled; what torch computes needs the same kind of machine."""
    kept = KEPT[name]
    if not kept["by_torch"] or KEPT["machine"] == machine():
        assert digest([population(name).state]) == kept["digest"], (
            "see tools/write_engine_digests.py"
        )


def test_the_file_says_what_there_is() -> None:
    assert list(KEPT) == ["machine", *cells()]
    for name in (*CELLS, "dqn-shared-discrete", "ppo-shared-hybrid"):
        assert KEPT[name]["by_torch"] == not_compiled(cells()[name]), name


def test_every_setting_off_the_path_changes_something() -> None:
    """What is learned, or how it acts."""
    seen: dict[str, str] = {}
    for name in cells():
        played = population(name)
        acted = {"acted": torch.stack(played.acted, dim=1)}
        assert seen.setdefault(digest([played.state | acted]), name) == name


def test_a_digest_sees_every_bit() -> None:
    state = population(CELLS[0]).state
    other = {name: x.clone() for name, x in state.items()}
    other["square"].view(torch.int32)[2, 5] ^= 1
    assert len(SEEDS) == len(state["values"])
    assert digest([state]) != digest([other])
    assert digest([member(state, 2)]) != digest([member(other, 2)])
    assert digest([member(state, 1)]) == digest([member(other, 1)])
