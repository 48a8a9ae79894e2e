"""The same code on a GPU: equal integers, numbers equal to rounding, captured as CUDA graphs."""

import pytest
import torch

from headwise.algorithms import algorithms
from headwise.algorithms.base import ReplayBatch, RolloutBatch
from headwise.envs.make import make_vec
from headwise.factorizations import factorizations
from headwise.factorizations.base import is_offered
from headwise.population import Adam, Initializer, Keys, Linear, Packed, Stream
from headwise.training.build import make_loop
from headwise.training.capture import Captured

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

SEEDS = (3, 2**63 + 5, 11)
SETTINGS = {
    "ppo": {"rollout": 128, "minibatch": 32, "epochs": 2},
    "dqn": {"replay": 2000, "batch_size": 32, "warmup": 64},
    "sac": {"replay": 2000, "batch_size": 32, "warmup": 64},
}
CELLS = [
    (algorithm, name, view)
    for algorithm, what in (("ppo", "policy"), ("dqn", "value"), ("sac", "soft"))
    for name, kind in factorizations.items()
    if is_offered(kind, what)
    for view in ("discrete", "hybrid")
    if not (name == "joint" and view == "hybrid" and algorithm != "dqn")
]
WITH_SETTINGS = [(*cell, {}) for cell in CELLS] + [
    ("sac", "shared", view, {"actor_gradient": "straight_through"})
    for view in ("discrete", "hybrid")
]
WITH_SETTINGS += [
    ("dqn", name, "hybrid", {"dueling": False})
    for name in ("independent", "shared", "vdn", "joint")
]


def loop_on(device, algorithm, name, view, **more):
    env = make_vec("HybridShoot", SEEDS, 8, view=view, num_threads=1)
    config = algorithms.get(algorithm)(hidden=(32, 32), **SETTINGS[algorithm], **more)
    return make_loop(env, config, factorizations.get(name)(), SEEDS, 4000, device)


def moved(batch, device):
    def to(x):
        if isinstance(x, torch.Tensor):
            return x.to(device)
        return {n: to(y) for n, y in x.items()} if isinstance(x, dict) else x

    return type(batch)(*map(to, batch))


@pytest.mark.parametrize("step", [0, 9, 2**32 + 1])
def test_uniforms_are_equal(step):
    ours, theirs = Keys(SEEDS), Keys(SEEDS, "cuda")
    for shape in ((1,), (5, 3), (3000,)):
        expected = ours.uniform(Stream.ACT, step, shape)
        assert torch.equal(theirs.uniform(Stream.ACT, step, shape).cpu(), expected)
        clock = torch.tensor(step, device="cuda")
        assert torch.equal(theirs.uniform(Stream.ACT, clock, shape).cpu(), expected)


@pytest.mark.parametrize("max_norm", [None, 0.05])
def test_adam_is_equal(max_norm):
    steps = {}
    keys = Keys(SEEDS)
    for device in ("cpu", "cuda"):
        layer = Linear(Initializer(keys), 40, 70).to(device)
        lr = torch.tensor([1e-2, 1e-3, 1e-1], device=device)
        adam = Adam(Packed(layer), lr, max_norm=max_norm)
        packed = adam.packed
        follower = Packed(Linear(Initializer(keys, first=1), 40, 70).to(device))
        for k in range(5):
            grads = keys.uniform(Stream.ACT, k, (packed.num_parameters,)) - 0.5
            if k == 3:
                grads[1, 7] = torch.nan
            packed.load_rows(packed.grads, grads.to(device))
            adam.step(follower, 0.1)
        assert (packed.grads == 0).all()
        steps[device] = {name: x.cpu() for name, x in adam.state_dict().items()}
        steps[device]["follower"] = follower.values.cpu()
    assert steps["cuda"]["alive"].tolist() == [True, False, True]
    for name, expected in steps["cpu"].items():
        torch.testing.assert_close(steps["cuda"][name], expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(("algorithm", "name", "view", "more"), WITH_SETTINGS)
def test_an_update_is_equal_to_rounding(algorithm, name, view, more):
    """The same batch, from the same parameters, on both devices."""
    here, there = (loop_on(device, algorithm, name, view, **more) for device in ("cpu", "cuda"))
    here.run(64)
    if algorithm == "ppo":
        caught, update = [], here.algorithm.update
        here.algorithm.update = lambda batch, draws: caught.append(batch) or dict
        here.run(128)
        here.algorithm.update = update
        (batch,) = caught
        assert isinstance(batch, RolloutBatch)
    else:
        uniform = here.keys.uniform(Stream.REPLAY, 0, (32, 2))
        batch = here.memory.sample(uniform, here.gamma)
        assert isinstance(batch, ReplayBatch)
    there.algorithm.load_state_dict(
        {name: x.cuda() for name, x in here.algorithm.state_dict().items()}
    )
    obs = batch.obs.reshape(len(SEEDS), -1, batch.obs.shape[-1])[:, :32]
    best = here.algorithm.policy(obs)
    same = there.algorithm.policy(obs.cuda()).cpu()
    options = here.binning.spec.is_choice
    agree = (best == same)[..., torch.tensor(options.tolist())].float()
    if agree.numel():
        assert agree.mean() > 0.99  # two options may be equally good to rounding
    here.algorithm.update(batch, here.keys.at(0))
    there.algorithm.update(moved(batch, "cuda"), there.keys.at(0))
    found, expected = there.algorithm.state_dict(), here.algorithm.state_dict()
    for key, x in expected.items():
        if x.is_floating_point():
            torch.testing.assert_close(found[key].cpu(), x, rtol=2e-3, atol=2e-4, msg=key)


@pytest.mark.parametrize(("algorithm", "name", "view", "more"), WITH_SETTINGS)
def test_captured_equals_eager(algorithm, name, view, more, monkeypatch):
    """A graph does what the same code does without one: the same actions, the same learning."""
    states = []
    for eager in (False, True):
        if eager:
            monkeypatch.setattr(Captured, "_run", lambda self, _: self._aside())
        loop = loop_on("cuda", algorithm, name, view, **more)
        loop.run(640)
        assert loop.algorithm.alive.all()
        states.append(loop.algorithm.state_dict() | {"obs": loop.obs})
        assert loop.updates == (5 if algorithm == "ppo" else 144)
    for key, x in states[1].items():
        torch.testing.assert_close(states[0][key], x, rtol=1e-3, atol=1e-4, msg=key)
