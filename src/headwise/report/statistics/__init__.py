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
from headwise.report.statistics.comparison import (
    Comparison,
    cohens_d,
    compare,
    holm,
    paired,
    welch,
)
from headwise.report.statistics.contrasts import (
    Contrast,
    contrast,
    largest,
    least,
    quotient,
    widest,
)
from headwise.report.statistics.effects import effect_size, share_estimate, spread_ratio
from headwise.report.statistics.improvement import probability_of_improvement
from headwise.report.statistics.levels import Interval, p_of_alike, p_of_range, within
from headwise.report.statistics.pairing import (
    Group,
    Sample,
    by_seed,
    difference,
    sample,
    share_seeds,
)
from headwise.report.statistics.power import (
    pairs_needed,
    power_of_paired,
    power_of_welch,
    seeds_needed,
    seeds_to_settle,
)
from headwise.report.statistics.profiles import Profile, performance_profile
from headwise.report.statistics.scaling import by_reference, min_max

__all__ = [
    "STATISTICS",
    "Comparison",
    "Contrast",
    "Estimate",
    "Group",
    "Interval",
    "Profile",
    "Sample",
    "by_reference",
    "by_seed",
    "cohens_d",
    "compare",
    "contrast",
    "difference",
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
    "p_of_alike",
    "p_of_range",
    "paired",
    "pairs_needed",
    "performance_profile",
    "power_of_paired",
    "power_of_welch",
    "probability_of_improvement",
    "quotient",
    "sample",
    "seeds_needed",
    "seeds_to_settle",
    "share_estimate",
    "share_seeds",
    "spread_ratio",
    "strata_of",
    "welch",
    "widest",
    "within",
]
