"""Curves for cells that have none stored, in figures: other runs', and means alone."""

import json
from dataclasses import replace
from html import unescape
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import synthetic

from headwise.errors import ConfigError
from headwise.report.cells import Band, band
from headwise.report.figures.curves import curve_figures
from headwise.report.figures.together import BAND, SEM, with_errors
from headwise.report.means import Lender, MeanCurve, as_curves, read_means
from headwise.report.runs import read_store
from headwise.report.sweeps import sweeps_of
from headwise.report.write import write_report
from headwise.study.measures import NUM_POINTS

FILE = Path(__file__).parents[2] / "results" / "paper_mean_curves.csv"
RISE = np.arange(1.0, NUM_POINTS + 1)
BARE = ("platform", "discrete", "ppo", "vdn")


def store(tmp_path, episodes=True, views=("discrete",)):
    """PPO on Platform, `shared` with curves and `vdn` without, unless there are no episodes."""
    runs = []
    for factorization, view in product(("shared", "vdn"), views):
        for seed in (0, 1):
            c = synthetic.config("Platform", "ppo", factorization, seed, 1000)
            c |= {"labels": {"environment": "platform"}, "view": view}
            step, returns = np.arange(20, 1001, 20), np.full(50, 0.5)
            runs.append((c, (step, returns), {}, synthetic.summary(step, returns, 1000)))
    folder = tmp_path / "s"
    synthetic.write_store(folder, "s", runs)
    for c, *_ in runs:
        if c["factorization"] == "vdn" or not episodes:
            (folder / "runs" / synthetic.run_id(c) / "episodes.parquet").unlink()
    return folder


def sweep_of(folder):
    kept = read_store(folder)
    (sweep,) = sweeps_of(kept.name, kept.runs)
    return sweep


def drawn(folder, means=None, runs=()):
    return list(curve_figures(sweep_of(folder), Lender.of(means, runs)))


def a_mean(steps=1000, view="discrete"):
    error = np.full(NUM_POINTS, 1 / 3.182446305284263)  # Student's for three degrees of freedom
    return {(BARE[0], view, *BARE[2:]): MeanCurve(steps, Band(RISE, RISE - 1, RISE + 1, error, 4))}


def of_another_engine(folder, level):
    """The runs of a folder with curves, as if of engine 2."""

    def made(run):
        curve = json.dumps({"returns": [level + run.seed] * NUM_POINTS}).encode()
        fingerprint = {**run.fingerprint, "engine": 2}
        return replace(run, fingerprint=fingerprint, archived={"curve.json": curve})

    return [made(run) for run in read_store(folder).runs]


def test_a_mean_stands_in_for_curves_that_are_not_stored(tmp_path):
    folder = store(tmp_path)
    (figure,) = drawn(folder, a_mean())
    shared, vdn = figure.panels[0].series
    assert (shared.label, shared.dash, shared.num_runs) == ("Shared", "solid", 2)
    assert (vdn.key, vdn.label, vdn.dash, vdn.num_runs) == ("vdn", "VDN (mean of 4)", "dot", 4)
    assert vdn.y == pytest.approx(RISE)
    assert vdn.low == pytest.approx(RISE - 1)
    assert vdn.high == pytest.approx(RISE + 1)
    assert "Of 1 of 2 cells the runs' own curves are not stored: only their mean" in figure.caption
    assert "no curve" not in figure.caption


@pytest.mark.parametrize("means", [None, {}, a_mean(steps=999)])
def test_without_one_of_as_many_steps_the_cell_is_missing(tmp_path, means):
    (figure,) = drawn(store(tmp_path), means)
    assert [series.label for series in figure.panels[0].series] == ["Shared"]
    assert "1 of 2 cells have no curve." in figure.caption
    assert "dotted" not in figure.caption


def test_a_curve_of_its_own_comes_first(tmp_path):
    means = {("platform", "discrete", "ppo", "shared"): a_mean()[BARE]}
    (figure,) = drawn(store(tmp_path), means)
    assert [series.label for series in figure.panels[0].series] == ["Shared"]


