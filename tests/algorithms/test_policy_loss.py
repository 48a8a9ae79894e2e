"""PPO's loss of a policy: the compiled module against tensor operations, and by hand."""

import math
import sys
from pathlib import Path

import pytest
import torch

from headwise import ActionSpec, Choice, Range, _core
from headwise.algorithms.losses import policy_loss
from headwise.algorithms.losses.options_loss import fits_options_loss, options_loss
from headwise.algorithms.losses.policy_loss import PolicyLoss
from headwise.algorithms.ppo import PPO
from headwise.envs.native.vec_env import NativeVecEnv
from headwise.errors import EnvError
from headwise.factorizations import factorizations
from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.shared import SharedPolicy
from headwise.population import row_shares
from headwise.training.build import make_loop
from headwise.training.report import metric_columns

sys.path.insert(0, str(Path(__file__).parents[1] / "contracts"))

from cases import CONTINUOUS, DISCRETE, HYBRID, OBS, ONE_OF, blueprint, make

EQUAL = ActionSpec.of(a=Choice(5), b=Choice(5))
WIDE = ActionSpec.of(a=Choice(64))
SPECS = {"unequal": DISCRETE, "equal": EQUAL, "wide": WIDE}
ROWS = 37  # times heads no multiple of the sixteen that are worked on at once


def make_loss(spec, *, branching=True, **settings):
    actor = SharedPolicy(blueprint(spec, policy_gain=3.0))
    loss = PolicyLoss(
        PPO(**settings),
        actor,
        actor.layout,
        joint=False,
        branching=branching,
        clip=torch.tensor([0.1, 0.2, 0.3]),
        entropy_coef=torch.tensor([0.0, 0.05, 1.0]),
    )
    return loss, actor


def make_part(spec, actor, columns, *, legal=None, seed=0):
    """A minibatch as another policy would have left it."""
    generator = torch.Generator().manual_seed(seed)
    obs = torch.randn(3, ROWS, OBS, generator=generator)
    with torch.no_grad():
        heads = actor.heads(obs, legal)
        raw, _ = heads.sample(torch.rand(3, ROWS, spec.num_heads, generator=generator))
        noise = 0.3 * torch.randn(heads.log_probs.shape, generator=generator)
        old = torch.log_softmax(heads.log_probs + noise, dim=-1)
        log_prob = old.gather(-1, raw.long().unsqueeze(-1)).squeeze(-1)
    part = {
        "obs": obs,
        "raw": raw,
        "log_prob": log_prob,
        "old_log_probs": old,
        "advantage": torch.randn(3, ROWS, columns, generator=generator),
        "valid": (torch.rand(3, ROWS, 1, generator=generator) < 0.8).float(),
    }
    return part if legal is None else part | {"legal": legal}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
@pytest.mark.parametrize("one_column", [True, False])
@pytest.mark.parametrize("settings", [{}, {"kl_coef": 0.7}, {"normalise": "minibatch"}])
def test_the_compiled_loss_is_that_of_tensor_operations(spec, one_column, settings):
    loss, actor = make_loss(spec, **settings)
    part = make_part(spec, actor, 1 if one_column else spec.num_heads)
    compare(loss, actor, part)


def test_options_that_are_not_legal():
    loss, actor = make_loss(EQUAL, kl_coef=0.1)
    legal = torch.rand(3, ROWS, 2, 5, generator=torch.Generator().manual_seed(3)) < 0.6
    legal[..., 0] = True
    compare(loss, actor, make_part(EQUAL, actor, 2, legal=legal))


def compare(loss, actor, part):
    assert loss.over_options is loss.actor
    share = row_shares(part["valid"])
    found, expected = loss.by_module(part, share), loss.by_tensors(part, share)
    close = {"rtol": 1e-5, "atol": 2e-6}
    for name in ("loss", "surrogate", "entropy", "divergence", "ratio"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), **close)
    torch.testing.assert_close(found.judged.log_prob, expected.judged.log_prob, **close)
    torch.testing.assert_close(found.judged.entropy, expected.judged.entropy, **close)
    exists = expected.judged.heads.log_probs > -1e8
    masses = (terms.judged.heads.log_probs.exp() for terms in (found, expected))
    torch.testing.assert_close(*masses, **close)
    assert (found.judged.heads.log_probs[~exists] < -1e8).all()
    weight = torch.tensor([1.0, 2.0, -3.0])
    parameters = list(actor.parameters())
    grads = torch.autograd.grad(found.loss, parameters, weight)
    known = torch.autograd.grad(expected.loss, parameters, weight)
    for grad, true in zip(grads, known, strict=True):
        torch.testing.assert_close(grad, true, rtol=1e-4, atol=1e-5 * true.abs().max().item())


