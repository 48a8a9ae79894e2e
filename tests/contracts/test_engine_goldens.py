"""The engine does, to the bit, what it did when its goldens were written (`engine_cells.py`).

On another machine, or with another torch, sums round differently: there every member must have
come, after each stage, to the same place but for a small part of the way it went.
"""

import importlib.util
import itertools

import numpy as np
import pytest
from engine_cells import (
    ALONE,
    FOLDER,
    SEEDS,
    STAGES,
    digest,
    golden,
    machine,
    parameters,
    play,
    table,
)

PART_OF_THE_WAY = 0.02
CELLS = [(algorithm, name) for algorithm in STAGES for name in golden(algorithm).cells]


def check(algorithm, name, members):
    file = golden(algorithm)
    cell, about = file.cells[name]
    seeds = tuple(SEEDS[m] for m in members)
    states, acted, metrics = play(cell, file.batches(cell, members), seeds)
    first = file[about["first"]][members]
    exact = file.about["machine"] == machine()
    assert [(n, x[0].numel()) for n, x in metrics[0].items()] == list(map(tuple, about["metrics"]))
    if exact:
        np.testing.assert_array_equal(parameters(states["first"]), first)
        np.testing.assert_array_equal(acted.numpy(), file[f"{name}/acted"][:, members])
        np.testing.assert_array_equal(table(metrics), file[f"{name}/metrics"][:, members])
    for stage, kept in zip(STAGES[algorithm], file[f"{name}/parameters"][:, members], strict=True):
        found = parameters(states[stage])
        if exact:
            np.testing.assert_array_equal(found, kept, stage)
            mine = [digest(states[stage], row) for row in range(len(members))]
            assert mine == [about["digests"][stage][m] for m in members], stage
        else:
            off, way = (np.linalg.norm(x, axis=1) for x in (found - kept, kept - first))
            assert (off <= PART_OF_THE_WAY * way).all(), stage


@pytest.mark.parametrize(("algorithm", "name"), CELLS, ids=[name for _, name in CELLS])
def test_a_population_learns_what_it_did(algorithm, name):
    check(algorithm, name, list(range(len(SEEDS))))


def is_played_alone(algorithm, name):
    cell, _ = golden(algorithm).cells[name]
    return not cell.is_off_the_path


ALONE_TOO = [cell for cell in CELLS if is_played_alone(*cell)]


@pytest.mark.parametrize(("algorithm", "name"), ALONE_TOO, ids=[name for _, name in ALONE_TOO])
def test_a_member_alone_learns_what_it_did(algorithm, name):
    check(algorithm, name, [ALONE])


@pytest.fixture(scope="module")
def writer():
    path = FOLDER.parents[1] / "tools" / "write_engine_goldens.py"
    spec = importlib.util.spec_from_file_location("write_engine_goldens", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("algorithm", STAGES)
def test_every_cell_that_there_is_has_a_golden(writer, algorithm):
    """In both directions; the first of them is what the tool would write today."""
    file = golden(algorithm)
    cells = [cell for cell, _ in file.cells.values()]
    assert list(writer.accepted(algorithm)) == cells
    for cell in itertools.islice(cells, 3):
        for field, x in writer.data_of(cell).items():
            np.testing.assert_array_equal(x, file[f"data/{cell.situation}/{field}"])


@pytest.mark.parametrize("algorithm", STAGES)
def test_goldens_say_something(algorithm):
    """Members differ, every optimizer moved, and each setting off the path changed something."""
    file = golden(algorithm)
    seen = {}
    for name, (cell, about) in file.cells.items():
        kept, first = file[f"{name}/parameters"], file[about["first"]]
        assert len({x.tobytes() for x in kept[-1]}) == len(SEEDS), name
        at = 0
        for section in about["sections"]:
            part = slice(at, at + section["columns"])
            at += section["columns"]
            still = np.array_equal(kept[-1][:, part], first[:, part])
            assert still == (section["name"] == "kl_coef" and "kl_coef" not in cell.settings), name
        assert at == kept.shape[-1]
        said = tuple(file[f"{name}/{what}"].tobytes() for what in ("acted", "metrics"))
        twin = seen.setdefault((kept.tobytes(), *said), name)
        assert twin == name, "a setting without effect"
