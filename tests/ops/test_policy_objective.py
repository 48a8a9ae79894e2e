"""PPO's objective: by hand, and against what autograd makes of its formula in float64."""

import math

import pytest
import torch
from by_hand import buffer, column, one, played, result, rows

from headwise.ops import (
    Buffer,
    Evaluation,
    HeadTable,
    RatioGroups,
    When,
    adapt_coefficient,
    distribution,
    evaluate,
    mean_penalty,
    movement,
    policy_loss,
)

ONE = RatioGroups((0,), (1.0,))


def surrogate(ratio, advantage, clip=0.2):
    """The surrogates of rows by themselves, and their gradients by the log-ratio."""
    found = [
        played(
            policy_loss, column(log), column(0.0), None, column(0.0), column(worth), column(1.0),
            one(clip), one(0.0), one(0.0), ratios=ONE, learns=(0,),
            slope=rows((-1.0, 0.0, 0.0, 0.0)),
        )
        for log, worth in zip(ratio.log().tolist(), advantage, strict=True)
    ]  # fmt: skip
    return [x[..., 1].item() for x, _ in found], [g.item() for _, g in found]


def test_the_clipped_surrogate_by_hand():
    # Inside; too high and good; too high and bad; too low and good; too low and bad.
    found, slope = surrogate(torch.tensor([1.1, 1.5, 1.5, 0.5, 0.5]), [2.0, 2.0, -2.0, 2.0, -2.0])
    assert found == pytest.approx([2.2, 2.4, -3.0, 1.0, -1.6])
    assert slope == pytest.approx([2.2, 0.0, -3.0, 1.0, 0.0])


@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_a_ratio_beyond_all_bounds_has_no_gradient(advantage):
    found, slope = surrogate(torch.tensor([20.5]).exp(), [advantage])
    assert found == [pytest.approx(min(advantage * 1.2, advantage * math.exp(20)), rel=1e-6)]
    assert slope == [0.0]


@pytest.mark.parametrize(("log", "worth"), [(math.nan, 1.0), (0.1, math.nan)])
def test_what_is_not_a_number_stays_with_its_member(log, worth):
    """Of three members that are alike but for the second's ratio or advantage."""
    logs, worths = (torch.tensor(x).view(3, 1, 1, 1) for x in ((0.1, log, 0.1), (1.0, worth, 1.0)))
    nothing, each = torch.zeros(3, 1, 1, 1), torch.ones(3, 1, 1, 1)
    loss, slope = played(
        policy_loss, logs, nothing, None, nothing, worths, each, 0.2 * each, nothing, nothing,
        ratios=ONE, learns=(0,), slope=torch.tensor([1.0, 0.0, 0.0, 0.0]).expand(3, 1, 1, 4),
    )  # fmt: skip
    assert loss[..., 0].isnan().flatten().tolist() == [False, True, False]
    assert slope.isnan().flatten().tolist() == [False, True, False]