def coefficients(clip=0.2, entropy=0.0, kl=0.0):
    return torch.tensor([[clip], [entropy], [kl]])


def test_by_hand():
    """Two options, p = (3/4, 1/4); the first was taken when its chance was one half: r = 3/2."""
    logits = torch.tensor([3.0, 1.0]).log().view(1, 1, 1, 2).requires_grad_()
    half = torch.full((1, 1, 1), math.log(0.5))
    found = options_loss(
        logits,
        torch.zeros(1, 1, 1),
        half,
        torch.tensor([[[-2.0]]]),
        torch.ones(1, 1, 1),
        half.view(1, 1, 1, 1).expand(1, 1, 1, 2),
        coefficients(entropy=0.5, kl=2.0),
    )
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    divergence = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    assert found.ratio.item() == pytest.approx(1.5)
    assert found.surrogate.item() == pytest.approx(-3.0)
    assert found.entropy.item() == pytest.approx(entropy)
    assert found.divergence.item() == pytest.approx(divergence)
    assert found.loss.item() == pytest.approx(3.0 - 0.5 * entropy + 2 * divergence)
    (grad,) = torch.autograd.grad(found.loss.sum(), logits)
    # of 3 by logits: 3 (hit - p) for r A; of the entropy: -p (log p + H); of the divergence: p - q
    by_first = 3.0 * 0.25 + 0.5 * 0.75 * (math.log(0.75) + entropy) + 2 * (0.75 - 0.5)
    torch.testing.assert_close(grad.flatten(), torch.tensor([by_first, -by_first]))


@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_a_ratio_beyond_all_bounds_has_no_gradient(advantage):
    logits = torch.zeros(1, 1, 1, 2, requires_grad=True)
    found = options_loss(
        logits,
        torch.zeros(1, 1, 1),
        torch.full((1, 1, 1), -25.0),
        torch.tensor([[[advantage]]]),
        torch.ones(1, 1, 1),
        None,
        coefficients(),
    )
    assert found.ratio.item() == pytest.approx(math.exp(20), rel=1e-6)
    (grad,) = torch.autograd.grad(found.loss.sum(), logits)
    assert (grad == 0).all()


def test_what_is_not_a_number_stays_with_its_member():
    loss, actor = make_loss(DISCRETE)
    part = make_part(DISCRETE, actor, 3)
    share = row_shares(part["valid"])
    with torch.no_grad():
        actor.output.weight[1, 0, 3] = torch.nan
    terms = loss.by_module(part, share)
    assert terms.loss.isnan().tolist() == [False, True, False]
    (grad,) = torch.autograd.grad(terms.loss.sum(), actor.output.bias)
    assert grad.isnan().flatten(1).any(-1).tolist() == [False, True, False]


def test_a_member_alone_is_the_same_to_the_bit():
    loss, actor = make_loss(DISCRETE, kl_coef=0.1)
    part = make_part(DISCRETE, actor, 3)
    logits = actor.logits(part["obs"]).detach()
    names = ("raw", "log_prob", "advantage")
    rows = [part[name] for name in names]
    weights = torch.stack([loss.clip, loss.entropy_coef, loss.kl_coef])

    def find(members):
        own = logits[members].requires_grad_()
        found = options_loss(
            own, *(x[members] for x in rows), row_shares(part["valid"])[members],
            part["old_log_probs"][members], weights[:, members],
        )  # fmt: skip
        return found.loss, *torch.autograd.grad(found.loss.sum(), own)

    for member in range(3):
        for alone, among in zip(find(slice(member, member + 1)), find(slice(0, 3)), strict=True):
            assert torch.equal(alone, among[member : member + 1])


def test_who_is_compiled():
    assert fits_options_loss(Layout(DISCRETE))
    assert not fits_options_loss(Layout(HYBRID))
    assert not fits_options_loss(Layout(ONE_OF))
    assert not fits_options_loss(Layout(ActionSpec.of(a=Choice(65))))
    assert make_loss(ActionSpec.of(x=Range(-1, 1)))[0].over_options is None
    assert make_loss(DISCRETE, ratio="joint")[0].over_options is None


