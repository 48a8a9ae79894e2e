import pytest
import torch

from headwise import ConfigError
from headwise.population import (
    along,
    finite_members,
    join_members,
    member_mean,
    member_sum,
    per_member,
    select_members,
    shuffled,
    take_rows,
)


def test_select_and_join():
    state = {"a": torch.arange(6.0).view(3, 2), "b": torch.arange(3.0)}
    picked = select_members(state, [2, 0])
    assert picked["a"].tolist() == [[4.0, 5.0], [0.0, 1.0]]
    joined = join_members([picked, select_members(state, [1])])
    assert joined["b"].tolist() == [2.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: select_members({"a": torch.zeros(2, 3)}, [2]), "no such member; got 2"),
        (lambda: select_members({"a": torch.zeros(2), "b": torch.zeros(3)}, [0]), "disagree"),
        (
            lambda: join_members([{"a": torch.zeros(2, 3)}, {"a": torch.zeros(2, 4)}]),
            r"different shapes.*'a'; got \(4,\)",
        ),
        (lambda: join_members([{"a": torch.zeros(2)}, {"b": torch.zeros(2)}]), "different parts"),
        (lambda: per_member((1.0, 2.0), 3, "lr"), "one for each member; got 2 numbers"),
        (lambda: per_member(float("nan"), 3, "lr"), "lr must be finite"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_reductions_stay_within_a_member():
    x = torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[torch.nan, 1.0], [1.0, 1.0]]])
    assert member_sum(x)[0] == 10.0
    assert member_mean(x)[0] == 2.5
    weight = torch.tensor([[[1.0], [0.0]], [[1.0], [1.0]]])
    assert member_mean(x, weight)[0] == 1.5
    assert finite_members(x).tolist() == [True, False]
    assert per_member(3, 2, "lr").tolist() == [3.0, 3.0]
    assert along(torch.tensor([1.0, 2.0]), x).shape == (2, 1, 1)


def test_rows_by_each_members_own_indices():
    x = torch.arange(12).view(2, 3, 2)
    index = torch.tensor([[2, 0], [1, 1]])
    assert take_rows(x, index).tolist() == [[[4, 5], [0, 1]], [[8, 9], [8, 9]]]
    order = shuffled(torch.tensor([[0.3, 0.1, 0.2]]))
    assert order.tolist() == [[1, 2, 0]]
