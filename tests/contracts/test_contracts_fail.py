"""Contracts can fail: what breaks one on purpose is found by being registered."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from cases import MODELS, offers
from cells import cells, check_diverged_member, check_member_alone, check_metrics, check_state
from test_every_factorization import (
    check_gradients,
    check_greedy,
    check_members,
    check_probabilities,
)

from headwise.algorithms import algorithms
from headwise.algorithms.base import Task
from headwise.algorithms.ppo import PPO
from headwise.algorithms.ppo.learner import PPOLearner
from headwise.factorizations import factorizations
from headwise.factorizations.policies import FactoredPolicy
from headwise.factorizations.shared import Shared
from headwise.factorizations.values import BranchingValue
from headwise.heads.blueprint import Actions, Blueprint
from headwise.ops import Buffer, Evaluation, fill
from headwise.ops.operation import Operation, emit, operations

sys.path.append(str(Path(__file__).parents[1] / "ops"))
import test_operations as of_operations


@pytest.fixture
def registered() -> Iterator[None]:
    """Registers what is broken, for one test."""
    registries = factorizations, algorithms, operations
    before = [dict(registry._entries) for registry in registries]
    factorizations.register("broken")(Broken)
    for kind in (Mixing, Forgetful, Silent):
        algorithms.register(kind.name)(kind)
    yield
    for registry, entries in zip(registries, before, strict=True):
        registry._entries.clear()
        registry._entries.update(entries)


# --- factorizations -------------------------------------------------------------------------------


def _zero(x: torch.Tensor) -> None:
    x.zero_()


class BrokenPolicy(FactoredPolicy):
    """The probability of a head depends on what other members do; a bias never learns."""

    def evaluate(self, x: Buffer, taken: Actions, out: Evaluation) -> None:
        super().evaluate(x, taken, out)
        emit(lambda: out.log_prob.write(out.log_prob.tensor + 1e-3 * out.log_prob.tensor.mean(0)))

    def backward(self, x: Buffer, taken: Actions, out: Evaluation) -> None:
        super().backward(x, taken, out)
        bias = self.net.weights(self.net.parameters.gradient)[-1][1]
        emit(lambda: _zero(bias))


class BrokenValue(BranchingValue):
    """Its greedy action is the first option of each head."""

    def greedy(self, x: Buffer, action: Buffer, mask: Buffer | None) -> None:
        fill(action, 0.0)


@dataclass(frozen=True, kw_only=True)
class Broken(Shared):
    """What no factorization may be."""

    name = "broken"

    def policy(self, plan: Blueprint) -> BrokenPolicy:
        """A broken one."""
        return BrokenPolicy(plan)

    def value(self, plan: Blueprint) -> BrokenValue:
        """A broken one."""
        return BrokenValue(plan)


def test_a_broken_factorization_is_in_the_cases_and_fails(registered: None) -> None:
    assert ("broken", "discrete") in offers("policy")
    assert ("broken", "discrete") in offers("value")
    policy, value = MODELS["policy"], MODELS["value"]
    for check, given in (
        (check_probabilities, policy("broken", "discrete")),
        (check_gradients, policy("broken", "discrete", rows=60)),
        (check_members, lambda seeds: policy("broken", "discrete", seeds)),
        (check_greedy, value("broken", "discrete")),
    ):
        with pytest.raises(AssertionError):
            check(given)


def test_the_same_checks_hold_for_what_it_is_made_of() -> None:
    policy, value = MODELS["policy"], MODELS["value"]
    check_probabilities(policy("shared", "discrete"))
    check_gradients(policy("shared", "discrete", rows=60))
    check_members(lambda seeds: policy("shared", "discrete", seeds))
    check_greedy(value("shared", "discrete"))


def test_a_broken_factorization_fails_in_a_run(registered: None) -> None:
    assert ("ppo", "broken", "hybrid") in cells(("hybrid",))
    with pytest.raises(AssertionError):
        check_member_alone("ppo", "broken", "hybrid")


# --- algorithms -----------------------------------------------------------------------------------


class MixingLearner(PPOLearner):
    """Members learn a little of what the others have learned."""

    def update(self, batch: Any) -> Any:
        found = super().update(batch)
        values = self.store.parameters.tensor
        values += 1e-3 * values.mean(0)
        return found


class ForgetfulLearner(PPOLearner):
    """Its clocks begin again where it is loaded."""

    def _set_clocks(self, state: Any) -> None:
        pass


class SilentLearner(PPOLearner):
    """It reports numbers of nobody."""

    def metrics(self) -> Any:
        return super().metrics() | {"train/entropy": torch.tensor([torch.nan])}


@dataclass(frozen=True, kw_only=True)
class Mixing(PPO):
    """Breaks the promise that nothing crosses members."""

    name = "mixing"
    learner = MixingLearner

    def build(self, task: Task) -> PPOLearner:
        """The learner."""
        return self.learner(self, task)


@dataclass(frozen=True, kw_only=True)
class Forgetful(Mixing):
    """Breaks the promise that a state is all there is."""

    name = "forgetful"
    learner = ForgetfulLearner


@dataclass(frozen=True, kw_only=True)
class Silent(Mixing):
    """Breaks the promise that reports are finite numbers of members."""

    name = "silent"
    learner = SilentLearner


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("mixing", check_member_alone),
        ("mixing", check_diverged_member),
        ("forgetful", check_state),
        ("silent", check_metrics),
    ],
)
def test_a_broken_algorithm_is_in_the_cells_and_fails(
    registered: None, name: str, check: Any
) -> None:
    assert (name, "vdn", "hybrid") in cells(("hybrid",))
    with pytest.raises(AssertionError):
        check(name, "vdn", "hybrid")
    check("ppo", "vdn", "hybrid")


# --- operations -----------------------------------------------------------------------------------


def test_an_operation_without_a_case_fails(registered: None) -> None:
    def new(x: torch.Tensor) -> torch.Tensor:
        return 2.0 * x

    operations.register("new")(Operation(new, fits=None, compiled=False))
    assert "new" in operations.names()
    with pytest.raises(AssertionError, match="no case of the operation 'new'"):
        of_operations.test_contract("new")


@pytest.mark.parametrize("name", ["add", "total", "td_target"])
def test_a_compiled_way_that_computes_something_else_fails(registered: None, name: str) -> None:
    """A definition that says a little more than what is compiled."""
    meant = operations.get(name).definition

    def other(*given: Any, **settings: Any) -> torch.Tensor:
        return 1.001 * meant(*given, **settings)

    other.__name__, other.__signature__ = name, inspect.signature(meant)
    of_operations.test_contract(name)
    operations._entries[name] = Operation(other, fits=None, compiled=True)
    with pytest.raises(AssertionError, match="is off by"):
        of_operations.test_contract(name)


def test_an_operation_that_is_not_compiled_as_it_says_fails(registered: None) -> None:
    broken = Operation(operations.get("add").definition, fits=None, compiled=True)
    broken.switched_off = True
    operations._entries["add"] = broken
    with pytest.raises(AssertionError, match="the compiled way"):
        of_operations.test_contract("add")
