"""Rows that minibatches are made of: each member's in its own order."""

import pytest
import torch

from headwise.ops import Buffer, copy, fill, gather, shuffle, take
from headwise.ops.buffers import Buffer as AnyBuffer


@pytest.fixture(params=[True, False], ids=["compiled", "definition"])
def either(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(AnyBuffer, "is_compiled", property(lambda _: False))


def filled(x):
    made = Buffer(x.shape[0], x.shape[1], x.shape[2])
    made.tensor[:, 0] = x
    return made


@pytest.mark.usefixtures("either")
def test_batches_follow_each_members_own_order():
    x, y = torch.arange(20.0).view(2, 5, 2), torch.arange(10.0).view(2, 5, 1)
    order, cursor = Buffer(2, 1, 5), Buffer(2)
    wanted = torch.tensor([[4, 0, 3, 1, 2], [0, 1, 2, 4, 3]], dtype=torch.int32)
    order.ints[:, 0, 0] = wanted
    sources, found = [filled(x), filled(y)], []
    for size in (2, 2, 1):
        out = [Buffer(2, size, 2), Buffer(2, size, 1)]
        gather(sources, order, cursor, out=out)
        found.append([b.tensor[:, 0].clone() for b in out])
    assert found[0][0].tolist() == [[[8, 9], [0, 1]], [[10, 11], [12, 13]]]
    for k, whole in enumerate((x, y)):
        joined = torch.cat([batch[k] for batch in found], dim=1)
        for member in range(2):
            assert torch.equal(joined[member], whole[member, wanted[member].long()])
    assert cursor.ints.flatten().tolist() == [5, 5]


@pytest.mark.usefixtures("either")
def test_each_epoch_has_a_permutation_by_the_order_of_its_numbers():
    numbers = filled(torch.tensor([[[0.3, 0.1, 0.2], [0.9, 0.5, 0.5]]]))
    order, cursor = Buffer(1, 1, 6), Buffer(1)
    cursor.ints.fill_(4)
    shuffle(numbers, order=order, cursor=cursor)
    assert order.ints.flatten().tolist() == [1, 2, 0, 1, 2, 0]  # of equal ones the first
    assert cursor.ints.item() == 0


@pytest.mark.usefixtures("either")
def test_permutations_are_permutations():
    numbers = Buffer(3, 4, 257)
    numbers.tensor.uniform_(generator=torch.manual_seed(0))
    order, cursor = Buffer(3, 1, 4 * 257), Buffer(3)
    shuffle(numbers, order=order, cursor=cursor)
    found = order.ints.view(3, 4, 257).long()
    assert torch.equal(found.sort(-1).values, torch.arange(257).expand(3, 4, -1))
    sorted_numbers = numbers.tensor[:, 0].gather(-1, found)
    assert (sorted_numbers.diff(dim=-1) >= 0.0).all()


@pytest.mark.usefixtures("either")
def test_rows_by_numbers_that_are_the_same_for_all():
    index = Buffer(1, 1, 3)
    index.ints[:] = torch.tensor([2, 0, 2], dtype=torch.int32)
    out = Buffer(2, 3, 2)
    take(filled(torch.arange(12.0).view(2, 3, 2)), index, out=out)
    assert out.tensor[:, 0].tolist() == [[[4, 5], [0, 1], [4, 5]], [[10, 11], [6, 7], [10, 11]]]


@pytest.mark.usefixtures("either")
def test_windows_are_copied_and_filled_and_nothing_beside_them():
    wide, x = Buffer(2, 3, 5), filled(torch.rand(2, 3, 2))
    copy(x, out=wide.columns(1, 2))
    assert torch.equal(wide.tensor[..., 1:3], x.tensor)
    assert (wide.tensor[..., [0, 3, 4]] == 0.0).all()
    fill(wide.columns(3).rows(1, 2), 4.0)
    assert (wide.tensor[..., 1:, 3] == 4.0).all()
    assert (wide.tensor[..., 0, 3] == 0.0).all()
    assert (wide.tensor[..., [0, 4]] == 0.0).all()
