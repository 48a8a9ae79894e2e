"""Which heads have a probability ratio together, and what is reported of them."""

import pytest
import torch
from learners import DISCRETE, HYBRID, make_learner

from headwise.algorithms.ppo import PPO
from headwise.algorithms.ppo.ratios import ratios_of
from headwise.envs.native.vec_env import NativeVecEnv
from headwise.heads.layout import Layout
from headwise.training.build import make_loop
from headwise.training.config import RunConfig
from headwise.training.report import metric_columns


def ratios(spec=HYBRID, joint=False, **settings):
    return ratios_of(PPO(**settings), Layout(spec), joint=joint)


def test_ratios_by_hand():
    """x: Range, a: Choice, y: Range, b: Choice; the learner has a, b, x and y."""
    assert ratios().groups == (0, 1, 2, 3)
    assert ratios(joint=True).groups == ratios(ratio="joint").groups == (0, 0, 0, 0)
    assert ratios(joint=True, ratio="per_head").groups == (0, 1, 2, 3)
    assert ratios(ratio="ranges_joint").groups == (0, 1, 2, 2)
    assert ratios(DISCRETE, ratio="ranges_joint").groups == (0, 1, 2)


def test_entropies_of_ranges_are_a_sum_or_a_mean():
    assert ratios().entropy_weights == (1.0, 1.0, 1.0, 1.0)
    assert ratios(range_entropy="mean").entropy_weights == (1.0, 1.0, 0.5, 0.5)
    assert ratios(DISCRETE, range_entropy="mean").entropy_weights == (1.0, 1.0, 1.0)


def test_ranges_with_one_ratio_report_as_many_numbers_as_there_are_heads():
    one = ratios(ratio="ranges_joint")
    spread = one.spread(torch.tensor([0.2, 0.3, 0.5]))
    assert spread.tolist() == torch.tensor([0.2, 0.3, 0.5, 0.5]).tolist()
    assert one.sums(torch.tensor([1.0, 2.0, 4.0, 8.0])).tolist() == [1.0, 2.0, 12.0]


@pytest.mark.parametrize("factorization", ["shared", "independent", "vdn", "qplex", "ar"])
@pytest.mark.parametrize("view", ["hybrid", "continuous"])
def test_metrics_of_heads_are_as_many_as_heads_where_ranges_have_one_ratio(factorization, view):
    env = NativeVecEnv("CoopPush", (0, 1), 4, view=view)
    config = PPO(ratio="ranges_joint", n_steps=4, batch_size=8, n_epochs=1, net_arch=(8,))
    plan = RunConfig.of(config, factorization=factorization, total_timesteps=16)
    loop = make_loop(env, plan, (0, 1))
    loop.run(16)
    for name, x in loop.metrics.items():
        assert x.shape == ((2, env.spec.num_heads) if name.startswith("heads/") else (2,)), name
    share = loop.metrics["heads/gradient_share"]
    torch.testing.assert_close(share.sum(-1), torch.ones(2))
    names = {f"heads/{head}/clip_fraction" for head in env.spec.names}
    assert names <= set(metric_columns(loop))


def test_the_penalty_of_large_means_is_in_the_gradient_of_the_actor():
    """Means of 5 and -3 in every row: 0.1 times the mean of 25 and nothing, so 0.1 * 2 * 5 / 2."""
    found = []
    for weight in (0.0, 0.1):
        learner = make_learner("ppo", "shared", HYBRID, mean_penalty=weight, n_steps=2, envs=4)
        net = learner.actor.net
        weights, bias = net.weights(net.parameters.tensor)[-1]
        weights.zero_()
        bias.zero_()
        bias[..., 0], bias[..., 1] = 5.0, -3.0  # of x, and then of y
        part = learner.batch
        part["obs"].tensor.normal_(generator=torch.Generator().manual_seed(0))
        said = learner._evaluation(part)
        learner.actor.evaluate(part["obs"], part.actions(), said)
        for x in said:
            x.gradient.fill_(1.0)
        learner.actor.backward(part["obs"], part.actions(), said)
        _, slope = net.weights(net.parameters.gradient)[-1]
        found.append(slope[:, 0, 0].clone())
    change = found[1] - found[0]
    torch.testing.assert_close(change[:, 0], torch.full((2,), 0.5), rtol=1e-4, atol=1e-5)
    assert (change[:, 1:] == 0.0).all()
