"""How things are called, ordered and colored, the same in every figure, table and page."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np

ALGORITHMS = {"ppo": "PPO", "sac": "SAC", "dqn": "DQN"}
VIEWS = {"discrete": "Discrete", "hybrid": "Hybrid", "continuous": "Continuous"}
FACTORIZATIONS = {
    "independent": "Independent",
    "shared": "Shared",
    "vdn": "VDN",
    "qplex": "QPLEX",
    "ar": "Auto-regressive",
    "joint": "Joint",
}
PRESETS = {"as_published": "as published", "sound": "sound"}

_METHODS = {
    ("ppo", "vdn"): "VDN-PPO",
    ("ppo", "qplex"): "PPO-MIX",
    ("sac", "shared"): "SAC-Concat",
    ("sac", "vdn"): "SAC-BDQ",
    ("dqn", "vdn"): "BD-DQN",
}
"""Methods that the paper gives a name of their own."""

# Okabe and Ito's colors, told apart by color-blind readers; the darkest and the lightest are
# moved to the middle so that they show on white and on black paper.
COLORS = {
    "independent": "#cc79a7",
    "shared": "#8a8f98",
    "vdn": "#0e8fd6",
    "qplex": "#d55e00",
    "ar": "#009e73",
    "joint": "#c9950c",
    "discrete": "#0e8fd6",
    "hybrid": "#d55e00",
    "continuous": "#009e73",
    "ppo": "#0e8fd6",
    "sac": "#009e73",
    "dqn": "#d55e00",
}
_SPARE = ("#0e8fd6", "#d55e00", "#009e73", "#cc79a7", "#c9950c", "#8a8f98", "#7b61c9", "#5aa02c")
DASHES = ("solid", "dash", "dot", "dashdot")


def color(key: str) -> str:
    """The color of a factorization, view or algorithm; of another word, always the same one."""
    return COLORS.get(key) or _SPARE[zlib.crc32(key.encode()) % len(_SPARE)]


def algorithm_name(name: str) -> str:
    """An algorithm, for people."""
    return ALGORITHMS.get(name, name.upper())


def factorization_name(name: str) -> str:
    """A factorization, for people."""
    return FACTORIZATIONS.get(name, name)


def view_name(name: str) -> str:
    """A view, for people."""
    return VIEWS.get(name, name)


def actions_name(view: str) -> str:
    """Actions in a view, for people."""
    return f"{VIEWS[view].lower()} actions" if view in VIEWS else "actions as they are"


def method_name(algorithm: str, factorization: str, apart: str = "") -> str:
    """An algorithm with a factorization, by the paper's name where it has one.

    Args:
        algorithm: Its name.
        factorization: Its name.
        apart: The settings that tell it from others of the same name.
    """
    plain = f"{algorithm_name(algorithm)} {factorization_name(factorization).lower()}"
    plain = plain.replace("qplex", "QPLEX").replace("vdn", "VDN").replace("auto-regressive", "AR")
    return with_settings(_METHODS.get((algorithm, factorization), plain), apart)


def with_settings(name: str, apart: str) -> str:
    """A name with the settings that tell it from others of the same name."""
    return f"{name} ({apart})" if apart else name


def in_order(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Names in the order of the known ones; others follow by the alphabet."""
    rank = {name: place for place, name in enumerate(known)}
    return sorted(set(names), key=lambda name: (rank.get(name, len(rank)), name))


_LONGEST = 60


def slug(*words: str) -> str:
    """Words as a file name, of a length that every disk takes."""
    text = "-".join(words).lower()[:_LONGEST]
    return "".join(letter if letter.isalnum() else "-" for letter in text).strip("-")


def generator_for(*words: str) -> np.random.Generator:
    """Chance for one named thing: what is drawn for it depends on nothing else in the report."""
    return np.random.default_rng(zlib.crc32("/".join(words).encode()))
