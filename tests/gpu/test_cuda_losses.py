"""PPO's losses as kernels: what tensor operations and the compiled module say on the CPU."""

import sys
from pathlib import Path

import pytest
import torch

from headwise.algorithms.diagnostics import RunningMeans, movement
from headwise.algorithms.losses import columns_loss, options_loss, squared_error
from headwise.algorithms.losses.policy_loss import PolicyLoss
from headwise.algorithms.ppo import PPO
from headwise.factorizations import Blueprint, factorizations
from headwise.factorizations.parts.layout import Layout
from headwise.population import Initializer, Keys, row_shares

sys.path.insert(0, str(Path(__file__).parents[1] / "contracts"))

from cases import DISCRETE, OBS, SPECS, offers

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

ROWS = 300
WEIGHT = torch.tensor([1.0, 2.0, -3.0])
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
SETTINGS = [
    {},
    {"kl_coef": 0.7},
    {"normalise": "minibatch"},
    {"range_entropy": "mean"},
    {"ratio": "joint", "normalise": "minibatch"},
    {"ratio": "ranges_joint"},
]


def make_loss(device, name, spec, **settings):
    layout = Layout(spec, device)
    actor = factorizations.get(name)().policy(
        Blueprint(
            layout=layout,
            obs_size=OBS,
            init=Initializer(Keys((0, 1, 2), device)),
            hidden=(16, 16),
            branch_width=8,
            policy_gain=3.0,  # so that some options are likelier than others
        )
    )
    return PolicyLoss(
        PPO(**settings),
        actor,
        layout,
        joint=name in ("ar", "joint"),
        branching=name in ("vdn", "qplex"),
        clip=torch.tensor([0.1, 0.2, 0.3], device=device),
        entropy_coef=torch.tensor([0.0, 0.05, 1.0], device=device),
    )


def make_part(loss, spec, columns, legal=None):
    generator = torch.Generator().manual_seed(5)
    obs = torch.randn(3, ROWS, OBS, generator=generator)
    uniform = torch.rand(3, ROWS, loss.actor.num_uniforms, generator=generator)
    with torch.no_grad():
        raw, judged = loss.actor.sample(obs, uniform, legal)
        noise = 0.2 * torch.randn(judged.log_prob.shape, generator=generator)
    old = {f"old_{name}": x.detach() for name, x in judged.heads.tensors().items()}
    part = {
        "obs": obs,
        "raw": raw,
        "log_prob": judged.log_prob + noise,
        "advantage": torch.randn(3, ROWS, columns, generator=generator),
        "valid": (torch.rand(3, ROWS, 1, generator=generator) < 0.8).float(),
    }
    return part | old | ({} if legal is None else {"legal": legal})


def terms_and_slopes(loss, part):
    terms = loss(part, row_shares(part["valid"]))
    parameters = list(loss.actor.parameters())
    weight = WEIGHT.to(terms.loss.device)
    return terms, torch.autograd.grad(terms.loss, parameters, weight, allow_unused=True)


def compare(name, spec, columns, legal=None, **settings):
    here, there = (make_loss(device, name, spec, **settings) for device in ("cpu", "cuda"))
    there.actor.load_state_dict(here.actor.state_dict())
    part = make_part(here, spec, columns, legal)
    expected, known = terms_and_slopes(here, part)
    found, grads = terms_and_slopes(there, {n: x.cuda() for n, x in part.items()})
    for key in ("loss", "surrogate", "entropy", "divergence", "ratio"):
        x, y = getattr(found, key), getattr(expected, key)
        assert (x is None) == (y is None)
        if y is not None:
            torch.testing.assert_close(x.cpu(), y, **CLOSE)
    torch.testing.assert_close(found.judged.log_prob.cpu(), expected.judged.log_prob, **CLOSE)
    torch.testing.assert_close(found.judged.entropy.cpu(), expected.judged.entropy, **CLOSE)
    for grad, true in zip(grads, known, strict=True):
        assert (grad is None) == (true is None)
        if true is not None:
            most = true.abs().max().item()
            torch.testing.assert_close(grad.cpu(), true, rtol=1e-3, atol=1e-4 * most)
    return there