@pytest.mark.parametrize("groups", [(0, 1, 2), (0, 0, 0), (1, 0, 0)])
@pytest.mark.parametrize("columns", ["one", "each"])
def test_the_whole_objective_against_autograd(groups, columns):
    random = torch.Generator().manual_seed(0)
    count = max(groups) + 1

    def normal(*shape):
        return torch.randn(*shape, generator=random)

    old, entropy, kl = normal(3, 1, 37, 3), normal(3, 1, 37, 3), normal(3, 1, 37, 3).abs()
    log_prob = old + 0.4 * normal(3, 1, 37, 3)
    advantage = normal(3, 1, 37, 1 if columns == "one" else count)
    share = normal(3, 1, 37, 1).abs() / 30
    clip, ent, coef = (
        torch.tensor(x).view(3, 1, 1, 1)
        for x in ((0.1, 0.2, 0.5), (0.0, 0.1, 1.0), (0.3, 0.0, 2.0))
    )
    weights = (1.0, 0.5, 0.25)
    learned = [x.double().requires_grad_() for x in (log_prob, entropy, kl)]
    wide = [x.double() for x in (old, advantage, share, clip, ent, coef)]
    by_group = torch.zeros(3, count, dtype=torch.float64)
    by_group[range(3), groups] = 1.0
    ratio = ((learned[0] - wide[0]) @ by_group).exp()
    least = torch.minimum(ratio * wide[1], ratio.clamp(1 - wide[3], 1 + wide[3]) * wide[1])
    gain = (least * wide[2]).sum((-2, -1))
    bonus = ((learned[1] * torch.tensor(weights)).sum(-1, keepdim=True) * wide[2]).sum((-2, -1))
    divergence = learned[2].sum(-1).mean(-1)
    loss = wide[5].flatten(1) * divergence - gain - wide[4].flatten(1) * bonus
    known = torch.autograd.grad(loss.sum(), learned)
    found, *slopes = played(
        policy_loss, log_prob, entropy, kl, old, advantage, share, clip, ent, coef,
        ratios=RatioGroups(groups, weights), learns=(0, 1, 2),
        slope=torch.tensor([1.0, 0.0, 0.0, 0.0]).expand(3, 1, 1, 4),
    )  # fmt: skip
    expected = torch.stack([loss, gain, bonus, divergence], dim=-1).unsqueeze(-2)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)
    for slope, true in zip(slopes, known, strict=True):
        torch.testing.assert_close(slope.double(), true, rtol=1e-5, atol=1e-7)


def test_from_logits_by_hand():
    """Two options, p = (3/4, 1/4); the first was taken when its chance was one half: r = 3/2."""
    table = HeadTable((2,), (None,), ((0, 0),))
    y = buffer(rows((math.log(3.0), 0.0)), gradient=True)
    old, half = buffer(rows((math.log(0.5),) * 2)), buffer(column(math.log(0.5)))
    said = Evaluation(1, 1, 1, kl=True)
    raw, settings = buffer(column(0.0)), {"table": table, "given": False}
    evaluate(y, None, raw, None, old, **settings, out=said)
    loss = Buffer(1, 1, 4, gradient=True)
    loss.gradient[..., 0] = 1.0
    worth = buffer(column(-2.0)), buffer(column(1.0))
    given = *said, half, *worth, buffer(one(0.2)), buffer(one(0.5)), buffer(one(2.0))
    policy_loss(*given, ratios=ONE, out=loss)
    policy_loss.backward(*given, ratios=ONE, out=loss)
    evaluate.backward(y, None, raw, None, old, **settings, out=said)
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    divergence = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    assert loss.tensor.flatten().tolist() == pytest.approx(
        [3.0 - 0.5 * entropy + 2 * divergence, -3.0, entropy, divergence]
    )
    # of 3 by logits: 3 (hit - p) for r A; of the entropy: -p (log p + H); of the divergence: p - q
    by_first = 3.0 * 0.25 + 0.5 * 0.75 * (math.log(0.75) + entropy) + 2 * (0.75 - 0.5)
    assert y.gradient.flatten().tolist() == pytest.approx([by_first, -by_first])


def test_the_divergence_of_a_chain_counts_the_heads_that_its_actions_use():
    """Given the heads before it is known whether a head is in use: its weight is one or zero."""
    conditions = (None, When(0, 0, 1), When(0, 1, 2), When(2, 1, 2))
    sizes = (3, 4, 2, 2)
    starts = [sum(sizes[:h]) for h in range(4)]
    table = HeadTable(sizes, conditions, [(0, start) for start in starts])
    random = torch.Generator().manual_seed(0)
    before, now = torch.randn(2, 2, 1, 37, 11, generator=random).unbind(0)
    raw = torch.cat([torch.randint(n, (2, 1, 37, 1), generator=random) for n in sizes], -1).float()
    old = Buffer(2, 37, 11)
    distribution(buffer(before), None, None, table=table, out=old)
    said = Evaluation(2, 37, 4, kl=True)
    evaluate(buffer(now), None, buffer(raw), None, old, table=table, given=True, out=said)
    kinds = [torch.distributions.Categorical(logits=x) for x in before.split(sizes, -1)]
    others = [torch.distributions.Categorical(logits=x) for x in now.split(sizes, -1)]
    pairs = zip(kinds, others, strict=True)
    each = torch.stack([torch.distributions.kl_divergence(p, q) for p, q in pairs], dim=-1)
    left, right = raw[..., 0] == 0, raw[..., 0] == 1
    use = torch.stack([torch.ones_like(left), left, right, right & (raw[..., 2] == 1)], -1)
    torch.testing.assert_close(said.kl.tensor, each * use, rtol=1e-5, atol=1e-6)


