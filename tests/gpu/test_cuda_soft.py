"""The kernels of SAC against the tensor operations that they stand for, for all kinds of heads."""

from dataclasses import replace

import pytest
import torch

from headwise.algorithms.temperature import Temperatures
from headwise.factorizations import factorizations
from headwise.factorizations.ar import AR
from headwise.factorizations.base import Blueprint
from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.parts.prefix import Prefix
from headwise.factorizations.shared import SharedPolicy
from headwise.factorizations.soft.draw import draw
from headwise.factorizations.soft.worth import lesser, worth
from headwise.population import Initializer, Keys
from headwise.spaces import ActionSpec, Choice, Range

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

SPECS = {
    "mixed": ActionSpec.of(x=Range(-1, 1), a=Choice(4), y=Range(0, 1), b=Choice(2), c=Choice(7)),
    "in order": ActionSpec.of(a=Choice(5), b=Choice(5), x=Range(-1, 1)),
    "ordered": ActionSpec.of(a=Choice(4, ordered=True), b=Choice(3), x=Range(-1, 1)),
    "options": ActionSpec.of(a=Choice(3), b=Choice(1), c=Choice(33)),
    "numbers": ActionSpec.of(x=Range(-1, 1), y=Range(-1, 1)),
}
SEEDS, ROWS, OBS = (3, 2**63 + 5, 11), 77, 5
DEVICES = ("cpu", "cuda")
WITH_OPTIONS = [name for name, spec in SPECS.items() if spec.num_choices]


def blueprint(spec, device):
    return Blueprint(
        layout=Layout(spec, device),
        obs_size=OBS,
        init=Initializer(Keys(SEEDS)),
        hidden=(16,),
        activation="tanh",
        branch_width=8,
        state_std=True,
        log_std_bounds=(-5.0, 1.0),
        policy_gain=1.5,
    )


def random(*shape, seed=0, uniform=False):
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand if uniform else torch.randn)(*shape, generator=generator)


def actions_of(spec):
    columns = [
        (random(len(SEEDS), ROWS, seed=h, uniform=True) * n).floor()
        if n
        else random(len(SEEDS), ROWS, seed=h, uniform=True)
        for h, n in enumerate(spec.cardinalities)
    ]
    return torch.stack(columns, -1)


def leaf(x, device):
    return x.to(device, copy=True).requires_grad_()


def slopes(outs, leaves):
    """Gradients of a weighted sum of what was computed."""
    total = sum((x * random(*x.shape, seed=9).to(x.device)).sum() for x in outs)
    return [
        x
        for x in torch.autograd.grad(total, leaves, retain_graph=True, allow_unused=True)
        if x is not None
    ]


def same(found, expected, **tolerance):
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        torch.testing.assert_close(x.cpu(), y, **({"rtol": 2e-4, "atol": 2e-5} | tolerance))


@pytest.mark.parametrize("name", SPECS)
def test_draws(name):
    spec, found = SPECS[name], {}
    uniform = random(len(SEEDS), ROWS, spec.num_heads + 2, uniform=True)[..., 1:-1]
    for device in DEVICES:
        actor = SharedPolicy(blueprint(spec, device)).to(device)
        width = actor.output.out_features
        outputs = leaf(2.0 * random(len(SEEDS), ROWS, width), device)
        actor.outputs = lambda obs, outputs=outputs: outputs
        obs = torch.zeros(len(SEEDS), ROWS, OBS, device=device)
        drawn = draw(actor, obs, uniform.to(device))
        outs = [drawn.unit, drawn.entropy]
        if drawn.log_probs is not None:  # what does not exist is arbitrary
            outs.append(drawn.log_probs * actor.layout.mask)
        found[device] = outs, slopes(outs, (outputs,)), slopes([drawn.entropy], (outputs,))
    options = torch.tensor([n > 0 for n in spec.cardinalities])
    first, second = (found[device][0][0].cpu()[..., options] for device in DEVICES)
    assert torch.equal(first, second)
    for theirs, ours in zip(found["cuda"], found["cpu"], strict=True):
        same(theirs, ours)


