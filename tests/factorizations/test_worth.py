import torch

from headwise.factorizations.soft.base import ActorLoss
from headwise.factorizations.soft.worth import lesser, worth, worth_each

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


def test_heads_with_critics_of_their_own():
    # one member, two critics, two heads, three rows; the heads are the third and the first of three
    values = torch.tensor(
        [[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[0.0, 9.0, 3.0], [7.0, 4.0, 8.0]]]]
    )
    entropy = torch.tensor([[[1.0, 2.0], [0.0, -1.0], [2.0, 0.0]]])
    values, entropy = values.requires_grad_(), entropy.requires_grad_()
    alpha, heads = torch.tensor([[0.5, 100.0, 0.25]]), torch.tensor([2, 0])
    total = worth_each(values, entropy, alpha, heads)
    assert total.tolist() == [[[0.25, 5.0], [2.0, 3.5], [3.5, 6.0]]]
    total[:, :2].sum().backward()
    assert values.grad.tolist() == [[[[0, 1, 0], [1, 0, 0]], [[1, 0, 0], [0, 1, 0]]]]
    assert entropy.grad.tolist() == [[[0.25, 0.5], [0.25, 0.5], [0, 0]]]


def test_the_loss_is_minus_the_gain_summed_over_columns_and_averaged_over_rows():
    gain = torch.tensor([[[1.0, 2.0], [3.0, 6.0]], [[0.0, 0.0], [0.0, -1.0]]])
    assert ActorLoss(gain, gain).loss.tolist() == [-6.0, 0.5]
    assert ActorLoss(None, gain).loss is None
