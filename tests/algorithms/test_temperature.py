import math

import pytest
import torch
from learners import make_learner

from headwise import ActionSpec, Choice, ConfigError, Range
from headwise.algorithms.base import ReplayBatch
from headwise.algorithms.sac import SAC
from headwise.algorithms.sac.learner import RUNAWAY, Temperatures
from headwise.heads.layout import Layout
from headwise.ops import Buffer
from headwise.population import Keys, settings

SPEC = ActionSpec.of(x=Range(-1, 1), a=Choice(4), y=Range(0, 1), b=Choice(2))
ORDER = [2, 0, 3, 1]
"""The learner's columns in the order of the spec: it has a, b, x and y."""
LOG2, LOG4 = math.log(2), math.log(4)


class Small:
    """Temperatures of two members with step sizes of 0.1 and 0.01; heads as in the spec."""

    def __init__(self, spec=SPEC, *, per_head=False, first=0.2, fraction=(0.5, 0.25)):
        keys = Keys((0, 1))
        self.heads = spec.num_heads
        self.own = Temperatures(
            SAC(target_entropy=fraction, ent_coef=f"auto_{first}", per_head_temperature=per_head),
            Layout(spec), keys, settings(keys, (0.1, 0.01), "learning_rate"),
            settings(keys, 1.0, "alive"),
        )  # fmt: skip
        self.own.span = 100.0
        self.clock = Buffer(2, 1, 2)

    def alpha(self):
        return self.own.now(self.clock).tensor[:, 0, 0][:, ORDER[: self.heads]].clone()

    def target(self):
        return self.own.target(None).tensor[:, 0, 0][:, ORDER].clone()

    def update(self, entropy, use=None, mask=None):
        """Entropies (P, B, H) in the order of the spec; what is reported, likewise."""
        used = None if use is None else self._buffer(use)
        some = None if mask is None else self._buffer(mask, heads=False)
        self.own.step(self._buffer(entropy), used, some)
        found = self.own.metrics()
        return {n: x[:, ORDER] if n.startswith("heads/") else x for n, x in found.items()}

    @staticmethod
    def _buffer(x, *, heads=True):
        x = x[..., torch.tensor(ORDER).argsort()] if heads else x
        made = Buffer(2, x.shape[1], x.shape[2])
        made.tensor[:, 0] = x
        return made


def test_a_number_stays_what_it_is_and_auto_is_learned():
    spec, batch = ActionSpec.of(a=Choice(3), x=Range(-1, 1)), torch.zeros(2, 4)
    found = {}
    for ent_coef in (0.3, "auto_0.3", "auto"):
        learner = make_learner("sac", "shared", spec, obs=3, ent_coef=ent_coef, batch_size=4)
        obs, action = torch.zeros(2, 4, 3), torch.zeros(2, 4, 2)
        for _ in range(3):
            metrics = learner.update(ReplayBatch(obs, action, batch, obs, batch, None, None))()
        found[ent_coef] = metrics["heads/alpha"]
        assert torch.isfinite(metrics["heads/entropy"]).all()
    torch.testing.assert_close(found[0.3], torch.full((2, 2), 0.3))
    assert (found["auto_0.3"] != found[0.3]).all()
    torch.testing.assert_close(found["auto_0.3"], found[0.3], rtol=0.01, atol=0)
    torch.testing.assert_close(found["auto"], torch.ones(2, 2), rtol=0.01, atol=0)


def test_one_weight_has_one_name():
    assert SAC(ent_coef="auto").ent_coef == "auto_1.0"
    assert SAC(ent_coef="auto_.2") == SAC()
    assert SAC(ent_coef=0.2).ent_coef == 0.2
    for bad in ("auto_", "auto_x", "auto_-1", "auto_inf", "0.2", 0.0, -1.0, 2000.0):
        with pytest.raises(ConfigError, match="'ent_coef' must be a weight of entropy; got"):
            SAC(ent_coef=bad)


def test_targets_by_hand():
    expected = [[-1, 0.5 * LOG4, -1, 0.5 * LOG2], [-1, 0.25 * LOG4, -1, 0.25 * LOG2]]
    torch.testing.assert_close(Small().target(), torch.tensor(expected))


def masked():
    """Two states: two and then four legal options of `a`, one and then two of `b`."""
    return torch.tensor([[0, 1, 1, 0, 0, 1], [1] * 6], dtype=torch.float32).expand(2, 2, 6)


def test_targets_are_a_share_of_what_is_legal():
    small = Small(per_head=True)
    target = small.own.target(small._buffer(masked(), heads=False)).tensor[:, 0][..., ORDER]
    most = torch.tensor([[0, LOG2, 0, 0], [0, LOG4, 0, LOG2]])
    numbers = torch.tensor([-1.0, 0, -1, 0])
    torch.testing.assert_close(target, torch.stack([0.5 * most, 0.25 * most]) + numbers)
    half = torch.tensor([-1, 0.75 * LOG2, -1, 0.25 * LOG2])  # half the mean over states
    # A state that uses nothing but `x`: of the others' targets half is left.
    in_use = torch.tensor([[1.0, 1, 1, 1], [1, 0, 0, 0]]).expand(2, 2, 4)
    used = torch.tensor([-1, 0.25 * LOG2, -0.5, 0])
    for use, wanted in ((None, half), (in_use, used)):
        found = small.update(torch.zeros(2, 2, 4), use, masked())["heads/target_entropy"]
        torch.testing.assert_close(found[0], wanted)
        assert found[1, 1] == 0.5 * wanted[1]


