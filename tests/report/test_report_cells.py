"""Cells, learning curves, and sweeps, with numbers by hand."""

import numpy as np
import pytest
import synthetic

from headwise.report.cells import band, cells_of
from headwise.report.figures.curves import _cut, curve_figures
from headwise.report.published import budget
from headwise.report.store import read_store
from headwise.report.sweep import NotMeasuredError, share_of_budget, sweeps_of
from headwise.study.measures import NUM_POINTS


def test_a_band_is_around_the_mean_over_tasks():
    rng = np.random.default_rng(0)
    found = band([rng.normal(1, 1, (40, 3)), rng.normal(3, 1, (10, 3)), np.empty((0, 3))], "x")
    assert found.num_runs == 50
    assert np.abs(found.mean - 2.0).max() < 0.6
    assert ((found.low < found.mean) & (found.mean < found.high)).all()
    # half the standard error of either side, added in squares: sqrt(1/40 + 1/10) / 2
    width = (found.high - found.low) / (2 * 1.96)
    np.testing.assert_allclose(width, np.sqrt(1 / 40 + 1 / 10) / 2, rtol=0.4)
    assert (band([np.ones((2, 3))], "x").high == 1).all()


def test_a_curve_is_cut_to_a_shorter_budget():
    curve = np.arange(1.0, NUM_POINTS + 1)[None]  # as if return were the share of the steps
    np.testing.assert_allclose(_cut(curve, 200, 100)[0][-1], NUM_POINTS / 2)
    assert _cut(curve, 100, 100) is curve


def test_runs_that_differ_in_a_setting_are_never_pooled(tmp_path):
    runs = [
        synthetic.decoupler_run("ppo", "vdn", "range", seed, 80, settings={"gae_lambda": value})
        for seed in range(3)
        for value in (0.5, 0.95)
    ]
    store = read_store(synthetic.write_store(tmp_path / "s", "s", runs))
    cells = cells_of(store)
    assert [cell.scores.size for cell in cells] == [3, 3]
    assert [cell.variant for cell in cells] == ["gae_lambda=0.5", "gae_lambda=0.95"]


def test_a_setting_that_was_added_is_named_where_it_is_not_as_before(tmp_path):
    runs = [
        synthetic.decoupler_run("dqn", "vdn", "uniform", seed, 80, settings=settings)
        for seed in range(3)
        for settings in ({}, {"dueling": False})
    ]
    store = read_store(synthetic.write_store(tmp_path / "s", "s", runs))
    assert [cell.variant for cell in cells_of(store)] == ["", "dueling=False"]


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
    other[0].config["settings"] = {"hidden": [8]}
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
    assert sweep.limits == {"Platform": (0.0, 10.0)}
    assert sweep.mean(factorization="vdn")[0] == pytest.approx(0.9)
    gap = sweep.gap({"factorization": "vdn"}, {"factorization": "shared"})
    np.testing.assert_allclose(gap, 0.4)  # no spread between seeds: every sample is the same
    # ar exists for discrete actions only, where vdn has 0.8 and ar 0.5
    assert sweep.gap({"factorization": "vdn"}, {"factorization": "ar"})[0] == pytest.approx(0.3)
    lead = sweep.lead({"factorization": "vdn"}, [{"factorization": f} for f in ("shared", "ar")])
    assert lead[0] == pytest.approx(0.3)
    spread = sweep.spread([{"factorization": "vdn"}, {"factorization": "shared"}])
    assert spread[0] == pytest.approx(0.4)
    assert sweep.raw_mean(factorization="shared")[0] == pytest.approx(5.0)
    np.testing.assert_allclose(
        sweep.ratio("update_ms", {"factorization": "vdn"}, {"factorization": "shared"}), [2.0, 2.0]
    )
    assert sweep.support() == (1, 1.0)


def test_a_run_whose_episodes_were_deleted_keeps_its_score(sweep):
    for place, cell in enumerate(sweep.cells):
        for run in cell.runs[place % 2 :]:  # of some cells all runs, of others all but the first
            (run.folder / "episodes.parquet").unlink()
    assert sweep.mean(factorization="vdn")[0] == pytest.approx(0.9)
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


def test_budgets_of_the_paper(sweep):
    assert budget("CoopPush", "hybrid", "ppo") == 3_000_000
    assert budget("Platform", "discrete", "sac") == 200_000
    assert budget("MyRobot", "discrete", "sac") is None
    assert share_of_budget(sweep.cells[0].runs[0]) == 1.0


def test_scales_by_reference_where_all_tasks_have_one(sweep):
    assert sweep.has_references
    assert sweep.scaled(sweep.cells[0], np.array([0.14723]))[0] == pytest.approx(0.0)
    assert "random play" in sweep.scale


def test_cells_without_a_curve_are_not_drawn(sweep):
    for cell in sweep.where(view="hybrid"):
        for run in cell.runs:
            (run.folder / "episodes.parquet").unlink()
    figures = list(curve_figures(sweep))
    assert [len(figure.panels) for figure in figures] == [1, 1, 1, 1]
    assert all("2 of 5 cells have no curve" in figure.caption for figure in figures[:3])
    assert figures[3].title == "Platform, discrete actions"
    assert "no curve" not in figures[3].caption
    for cell in sweep.where(view="discrete"):
        vars(cell).pop("curves")  # as read before
        for run in cell.runs:
            (run.folder / "episodes.parquet").unlink()
    assert list(curve_figures(sweep)) == []
