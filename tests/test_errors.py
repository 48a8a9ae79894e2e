import pickle
from pathlib import Path

import numpy as np
import pytest

from headwise import errors


def test_a_message_says_what_got_allowed_and_what_to_do():
    error = errors.ConfigError("bad speed", got=3, allowed="1 or 2", fix="Slow down.")
    assert str(error) == "bad speed; got 3; allowed: 1 or 2. Slow down."
    assert str(errors.SpaceError("empty")) == "empty."
    hinted = errors.ConfigError(
        "bad speed", got=3, hint="Did you mean 2?", allowed="1, 2", fix="Go."
    )
    assert str(hinted) == "bad speed; got 3. Did you mean 2? Allowed: 1, 2. Go."
    assert str(errors.EnvError("gone", got=None)) == "gone; got None."
    assert str(errors.EnvError("it failed", got="an answer.")) == "it failed; got an answer."


@pytest.mark.parametrize("kind", [errors.SpaceError, errors.ConfigError, errors.EnvError])
def test_one_base_for_all_and_still_a_value_error(kind):
    assert issubclass(kind, errors.HeadwiseError)
    assert issubclass(kind, ValueError)


def test_long_values_are_cut():
    assert len(str(errors.SpaceError("x", got="y" * 10_000))) < 300


def test_values_are_shown_as_people_write_them():
    assert str(errors.EnvError("x", got=np.int64(2))) == "x; got 2."
    assert str(errors.EnvError("x", got=Path("a/b.zip"))) == "x; got a/b.zip."


def test_an_error_comes_back_from_another_process_as_it_was():
    error = errors.SpaceError("it is bent", got=2, allowed="1", fix="Straighten it.")
    for again in (pickle.loads(pickle.dumps(error)), errors.SpaceError(error)):
        assert type(again) is errors.SpaceError
        assert str(again) == str(error) == "it is bent; got 2; allowed: 1. Straighten it."
