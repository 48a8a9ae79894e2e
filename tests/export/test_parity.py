"""A deployed policy does in onnxruntime what the population does in torch, cell by cell.

Deployed policies are compared in every cell; as ONNX, which takes a second or more to make, with
every algorithm and factorization, in the spaces where they take different paths. All cells are also
exported with HEADWISE_EXPORT_ALL=1.
"""

import os

import numpy as np
import pytest
import torch
from deployed import SPACES, Deployed, run_onnx

from headwise.export import export_onnx
from headwise.factorizations import factorizations
from headwise.factorizations.base import offers

ROWS = 10_000
MOST_EDGES = 5
"""Rows in which an option may differ, because two were equal to the last digits of a float32."""


def cells():
    found = []
    for algorithm, what in {"ppo": "policy", "dqn": "value", "sac": "twins"}.items():
        for name, kind in factorizations.items():
            for space in SPACES:
                refused = name == "joint" and space != "discrete" and algorithm != "dqn"
                refused |= algorithm == "sac" and name in ("vdn", "qplex") and space == "continuous"
                # To a learner of options a continuous action in bins is like a hybrid one.
                same = algorithm == "dqn" and space == "continuous"
                if offers(kind, what) and not refused and not same:
                    found.append((algorithm, name, space))
    return found


OTHER_PATHS = [
    # An actor that is not there, critics that are not: what a hybrid action does not meet.
    ("sac", "ar", "discrete"),
    ("sac", "ar", "continuous"),
    ("sac", "independent", "discrete"),
    ("sac", "independent", "continuous"),
    ("sac", "shared", "continuous"),
    ("ppo", "ar", "continuous"),
]


def onnx_cells(*, deterministic):
    able = [cell for cell in cells() if cell[0] != "dqn" or deterministic]
    if os.environ.get("HEADWISE_EXPORT_ALL"):
        return able
    hybrid = {cell[:2] for cell in able if cell[2] == "hybrid"}
    chosen = [c for c in able if c[2] == "hybrid" or c[:2] not in hybrid]
    return chosen + [c for c in OTHER_PATHS if deterministic and c in able]


def test_no_algorithm_or_factorization_is_left_out():
    pairs = {cell[:2] for cell in onnx_cells(deterministic=True)}
    assert len(pairs) == 3 * 6
    assert len({cell[:2] for cell in onnx_cells(deterministic=False)}) == 2 * 6


@pytest.mark.parametrize(("algorithm", "factorization", "space"), cells())
def test_a_deployed_policy_is_that_member_of_the_population(algorithm, factorization, space):
    cell = Deployed(algorithm, factorization, space)
    for deterministic in {True, algorithm == "dqn"}:
        inputs = cell.inputs(500, deterministic=deterministic, masks=space != "continuous")
        tensors = {name: torch.from_numpy(x) for name, x in inputs.items()}
        got = cell.policy(**tensors | {"observation": {"observation": tensors["observation"]}})
        got = {name: x.numpy() for name, x in got.items()}
        assert not cell.disagreements(cell.oracle(**inputs), got).any()


def check(cell, path, **options):
    export_onnx(cell.policy, path, **options)
    inputs = cell.inputs(ROWS, **options)
    expected, got = cell.oracle(**inputs), run_onnx(path, inputs)
    assert list(got) == [leaf.path for leaf in cell.codec.leaves]
    (wrong,) = np.nonzero(cell.disagreements(expected, got))
    assert len(wrong) <= MOST_EDGES
    for row in wrong:
        mine = {name: x[row] for name, x in inputs.items()}
        assert cell.on_the_edge(mine, {name: x[row] for name, x in got.items()}), mine
    return inputs, got


@pytest.mark.parametrize(("algorithm", "factorization", "space"), onnx_cells(deterministic=True))
def test_the_best_action_is_that_of_torch(algorithm, factorization, space, tmp_path):
    cell = Deployed(algorithm, factorization, space)
    masks = space != "continuous"
    inputs, got = check(cell, tmp_path / "policy.onnx", masks=masks)
    if masks:
        for leaf in cell.codec.leaves:
            if leaf.integral:
                option = got[leaf.path] - int(leaf.offset[0])
                assert len(np.unique(option)) > 1
                assert inputs["action_mask"][np.arange(ROWS), leaf.columns.start, option].all()


@pytest.mark.parametrize(("algorithm", "factorization", "space"), onnx_cells(deterministic=False))
def test_an_action_drawn_is_that_of_torch(algorithm, factorization, space, tmp_path):
    cell = Deployed(algorithm, factorization, space)
    _, got = check(cell, tmp_path / "policy.onnx", deterministic=False)
    for x in got.values():
        assert len(np.unique(x)) > 1


@pytest.mark.parametrize("factorization", ["independent", "joint"])
def test_plain_values_choose_as_they_do_in_torch(factorization, tmp_path):
    cell = Deployed("dqn", factorization, "hybrid", dueling=False)
    check(cell, tmp_path / "policy.onnx", masks=True)


@pytest.mark.parametrize("range_kind", ["clipped", "beta"])
def test_every_distribution_of_a_range_can_be_drawn_from(range_kind, tmp_path):
    cell = Deployed("ppo", "shared", "continuous", range_kind=range_kind)
    check(cell, tmp_path / "policy.onnx", deterministic=False)
