"""Statistics that decide: aggregates with intervals, profiles, tests, and how many seeds to run.

Scores are arrays of runs, one for each task; chance comes in as a `numpy.random.Generator`.
"""

from headwise.report.statistics.aggregates import (
    STATISTICS,
    iqm,
    mean,
    median,
    optimality_gap,
    strata_of,
)
from headwise.report.statistics.bootstrap import Estimate, estimate
from headwise.report.statistics.comparison import Comparison, cohens_d, holm, paired, welch
from headwise.report.statistics.contrasts import (
    Contrast,
    contrast,
    largest,
    least,
    quotient,
    widest,
)
from headwise.report.statistics.effects import effect_size, spread_ratio
from headwise.report.statistics.improvement import probability_of_improvement
from headwise.report.statistics.power import (
    pairs_needed,
    power_of_paired,
    power_of_welch,
    seeds_needed,
)
from headwise.report.statistics.profiles import Profile, performance_profile
from headwise.report.statistics.scaling import by_reference, min_max

__all__ = [
    "STATISTICS",
    "Comparison",
    "Contrast",
    "Estimate",
    "Profile",
    "by_reference",
    "cohens_d",
    "contrast",
    "effect_size",
    "estimate",
    "holm",
    "iqm",
    "largest",
    "least",
    "mean",
    "median",
    "min_max",
    "optimality_gap",
    "paired",
    "pairs_needed",
    "performance_profile",
    "power_of_paired",
    "power_of_welch",
    "probability_of_improvement",
    "quotient",
    "seeds_needed",
    "spread_ratio",
    "strata_of",
    "welch",
    "widest",
]
