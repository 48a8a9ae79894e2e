import pytest
import torch

from headwise import ConfigError
from headwise.population import (
    along,
    finite_members,
    latest_rows,
    per_member,
    rows_per_chunk,
    select_members,
    take_rows,
)


def test_select():
    state = {"a": torch.arange(6.0).view(3, 2), "b": torch.arange(3.0)}
    picked = select_members(state, [2, 0])
    assert picked["a"].tolist() == [[4.0, 5.0], [0.0, 1.0]]
    assert picked["b"].tolist() == [2.0, 0.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: select_members({"a": torch.zeros(2, 3)}, [2]), "no such member; got 2"),
        (lambda: select_members({"a": torch.zeros(2), "b": torch.zeros(3)}, [0]), "disagree"),
        (lambda: per_member((1.0, 2.0), 3, "learning_rate"), "one for each member; got 2 numbers"),
        (lambda: per_member(float("nan"), 3, "learning_rate"), "learning_rate must be finite"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_reductions_stay_within_a_member():
    x = torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[torch.nan, 1.0], [1.0, 1.0]]])
    assert finite_members(x).tolist() == [True, False]
    assert per_member(3, 2, "learning_rate").tolist() == [3.0, 3.0]
    assert along(torch.tensor([1.0, 2.0]), x).shape == (2, 1, 1)


def test_rows_by_each_members_own_indices():
    x = torch.arange(12).view(2, 3, 2)
    index = torch.tensor([[2, 0], [1, 1]])
    expected = [[[4, 5], [0, 1]], [[8, 9], [8, 9]]]
    assert take_rows(x, index).tolist() == expected
    turned = x.transpose(1, 2).contiguous().transpose(1, 2)
    assert take_rows(turned, index).tolist() == expected


def test_the_latest_rows_are_kept():
    x, more = torch.arange(6).view(2, 3), torch.tensor([[10], [11]])
    assert latest_rows(x, more, 2).tolist() == [[2, 10], [5, 11]]
    assert latest_rows(x, more, 9).tolist() == [[0, 1, 2, 10], [3, 4, 5, 11]]


def test_on_the_cpu_some_rows_are_looked_at_at_a_time():
    cpu, other = torch.device("cpu"), torch.device("meta")
    assert [rows_per_chunk(n, cpu) for n in (3, 256, 5000)] == [3, 256, 256]
    assert rows_per_chunk(5000, other) == 5000