def test_what_the_kernels_are_given():
    """On a GPU logits come without padding, and entropies with a weight for each column."""
    actor = SharedPolicy(blueprint(DISCRETE, policy_gain=3.0))  # 2, 3 and 2 options
    obs = torch.randn(3, ROWS, OBS, generator=torch.Generator().manual_seed(0))
    flat, padded = actor.flat_logits(obs), actor.logits(obs)
    assert actor.layout.bounds.tolist() == [0, 2, 5, 7]
    for head, (first, last) in enumerate([(0, 2), (2, 5), (5, 7)]):
        assert torch.equal(padded[..., head, : last - first], flat[..., first:last])
    loss, _ = make_loss(HYBRID, range_entropy="mean")  # two Ranges, two Choices
    entropy = torch.tensor([[[1.0, 2.0, 3.0, 4.0]]])
    assert loss._total_entropy(entropy).item() == 2.0 + 4.0 + (1.0 + 3.0) / 2
    assert (loss._entropy_weight * entropy).sum().item() == 8.0
    assert make_loss(HYBRID)[0]._entropy_weight is None


def test_ranges_with_one_ratio_report_as_many_numbers_as_there_are_heads():
    """x: Range, a: Choice, y: Range, b: Choice; ratios are those of a, of b, and of x and y."""
    ratios = torch.tensor([[0.2, 0.3, 0.5]])
    loss, _ = make_loss(HYBRID, ratio="ranges_joint")
    assert loss.by_head(ratios).tolist() == torch.tensor([[0.5, 0.2, 0.5, 0.3]]).tolist()
    shares = loss.by_head(ratios, shared_out=True)
    assert shares.tolist() == torch.tensor([[0.25, 0.2, 0.25, 0.3]]).tolist()
    numbers, _ = make_loss(CONTINUOUS, ratio="ranges_joint")
    assert numbers.by_head(torch.tensor([[0.5]])).tolist() == [[0.5, 0.5]]
    for plain, columns in (("per_head", 4), ("joint", 1)):
        given = torch.rand(1, columns)
        assert make_loss(HYBRID, ratio=plain)[0].by_head(given) is given


@pytest.mark.parametrize(
    ("settings", "branching", "advantages"),
    [
        # heads x: Range, a: Choice, y: Range, b: Choice with advantages 1, 2, 4 and 9
        ({"ratio": "joint"}, True, [16.0]),
        ({"ratio": "joint"}, False, [4.0]),
        ({"ratio": "ranges_joint"}, True, [2.0, 9.0, 5.0]),
        ({"ratio": "ranges_joint"}, False, [2.0, 9.0, 2.5]),
        ({"ratio": "per_head"}, False, [1.0, 2.0, 4.0, 9.0]),
    ],
)
def test_shares_of_a_credit_add_up_and_whole_advantages_do_not(
    settings, branching, advantages, monkeypatch
):
    """Where the policy has not moved, a column's surrogate is its advantage."""
    loss, actor = make_loss(HYBRID, branching=branching, **settings)
    obs = torch.randn(3, ROWS, OBS, generator=torch.manual_seed(0))
    _, judged = actor.sample(obs, torch.full((3, ROWS, actor.num_uniforms), 0.3))
    advantage = torch.tensor([1.0, 2.0, 4.0, 9.0]).expand(3, ROWS, 4)
    part = {"log_prob": judged.log_prob, "valid": torch.ones(3, ROWS, 1)}
    columns, ratio = loss.surrogate(judged, part, advantage)
    assert (ratio == 1.0).all()
    torch.testing.assert_close(columns, torch.tensor(advantages).expand_as(columns))
    if settings["ratio"] != "ranges_joint":  # the kernel of a GPU is given the same to add up
        given = []
        monkeypatch.setattr(policy_loss, "columns_loss", lambda *args, **_: given.append(args[3]))
        loss.by_kernel(judged, part | {"advantage": advantage}, row_shares(part["valid"]))
        torch.testing.assert_close(given, [torch.tensor(advantages).expand_as(columns)])


@pytest.mark.parametrize(
    ("factorization", "adds_up"),
    [("independent", False), ("shared", False), ("vdn", True), ("qplex", True), ("ar", False)],
)
def test_who_shares_out_a_credit(factorization, adds_up):
    env = NativeVecEnv("CoopPush", (0,), 4, view="continuous")
    config = PPO(ratio="joint", rollout=16, minibatch=8, epochs=1, hidden=(8,))
    learner = make_loop(env, config, factorizations.get(factorization)(), (0,), 16).algorithm
    assert learner.policy_loss.branching is adds_up