def test_runs_of_another_engine_come_before_means_and_are_named(tmp_path):
    folder = store(tmp_path)
    (figure,) = drawn(folder, a_mean(), of_another_engine(folder, 7.0))
    shared, vdn = figure.panels[0].series
    assert (shared.label, shared.y[0]) == ("Shared", 0.5)  # what a cell has itself comes first
    assert (vdn.label, vdn.dash, vdn.num_runs) == ("VDN (engine 2)", "solid", 2)
    assert vdn.y.tolist() == [7.5] * NUM_POINTS
    assert "Of 1 of 2 cells the curves are those of other runs (engine 2)." in figure.caption
    assert "not stored" not in figure.caption


def test_runs_of_other_settings_lend_nothing(tmp_path):
    folder = store(tmp_path)
    runs = [replace(run, config={**run.config, "settings": {"gamma": 0.5}})
            for run in of_another_engine(folder, 7.0)]  # fmt: skip
    (figure,) = drawn(folder, None, runs)
    assert [series.label for series in figure.panels[0].series] == ["Shared"]


def test_a_mean_is_the_mean_and_the_band_of_as_many_curves():
    (given,) = a_mean().values()
    found = band([as_curves(given.band)])
    for name in ("mean", "low", "high", "error"):
        assert getattr(found, name) == pytest.approx(getattr(given.band, name)), name


def test_means_are_in_figures_over_tasks_and_in_no_score(tmp_path):
    views = ("discrete", "hybrid")
    folder = store(tmp_path, views=views)
    without, (types, *others) = drawn(folder), drawn(folder, a_mean() | a_mean(view="hybrid"))
    assert types.name == "curves-by-family-s"
    assert [s.label for s in without[0].panels[0].series] == ["Shared"]
    _, vdn = types.panels[0].series
    scaled = (RISE - 0.15) / 0.85  # Platform's random play and its best
    assert vdn.y == pytest.approx(scaled, rel=0.02)
    assert vdn.num_runs == 8
    assert "Of 2 of 4 cells the runs' own curves are not stored" in types.caption
    assert len(others) == 3
    assert sweep_of(folder).limits == {"platform": (0.5, 0.5)}


def test_bands_and_scale_as_published(tmp_path):
    folder = store(tmp_path)
    pages = {}
    for kind in ({}, {"bands": "sem", "scale": "min-max"}):
        page = write_report(folder, tmp_path / str(len(pages)), means=FILE, formats=(), **kind)
        pages[bool(kind)] = unescape(page.read_text())
    assert SEM in pages[True]
    assert SEM not in pages[False]
    assert BAND in pages[False]
    assert BAND not in pages[True]
    assert "the lowest and the highest point of any learning curve" in pages[True]
    assert "1 the best policy known" in pages[False]
    (figure,) = drawn(folder, a_mean())
    _, vdn = with_errors(figure).panels[0].series
    assert vdn.low == pytest.approx(RISE - 1 / 3.182446305284263)
    assert vdn.high == pytest.approx(RISE + 1 / 3.182446305284263)


@pytest.mark.parametrize("kind", [{"bands": "sd"}, {"scale": "log"}])
def test_other_bands_and_scales_are_refused(tmp_path, kind):
    with pytest.raises(ConfigError, match="of a report"):
        write_report(store(tmp_path), formats=(), **kind)


def test_a_figure_may_be_of_means_alone(tmp_path):
    (figure,) = drawn(store(tmp_path, episodes=False), a_mean())
    assert [series.label for series in figure.panels[0].series] == ["VDN (mean of 4)"]
    assert "1 of 2 cells have no curve." in figure.caption


def test_the_file_of_the_repository_is_read_and_a_report_takes_it(tmp_path):
    means = read_means(FILE)
    assert len(means) == 133
    found = means["platform", "discrete", "ppo", "vdn"]
    assert (found.steps, found.band.num_runs) == (500_000, 5)
    assert found.band.mean.shape == (NUM_POINTS,)
    page = write_report(store(tmp_path), means=FILE, formats=())
    assert "Mean return of the episodes" in page.read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "FileNotFoundError"), ("a,b\n1,2\n", "KeyError"),
     (FILE.read_text().replace("-235.3", "much", 1), "could not convert"),
     ("\n".join(FILE.read_text().splitlines()[:2]) + "\n", "KeyError: 'low'")],
)  # fmt: skip
def test_another_file_is_refused(tmp_path, monkeypatch, text, said):
    monkeypatch.chdir(tmp_path)  # a short path, which the message has room for
    path = Path("means.csv")
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=f"cannot read mean curves.*{said}.*or leave it out"):
        read_means(path)
