"""Makes rliable_reference.json: what rliable 1.2.0 says of fixed scores.

It is kept as data because rliable does not import with current releases of its own dependencies.
To make it again, in an environment of its own:  pip install rliable==1.2.0 "pandas<3"
and then  python tests/report/make_rliable_reference.py
"""

import json
from pathlib import Path

import numpy as np
from rliable import library, metrics

RUNS, TASKS, SAMPLES = 7, 4, 20_000


def main():
    rng = np.random.default_rng(2021)
    ours = rng.normal(0.6, 0.2, (RUNS, TASKS)).round(3)
    theirs = rng.normal(0.5, 0.25, (RUNS, TASKS)).round(3)
    thresholds = np.linspace(0.0, 1.2, 13)
    aggregates = {
        "iqm": metrics.aggregate_iqm,
        "mean": metrics.aggregate_mean,
        "median": metrics.aggregate_median,
        "optimality_gap": metrics.aggregate_optimality_gap,
    }
    np.random.seed(0)  # noqa: NPY002, rliable draws from the global generator
    answers = {}
    for name, aggregate in aggregates.items():
        points, intervals = library.get_interval_estimates(
            {"ours": ours}, lambda x, f=aggregate: np.array([f(x)]), reps=SAMPLES
        )
        answers[name] = [float(points["ours"][0]), *map(float, intervals["ours"][:, 0])]
    points, intervals = library.get_interval_estimates(
        {"pair": (ours, theirs)}, metrics.probability_of_improvement, reps=SAMPLES
    )
    interval = np.ravel(intervals["pair"])
    answers["improvement"] = [float(points["pair"]), *map(float, interval)]
    shares, bands = library.create_performance_profile({"ours": ours}, thresholds, reps=SAMPLES)
    answers["profile"] = {
        "thresholds": thresholds.tolist(),
        "share": shares["ours"].tolist(),
        "low": bands["ours"][0].tolist(),
        "high": bands["ours"][1].tolist(),
    }
    data = {"ours": ours.T.tolist(), "theirs": theirs.T.tolist(), "rliable": answers}
    path = Path(__file__).with_name("rliable_reference.json")
    path.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
