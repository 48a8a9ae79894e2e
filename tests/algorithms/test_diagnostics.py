"""Numbers that tell how learning goes."""

import sys
from pathlib import Path

import pytest
import torch
from learners import HYBRID, make_learner, rollout_batch

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))

from by_hand import buffer, column, result, rows

from headwise.algorithms.ppo.diagnostics import (
    HeadGradients,
    explained_variance,
    gradient_shares,
    summed_cosine,
)
from headwise.ops import Buffer, RatioGroups

EACH = RatioGroups((0, 1), (1.0, 1.0))


def test_shares_and_cosine_of_gradients_by_hand():
    found = result(gradient_shares, rows((3.0, 4.0), (0.0, 15.0)), ratios=EACH)
    torch.testing.assert_close(found, rows((0.25, 0.75)))
    together = RatioGroups((1, 0, 1), (1.0,) * 3)  # the first and the third have a ratio together
    found = result(gradient_shares, rows((3.0, 4.0), (0.0, 15.0)), ratios=together)
    torch.testing.assert_close(found, rows((0.375, 0.25, 0.375)))
    sums = rows((3.0, 0.0), (0.0, 4.0)), rows((1.0, 0.0), (2.0, 0.0))
    assert result(summed_cosine, *sums).item() == pytest.approx(0.6)


def test_nothing_learned_has_no_shares():
    assert result(gradient_shares, torch.zeros(1, 1, 2, 5), ratios=EACH).tolist() == [[[[0.0] * 2]]]


@pytest.mark.parametrize("columns", [1, 2])
def test_each_ratio_is_measured_by_itself(columns):
    """A gradient that is the sums of the advantages: one column serves every ratio."""
    gradient = Buffer(1, 1, 2)
    advantage = rows((1.0, 2.0), (2.0, 6.0))[..., :columns]
    plain = torch.ones_like(advantage)
    asked = []

    def backward(own):
        asked.append(own.tensor[0, 0].clone())
        gradient.tensor.copy_(own.tensor.sum(-2, keepdim=True))

    heads = HeadGradients(gradient, EACH)
    heads.measure(backward, buffer(advantage), buffer(plain))
    assert all((x != 0.0).sum() == 2 for x in asked)  # of both rows, one column
    sums = advantage.sum(-2).flatten().expand(2) if columns == 1 else advantage.sum(-2).flatten()
    torch.testing.assert_close(heads.shares.tensor.flatten(), sums / sums.sum())
    cosine = torch.cosine_similarity(sums, torch.ones(2), dim=0)
    torch.testing.assert_close(heads.cosine.tensor.flatten(), cosine.view(1))


def test_explained_variance_by_hand():
    """Targets 1, 2, 3 and one that does not count; values that are half of them."""
    target, valid = column(1.0, 2.0, 3.0, 99.0), column(1, 1, 1, 0)
    assert result(explained_variance, target, target, valid).item() == pytest.approx(1.0)
    assert result(explained_variance, 0.5 * target, target, valid).item() == pytest.approx(0.75)
    assert result(explained_variance, 0.0 * target, target, valid).item() == pytest.approx(0.0)


@pytest.mark.parametrize("factorization", ["shared", "vdn"])
def test_rows_without_a_transition_change_nothing_that_is_reported_of_the_policy(factorization):
    """Divergence, clipping, entropies and explained variance are those of the other rows."""
    found = []
    for garbage in (1.0, 50.0):
        learner = make_learner(
            "ppo",
            factorization,
            HYBRID,
            envs=2,
            n_steps=8,
            batch_size=16,
            n_epochs=1,
            learning_rate=0.0001,
        )
        batch = rollout_batch(learner)
        valid = torch.ones_like(batch.valid)
        valid[:, 3] = valid[:, 6, 1] = False
        obs = torch.where(valid.unsqueeze(-1), batch.obs, garbage * batch.obs)
        found.append(learner.update(batch._replace(obs=obs, valid=valid))())
    names = [n for n in found[0] if n.startswith(("heads/", "train/"))]
    same = [n for n in names if n.split("/")[1] in ("kl", "clip_fraction", "entropy", "approx_kl",
                                                    "joint_ratio")]  # fmt: skip
    assert len(same) == 6
    for name in same:
        torch.testing.assert_close(found[0][name], found[1][name], rtol=1e-4, atol=1e-6)
