"""What every encoder promises, with every algorithm: that of a network of ours, and no less."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from cells import parameters
from seen_envs import Corner, Dashboard, Largest, Own

import headwise as hw
from headwise.algorithms import algorithms
from headwise.nets.encoders import CNN, Entities, SimBa, encoders

SMALL_CNN = CNN(layers=((4, 3, 2),), width=8)
KINDS = {
    "cnn": (Corner, {"encoder": SMALL_CNN}),
    "entities": (Largest, {"encoder": Entities(8, 2), "entities": {"units": "there"}}),
    "simba": (Dashboard, {"encoder": SimBa(8, 1)}),
    "module": (Dashboard, {"encoder": Own}),
    "several": (Dashboard, {"encoder": SMALL_CNN}),
}
LEARNING = {name for name, kind in encoders.items() if kind.learns}
FACTORIZATIONS = ("shared", "vdn", "qplex", "ar", "independent")
STEPS = 96
CELLS = [
    *((algorithm, "cnn", name, {}) for algorithm in algorithms.names() for name in FACTORIZATIONS),
    *((a, kind, "shared", {}) for a in algorithms.names() for kind in KINDS if kind != "cnn"),
    ("ppo", "cnn", "shared", {"share_encoder": True}),
    ("ppo", "cnn", "qplex", {"share_encoder": True}),
    ("sac", "cnn", "shared", {"share_encoder": False}),
    ("dqn", "cnn", "vdn", {"double_q": True}),
    ("dqn", "cnn", "shared", {"random_shift": 2}),
    ("sac", "module", "ar", {"random_shift": 2}),
]
IDS = ["-".join(map(str, (*cell[:3], *cell[3]))) for cell in CELLS]
EVERY = pytest.mark.parametrize(("algorithm", "kind", "factorization", "more"), CELLS, ids=IDS)
HYBRID = pytest.mark.parametrize(
    ("algorithm", "factorization", "more"),
    [
        ("ppo", "ar", {}),
        ("sac", "vdn", {"share_encoder": False}),
        ("sac", "ar", {"share_encoder": False}),
        ("sac", "independent", {}),
    ],
    ids=str,
)


def agent_for(algorithm, kind, factorization, seeds, **more):
    env, network = KINDS[kind]
    if factorization == "independent":
        more["shared_encoder"] = True
    if algorithm == "ppo":
        more = {"n_steps": 8, "batch_size": 16, "n_epochs": 2} | more
    else:
        more = {"buffer_size": 200, "batch_size": 16, "learning_starts": 16} | more
    small = {"net_arch": (16,), "num_envs": 4, "learning_rate": 1e-3}
    return hw.Agent(
        algorithm, env, factorization=factorization, seeds=seeds, **small | network | more
    )


def test_every_encoder_is_in_a_cell():
    assert set(KINDS) == LEARNING | {"several"}


@EVERY
def test_a_member_alone_equals_itself_in_a_population(algorithm, kind, factorization, more):
    learned = {}
    for seeds in ([0, 1, 2], [1]):
        agent = agent_for(algorithm, kind, factorization, seeds, **more)
        agent.learn(STEPS, progress=False)
        assert agent.loop.updates >= 3
        for seed, row in zip(seeds, parameters(agent.loop), strict=True):
            torch.testing.assert_close(learned.setdefault(seed, row), row, rtol=0.0, atol=1e-5)
    assert not torch.allclose(learned[0], learned[1])


@EVERY
def test_a_diverged_member_freezes_and_leaves_the_others(algorithm, kind, factorization, more):
    def run(*, poison: bool):
        loop = agent_for(algorithm, kind, factorization, [0, 1, 2], **more).loop
        loop.run(48)
        before = loop.algorithm.state_dict()
        if poison:
            loop.obs[1] = torch.nan
            loop.memory._tensors["reward"][1] = torch.nan
        loop.run(STEPS)
        return loop, before

    (clean, _), (sick, before) = run(poison=False), run(poison=True)
    assert sick.algorithm.alive.tolist() == [True, False, True]
    for member in (0, 2):
        assert torch.equal(parameters(sick)[member], parameters(clean)[member])
    for name, x in sick.algorithm.state_dict().items():
        if x.is_floating_point():  # clocks go on
            assert torch.equal(x[1], before[name][1]), f"{name} of the diverged member"


def encoders_of(learner):
    """The encoders that learn, each once."""
    if hasattr(learner, "sight"):
        found = learner.sight.encoders
    else:
        found = (learner.encoder, getattr(learner, "actor_encoder", None))
    return {id(x): x for x in found if x is not None}.values()


@EVERY
def test_gradients_reach_every_parameter(algorithm, kind, factorization, more):
    """Each has moved since the start, in every member; and targets follow."""
    loop = agent_for(algorithm, kind, factorization, [0, 1], **more).loop
    learner = loop.algorithm
    before = [
        {name: w.detach().clone() for name, w in module.named_parameters()}
        for encoder in encoders_of(learner)
        for module in encoder.net._modules
    ]
    assert before
    loop.run(STEPS)
    after = [m for encoder in encoders_of(learner) for m in encoder.net._modules]
    for old, module in zip(before, after, strict=True):
        for name, w in module.named_parameters():
            assert not torch.equal(old[name], w), name
    if algorithm != "ppo":
        target = learner.encoder_target.net._modules[0]
        for (name, w), one in zip(
            target.named_parameters(), learner.encoder.net._modules[0].parameters(), strict=True
        ):
            assert not torch.equal(w, before[0][name])
            assert not torch.equal(w, one)


@EVERY
def test_a_state_goes_into_a_fresh_learner(algorithm, kind, factorization, more, tmp_path):
    agent = agent_for(algorithm, kind, factorization, [0, 1], **more)
    agent.learn(48, progress=False)
    agent.save(tmp_path / "it.zip")
    env, network = KINDS[kind]
    own = {"encoder": Own} if network["encoder"] is Own else {}
    other = hw.Agent.load(tmp_path / "it.zip", env=env, **own)
    assert torch.equal(parameters(other.loop), parameters(agent.loop))
    obs = env().reset(seed=3)[0]
    for member in (0, 1):
        one, two = (x.predict(obs, True, member=member) for x in (agent, other))
        assert one == two
    other.learn(48, progress=False)
    assert torch.isfinite(parameters(other.loop)).all()


@HYBRID
def test_hybrid_actions_learn_by_an_encoder_too(algorithm, factorization, more):
    def run(seeds):
        KINDS["hybrid"] = (partial(Corner, hybrid=True), KINDS["cnn"][1])
        try:
            agent = agent_for(algorithm, "hybrid", factorization, seeds, **more)
        finally:
            del KINDS["hybrid"]
        agent.learn(STEPS, progress=False)
        return agent.loop

    both, alone = run([0, 1]), run([1])
    assert both.algorithm.alive.all()
    torch.testing.assert_close(parameters(both)[1], parameters(alone)[0], rtol=0.0, atol=1e-5)
