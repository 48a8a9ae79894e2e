import pytest

from headwise import ConfigError
from headwise.registry import Registry


@pytest.fixture
def colours():
    registry = Registry("colour")
    registry.register("red")(1)
    registry.register("green")(2)
    return registry


def test_what_is_registered_can_be_had(colours):
    assert colours.get("red") == 1
    assert colours.names() == ["red", "green"]
    assert list(colours.items()) == [("red", 1), ("green", 2)]
    assert "red" in colours
    assert len(colours) == 2


def test_a_misspelt_name_gets_a_suggestion(colours):
    with pytest.raises(ConfigError, match=r"unknown colour; got 'gren'.*Did you mean 'green'"):
        colours.get("gren")
    with pytest.raises(ConfigError, match=r"allowed: green, red\.$"):
        colours.get("zzz")
    with pytest.raises(ConfigError, match="unknown colour"):
        colours.get(["red"])


def test_a_name_is_given_once(colours):
    with pytest.raises(ConfigError, match="'red' is registered twice"):
        colours.register("red")(3)


def test_what_is_defined_again_takes_the_place_of_what_it_was():
    registry = Registry("colour")
    found = []
    for _ in range(2):  # a cell of a notebook, run twice

        @registry.register("red")
        class Red:
            pass

        found.append(Red)
    assert registry.get("red") is found[1]

    class Other:
        pass

    with pytest.raises(ConfigError, match="'red' is registered twice"):
        registry.register("red")(Other)
