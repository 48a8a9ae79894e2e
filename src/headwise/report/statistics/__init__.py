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
from headwise.report.statistics.improvement import probability_of_improvement
from headwise.report.statistics.power import power_of_welch, seeds_needed
from headwise.report.statistics.profiles import Profile, performance_profile
from headwise.report.statistics.scaling import by_reference, min_max

__all__ = [
    "STATISTICS",
    "Comparison",
    "Estimate",
    "Profile",
    "by_reference",
    "cohens_d",
    "estimate",
    "holm",
    "iqm",
    "mean",
    "median",
    "min_max",
    "optimality_gap",
    "paired",
    "performance_profile",
    "power_of_welch",
    "probability_of_improvement",
    "seeds_needed",
    "strata_of",
    "welch",
]
