"""NAME=VALUE, as it is typed for environments and for studies."""

import pytest

from headwise import ConfigError
from headwise.cli.values import parse_pairs


def test_values_are_what_they_look_like():
    numbers = ["a=4", "b=0.5", "a=5"]
    words = ["c=true", "d=False", "e=None", "f=[1, 2]", "g=word", "h=x=y", "i="]
    assert parse_pairs([*numbers, *words], "setting") == {
        "a": 5,
        "b": 0.5,
        "c": True,
        "d": False,
        "e": None,
        "f": [1, 2],
        "g": "word",
        "h": "x=y",
        "i": "",
    }


@pytest.mark.parametrize("word", ["fast", "=3", "two words=3", "3=4"])
def test_what_is_none_is_refused(word):
    with pytest.raises(ConfigError, match=r"no setting.*allowed: name=value"):
        parse_pairs([word], "setting")
