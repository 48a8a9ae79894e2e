"""Appendix A of the paper on residuals and gradients, by enumeration (docs/theory.md)."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from exact import cosine, estimates, weights

GAMMA, DECAY = 0.9, 0.8  # the discount, and the trace's lambda


class Small:
    """Two states, two heads of two options each, a policy and its exact value."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.heads = rng.dirichlet((1.0, 1.0), (2, 2))  # state, head, option
        self.next = rng.dirichlet((1.0, 1.0), (2, 2, 2))  # state, option, option, next state
        self.reward = rng.normal(size=(2, 2, 2))
        joint = np.einsum("sa,sb->sab", self.heads[:, 0], self.heads[:, 1])
        self.joint = joint
        moves = np.einsum("sab,sabn->sn", joint, self.next)
        self.value = np.linalg.solve(np.eye(2) - GAMMA * moves, (joint * self.reward).sum((1, 2)))
        self.q = self.reward + GAMMA * self.next @ self.value
        self.advantage = self.q - self.value[:, None, None]
        importance = rng.uniform(0.1, 3.0, (2, 2))
        self.shares = np.stack([weights(row.tolist()) for row in importance]).astype(float)

    def paths(self, state, action, steps):
        """Every way on from an action: its chance, states and actions, with the last successor."""
        for after in (0, 1):
            chance = self.next[(state, *action, after)]
            if steps == 1:
                yield chance, [(state, action)], after
                continue
            for then in product((0, 1), repeat=2):
                picked = self.joint[(after, *then)]
                for rest, steps_on, last in self.paths(after, then, steps - 1):
                    yield chance * picked * rest, [(state, action), *steps_on], last

    def expected(self, state, action, steps, of):
        """The mean over all ways on of what `of` makes of residuals and shares."""
        total = 0.0
        for chance, visited, last in self.paths(state, action, steps):
            after = [s for s, _ in visited[1:]] + [last]
            delta = [
                self.reward[(s, *a)] + GAMMA * self.value[n] - self.value[s]
                for (s, a), n in zip(visited, after, strict=True)
            ]
            total = total + chance * of(delta, [self.shares[s].tolist() for s, _ in visited])
        return total


TASK = Small()
STARTS = [(s, a) for s in (0, 1) for a in product((0, 1), repeat=2)]


def test_the_lemma_has_its_correction_with_the_wrong_sign():
    """One action everywhere. r = 1, then 2 at the successor, the end; gamma = 1/2.

    V(s') = 2 and V(s) = 1 + 2 / 2 = 2, so A = 0. A critic says 4 and 0.
    """
    true, said, gamma, reward = (2.0, 2.0), (0.0, 4.0), 0.5, 1.0  # of s and s'
    residual = reward + gamma * said[1] - said[0]
    right = 0.0 + gamma * (said[1] - true[1]) - (said[0] - true[0])
    papers = 0.0 + gamma * (true[1] - said[1]) - (true[0] - said[0])
    assert (residual, right, papers) == (3.0, 3.0, -3.0)
    # with the true values there is nothing to correct, and both say A
    assert reward + gamma * true[1] - true[0] == 0.0


