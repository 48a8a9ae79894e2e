"""What the paper proves, by arithmetic on examples that meet its assumptions: docs/theory.md.

No run is behind these lines: each is a small example, worked out here. A counterexample is enough
for a verdict; where a claim holds the number is that of an example, and the proof is the page's.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import inf

import numpy as np

from headwise.report.claims.ledger import Claim
from headwise.report.claims.measurement import Evidence, Measurement
from headwise.report.statistics.aggregates import Array

_GROUP = "Theory"


def theory_claims() -> Iterator[Claim]:
    """All of them; they need no evidence."""
    zero = (-1e-9, 1e-9)
    for key, text, published, quantity, (low, high), number in (
        ("sum", "The heads' weighted estimates sum to GAE.", "Corollary A.10",
         "largest difference of three heads' sum from GAE over 50 steps", zero, _sum_error()),
        ("joint-gradient", "The joint gradient is unbiased for every alpha.", "Corollary A.10",
         "cosine of the expected update and the gradient, two heads, alpha 1", (1 - 1e-9, 1.0),
         _cosine()),
        ("uphill", "The expected update of a head points uphill.", "Theorem A.11",
         "expected update where the gradient is 0.025, two states with one logit", (0.0, inf),
         _uphill()),
        ("variance", "A head below the mean importance has a squared weight of at most 1/H².",
         "Proposition A.12", "H² times the squared weight of importances 2.9, 6, 0.1, alpha 0.5",
         (0.0, 1.0), float(9 * _weights(np.array([2.9, 6.0, 0.1]), 0.5)[0] ** 2)),
        ("bias", "Weights attenuate the bias of a wrong critic.", "Proposition A.13",
         "bias with weights 1 and 0 in turn over that without, errors 1 and -1 in turn",
         (0.0, 1.0), _bias(weighted=True) / _bias(weighted=False)),
        ("mixer-sum", "The weights of PPO-MIX do not sum to one.", "Section 5.2.2",
         "sum of the weights of Equation 8, credits 1, 2 and -0.5", (-inf, 1 - 1e-9),
         float(_signed(np.array([1.0, 2.0, -0.5])).sum())),
        ("signed", "The weights of PPO-MIX are shares.", "Equation 8",
         "largest weight of credits 1 and -0.999", (0.0, 1.0),
         float(_signed(np.array([1.0, -0.999])).max())),
        ("mixer-mean", "Advantages of mean zero make V the mean of Q under a mixer.",
         "Assumption A.6", "mean of ELU over advantages of 2 and -2", zero,
         float(np.mean([2.0, np.expm1(-2.0)]))),
        ("max-centering", "With max-centering Q of the best joint action is V.", "Appendix B.2",
         "Q minus V at the best action of two heads, ELU without a bias", zero, _above_v()),
    ):  # fmt: skip
        yield Claim(
            f"theory-{key}", _GROUP, "", text, published, quantity, low, high,
            partial(_exact, number),
        )  # fmt: skip


def _exact(number: float, _: Evidence) -> Measurement:
    return Measurement(number, number, number, None)


def _weights(importance: Array, alpha: float) -> Array:
    """Equation 5."""
    powers = importance**alpha
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _signed(credit: Array) -> Array:
    """Equation 8."""
    return np.asarray(credit / credit.sum())


def _gae(residuals: Array, gamma: float = 0.99, trace: float = 0.95) -> float:
    """The first estimate of a trajectory, (steps,)."""
    return float(residuals @ (gamma * trace) ** np.arange(len(residuals)))


def _sum_error() -> float:
    steps = np.arange(50.0)
    residuals = np.cos(steps**2)
    weights = _weights(1.1 + np.sin(steps[:, None] * np.array([1.0, 2.0, 3.0])), 0.7)
    heads = [_gae(weights[:, h] * residuals) for h in range(3)]
    return abs(sum(heads) - _gae(residuals))


def _cosine() -> float:
    """Head 1 is worth 9 with p (1 - p) = 1/36, head 2 is worth 1 with 1/4: equal gradients."""
    gradient = np.array([9 / 36, 1 / 4])
    update = _weights(np.array([9.0, 1.0]), 1.0) * gradient
    return float(update @ gradient / np.linalg.norm(update) / np.linalg.norm(gradient))


def _uphill() -> float:
    """The option is worth 1 and -1, and in the other state -0.9 and 0.9, at p = 1/2."""
    gradients = 0.25 * np.array([2.0, -1.8])
    ranges = np.array([[2.0, 18.0], [1.8, 0.2]])
    return float(np.mean(_weights(ranges, 1.0)[:, 0] * gradients))


def _bias(weighted: bool) -> float:
    """Of the first estimate of 100 steps, by the residuals that the errors alone come to."""
    errors = np.where(np.arange(101) % 2 == 0, 1.0, -1.0)
    residuals = 0.99 * errors[1:] - errors[:-1]
    weights = np.where(np.arange(100) % 2 == 0, 1.0, 0.0) if weighted else np.ones(100)
    return abs(_gae(weights * residuals))


def _above_v() -> float:
    """Advantages are at most zero, and the best is zero."""
    heads = [np.array([0.0, -1.5, -0.2]), np.array([-2.0, 0.0])]
    joint = sum(np.ix_(*heads), start=np.zeros(()))
    mixed = np.where(joint > 0, joint, np.expm1(joint))
    return float(mixed.max())
