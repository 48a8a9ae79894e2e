"""Rows of members: batches in an order of their own, some at a time, and shares of a mean."""

import torch

from headwise.population import batches_in_order, member_mean, member_sum, row_by_row, row_shares


def test_batches_follow_each_members_own_order():
    rows = {"x": torch.arange(20).view(2, 5, 2), "y": torch.arange(10).view(2, 5) > 3}
    order = torch.tensor([[4, 0, 3, 1, 2], [0, 1, 2, 4, 3]])
    batches = list(batches_in_order(rows, order, 2))
    assert [batch["x"].shape[1] for batch in batches] == [2, 2, 1]
    assert all(x.is_contiguous() for batch in batches for x in batch.values())
    assert batches[0]["x"].tolist() == [[[8, 9], [0, 1]], [[10, 11], [12, 13]]]
    for name, x in rows.items():
        joined = torch.cat([batch[name] for batch in batches], dim=1)
        for member in range(2):
            assert torch.equal(joined[member], x[member, order[member]])


def test_row_by_row_is_the_same_for_few_and_many():
    sizes = []

    def look(part):
        sizes.append(part["x"].shape[1])
        return {"sum": part["x"].sum(-1), "both": part["x"] + part["y"]}

    x, y = torch.arange(1200.0).view(2, 300, 2), torch.ones(2, 300, 1)
    found = row_by_row(look, {"x": x, "y": y})
    assert sum(sizes) == 300
    assert max(sizes) < 300
    assert torch.equal(found["sum"], x.sum(-1))
    assert torch.equal(found["both"], x + y)
    sizes.clear()
    row_by_row(look, {"x": x[:, :3], "y": y[:, :3]})
    assert sizes == [3]


def test_shares_make_means():
    x = torch.tensor([[[1.0], [2.0], [6.0]], [[5.0], [7.0], [9.0]]])
    valid = torch.tensor([[[1.0], [0.0], [1.0]], [[0.0], [0.0], [0.0]]])
    assert member_sum(x * row_shares(valid)).tolist() == [3.5, 0.0]
    assert torch.equal(member_sum(x * row_shares(valid)), member_mean(x, valid))