@pytest.mark.parametrize("name", SPECS)
def test_inputs(name):
    spec, found = SPECS[name], {}
    wide = random(len(SEEDS), ROWS, OBS + 2)[..., 1:-1]
    for device in DEVICES:
        prefix, obs = Prefix(Layout(spec, device)), wide.to(device)
        action = leaf(actions_of(spec), device)
        outs = [prefix.for_twins(obs, action), prefix.inputs(obs, action)]
        outs.append(prefix.input_of(spec.num_heads - 1, obs, action))
        (to_action,) = slopes(outs, (action,)) if spec.num_ranges else (torch.zeros(1),)
        numbers = to_action[..., [h for h, n in enumerate(spec.cardinalities) if not n]]
        found[device] = [*outs, numbers]
    same(found["cuda"], found["cpu"])


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_relaxed_inputs(name):
    spec, found = SPECS[name], {}
    layout = Layout(spec)
    heads, most = layout.mask.shape
    noise = random(len(SEEDS), ROWS, heads * most + 3, uniform=True)[..., :-3]
    for device in DEVICES:
        prefix = Prefix(Layout(spec, device))
        obs = random(len(SEEDS), ROWS, OBS).to(device)
        logits = leaf(layout.masked(random(len(SEEDS), ROWS, heads, most)), device)
        action = leaf(actions_of(spec), device)
        x = prefix.relaxed_for_twins(
            obs, action, logits.log_softmax(-1), noise.to(device), torch.tensor(0.7, device=device)
        )
        leaves = (logits, action) if spec.num_ranges else (logits,)
        found[device] = [x, *slopes([x], leaves)]
    same(found["cuda"], found["cpu"])


def test_worth():
    found = {}
    for device in DEVICES:
        values, entropy = (
            leaf(random(*shape), device) for shape in ((3, 2, ROWS, 1), (3, ROWS, 4))
        )
        many = leaf(random(3, 2, ROWS, 5), device)
        alpha = random(3, 4, uniform=True).to(device)
        outs = [worth(values, entropy, alpha), lesser(many)]
        found[device] = outs + slopes(outs, (values, entropy, many))
    same(found["cuda"], found["cpu"])


@pytest.mark.parametrize(
    ("kind", "name", "backwards"),
    [("vdn", name, False) for name in WITH_OPTIONS]
    + [("independent", name, False) for name in SPECS]
    + [("ar", name, backwards) for name in SPECS for backwards in (False, True)],
)
def test_factorizations(kind, name, backwards):
    spec, found = SPECS[name], {}
    order = {"order": spec.names[::-1]} if backwards else {}
    for device in DEVICES:
        made = blueprint(spec, device)
        soft = factorizations.get(kind)(**order).soft(made)
        critic = soft.make_critic().to(device)
        if soft.actor is not None:
            soft.actor.to(device)
        obs = random(len(SEEDS), ROWS, OBS).to(device)
        uniform = random(len(SEEDS), ROWS, soft.num_uniforms, uniform=True).to(device)
        alpha = (0.1 + random(len(SEEDS), spec.num_heads, uniform=True)).to(device)
        with torch.no_grad():
            outs = [
                soft.sample(critic, obs, uniform, alpha, None),
                soft.soft_value(critic, obs, uniform, alpha, None),
                soft.mode(critic, obs, None),
            ]
        predicted = soft.predict(critic, obs, actions_of(spec).to(device))
        loss = soft.actor_loss(critic, obs, uniform, alpha, torch.ones((), device=device), None)
        outs += [predicted, loss.entropy]
        outs += slopes([predicted], tuple(critic.parameters()))
        if loss.gain is not None:
            outs += [loss.gain, *slopes([loss.gain], tuple(soft.actor.parameters()))]
        found[device] = outs
    same(found["cuda"], found["cpu"], atol=2e-4)


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("from_state", [False, True])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_policy_that_samples_head_after_head(name, from_state, backwards):
    spec, found = SPECS[name], {}
    for device in DEVICES:
        made = replace(blueprint(spec, device), state_std=from_state)
        policy = AR(order=spec.names[::-1] if backwards else None).policy(made).to(device)
        obs = random(len(SEEDS), ROWS, OBS).to(device)
        uniform = random(len(SEEDS), ROWS, policy.num_uniforms + 1, uniform=True)[..., 1:]
        with torch.no_grad():
            raw, judged = policy.sample(obs, uniform.to(device))
            again = policy.judge(obs, raw)
        same(
            [judged.log_prob.cpu(), judged.entropy.cpu()],
            [again.log_prob.cpu(), again.entropy.cpu()],
        )
        found[device] = raw, policy.to_unit(raw), judged.log_prob, judged.entropy
    same(found["cuda"], found["cpu"])


@pytest.mark.parametrize("per_head", [False, True])
@pytest.mark.parametrize("conditional", [False, True])
def test_temperatures(per_head, conditional):
    spec, found = SPECS["mixed"], {}
    entropy = random(len(SEEDS), ROWS, spec.num_heads)
    in_use = random(len(SEEDS), ROWS, spec.num_heads, uniform=True) if conditional else None
    for device in DEVICES:
        lr = torch.tensor([0.1, 0.01, 0.001], device=device)
        tuned = Temperatures(
            Layout(spec, device), Keys(SEEDS, device), 0.2, per_head=per_head, lr=lr
        )
        used = None if in_use is None else in_use.to(device)
        metrics = tuned.update(entropy.to(device), torch.tensor([0.5, 0.2, 0.9]).to(device), used)()
        found[device] = [tuned(), *metrics.values()]
    same(found["cuda"], found["cpu"])
