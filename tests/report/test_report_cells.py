"""Cells, learning curves, and sweeps, with numbers by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import synthetic

from headwise.report.cells import band, cells_of, lost_of
from headwise.report.figures.curves import curve_figures, cut
from headwise.report.figures.scores import score_figures
from headwise.report.page import made_on
from headwise.report.runs import read_store
from headwise.report.sweep import (
    Asked,
    IncompleteError,
    NotMeasuredError,
    SeveralConfigurationsError,
    share_of_budget,
)
from headwise.report.sweeps import sweeps_of
from headwise.report.tables.claims import machines_table
from headwise.report.tables.scores import comparison_tables, score_table
from headwise.studies.paper.published import SWEEP, budget
from headwise.study.measures import NUM_POINTS
from headwise.study.records import Record


def test_a_band_is_around_the_mean_over_tasks():
    rng = np.random.default_rng(0)
    found = band([rng.normal(1, 1, (40, 3)), rng.normal(3, 1, (10, 3)), np.empty((0, 3))])
    assert found.num_runs == 50
    assert np.abs(found.mean - 2.0).max() < 0.6
    assert ((found.low < found.mean) & (found.mean < found.high)).all()
    # half the standard error of either side, added in squares: sqrt(1/40 + 1/10) / 2
    width = (found.high - found.low) / (2 * 1.96)
    np.testing.assert_allclose(width, np.sqrt(1 / 40 + 1 / 10) / 2, rtol=0.4)
    assert (band([np.ones((2, 3))]).high == 1).all()


def test_the_band_of_one_task_is_students_and_of_one_seed_there_is_none():
    # mean 2, sd 1, three seeds: 2 +- 4.303 / sqrt(3); the bootstrap would have said 1 to 3
    found = band([np.array([[1.0], [2.0], [3.0]])])
    assert (found.low[0], found.high[0]) == pytest.approx((2 - 2.484, 2 + 2.484), abs=1e-3)
    alone = band([np.ones((1, 3))])
    assert np.isnan(alone.low).all()
    assert np.isnan(alone.high).all()


def test_a_curve_is_cut_to_a_shorter_budget():
    curve = np.arange(1.0, NUM_POINTS + 1)[None]  # as if return were the share of the steps
    np.testing.assert_allclose(cut(curve, 200, 100)[0][-1], NUM_POINTS / 2)
    assert cut(curve, 100, 100) is curve


def test_runs_that_differ_in_a_setting_are_never_pooled(tmp_path):
    runs = [
        synthetic.decoupler_run("ppo", "vdn", "range", seed, 80, settings={"gae_lambda": value})
        for seed in range(3)
        for value in (0.5, 0.95)
    ]
    store = read_store(synthetic.write_store(tmp_path / "s", "s", runs))
    cells = cells_of(store)
    assert [cell.scores.size for cell in cells] == [3, 3]
    assert [cell.apart for cell in cells] == ["gae_lambda=0.5", "gae_lambda=0.95"]
    assert len({cell.name for cell in cells}) == 2


def test_a_setting_that_was_added_is_named_where_it_is_not_as_before(tmp_path):
    runs = [
        synthetic.decoupler_run("dqn", "vdn", "uniform", seed, 80, settings=settings)
        for seed in range(3)
        for settings in ({}, {"dueling": False})
    ]
    store = read_store(synthetic.write_store(tmp_path / "s", "s", runs))
    assert [cell.apart for cell in cells_of(store)] == ["", "dueling=False"]


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        ({}, {"normalize_obs": True}, ["", "normalize_obs=True"]),
        ({}, {"normalize_reward": True}, ["", "normalize_reward=True"]),
        ({}, {"of_a_later_version": None}, ["", "of_a_later_version=None"]),
        ({"view": None}, {"view": "hybrid"}, ["view=None", "view=hybrid"]),
        # the algorithm has bins of its own, which are alike
        ({}, {"env_settings": {"bins": 5}}, ["", "env_settings.bins=5"]),
        (
            {"env_settings": {"bins": 5}},
            {"env_settings": {"bins": 7}},
            ["env_settings.bins=5", "env_settings.bins=7"],
        ),
        (
            {"factorization_settings": {"total_timesteps": 2}},
            {"factorization_settings": {"total_timesteps": 3}},
            [
                "factorization_settings.total_timesteps=2",
                "factorization_settings.total_timesteps=3",
            ],
        ),
        ({"env_settings": {"x": 1}}, {"env_settings": {"x": "1"}}, ['x="1"', "x=1"]),
        ({"env_settings": {"x": "1"}}, {"env_settings": {"x": "2"}}, ["x=1", "x=2"]),
    ],
)
def test_whatever_tells_runs_apart_tells_their_cells_apart(first, second, apart):
    def run(seed, score, more):
        config = synthetic.config("Lander", "ppo", "vdn", seed, 9, "hybrid", settings={"bins": 11})
        return Record(f"{score}-{seed}", Path(), "s", {**config, **more},
                         {"final_return": score})  # fmt: skip

    runs = [run(s, score, more) for s in range(3) for score, more in ((1.0, first), (9.0, second))]
    cells = cells_of(runs)
    assert [cell.apart for cell in cells] == apart
    assert len({cell.name for cell in cells}) == 2
    assert sorted(cell.scores.tolist() for cell in cells) == [[1.0] * 3, [9.0] * 3]


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        ({"device": "cpu"}, {"device": "cuda:0"}, ["made=cpu", "made=cuda"]),
        ({"device": "cuda:0"}, {"device": "cuda:1"}, None),
        (
            {"device": "cuda", "float32_products": "highest"},
            {"device": "cuda", "float32_products": "high"},
            ["made=cuda float32", "made=cuda tf32"],
        ),
        (
            {"device": "cpu"},  # of older runs it is not known, and not taken to be anything
            {"device": "cpu", "float32_products": "medium"},
            ["made=cpu", "made=cpu bf16"],
        ),
        ({"device": "cpu"}, {"device": "cpu", "engine": 1}, None),  # runs of before did not say it
        (
            {"device": "cpu"},
            {"device": "cpu", "engine": 2},
            ["made=cpu", "made=cpu engine 2"],
        ),
        ({"engine": 2}, {"engine": 3}, ["made=engine 2", "made=engine 3"]),
        ({"engine": "the old one"}, {}, None),  # a file that says what no engine is
    ],
)
def test_runs_of_other_devices_products_or_engines_are_never_pooled(first, second, apart):
    def run(seed, score, made):
        config = synthetic.config("Lander", "ppo", "vdn", seed, 9, "hybrid")
        return Record(f"{score}-{seed}", Path(), "s", config, {"final_return": score}, made)

    runs = [run(s, score, made) for s, score, made in ((0, 1.0, first), (1, 9.0, second))]
    cells = cells_of(runs)
    assert [cell.apart for cell in cells] == (apart or [""])
    assert [cell.scores.tolist() for cell in cells] == ([[1.0], [9.0]] if apart else [[1.0, 9.0]])
    made = {"device": "cpu", "engine": cells[0].runs[0].engine}
    lent = Record("t", Path(), "costs", runs[0].config, {"update_ms": 2.0}, made)
    for cell in cells_of(runs, [lent]):  # of whatever device, but of the same engine
        same = cell.runs[0].engine == lent.engine
        np.testing.assert_equal(cell.number("update_ms"), 2.0 if same else np.nan)


def test_what_is_compared_across_devices_says_so(tmp_path):
    made = {"shared": {"device": "cuda", "float32_products": "high"}, "vdn": {"device": "cpu"},
            "ar": {"device": "cuda"}}  # fmt: skip
    by_other_engine = made["ar"] | {"engine": 2}
    runs = [
        platform_run(f, seed, score + 0.01 * seed)
        for f, score in (("shared", 0.9), ("vdn", 0.2), ("ar", 0.5))
        for seed in range(3)
    ]
    store = read_store(synthetic.write_store(tmp_path / "store", "s", runs))
    changed = [replace(run, fingerprint=made[run.factorization]) for run in store]
    (sweep,) = sweeps_of("s", changed)
    (table,) = comparison_tables(sweep)
    said = {row[:2]: ", on unlike devices." in row[-1] for row in table.rows}
    assert said == {
        ("PPO shared", "VDN-PPO"): True,
        ("PPO shared", "PPO AR"): False,  # of unknown products, which may be the same
        ("VDN-PPO", "PPO AR"): True,
    }
    vdn, shared, ar = ({"factorization": f} for f in ("vdn", "shared", "ar"))
    assert sweep.total(sweep.gap(shared, vdn)).unlike
    assert not sweep.total(sweep.gap(shared, ar)).unlike
    assert sweep.lead(shared, [ar, vdn]).unlike
    whole = replace(store, runs=tuple(changed))
    assert "(3 on cpu, 3 on cuda, 3 on cuda tf32)" in made_on(whole)
    assert made_on(store) == ""
    machines = machines_table([whole])
    place = machines.columns.index("matmul precision")
    assert [row[place] for row in machines.rows] == ["", "", "tf32"]
    made["ar"] = by_other_engine
    changed = [replace(run, fingerprint=made[run.factorization]) for run in store]
    (sweep,) = sweeps_of("s", changed)
    assert sweep.total(sweep.gap(shared, ar)).unlike
    whole = replace(store, runs=tuple(changed))
    assert "(3 on cpu, 3 on cuda engine 2, 3 on cuda tf32)" in made_on(whole)
    machines = machines_table([whole])
    place = machines.columns.index("engine")
    assert [row[place] for row in machines.rows] == ["1", "2", "1"]


def test_times_are_lent_to_cells(tmp_path):
    def store(name, steps, **result):
        runs = [
            (synthetic.config("Platform", "ppo", f, 0, steps), ([steps], [1.0]), {}, result)
            for f in ("vdn", "ar")
        ]
        return read_store(synthetic.write_store(tmp_path / name, name, runs))

    gpu = store("gpu", 500_000, final_return=1.0, num_parameters=7, update_ms=None)
    cpu = store("cpu", 500_000, final_return=1.0, num_parameters=7, update_ms=1.0)
    costs = store("costs", 9000, final_return=0.0, num_parameters=8, update_ms=3.0, wall_s=5.0)
    for paper in (gpu, cpu):  # whether or not they have their own: all are of one machine then
        for cell in cells_of(paper, costs.runs):
            assert (cell.number("update_ms"), cell.number("num_parameters")) == (3.0, 7)
            assert np.isnan(cell.number("wall_s"))  # that of a longer run is another
            assert cell.scores.tolist() == [1.0]
    assert [cell.number("update_ms") for cell in cells_of(cpu)] == [1.0, 1.0]
    other = store("other", 9000, final_return=0.0, update_ms=5.0).runs[:1]
    other[0].config["settings"] = {"net_arch": [8]}
    assert np.isnan([cell.number("update_ms") for cell in cells_of(gpu, other)]).all()


@pytest.fixture
def sweep(tmp_path):
    """Two seeds each; scores are set by hand: vdn 8, shared 4, on a scale from 0 to 10."""

    def run(factorization, view, seed, score):
        c = synthetic.config("Platform", "ppo", factorization, seed, 500_000, view)
        returns = np.array([0.0, 10.0, score])  # the extremes make the scale
        result = {"final_return": score, "update_ms": 2.0 if factorization == "vdn" else 1.0}
        return c, (np.array([1, 250_000, 500_000]), returns), {}, result

    runs = [
        run(f, view, seed, score + 2 * (view == "hybrid"))
        for f, score in (("vdn", 8.0), ("shared", 4.0))
        for view in ("discrete", "hybrid")
        for seed in range(2)
    ]
    runs.append(run("ar", "discrete", 0, 5.0))
    store = read_store(synthetic.write_store(tmp_path / "s", "s", runs))
    (found,) = sweeps_of("s", store)
    return found


def test_means_gaps_and_leads_by_hand(sweep):
    vdn, shared, ar = ({"factorization": f} for f in ("vdn", "shared", "ar"))
    assert sweep.limits == {"Platform": (0.0, 10.0)}
    assert sweep.total(sweep.mean(factorization="vdn")).found.value == pytest.approx(0.9)
    gap = sweep.total(sweep.gap(vdn, shared))
    assert gap.found == pytest.approx((0.4, 0.4, 0.4))  # no spread between seeds
    assert not gap.unequal
    # ar exists for discrete actions only, where vdn has 0.8 and ar 0.5; its one seed has no spread
    alone = sweep.total(sweep.gap(vdn, ar)).found
    assert alone.value == pytest.approx(0.3)
    assert (alone.low, alone.high) == (-np.inf, np.inf)
    assert sweep.lead(vdn, [shared, ar]).found.value == pytest.approx(0.3)
    assert sweep.spread([vdn, shared]).found.value == pytest.approx(0.4)
    # twice as good on hybrid as on discrete actions is a difference of differences: 0.4 - 0.4
    views = [{"view": v} for v in ("discrete", "hybrid")]
    twice = sweep.gap(vdn | views[0], shared | views[0]) - sweep.gap(
        vdn | views[1], shared | views[1]
    )
    assert sweep.total(twice).found.value == pytest.approx(0.0)
    assert sweep.best_return(view="hybrid").found.value == pytest.approx(10.0)
    ratios = sweep.ratio("update_ms", vdn, shared)
    assert ratios.values.tolist() == [2.0, 2.0]
    assert len(ratios.cells) == 4


def test_a_number_rests_on_the_cells_that_enter_it_and_no_others(sweep):
    vdn, shared, ar = ({"factorization": f} for f in ("vdn", "shared", "ar"))
    hybrid = {"view": "hybrid"}
    four = sweep.total(sweep.gap(vdn, shared)).cells
    assert four == {f"Platform/{v}/ppo/{f}" for v in ("discrete", "hybrid")
                    for f in ("vdn", "shared")}  # fmt: skip
    assert sweep.support(four) == (2, 1.0)  # that auto-regression has one seed is no matter
    assert sweep.lead(vdn | hybrid, [shared]).cells < four
    assert sweep.lead(vdn, [shared, ar]).cells == {*four, "Platform/discrete/ppo/ar"}
    assert sweep.support(sweep.lead(vdn, [shared, ar]).cells) == (1, 1.0)
    assert sweep.best_return(**hybrid).cells == sweep.spread([vdn | hybrid, shared]).cells
    # what is taken away again does not enter
    gone = sweep.mean(factorization=("vdn", "ar")) - sweep.mean(factorization=("vdn", "ar"))
    assert gone.cells == frozenset()


def platform_run(factorization, seed, score, steps=500_000, view="discrete", **settings):
    """A run on Platform with three episodes; the last is its score."""
    c = synthetic.config("Platform", "ppo", factorization, seed, steps, view, settings=settings)
    at = np.array([1, steps // 2, steps])
    return c, (at, np.array([0.0, 1.0, score])), {}, {"final_return": score, "update_ms": 1.0}


def sweep_of(tmp_path, runs):
    store = read_store(synthetic.write_store(tmp_path / "store", "s", runs))
    (found,) = sweeps_of("s", store)
    return found


def test_configurations_of_one_name_are_never_merged(tmp_path):
    sweep = sweep_of(tmp_path, [
        platform_run("vdn", seed, score, learning_rate=learning_rate)
        for seed in range(3) for learning_rate, score in ((0.1, 0.2), (0.01, 0.8))
    ] + [platform_run("shared", seed, 0.5, learning_rate=0.01) for seed in range(3)])  # fmt: skip
    figures = {figure.name: figure for figure in score_figures(sweep)}
    (heat,) = figures["score-heatmap-s"].panels
    assert heat.columns == (
        "PPO shared",
        "VDN-PPO (learning_rate=0.01)",
        "VDN-PPO (learning_rate=0.1)",
    )
    assert heat.values.round(2).tolist() == [[0.41, 0.77, 0.06]]
    (dots,) = figures["score-intervals-s"].panels
    assert [dot.label for dot in dots.dots] == [
        "Shared",
        "VDN (learning_rate=0.01)",
        "VDN (learning_rate=0.1)",
    ]
    (pairs,) = comparison_tables(sweep)
    assert [row[:2] for row in pairs.rows] == [
        ("PPO shared", "VDN-PPO (learning_rate=0.01)"),
        ("PPO shared", "VDN-PPO (learning_rate=0.1)"),
        ("VDN-PPO (learning_rate=0.01)", "VDN-PPO (learning_rate=0.1)"),
    ]
    (curves,) = list(curve_figures(sweep))
    lines = curves.panels[0].series
    assert [(line.label, line.dash) for line in lines] == [
        ("Shared", "solid"), ("VDN (learning_rate=0.01)", "solid"),
        ("VDN (learning_rate=0.1)", "dash"),
    ]  # fmt: skip
    with pytest.raises(NotMeasuredError, match="several configurations of Platform/discrete/ppo"):
        sweep.mean(factorization="vdn")


def test_several_configurations_are_refused_where_they_would_enter(tmp_path):
    sweep = sweep_of(tmp_path, [
        platform_run(f, 0, 0.5, view=view, learning_rate=learning_rate)
        for f, view, learning_rate in (("vdn", "discrete", 0.1), ("vdn", "hybrid", 0.1),
                            ("vdn", "hybrid", 0.2), ("shared", "discrete", 0.1))
    ])  # fmt: skip
    vdn, shared = {"factorization": "vdn"}, {"factorization": "shared"}
    assert sweep.total(sweep.gap(vdn, shared)).found.value == 0.0  # there is no hybrid shared
    assert sweep.ratio("update_ms", vdn, shared).values.tolist() == [1.0]
    assert sweep.best_return(view="discrete").found.value == 0.5
    for doubled in (
        lambda: sweep.mean(**vdn),
        lambda: sweep.gap(vdn, {"view": "hybrid"}),
        lambda: sweep.best_return(view="hybrid"),
        lambda: sweep.ratio("update_ms", vdn, {"view": "hybrid"}),
    ):
        with pytest.raises(SeveralConfigurationsError, match="of Platform/hybrid/ppo/vdn"):
            doubled()


def test_runs_of_unequal_steps_are_said_to_be(tmp_path):
    sweep = sweep_of(tmp_path, [
        platform_run(f, seed, score + 0.01 * seed, steps)
        for seed in range(3) for f, score, steps in (("shared", 0.9, 40_000), ("vdn", 0.2, 4_000))
    ])  # fmt: skip
    (curves,) = curve_figures(sweep)
    shared, vdn = curves.panels[0].series
    x = curves.panels[0].x
    assert x[-1] == 40_000
    assert np.isfinite(shared.y[x >= 800]).all()
    assert np.isfinite(vdn.y[(x >= 80) & (x <= 4_000)]).all()  # it ends where its runs end
    assert np.isnan(vdn.y[x > 4_000]).all()
    note = "Not at equal steps: 1 of 1 comparisons"
    figures = [*score_figures(sweep), curves]
    assert len(figures) == 5
    assert all(note in figure.caption for figure in figures)
    assert "(Platform, discrete, ppo: 4,000 to 40,000)" in curves.caption
    (table,) = comparison_tables(sweep)
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["steps"] == "40,000 and 4,000"
    assert row["conclusion"] == "PPO shared is better than VDN-PPO, at unequal steps."
    gap = sweep.gap({"factorization": "shared"}, {"factorization": "vdn"})
    assert sweep.total(gap).unequal


@pytest.mark.parametrize(
    ("seeds", "word", "to_settle"),
    [(2, "Too few seeds.", 3), (3, "PPO shared is better than VDN-PPO.", None)],
)
def test_two_seeds_decide_nothing(seeds, word, to_settle, tmp_path):
    sweep = sweep_of(tmp_path, [
        platform_run(f, seed, score + 0.01 * seed)
        for seed in range(seeds) for f, score in (("shared", 0.9), ("vdn", 0.2))
    ])  # fmt: skip
    (table,) = comparison_tables(sweep)
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["p (Holm)"] < 0.05
    assert (row["conclusion"], row["seeds to settle"]) == (word, to_settle)


def test_an_environment_without_reference_scores_says_what_its_scale_is(tmp_path):
    config, *others = platform_run("shared", 0, 0.5)
    own = {**config, "env": "Robot-v0"}
    assert sweep_of(tmp_path / "a", [(config, *others)]).scale.startswith("0 is random play")
    scale = sweep_of(tmp_path / "b", [(own, *others)]).scale
    assert scale.startswith("0 and 1 are the lowest and the highest point of any learning curve")


def test_lines_side_by_side_are_over_the_same_tasks_or_say_so(tmp_path):
    def run(label, factorization, seed):
        c, *rest = platform_run(factorization, seed, 0.5 + 0.01 * seed)
        c = {**c, "labels": {"environment": label}, "num_envs": len(label)}
        return c, *rest

    sweep = sweep_of(tmp_path, [
        run(label, f, seed) for seed in range(3)
        for label, f in (("a", "shared"), ("bb", "shared"), ("bb", "vdn"), ("ccc", "shared"))
    ])  # fmt: skip
    figures = {figure.name: figure for figure in (*score_figures(sweep), *curve_figures(sweep))}
    (panel,) = figures["curves-by-type-and-family-s"].panels
    assert panel.title == "PPO, discrete: 1 of 3 tasks"
    assert [(line.label, line.num_runs) for line in panel.series] == [("Shared", 3), ("VDN", 3)]
    for name in ("score-intervals-s", "performance-profiles-s"):
        (panel,) = figures[name].panels
        lines = panel.dots if name.startswith("score") else panel.series
        assert [line.label for line in lines] == ["Shared", "VDN (1 of 3 tasks)"]
    point = figures["compute-versus-score-s"].panels[2].points[1]
    assert point.label == "VDN-PPO (1 of 3 tasks)"


def test_one_seed_has_no_interval_anywhere(tmp_path):
    sweep = sweep_of(tmp_path, [platform_run(f, 0, 0.5) for f in ("shared", "vdn")])
    for figure in (*score_figures(sweep), *curve_figures(sweep)):
        for panel in figure.panels:
            for item in (*getattr(panel, "dots", ()), *getattr(panel, "points", ())):
                assert np.isnan(item.low)
            assert all(line.low is None for line in getattr(panel, "series", ()))
    assert list(comparison_tables(sweep)) == []


def test_a_run_whose_episodes_were_deleted_keeps_its_score(sweep):
    for place, cell in enumerate(sweep.cells):
        for run in cell.runs[place % 2 :]:  # of some cells all runs, of others all but the first
            (run.folder / "episodes.parquet").unlink()
    assert sweep.total(sweep.mean(factorization="vdn")).found.value == pytest.approx(0.9)
    assert sweep.limits == {"Platform": (0.0, 10.0)}
    for cell in sweep.cells:
        for run in cell.runs:
            (run.folder / "episodes.parquet").unlink(missing_ok=True)
    (without,) = sweeps_of("s", [run for cell in sweep.cells for run in cell.runs])
    assert without.limits == {"Platform": (4.0, 10.0)}  # what is left are the final returns


def test_what_is_not_there_is_said(sweep):
    with pytest.raises(NotMeasuredError, match="no run with qplex"):
        sweep.mean(factorization="qplex")
    with pytest.raises(NotMeasuredError, match="no run has wall_s"):
        sweep.ratio("wall_s", {"factorization": "vdn"}, {"factorization": "shared"})
    with pytest.raises(NotMeasuredError, match="both sides"):
        sweep.gap({"factorization": "ar"}, {"factorization": "vdn", "view": "hybrid"})


def test_the_papers_sweep_has_220_cells():
    assert len(SWEEP) == len(set(SWEEP)) == 220
    of_each = {(c.view, c.algorithm, c.factorization) for c in SWEEP}
    assert of_each == set(synthetic.cells())


def test_budgets_of_the_paper(sweep):
    assert budget("CoopPush", "hybrid", "ppo") == 3_000_000
    assert budget("Platform", "discrete", "sac") == 200_000
    assert budget("MyRobot", "discrete", "sac") is None
    assert share_of_budget(sweep.cells[0].runs[0]) == 1.0


def test_scales_by_reference_where_all_tasks_have_one(sweep):
    assert sweep.scaled(sweep.cells[0], np.array([0.14723]))[0] == pytest.approx(0.0)
    assert sweep.scale == "0 is random play, 1 the best policy known"


def test_a_task_without_reference_scores_does_not_move_the_others(tmp_path):
    config, *others = platform_run("shared", 0, 0.14723)
    own = {**config, "env": "Robot-v0", "labels": {"environment": "robot"}}
    sweep = sweep_of(tmp_path, [(config, *others), (own, *others)])
    platform, robot = sweep.cells
    assert sweep.scaled(platform, platform.scores)[0] == pytest.approx(0.0)
    assert sweep.scaled(robot, robot.scores)[0] == pytest.approx(0.14723)  # from 0 to 1
    assert sweep.scale.startswith("0 is random play, 1 the best policy known; on robot, where")


def test_runs_without_a_score_do_not_vanish(tmp_path):
    config, *others = platform_run("vdn", 3, 0.2)
    silent = (config, *others[:-1], {"final_return": None, "update_ms": 1.0})
    failed, *_ = platform_run("vdn", 4, 0.2)
    runs = [
        platform_run(f, seed, score + 0.01 * seed)
        for f, score, seeds in (("shared", 0.9, 5), ("vdn", 0.2, 3))
        for seed in range(seeds)
    ]
    folder = synthetic.write_store(tmp_path / "store", "s", [*runs, silent], failed=[failed])
    store = read_store(folder)
    (sweep,) = sweeps_of("s", store, failed=store.failed)
    said = "of 5 runs of Platform/discrete/ppo/vdn 1 failed and 1 ended no episode"
    assert [cell.incomplete for cell in sweep.cells] == ["", said]
    (table,) = comparison_tables(sweep)
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["conclusion"], row["seeds to settle"]) == (f"Incomplete: {said}.", None)
    scores = score_table("s", cells_of(store, failed=store.failed))
    rows = [dict(zip(scores.columns, row, strict=True)) for row in scores.rows]
    assert [(row["seeds"], row["no score"]) for row in rows] == [(5, 0), (3, 2)]
    vdn, shared = {"factorization": "vdn"}, {"factorization": "shared"}
    assert sweep.mean(**shared).cells == {"Platform/discrete/ppo/shared"}
    for judged in (
        lambda: sweep.mean(**vdn),
        lambda: sweep.gap(shared, vdn),
        lambda: sweep.best_return(**vdn),
        lambda: sweep.ratio("update_ms", shared, vdn),
    ):
        with pytest.raises(IncompleteError, match=said):
            judged()


def test_a_method_of_which_all_runs_failed_on_a_task_is_not_compared_without_it(tmp_path):
    """Nothing finished there, so that no cell of it tells."""
    runs = [
        platform_run(f, seed, score + 0.01 * seed, view=view)
        for f, score in (("shared", 0.9), ("vdn", 0.2), ("ar", 0.5))
        for seed in range(5)
        for view in ("discrete", "hybrid")
        if (f, view) != ("vdn", "hybrid")
    ]
    failed = [platform_run("vdn", seed, 0.0, view="hybrid")[0] for seed in range(5)]
    store = read_store(synthetic.write_store(tmp_path / "s", "s", runs, failed=failed))
    (sweep,) = sweeps_of("s", store, failed=store.failed)
    (table,) = comparison_tables(sweep)
    said = {row[:2]: row[-1] for row in table.rows}
    why = "all 5 runs of Platform/hybrid/ppo/vdn failed"
    assert said["PPO shared", "VDN-PPO"] == said["VDN-PPO", "PPO AR"] == f"Incomplete: {why}."
    assert said["PPO shared", "PPO AR"] == "PPO shared is better than PPO AR."
    scores = score_table(
        "s", cells_of(store, failed=store.failed), lost_of(store.runs, store.failed)
    )
    rows = [dict(zip(scores.columns, row, strict=True)) for row in scores.rows]
    (row,) = (row for row in rows if not row["seeds"])
    assert (row["view"], row["method"], row["no score"]) == ("hybrid", "VDN-PPO", 5)
    captions = [figure.caption for figure in score_figures(sweep)]
    assert captions
    assert all(f"Not in it: {why}." in caption for caption in captions)


def test_figures_say_of_which_cells_some_runs_have_no_score(tmp_path):
    runs = [platform_run(f, seed, 0.5) for f in ("vdn", "shared") for seed in range(3)]
    failed = [platform_run("vdn", 3, 0.5)[0]]
    store = read_store(synthetic.write_store(tmp_path / "s", "s", runs, failed=failed))
    (sweep,) = sweeps_of("s", store, failed=store.failed)
    assert sweep.lost == ()
    heat, *others = score_figures(sweep)
    texts = [text for row in heat.panels[0].texts for text in row]
    assert sum("without a score: 1" in text for text in texts) == 1
    assert all("Of 1 of 2 cells some runs have no score" in f.caption for f in (heat, *others))
    (whole,) = sweeps_of("s", store)
    assert not any("no score" in figure.caption for figure in score_figures(whole))


def test_a_method_of_which_no_episode_ended_on_a_task_is_not_averaged_without_it(tmp_path):
    runs = [
        platform_run("vdn", seed, 0.5, view=view)
        for seed in range(3)
        for view in ("discrete", "hybrid")
    ]
    runs = [(c, e, m, {} if c["view"] == "hybrid" else r) for c, e, m, r in runs]
    sweep = sweep_of(tmp_path, runs)
    with pytest.raises(IncompleteError, match="hybrid/ppo/vdn 3 ended no episode"):
        sweep.mean(factorization="vdn")


def test_what_is_asked_for_and_not_there_is_not_averaged_without(tmp_path):
    runs = [
        platform_run(f, seed, 0.5, view=view)
        for seed in range(3)
        for f in ("vdn", "shared")
        for view in ("discrete", "hybrid")
        if (f, view) != ("shared", "hybrid")
    ]
    whole = [
        Asked("Platform", "dependent", view, "ppo", f)
        for view in ("discrete", "hybrid")
        for f in ("vdn", "shared")
    ]
    sweep = replace(sweep_of(tmp_path, runs), asked=tuple(whole))
    vdn, shared = {"factorization": "vdn"}, {"factorization": "shared"}
    assert len(sweep.mean(**vdn).cells) == 2
    assert len(sweep.gap(vdn | {"view": "discrete"}, shared).cells) == 2
    missing = "1 of 4 cells have no run, such as ppo shared of Platform, hybrid"
    for asked in (lambda: sweep.gap(vdn, shared), lambda: sweep.ratio("update_ms", vdn, shared)):
        with pytest.raises(IncompleteError, match=missing):
            asked()
    with pytest.raises(IncompleteError, match="1 of 2 cells"):
        sweep.mean(**shared)


def test_cells_without_a_curve_are_not_drawn(sweep):
    for cell in sweep.where(view="hybrid"):
        for run in cell.runs:
            (run.folder / "episodes.parquet").unlink()
    (figure,) = curve_figures(sweep)  # of one task and one view it says it all
    assert figure.title == "Platform, discrete actions (s)"
    assert "no curve" not in figure.caption
    (run,) = sweep.where(factorization="ar")[0].runs
    (run.folder / "episodes.parquet").unlink()
    vars(sweep.where(factorization="ar")[0]).pop("curves")  # as read before
    (figure,) = curve_figures(sweep)
    assert "1 of 3 cells have no curve." in figure.caption
    for cell in sweep.where(view="discrete"):
        vars(cell).pop("curves")
        for run in cell.runs:
            (run.folder / "episodes.parquet").unlink(missing_ok=True)
    assert list(curve_figures(sweep)) == []
