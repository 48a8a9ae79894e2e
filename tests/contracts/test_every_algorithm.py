"""What every algorithm promises, with every factorization it works with."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from cells import (
    STEPS,
    cells,
    check_diverged_member,
    check_member_alone,
    check_metrics,
    check_state,
    loop_for,
    parameters,
    plain_cells,
)

from headwise import ConfigError
from headwise.algorithms import algorithms
from headwise.algorithms.base import per_member_fields
from headwise.described import field_docs
from headwise.factorizations import factorizations
from headwise.factorizations.base import Factorization, offers

KINDS = dict([*algorithms.items(), *factorizations.items()])
EVERY = pytest.mark.parametrize(
    ("algorithm", "factorization", "view"), cells(("hybrid", "discrete"))
)


def test_every_algorithm_and_factorization_is_in_a_cell() -> None:
    found = cells()
    assert {cell[0] for cell in found} == set(algorithms.names())
    assert {cell[1] for cell in found} == set(factorizations.names())
    assert {cell[2] for cell in found} == {"discrete", "hybrid", "continuous"}


@pytest.mark.parametrize("algorithm", algorithms.names())
def test_what_an_algorithm_needs_is_what_factorizations_offer(algorithm: str) -> None:
    kind = algorithms.get(algorithm)
    assert kind.needs
    assert all(hasattr(Factorization, what) for what in kind.needs)
    able = {name for name, other in factorizations.items() if offers(other, kind.needs[0])}
    assert able >= {"independent", "shared", "vdn", "qplex", "joint", "ar"}


@pytest.mark.parametrize(
    ("algorithm", "factorization", "view", "more"),
    [(*cell, {}) for cell in cells()] + [(*cell, {"dueling": False}) for cell in plain_cells()],
)
def test_a_member_alone_equals_itself_in_any_population(algorithm, factorization, view, more):
    check_member_alone(algorithm, factorization, view, **more)


@EVERY
def test_a_diverged_member_freezes_and_leaves_the_others_bit_equal(algorithm, factorization, view):
    check_diverged_member(algorithm, factorization, view)


@EVERY
def test_metrics_are_finite_numbers_of_members_or_heads(algorithm, factorization, view):
    check_metrics(algorithm, factorization, view)


@EVERY
def test_state_goes_into_a_fresh_learner(algorithm, factorization, view):
    check_state(algorithm, factorization, view)


@pytest.mark.parametrize("algorithm", algorithms.names())
def test_per_member_settings_equal_separate_runs(algorithm):
    values = {"learning_rate": (1e-3, 3e-3), "gamma": (0.9, 0.99)}
    both = loop_for(algorithm, "shared", "hybrid", (0, 1), **values)
    both.run(STEPS)
    for member in (0, 1):
        own = {name: pair[member] for name, pair in values.items()}
        alone = loop_for(algorithm, "shared", "hybrid", (member,), **own)
        alone.run(STEPS)
        assert torch.equal(parameters(alone)[0], parameters(both)[member])


@pytest.mark.parametrize("algorithm", algorithms.names())
def test_settings_that_make_no_sense_are_refused(algorithm):
    kind = algorithms.get(algorithm)
    for name in per_member_fields(kind()):
        if getattr(kind(), name) is None:
            continue
        for bad in (float("nan"), float("inf"), -1.0, (0.1, float("nan"))):
            with pytest.raises(ConfigError, match=f"'{name}' is out of range"):
                kind(**{name: bad})
    with pytest.raises(ConfigError, match="'net_arch' must have a layer"):
        kind(net_arch=())
    with pytest.raises(ConfigError, match="one for each member; got 3 numbers"):
        loop_for(algorithm, "shared", "hybrid", (0, 1), learning_rate=(0.1, 0.1, 0.1))


@pytest.mark.parametrize(
    ("algorithm", "factorization", "view", "message"),
    [
        (
            "ppo",
            "joint",
            "hybrid",
            "joint .* needs discrete heads.*Give a number of bins",
        ),
        ("sac", "joint", "continuous", "joint factorization needs discrete heads"),
        ("sac", "vdn", "continuous", "branches over discrete heads.*factorization='shared'"),
        ("sac", "qplex", "continuous", "branches over discrete heads"),
    ],
)
def test_pairs_that_make_no_sense_are_refused_with_a_reason(
    algorithm, factorization, view, message
):
    with pytest.raises(ConfigError, match=message):
        loop_for(algorithm, factorization, view, (0, 1))


def test_joint_works_with_bins_and_refuses_too_many():
    loop_for("ppo", "joint", "continuous", (0,), bins=5).run(40)
    loop_for("sac", "joint", "hybrid", (0,), bins=5).run(40)
    with pytest.raises(ConfigError, match=r"too many joint actions; got 117,649 = 49 x 49 x 49"):
        loop_for("dqn", "joint", "continuous", (0,), bins=49)


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_every_setting_has_a_help(kind):
    """`headwise train --help` shows the string below a field; a dataclass has some text anyway."""
    assert "__doc__" in vars(kind)
    assert not kind.__doc__.startswith(f"{kind.__name__}("), "made by dataclass"
    helps = field_docs(kind)
    assert not [f.name for f in dataclasses.fields(kind) if len(helps.get(f.name, "")) < 10]
