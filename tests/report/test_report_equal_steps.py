"""Longer runs are cut to the steps of the others, by their learning curves."""

import json
from dataclasses import replace

import numpy as np
import pytest
import synthetic

from headwise.report.equal_steps import at_equal_steps, left_out
from headwise.report.runs import read_store
from headwise.report.sweep import asked_of
from headwise.report.sweeps import sweeps_of
from headwise.study.measures import NUM_POINTS


def sweep_of(tmp_path, curves=True):
    """Discrete runs of 1000 steps that end at 5, hybrid ones of 2000 whose returns are steps."""
    runs = []
    for view, steps in (("discrete", 1000), ("hybrid", 2000)):
        for seed in (0, 1):
            c = synthetic.config("Platform", "ppo", "vdn", seed, steps, view)
            step = np.arange(10, steps + 1, 10)
            returns = np.full(step.size, 5.0) if view == "discrete" else step + 100.0 * seed
            runs.append((c, (step, returns), {}, synthetic.summary(step, returns, steps)))
    store = read_store(synthetic.write_store(tmp_path / "s", "s", runs))
    line = (np.arange(1, NUM_POINTS + 1) * 40.0)[:, None] + np.array([0.0, 100.0])
    found = []
    for run in store.runs:
        values = line[:, run.seed] if run.view == "hybrid" else np.full(NUM_POINTS, 5.0)
        curve = json.dumps({"returns": values.tolist()}).encode()
        kept = {"curve.json": curve} if curves or run.view == "discrete" else {}
        kept = kept or {"curve.json": json.dumps({"returns": [None] * NUM_POINTS}).encode()}
        found.append(replace(run, archived=kept))
    (sweep,) = sweeps_of("s", found)
    return sweep


def test_a_longer_run_has_the_score_that_it_had_at_the_steps_of_the_others(tmp_path):
    sweep = sweep_of(tmp_path)
    discrete, hybrid = at_equal_steps(sweep).cells
    assert (discrete.until, hybrid.until) == (None, 1000)
    assert discrete.scores.tolist() == [5.0, 5.0]
    assert hybrid.scores.tolist() == pytest.approx([1000.0, 1100.0])
    assert hybrid.seeds.tolist() == [0, 1]
    assert (discrete.steps, hybrid.steps) == (1000, 1000)
    gap = {"algorithm": "ppo"}
    sides = ({**gap, "view": "hybrid"}, {**gap, "view": "discrete"})
    assert sweep.gap(*sides, by=("task",)).unequal
    assert not at_equal_steps(sweep).gap(*sides, by=("task",)).unequal
    assert at_equal_steps(sweep).limits == sweep.limits


def test_without_a_curve_there_is_nothing_to_cut_and_nothing_is_asked(tmp_path):
    sweep = sweep_of(tmp_path, curves=False)
    sweep = replace(sweep, asked=tuple(map(asked_of, sweep.cells)))
    equal = at_equal_steps(sweep)
    assert [cell.view for cell in equal.cells] == ["discrete"]
    assert [one.view for one in equal.asked] == ["discrete"]
    assert left_out(sweep) == 1
