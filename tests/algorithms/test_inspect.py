import pytest
import torch

from headwise import ConfigError
from headwise.algorithms.inspect import inspector_named
from headwise.algorithms.ppo import PPO

CONTEXT = torch.tensor([0.0, 1.0, 0.0, 1.0]).view(1, 4, 1)


def found(advantage, weight):
    rows = {"obs": CONTEXT, "advantage": torch.tensor(advantage).view(1, 4, 2)}
    if weight is not None:
        rows["weight"] = torch.tensor(weight).view(1, 4, 2)
    return inspector_named("decoupler")(rows)


def test_credit_by_hand():
    # active: 3, -3, 1, -1 (mean 0, variance 5); inactive: 1, -1, 1, -1 (variance 1)
    advantage = [[3.0, 1.0], [-1.0, -3.0], [1.0, 1.0], [-1.0, -1.0]]
    # weights that always find the active head, by equal amounts
    right = [[0.8, 0.2], [0.2, 0.8], [0.8, 0.2], [0.2, 0.8]]
    metrics = found(advantage, right)
    assert metrics["credit/variance_ratio"].item() == pytest.approx(1 / 5)
    assert metrics["credit/weight_ratio"].item() == pytest.approx(0.2**2 / 0.8**2)
    assert metrics["credit/correlation"].item() == pytest.approx(1.0)
    assert metrics["credit/accuracy"].item() == 1.0
    wrong = found(advantage, [[0.2, 0.8]] * 4)  # right in two of four
    assert wrong["credit/accuracy"].item() == 0.5
    assert wrong["credit/weight_ratio"].item() == pytest.approx(1.0)
    assert wrong["credit/correlation"].item() == pytest.approx(0.0)
    assert all(x.shape == (1,) for x in metrics.values())


def test_nothing_is_said_without_weights():
    assert found([[0.0, 0.0]] * 4, None) == {}


def test_a_misspelt_inspector_gets_a_suggestion():
    with pytest.raises(ConfigError, match=r"unknown inspector; got 'decouple'.*'decoupler'"):
        PPO(inspect="decouple")
