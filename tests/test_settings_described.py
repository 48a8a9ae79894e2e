"""`help()` describes every setting that a user can give."""

import pydoc
from dataclasses import dataclass, fields

import pytest

import headwise as hw
from headwise.algorithms import algorithms
from headwise.described import described, field_docs, summary_of
from headwise.factorizations import factorizations
from headwise.nets.encoders.base import encoders
from headwise.nets.encoders.config import NetworkConfig
from headwise.training.config import EnvironmentConfig, Normalization

KINDS = [
    *(kind for registry in (algorithms, factorizations, encoders) for _, kind in registry.items()),
    hw.RunConfig,
    EnvironmentConfig,
    Normalization,
    NetworkConfig,
]


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_help_describes_every_setting(kind):
    text = " ".join(pydoc.plain(pydoc.render_doc(kind)).replace("|", " ").split())
    docs = field_docs(kind)
    for one in fields(kind):
        assert len(docs[one.name]) >= 10, f"{one.name} says too little"
        assert f" {one.name}: {docs[one.name]}" in text
    summary = " ".join(summary_of(kind).replace("|", " ").split())
    assert summary in text.partition(" Args: ")[0]


def test_help_shows_defaults_and_wraps_lines():
    text = pydoc.plain(pydoc.render_doc(hw.PPO))
    assert "learning_rate: Learning rate: a number;" in text
    assert "Default: 0.0005." in text
    own = hw.PPO.__doc__
    assert max(map(len, own.splitlines())) <= 88


def test_a_class_that_inherits_a_docstring_does_not_inherit_the_list():
    @described
    @dataclass
    class Fruit:
        """Something to eat."""

        color: str = "red"
        """Its color when ripe."""

    class Apple(Fruit):
        pass

    assert Fruit.__doc__ == (
        "Something to eat.\n\nArgs:\n    color: Its color when ripe. Default: 'red'."
    )
    assert summary_of(Fruit) == "Something to eat."
    assert Apple.__doc__ is None
