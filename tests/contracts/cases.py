"""Specs and builders that the contract tests share."""

import itertools

import torch

from headwise import ActionSpec, Choice, ConfigError, Range
from headwise.factorizations import Blueprint, factorizations
from headwise.factorizations.base import is_offered
from headwise.factorizations.parts.layout import Layout
from headwise.population import Initializer, Keys
from headwise.spaces import Condition

OBS = 4
DISCRETE = ActionSpec.of(a=Choice(2), b=Choice(3), c=Choice(2))
HYBRID = ActionSpec.of(x=Range(-1, 1), a=Choice(3), y=Range(0, 5), b=Choice(2))
CONTINUOUS = ActionSpec.of(x=Range(-1, 1), y=Range(0, 5))
ONE_OF = ActionSpec(
    ("kind", "run", "jump", "spin"),
    (Choice(3), Choice(4), Choice(2), Choice(2)),
    (None, Condition(0, 0, 1), Condition(0, 1, 2), Condition(2, 1, 2)),
)
PARAMETERS = ActionSpec(  # options and numbers that are in use under an alternative only
    ("kind", "power", "gear", "angle"),
    (Choice(3), Range(-1, 1), Choice(2), Range(0, 5)),
    (None, Condition(0, 0, 1), Condition(0, 1, 2), Condition(0, 1, 3)),
)
SPECS = {
    "discrete": DISCRETE,
    "hybrid": HYBRID,
    "continuous": CONTINUOUS,
    "one_of": ONE_OF,
    "parameters": PARAMETERS,
}


def blueprint(spec, seeds=(0, 1, 2), **settings):
    keys = Keys(seeds)
    settings = {"hidden": (16, 16), "branch_width": 8, "policy_gain": 1.0} | settings
    return Blueprint(layout=Layout(spec), obs_size=OBS, init=Initializer(keys), **settings)


def builds(name, what, spec, **settings):
    """Whether a factorization offers something for a spec; what it refuses is in test_refusals."""
    kind = factorizations.get(name)
    if not is_offered(kind, what):
        return False
    if not settings.get("dueling", True) and not kind.has_plain_value:
        return False
    try:
        kind().check(spec)
        make(name, what, spec, seeds=(0,), **settings)
    except ConfigError:
        return False
    return True


def offers(what, specs=("discrete",), **settings):
    """All (factorization name, spec name) pairs where the factorization offers something."""
    return [
        (name, spec)
        for name in factorizations.names()
        for spec in specs
        if builds(name, what, SPECS[spec], **settings)
    ]


def make(name, what, spec, seeds=(0, 1, 2), **settings):
    return getattr(factorizations.get(name)(), what)(blueprint(spec, seeds, **settings))


def all_actions(spec):
    """Every joint action of a spec of Choices, (J, H)."""
    return torch.tensor(
        list(itertools.product(*(range(n) for n in spec.cardinalities))), dtype=torch.float32
    )


def observations(members=3, rows=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(members, rows, OBS, generator=generator)


def for_all_rows(x, members=3, rows=5):
    """One action for every member and row: (J, H) to J tensors (P, B, H)."""
    return [action.expand(members, rows, -1) for action in x]