def test_where_all_is_legal_nothing_changes():
    one, other = Small(per_head=True), Small(per_head=True)
    entropy = torch.rand(2, 7, 4, generator=torch.Generator().manual_seed(0))
    one.update(entropy, mask=torch.ones(2, 7, 6))
    other.update(entropy)
    torch.testing.assert_close(one.alpha(), other.alpha())


def test_a_head_in_which_nothing_is_legal_has_no_entropy():
    small = Small()
    nothing = small._buffer(torch.zeros(2, 1, 6), heads=False)
    target = small.own.target(nothing).tensor[:, 0, 0][:, ORDER]
    assert target.tolist() == [[-1.0, 0.0, -1.0, 0.0]] * 2


@pytest.mark.parametrize(
    ("spec", "per_head", "groups"),
    [
        (SPEC, False, 2),
        (SPEC, True, 4),
        (ActionSpec.of(a=Choice(2), b=Choice(3)), False, 1),
        (ActionSpec.of(x=Range(0, 1)), False, 1),
    ],
)
def test_one_for_choices_and_one_for_ranges_or_one_each(spec, per_head, groups):
    own = Small(spec, per_head=per_head).own
    assert own.log_alpha.width == groups
    alpha = own.now(Buffer(2, 1, 2)).tensor[:, 0, 0]
    torch.testing.assert_close(alpha, torch.full((2, spec.num_heads), 0.2))


def test_too_little_entropy_raises_and_too_much_lowers():
    small = Small(per_head=True, fraction=0.5)
    entropy = (small.target() + torch.tensor([0.3, -0.3, -0.1, 0.1])).unsqueeze(-2).expand(2, 7, 4)
    small.update(entropy)
    change = small.alpha() - 0.2
    assert (change.sign() == torch.tensor([-1.0, 1.0, 1.0, -1.0])).all()
    # the first step of Adam is the step size, in log space: 0.2 exp(0.1) for the first member
    assert small.alpha()[0, 1].item() == pytest.approx(0.2 * math.exp(0.1), rel=1e-5)
    assert small.alpha()[1, 1].item() == pytest.approx(0.2 * math.exp(0.01), rel=1e-5)


def test_heads_of_a_group_count_together():
    small = Small(fraction=0.5)
    # one choice 0.3 too low, the other 0.2 too high: 0.1 too low together
    entropy = (small.target() + torch.tensor([0.0, -0.3, 0.0, 0.2])).unsqueeze(-2)
    found = small.update(entropy)
    assert (small.alpha()[:, [1, 3]] > 0.2).all()
    torch.testing.assert_close(small.alpha()[:, [0, 2]], torch.full((2, 2), 0.2))
    # the loss is the logarithm of now times the surplus
    loss = -0.1 * small.alpha()[:, 1].log()
    torch.testing.assert_close(found["train/ent_coef_loss"], loss, rtol=1e-4, atol=1e-5)


def test_a_runaway_is_reported():
    low, high = Small(first=1.0), Small(first=RUNAWAY * 1.5)
    entropy = torch.zeros(2, 1, 4)
    assert low.update(entropy)["warn/temperature"].tolist() == [0.0, 0.0]
    metrics = high.update(entropy)
    assert metrics["warn/temperature"].tolist() == [1.0, 1.0]
    assert metrics["heads/alpha"].shape == metrics["heads/entropy"].shape == (2, 4)


@pytest.mark.parametrize("sizes", [(1, 6), (6, 1), (2, 3)])
def test_a_joint_action_has_one_temperature(sizes):
    """Also if the first head has one option only, and so no entropy to tune it by."""
    spec = ActionSpec.of(**{f"h{i}": Choice(n) for i, n in enumerate(sizes)})
    learner = make_learner(
        "sac", "joint", spec, obs=3, net_arch=(8,), learning_rate=0.1, target_entropy=0.0,
        batch_size=4, per_head_temperature=True,
    )  # fmt: skip
    obs, action, zeros = torch.zeros(2, 4, 3), torch.zeros(2, 4, len(sizes)), torch.zeros(2, 4)
    learner.update(ReplayBatch(obs, action, zeros, obs, zeros, None, None))
    found = learner.temperatures.now(learner.updates).tensor.flatten(1)
    # Any entropy is above a target of zero, so Adam's first step, which is the step size, goes
    # down: 0.2 exp(-0.1).
    torch.testing.assert_close(found, torch.full((2, 1), 0.2 * math.exp(-0.1)))


def test_other_factorizations_have_one_for_every_head_if_asked_to():
    asked = make_learner("sac", "vdn", SPEC, per_head_temperature=True)
    assert asked.temperatures.log_alpha.width == 4
    assert make_learner("sac", "vdn", SPEC).temperatures.log_alpha.width == 2
