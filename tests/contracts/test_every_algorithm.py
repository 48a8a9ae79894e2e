"""What every algorithm promises, with every factorization it works with."""

import dataclasses

import numpy as np
import pytest
import torch

from headwise import ConfigError
from headwise.algorithms import algorithms
from headwise.algorithms.base import per_member_fields
from headwise.cli.flags import _helps
from headwise.envs.native.vec_env import NativeVecEnv
from headwise.factorizations import factorizations
from headwise.factorizations.base import is_offered
from headwise.training.build import make_loop

KINDS = dict([*algorithms.items(), *factorizations.items()])
SMALL = {
    "ppo": {"rollout": 32, "minibatch": 16, "epochs": 2},
    "dqn": {"replay": 200, "batch_size": 16, "warmup": 16, "updates_per_step": 0.25},
    "sac": {"replay": 200, "batch_size": 16, "warmup": 16, "updates_per_step": 0.25},
}
WHAT = {"ppo": "policy", "dqn": "value", "sac": "soft"}
VIEWS = ("discrete", "hybrid", "continuous")


def loop_for(algorithm, factorization, view, seeds, steps=160, **more):
    env = NativeVecEnv("HybridShoot", seeds, 4, view=view)
    settings = {"hidden": (16, 16), **SMALL[algorithm], **more}
    config = algorithms.get(algorithm)(**settings)
    return make_loop(env, config, factorizations.get(factorization)(), seeds, steps)


def accepted(algorithm, name, view):
    """Whether a cell makes sense; those that do not are listed in test_refusals."""
    if not is_offered(factorizations.get(name), WHAT[algorithm]):
        return False
    try:
        loop_for(algorithm, name, view, (0,))
    except ConfigError:
        return False
    return True


def cells(views=VIEWS):
    return [
        (algorithm, name, view)
        for algorithm in WHAT
        for name in factorizations.names()
        for view in views
        if accepted(algorithm, name, view)
    ]


def parameters(loop):
    """Everything learned, a row for each member."""
    state = loop.algorithm.state_dict()
    return torch.cat([x.reshape(x.shape[0], -1).double() for x in state.values()], dim=1)


PLAIN = [
    ("dqn", name, view, {"dueling": False})
    for name in ("independent", "shared", "vdn", "joint")
    for view in ("discrete", "hybrid")
]


@pytest.mark.parametrize(
    ("algorithm", "factorization", "view", "more"), [(*cell, {}) for cell in cells()] + PLAIN
)
def test_a_member_alone_equals_itself_in_any_population(algorithm, factorization, view, more):
    learned, seen = {}, {}
    for seeds in ((0, 1, 2, 3), (2, 0, 3), (1,)):
        loop = loop_for(algorithm, factorization, view, seeds, **more)
        loop.run(160)
        assert loop.updates >= 5
        for member, (seed, row) in enumerate(zip(seeds, parameters(loop), strict=True)):
            assert torch.equal(learned.setdefault(seed, row), row), f"seed {seed} of {seeds}"
            table = loop.episodes.table
            mine = table[table[:, 1] == member][:, [0, 2, 3]]
            np.testing.assert_array_equal(seen.setdefault(seed, mine), mine)
    assert not torch.equal(learned[0], learned[1])


def check_the_others_of_a_diverged_member(algorithm, factorization, view):
    def run(poison):
        loop = loop_for(algorithm, factorization, view, (0, 1, 2))
        loop.run(80)
        if poison:
            loop.obs[1] = torch.nan
            loop.memory._tensors["reward"][1] = torch.nan
        loop.run(160)
        return loop

    clean, sick = run(poison=False), run(poison=True)
    assert clean.algorithm.alive.tolist() == [True, True, True]
    assert sick.algorithm.alive.tolist() == [True, False, True]
    for member in (0, 2):
        assert torch.equal(parameters(sick)[member], parameters(clean)[member])


@pytest.mark.parametrize(("algorithm", "factorization", "view"), cells(("hybrid", "discrete")))
def test_a_diverged_member_leaves_the_others_bit_equal(algorithm, factorization, view):
    check_the_others_of_a_diverged_member(algorithm, factorization, view)


@pytest.mark.parametrize(("algorithm", "factorization", "view"), cells(("hybrid", "discrete")))
def test_metrics_are_finite_numbers_of_members_or_heads(algorithm, factorization, view):
    loop = loop_for(algorithm, factorization, view, (0, 1, 2))
    loop.run(160)
    heads = loop.binning.spec.num_heads
    assert loop.metrics
    for name, x in loop.metrics.items():
        columns = {(3, heads), (3, 1)} if name.startswith("heads/") else {(3,)}
        assert tuple(x.shape) in columns, name
        assert torch.isfinite(x).all(), name
        assert not x.requires_grad, name


@pytest.mark.parametrize(("algorithm", "factorization", "view"), cells(("hybrid", "discrete")))
def test_state_goes_into_a_fresh_learner(algorithm, factorization, view):
    loop = loop_for(algorithm, factorization, view, (0, 1))
    loop.run(80)
    state = {name: x.clone() for name, x in loop.algorithm.state_dict().items()}
    assert all(x.shape[0] == 2 for x in state.values())
    other = loop_for(algorithm, factorization, view, (0, 1))
    other.algorithm.load_state_dict(state)
    obs = torch.rand(2, 7, 9)
    assert torch.equal(other.algorithm.policy(obs), loop.algorithm.policy(obs))
    draws = loop.keys.at(5)
    ours, theirs = loop.algorithm.act(obs, draws), other.algorithm.act(obs, draws)
    assert torch.equal(ours.action, theirs.action)


@pytest.mark.parametrize("algorithm", list(WHAT))
def test_per_member_settings_equal_separate_runs(algorithm):
    values = {"lr": (1e-3, 3e-3), "gamma": (0.9, 0.99)}
    both = loop_for(algorithm, "shared", "hybrid", (0, 1), **values)
    both.run(160)
    for member in (0, 1):
        own = {name: pair[member] for name, pair in values.items()}
        alone = loop_for(algorithm, "shared", "hybrid", (member,), **own)
        alone.run(160)
        assert torch.equal(parameters(alone)[0], parameters(both)[member])


@pytest.mark.parametrize("algorithm", list(WHAT))
def test_settings_that_make_no_sense_are_refused(algorithm):
    kind = algorithms.get(algorithm)
    for name in per_member_fields(kind()):
        if getattr(kind(), name) is None:
            continue
        for bad in (float("nan"), float("inf"), -1.0, (0.1, float("nan"))):
            with pytest.raises(ConfigError, match=f"'{name}' is out of range"):
                kind(**{name: bad})
    with pytest.raises(ConfigError, match="'hidden' must have a layer"):
        kind(hidden=())
    with pytest.raises(ConfigError, match="one for each member; got 3 numbers"):
        loop_for(algorithm, "shared", "hybrid", (0, 1), lr=(0.1, 0.1, 0.1))


@pytest.mark.parametrize(
    ("algorithm", "factorization", "view", "message"),
    [
        ("ppo", "joint", "hybrid", "joint factorization needs options.*Give a number of bins"),
        ("sac", "joint", "continuous", "joint factorization needs options"),
        ("sac", "vdn", "continuous", "branches over options.*factorization='shared'"),
        ("sac", "qplex", "continuous", "branches over options"),
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
    helps = _helps(kind)
    assert not [f.name for f in dataclasses.fields(kind) if len(helps.get(f.name, "")) < 10]
