"""Specs and builders that the contract tests share."""

import itertools

import torch

from headwise import ActionSpec, Choice, Range
from headwise.factorizations import Blueprint, factorizations
from headwise.factorizations.layout import Layout
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
SPECS = {"discrete": DISCRETE, "hybrid": HYBRID, "continuous": CONTINUOUS, "one_of": ONE_OF}


def blueprint(spec, seeds=(0, 1, 2), **settings):
    keys = Keys(seeds)
    settings = {"hidden": (16, 16), "branch_width": 8, "policy_gain": 1.0} | settings
    return Blueprint(layout=Layout(spec), obs_size=OBS, init=Initializer(keys), **settings)


def offers(what, specs=("discrete",)):
    """All (factorization name, spec name) pairs where the factorization offers something."""
    pairs = []
    for name, kind in factorizations.items():
        for spec in specs:
            if not hasattr(kind, what) or (name == "joint" and spec in ("hybrid", "continuous")):
                continue
            pairs.append((name, spec))
    return pairs


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