@pytest.mark.parametrize("factorization", ["shared", "independent", "vdn", "qplex", "ar"])
@pytest.mark.parametrize("view", ["hybrid", "continuous"])
def test_metrics_of_heads_are_as_many_as_heads_where_ranges_have_one_ratio(factorization, view):
    env = NativeVecEnv("CoopPush", (0, 1), 4, view=view)
    config = PPO(ratio="ranges_joint", rollout=16, minibatch=8, epochs=1, hidden=(8,))
    loop = make_loop(env, config, factorizations.get(factorization)(), (0, 1), 16)
    loop.run(16)
    for name, x in loop.metrics.items():
        assert x.shape == ((2, env.spec.num_heads) if name.startswith("heads/") else (2,)), name
    share = loop.metrics["heads/gradient_share"]
    torch.testing.assert_close(share.sum(-1), torch.ones(2))
    names = {f"heads/{head}/clip_fraction" for head in env.spec.names}
    assert names <= set(metric_columns(loop))


def test_means_beyond_four_are_penalised():
    """Means of 5 and -3 in every row: 0.1 times the mean of 25 and nothing, on top of the rest."""
    losses = []
    for weight in (0.0, 0.1):
        loss, actor = make_loss(HYBRID, mean_penalty=weight)
        with torch.no_grad():
            actor.output.weight.zero_()
            actor.output.bias.zero_()
            actor.output.bias[..., 0] = 5.0  # of x, and then of y; spreads are free parameters
            actor.output.bias[..., 1] = -3.0
        obs = torch.randn(3, ROWS, OBS, generator=torch.manual_seed(0))
        raw, judged = actor.sample(obs, torch.full((3, ROWS, actor.num_uniforms), 0.3))
        part = {"obs": obs, "raw": raw.detach(), "log_prob": judged.log_prob.detach()}
        part |= {"advantage": torch.ones(3, ROWS, 1), "valid": torch.ones(3, ROWS, 1)}
        losses.append(loss(part, row_shares(part["valid"])).loss)
    torch.testing.assert_close(losses[1] - losses[0], torch.full((3,), 1.25))


def test_the_weight_of_the_divergence_adapts():
    loss, actor = make_loss(EQUAL, kl_coef=1.0, kl_target=0.03)
    part = make_part(EQUAL, actor, 1)
    divergence = loss(part, row_shares(part["valid"])).divergence
    assert (divergence > 0.03).all()
    torch.testing.assert_close(loss.kl_coef, torch.full((3,), 1.5))
    part["old_log_probs"] = actor.heads(part["obs"]).log_probs.detach()
    loss(part, row_shares(part["valid"]))
    torch.testing.assert_close(loss.kl_coef, torch.full((3,), 1.0))


def test_the_divergence_of_a_chain_counts_the_heads_that_its_actions_use():
    """Given the heads before it is known whether a head is in use: its weight is one or zero."""
    actor, acted = (make("ar", "policy", ONE_OF, seeds) for seeds in ((0, 1, 2), (3, 4, 5)))
    loss = PolicyLoss(
        PPO(kl_coef=0.1), actor, actor.layout, joint=True, branching=False,
        clip=torch.full((3,), 0.2), entropy_coef=torch.zeros(3),
    )  # fmt: skip
    obs = torch.randn(3, ROWS, OBS, generator=torch.manual_seed(0))
    with torch.no_grad():
        raw, before = acted.sample(obs, torch.rand(3, ROWS, 4))
        old = {f"old_{name}": x for name, x in before.heads.tensors().items()}
        kl = before.heads.log_probs.exp() * (
            before.heads.log_probs - actor.judge(obs, raw).heads.log_probs
        )
        expected = (kl.sum(-1) * actor.layout.active(raw)).sum(-1).mean(-1)
    part = {"obs": obs, "raw": raw, "log_prob": before.log_prob, **old}
    part |= {"advantage": torch.ones(3, ROWS, 1), "valid": torch.ones(3, ROWS, 1)}
    found = loss(part, row_shares(part["valid"])).divergence
    torch.testing.assert_close(found, expected)


def test_arrays_that_do_not_fit_are_refused():
    def call(options=2, columns=1, heads=1):
        shape = (1, 4, 1, options)
        arrays = [torch.zeros(*shape), *(torch.zeros(1, 4, n) for n in (heads, 1, columns))]
        out = [torch.zeros(s) for s in (shape, (2, 1, 4, 1), (4, 1), shape)]
        given = [x.numpy() for x in (*arrays, torch.zeros(1, 4))]
        _core.options_loss(*given, None, coefficients().numpy(), *(x.numpy() for x in out))

    call()
    for wrong in ({"heads": 2}, {"columns": 2}, {"columns": 0}):
        with pytest.raises(EnvError, match="do not fit the logits"):
            call(**wrong)
    with pytest.raises(EnvError, match="1 to 64 options; got 65"):
        call(options=65)
    with pytest.raises(EnvError, match="1 to 64 options; got 0"):
        call(options=0)
