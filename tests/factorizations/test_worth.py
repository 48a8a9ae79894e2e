import torch

from headwise.factorizations.soft import ActorLoss
from headwise.factorizations.worth import lesser, worth

VALUES = torch.tensor([[[[1.0], [5.0]], [[2.0], [3.0]]]])  # one member, two critics, two rows


def test_by_hand():
    assert lesser(VALUES).flatten().tolist() == [1.0, 3.0]
    entropy = torch.tensor([[[1.0, 2.0], [0.0, -1.0]]])
    total = worth(VALUES, entropy, torch.tensor([[0.5, 0.25]]))
    assert total.shape == (1, 2, 1)
    assert total.flatten().tolist() == [1.0 + 0.5 + 0.5, 3.0 - 0.25]


def test_gradients_go_to_the_lesser_and_to_entropies_by_temperature():
    values, entropy = VALUES.clone().requires_grad_(), torch.zeros(1, 2, 2, requires_grad=True)
    worth(values, entropy, torch.tensor([[0.5, 0.25]])).sum().backward()
    assert values.grad.flatten().tolist() == [1.0, 0.0, 0.0, 1.0]
    assert entropy.grad.flatten().tolist() == [0.5, 0.25, 0.5, 0.25]


def test_the_loss_is_minus_the_gain_summed_over_columns_and_averaged_over_rows():
    gain = torch.tensor([[[1.0, 2.0], [3.0, 6.0]], [[0.0, 0.0], [0.0, -1.0]]])
    assert ActorLoss(gain, gain).loss.tolist() == [-6.0, 0.5]
    assert ActorLoss(None, gain).loss is None