@pytest.mark.parametrize(("name", "spec"), offers("policy", tuple(SPECS)))
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_loss_of_a_policy(name, spec, settings):
    compare(name, SPECS[spec], 1, **settings)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("spec", ["discrete", "hybrid"])
def test_an_advantage_for_each_head(spec, settings):
    loss = compare("shared", SPECS[spec], SPECS[spec].num_heads, **settings)
    compiled = spec == "discrete" and settings.get("ratio") != "joint"
    assert (loss.over_options is not None) == compiled


@pytest.mark.parametrize("name", ["shared", "ar"])
def test_options_that_are_not_legal(name):
    legal = torch.rand(3, ROWS, 3, 3, generator=torch.Generator().manual_seed(3)) < 0.6
    legal[..., 0] = True
    compare(name, DISCRETE, 1, legal, kl_coef=0.1)


@pytest.mark.parametrize("name", ["shared", "independent"])
def test_minibatches_that_several_programs_share(name, monkeypatch):
    monkeypatch.setattr(options_loss, "_AT_ONCE", 64)
    monkeypatch.setattr(columns_loss, "_AT_ONCE", 64)
    compare(name, DISCRETE, 3, kl_coef=0.1)


def test_what_is_not_a_number_stays_with_its_member():
    for spec in ("discrete", "hybrid"):
        loss = make_loss("cpu", "shared", SPECS[spec])
        part = {n: x.cuda() for n, x in make_part(loss, SPECS[spec], 1).items()}
        loss = make_loss("cuda", "shared", SPECS[spec])
        with torch.no_grad():
            loss.actor.output.weight[1] = torch.nan
        terms = loss(part, row_shares(part["valid"]))
        assert terms.loss.isnan().tolist() == [False, True, False]
        (grad,) = torch.autograd.grad(terms.loss.sum(), loss.actor.output.bias)
        assert grad.isnan().flatten(1).any(-1).tolist() == [False, True, False]


@pytest.mark.parametrize("columns", [1, 3])
def test_movement(columns):
    generator = torch.Generator().manual_seed(0)
    log_ratio = 0.3 * torch.randn(3, ROWS, 3, generator=generator)
    ratio = (0.3 * torch.randn(3, ROWS, columns, generator=generator)).exp()
    valid = (torch.rand(3, ROWS, 1, generator=generator) < 0.8).float()
    valid[2] = 0.0
    given = (log_ratio, ratio, valid, torch.tensor([0.1, 0.2, 0.3]))
    expected, found = movement(*given), movement(*(x.cuda() for x in given))
    assert found.keys() == expected.keys()
    for name, x in expected.items():
        torch.testing.assert_close(found[name].cpu(), x, **CLOSE)
    means = RunningMeans()
    means.add(found)
    means.add(found)
    for name, x in expected.items():
        torch.testing.assert_close(means.result()[name].cpu(), x, **CLOSE)


@pytest.mark.parametrize("block", [1024, 64])
def test_the_squared_error(block, monkeypatch):
    monkeypatch.setattr(squared_error, "_BLOCK", block)
    generator = torch.Generator().manual_seed(0)
    # A critic for each head gives its columns transposed.
    predicted = torch.randn(3, 2, ROWS, generator=generator)
    target = torch.randn(3, ROWS, 2, generator=generator)
    share = row_shares((torch.rand(3, ROWS, 1, generator=generator) < 0.8).float())

    def loss_and_slope(device):
        x = predicted.to(device).requires_grad_()
        loss = squared_error.squared_error(x.transpose(-1, -2), target.to(device), share.to(device))
        (grad,) = torch.autograd.grad(loss, x, WEIGHT.to(device))
        return loss.cpu(), grad.cpu()

    for found, expected in zip(loss_and_slope("cuda"), loss_and_slope("cpu"), strict=True):
        torch.testing.assert_close(found, expected, **CLOSE)
