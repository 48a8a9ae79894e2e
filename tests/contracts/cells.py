"""Cells of contract tests: what the registries have, in every combination that is accepted."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headwise import ConfigError
from headwise.algorithms import algorithms
from headwise.envs.native.vec_env import NativeVecEnv
from headwise.factorizations import factorizations
from headwise.factorizations.base import offers
from headwise.training.build import make_loop
from headwise.training.config import RunConfig
from headwise.training.loop import Loop

VIEWS = ("discrete", "hybrid", "continuous")
STEPS = 160


def loop_for(
    algorithm: str,
    factorization: str,
    view: str,
    seeds: tuple[int, ...],
    steps: int = STEPS,
    **settings: Any,
) -> Loop:
    """A small run."""
    env = NativeVecEnv("HybridShoot", seeds, 4, view=view)
    config = algorithms.get(algorithm).small(**settings)
    small = factorizations.get(factorization).small()
    plan = RunConfig.of(config, factorization=small, total_timesteps=steps)
    return make_loop(env, plan, seeds)


def accepted(algorithm: str, factorization: str, view: str) -> bool:
    """Whether a cell makes sense; what is refused is listed in test_refusals."""
    kind = factorizations.get(factorization)
    if not all(offers(kind, what) for what in algorithms.get(algorithm).needs):
        return False
    try:
        loop_for(algorithm, factorization, view, (0,))
    except ConfigError:
        return False
    return True


def cells(views: tuple[str, ...] = VIEWS) -> list[tuple[str, str, str]]:
    """Every algorithm with every factorization on every view."""
    return [
        (algorithm, name, view)
        for algorithm in algorithms.names()
        for name in factorizations.names()
        for view in views
        if accepted(algorithm, name, view)
    ]


def plain_cells(views: tuple[str, ...] = ("discrete", "hybrid")) -> list[tuple[str, str, str]]:
    """DQN's cells with values that are not dueling."""
    plain = [name for name, kind in factorizations.items() if offers(kind, "plain_value")]
    return [("dqn", name, view) for name in plain for view in views]


def parameters(loop: Loop) -> Tensor:
    """Everything that members keep, a row for each."""
    state = loop.algorithm.state_dict()
    return torch.cat([x.reshape(x.shape[0], -1).double() for x in state.values()], dim=1)


def check_member_alone(algorithm: str, factorization: str, view: str, **settings: Any) -> None:
    """A member learns the same, and lives through the same, alone and in any population."""
    learned: dict[int, Tensor] = {}
    seen: dict[int, Tensor] = {}
    for seeds in ((0, 1, 2, 3), (2, 0, 3), (1,)):
        loop = loop_for(algorithm, factorization, view, seeds, **settings)
        loop.run(STEPS)
        assert loop.updates >= 5
        for member, (seed, row) in enumerate(zip(seeds, parameters(loop), strict=True)):
            assert torch.equal(learned.setdefault(seed, row), row), f"seed {seed} of {seeds}"
            table = torch.from_numpy(loop.episodes.table.copy())
            mine = table[table[:, 1] == member][:, [0, 2, 3]]
            assert torch.equal(seen.setdefault(seed, mine), mine), f"episodes of seed {seed}"
    assert not torch.equal(learned[0], learned[1])


def check_diverged_member(algorithm: str, factorization: str, view: str) -> None:
    """A member that has met a NaN stays as it was before, and the others never notice."""

    def run(*, poison: bool) -> tuple[Loop, dict[str, Tensor]]:
        loop = loop_for(algorithm, factorization, view, (0, 1, 2))
        loop.run(80)
        before = loop.algorithm.state_dict()
        if poison:
            loop.obs[1] = torch.nan
            loop.memory._tensors["reward"][1] = torch.nan
        loop.run(STEPS)
        return loop, before

    (clean, _), (sick, before) = run(poison=False), run(poison=True)
    assert clean.algorithm.alive.tolist() == [True, True, True]
    assert sick.algorithm.alive.tolist() == [True, False, True]
    for member in (0, 2):
        assert torch.equal(parameters(sick)[member], parameters(clean)[member])
    for name, x in sick.algorithm.state_dict().items():
        if x.is_floating_point():  # clocks go on
            assert torch.equal(x[1], before[name][1]), f"{name} of the diverged member"


def check_metrics(algorithm: str, factorization: str, view: str) -> None:
    """What is reported are finite numbers of members or heads."""
    loop = loop_for(algorithm, factorization, view, (0, 1, 2))
    loop.run(STEPS)
    heads = loop.binning.spec.num_heads
    assert loop.metrics
    for name, x in loop.metrics.items():
        columns = {(3, heads), (3, 1)} if name.startswith("heads/") else {(3,)}
        assert tuple(x.shape) in columns, name
        assert torch.isfinite(x).all(), name
        assert not x.requires_grad, name


def check_state(algorithm: str, factorization: str, view: str) -> None:
    """A state goes into a fresh learner, which goes on as the old one does."""
    loop = loop_for(algorithm, factorization, view, (0, 1))
    loop.run(80)
    state = {name: x.clone() for name, x in loop.algorithm.state_dict().items()}
    assert all(x.shape[0] == 2 for x in state.values())
    other = loop_for(algorithm, factorization, view, (0, 1))
    other.algorithm.load_state_dict(state)
    obs = torch.rand(2, 4, 9, generator=torch.Generator().manual_seed(0))
    assert torch.equal(other.algorithm.policy(obs), loop.algorithm.policy(obs))
    ours, theirs = (x.algorithm.act(obs).action.clone() for x in (loop, other))
    assert torch.equal(ours, theirs)
    again = other.algorithm.state_dict()
    assert again.keys() == state.keys()
    changed = {name for name, x in state.items() if not torch.equal(again[name], x)}
    assert changed == {"acts"}, "acting moves its clock, and nothing else is new"