# --- the rest of the loss -------------------------------------------------------------------------


def test_means_beyond_four_are_penalized():
    """Means of 5 and -3 in every row: 0.1 times the mean of 25 and nothing."""
    table = HeadTable((0, 0), (None, None), ((0, 0), (0, 1)))
    y = rows((5.0, -3.0), (5.0, -3.0), (5.0, -3.0))
    found, slope = played(mean_penalty, y, table=table, coef=0.1, learns=(0,))
    assert found.item() == pytest.approx(1.25)
    torch.testing.assert_close(slope, rows(*[(0.1 * 10.0 / 6, 0.0)] * 3))


@pytest.mark.parametrize(
    ("divergence", "factor"),
    [(0.05, 1.5), (0.031, 1.5), (0.029, 1.0), (0.021, 1.0), (0.019, 2 / 3)],
)
def test_the_weight_of_the_divergence_adapts(divergence, factor):
    found = result(adapt_coefficient, one(divergence), one(1.0), target=0.03)
    assert found.item() == pytest.approx(factor)


def test_the_weight_of_the_divergence_has_bounds():
    assert result(adapt_coefficient, one(1.0), one(90.0), target=0.03).item() == 100.0
    assert result(adapt_coefficient, one(0.0), one(1e-4), target=0.03).item() == pytest.approx(1e-4)


def test_movement_by_hand():
    """Two rows, two heads; the second row of member 0 does not count, and none of member 1."""
    logs = rows((math.log(2.0), 0.0), (math.log(4.0), math.log(0.5))).repeat(2, 1, 1, 1)
    entropy = rows((0.3, 0.7), (9.0, 9.0)).repeat(2, 1, 1, 1)
    share = torch.cat([column(1.0, 0.0), column(0.0, 0.0)])
    clip = torch.cat([one(0.2), one(3.0)])
    so_far = torch.ones(2, 1, 1, 9)
    ratios = RatioGroups((0, 1), (1.0, 1.0))
    given = logs, entropy, torch.zeros_like(logs), share, clip, so_far
    found = result(movement, *given, ratios=ratios)[:, 0, 0] - 1.0
    kl = 1.0 - math.log(2.0)
    # all heads: divergence, clipped, joint ratio; then of each head: divergence, clipped, entropy
    expected = [kl, 0.5, 2.0, kl, 0.0, 1.0, 0.0, 0.3, 0.7]
    assert found[0].tolist() == pytest.approx(expected, rel=1e-5)
    assert found[1].tolist() == [0.0] * 9


def test_the_ratio_of_a_joint_action_stops_growing():
    logs = rows((15.0, 15.0))
    given = logs, logs, torch.zeros_like(logs), column(1.0), one(0.2), torch.zeros(1, 1, 1, 9)
    found = result(movement, *given, ratios=RatioGroups((0, 1), (1.0, 1.0)))
    assert found[..., 2].item() == pytest.approx(math.exp(20.0), rel=1e-6)


def test_heads_with_one_ratio_are_clipped_together():
    """x and y have a ratio together, which is outside although neither's own would be."""
    logs = rows((0.15, 0.0, 0.15))
    given = logs, logs, torch.zeros_like(logs), column(1.0), one(0.2), torch.zeros(1, 1, 1, 12)
    found = result(movement, *given, ratios=RatioGroups((1, 0, 1), (1.0,) * 3))[0, 0, 0]
    assert found[1].item() == 0.5  # one of two ratios
    assert found[6:9].tolist() == [1.0, 0.0, 1.0]