def test_weighted_advantages_are_unbiased_for_what_the_theorem_says():
    """Theorem A.9, on every way through three steps."""

    def weighted(delta, shares):
        return estimates(delta, shares, GAMMA * DECAY)[0]

    for start in STARTS:
        want = 0.0
        for chance, visited, _ in TASK.paths(*start, 3):
            for step, (s, a) in enumerate(visited):
                want = (
                    want
                    + chance * (GAMMA * DECAY) ** step * TASK.shares[s] * TASK.advantage[(s, *a)]
                )
        np.testing.assert_allclose(TASK.expected(*start, 3, weighted), want, atol=1e-12)
        # Later advantages have mean zero in every state, so that is the first term alone,
        s, a = start
        np.testing.assert_allclose(want, TASK.shares[s] * TASK.advantage[(s, *a)], atol=1e-12)
        # and weights outside of the sum (`weight_place="outside"`) have the same mean.
        outside = TASK.expected(
            *start, 3, lambda delta, shares: estimates(delta, None, GAMMA * DECAY)[0] * shares[0]
        )
        np.testing.assert_allclose(outside, want, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_estimates_of_all_heads_sum_to_the_plain_one(alpha):
    """The first half of Corollary A.10."""
    rng = np.random.default_rng(1)
    delta = rng.normal(size=8).tolist()
    shares = [weights(row, alpha).tolist() for row in rng.uniform(0, 2, (8, 3)).tolist()]
    found = estimates(delta, shares, 0.9)
    np.testing.assert_allclose(found.sum(-1), estimates(delta, None, 0.9)[:, 0], atol=1e-6)


def bandit(ranges, chances, shares):
    """The policy gradient of each head's logit, of reward sum_h range_h a_h, with and without."""
    plain, weighted = np.zeros(2), np.zeros(2)
    value = sum(r * p for r, p in zip(ranges, chances, strict=True))
    for action in product((0, 1), repeat=2):
        chance = np.prod([p if a else 1 - p for a, p in zip(action, chances, strict=True)])
        delta = sum(r * a for r, a in zip(ranges, action, strict=True)) - value
        score = np.array(action) - np.array(chances)  # of a logit
        plain += chance * delta * score
        weighted += chance * np.array(shares) * delta * score
    return plain, weighted


def test_the_joint_gradient_is_not_unbiased_for_every_alpha():
    """The second half of Corollary A.10: one state, and the critic knows all.

    Head 1 is worth 9 and nearly sure of it, p (1 - p) = 1/36; head 2 is worth 1 with p = 1/2. Both
    gradients are 1/4. Weights of 0.9 and 0.1 turn (1, 1) by 39 degrees: the cosine is
    1 / sqrt(2 (0.81 + 0.01)) = 0.781.
    """
    ranges, chances = (9.0, 1.0), (0.5 - np.sqrt(2) / 3, 0.5)
    shares = weights(ranges)
    np.testing.assert_allclose(shares, [0.9, 0.1], atol=1e-6)
    plain, weighted = bandit(ranges, chances, shares)
    np.testing.assert_allclose(plain, [0.25, 0.25])
    np.testing.assert_allclose(weighted, [0.225, 0.025], atol=1e-7)
    assert cosine(plain, weighted) == pytest.approx(0.7809, abs=1e-4)
    # With alpha = 0 it is the true gradient divided by the number of heads.
    even = bandit(ranges, chances, weights(ranges, 0.0))[1]
    np.testing.assert_allclose(even, plain / 2)


HEAD_1 = ((1.0, -1.0), (-0.9, 0.9))  # advantages of a = 1 and a = 0 in states 1 and 2
HEAD_2 = (18.0, 0.2)  # the other head's ranges


def logit_gradients():
    """The gradient of head 1's logit in each of two states, at p = 1/2, and its weight there."""
    score = (0.5, -0.5)  # of a = 1 and a = 0
    plain = [sum(0.5 * a * s for a, s in zip(row, score, strict=True)) for row in HEAD_1]
    own = [max(row) - min(row) for row in HEAD_1]
    return plain, [weights(pair)[0] for pair in zip(own, HEAD_2, strict=True)]


def test_the_expected_update_of_a_shared_parameter_may_point_downhill():
    """Theorem A.11: two states, equally likely, and one logit for both.

    The gradient is 0.5 in one and -0.45 in the other: 0.025 in the mean. The weights are 2 / 20 and
    1.8 / 2, so the update is (0.05 - 0.405) / 2 = -0.1775.
    """
    plain, share = logit_gradients()
    np.testing.assert_allclose(plain, [0.5, -0.45])
    np.testing.assert_allclose(share, [0.1, 0.9], atol=1e-6)
    assert np.mean(plain) == pytest.approx(0.025)
    assert np.mean(np.multiply(plain, share)) == pytest.approx(-0.1775, abs=1e-6)


def test_with_a_parameter_for_each_state_it_points_uphill():
    plain, share = logit_gradients()
    assert np.dot(plain, np.multiply(plain, share)) > 0  # a sum of w g^2


def bias(error, shares, gamma, decay):
    """Equation 29 at t = 0, for errors that are the same whatever happens."""
    delta = [gamma * after - now for now, after in pairwise(error)]
    return estimates(delta, [[w] for w in shares], gamma * decay)[0, 0]


def test_weights_below_one_may_add_to_the_bias():
    """The last sentence of Proposition A.13. Errors of 1 and -1 in turn, weights of 1 and 0.

    Unweighted the sum telescopes, to error_100 - error_0 = 0; the weights keep the 50 terms of -2.
    """
    error, alternating = [(-1.0) ** step for step in range(101)], [1.0, 0.0] * 50
    assert bias(error, [1.0] * 100, 1.0, 1.0) == pytest.approx(0.0)
    assert bias(error, alternating, 1.0, 1.0) == pytest.approx(-100.0)
    # gamma 0.99 and lambda 0.95: -1.99 / 1.9405 and -1.99 / (1 - 0.9405^2)
    assert bias(error, [1.0] * 100, 0.99, 0.95) == pytest.approx(-1.02, abs=5e-3)
    assert bias(error, alternating, 0.99, 0.95) == pytest.approx(-17.2, abs=0.05)


def test_the_bias_is_what_the_proposition_says():
    """Its equation: with a critic that is off by an error of each state, on every way."""
    error = np.array([0.7, -0.4])
    for start in STARTS:
        found = want = 0.0
        for chance, visited, last in TASK.paths(*start, 2):
            states = [s for s, _ in visited] + [last]
            shares = [TASK.shares[s].tolist() for s in states[:-1]]
            said = TASK.value + error
            off, exact = (
                [TASK.reward[(s, *a)] + GAMMA * v[n] - v[s]
                 for (s, a), n in zip(visited, states[1:], strict=True)]
                for v in (said, TASK.value)
            )  # fmt: skip
            both = (estimates(d, shares, GAMMA * DECAY)[0] for d in (off, exact))
            found = found + chance * np.subtract(*both)
            want = want + chance * sum(
                (GAMMA * DECAY) ** i * TASK.shares[s] * (GAMMA * error[n] - error[s])
                for i, (s, n) in enumerate(pairwise(states))
            )
        np.testing.assert_allclose(found, want, atol=1e-12)


def test_the_two_forms_of_the_loss_have_one_value_and_two_gradients():
    """Equations 16 and 18: reward 1, gamma 0, V = A = 0, with the target or delta held fixed."""
    value, advantage = (torch.zeros((), requires_grad=True) for _ in range(2))
    first = 0.5 * (value + advantage - 1.0) ** 2
    second = 0.5 * (advantage - (1.0 - value).detach()) ** 2
    assert first.item() == second.item() == 0.5
    assert torch.autograd.grad(first, value)[0].item() == -1.0
    assert torch.autograd.grad(second, value, allow_unused=True)[0] is None  # V learns nothing
