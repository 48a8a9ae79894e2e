import pytest
import torch

from headwise import ActionSpec, Choice, Range, SpaceError
from headwise.envs.make import make_vec
from headwise.errors import ConfigError
from headwise.spaces.bins import Binning

SPEC = ActionSpec.of(a=Choice(3), x=Range(-2, 4), y=Range(0, 1))


def test_without_bins_nothing_changes():
    binning = Binning(SPEC, None)
    assert binning.spec is SPEC
    action = torch.tensor([2.0, 0.3, -1.0])
    assert torch.equal(binning.to_env(action), action)


def test_bins_are_unit_values_with_both_ends():
    binning = Binning(SPEC, {"x": 5, "y": 2})
    assert binning.spec.heads == (Choice(3), Choice(5, True), Choice(2, True))
    # 5 bins: -1, -0.5, 0, 0.5, 1; 2 bins: -1, 1; an option stays an option
    for bin_x, unit in enumerate((-1.0, -0.5, 0.0, 0.5, 1.0)):
        action = torch.tensor([[2.0, bin_x, 1.0]])
        torch.testing.assert_close(binning.to_env(action), torch.tensor([[2.0, unit, 1.0]]))


def test_one_number_is_for_every_range():
    assert Binning(SPEC, 11).spec.cardinalities == (3, 11, 11)


@pytest.mark.parametrize(
    ("bins", "error", "message"),
    [
        (1, SpaceError, "end-point bins need both ends"),
        (0, SpaceError, "needs a number of bins; got 0"),
        (2.5, SpaceError, "needs a number of bins; got 2.5"),
        ({"z": 3}, ConfigError, "unknown head; got 'z'"),
    ],
)
def test_bins_that_make_no_sense(bins, error, message):
    with pytest.raises(error, match=message):
        Binning(SPEC, bins)


def test_bins_that_cannot_reach_every_value_are_pointed_out(caplog):
    """Eleven bins along a curve of 256 cells can aim at eleven of them."""
    env = make_vec("HybridShoot", [0], 1, mode="independent", view="hybrid")
    Binning(env.spec, 11)
    assert "11 bins of the head 'aim' reach 11 of its 256 different values" in caplog.text
    assert "bins={'aim': 256}" in caplog.text
    caplog.clear()
    Binning(env.spec, {"aim": 256})
    Binning(make_vec("HybridShoot", [0], 1, mode="dependent", view="hybrid").spec, 11)
    Binning(make_vec("Platform", [0], 1, view="continuous").spec, 3)  # a kind has three values
    assert not caplog.text
