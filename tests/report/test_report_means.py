"""Means of learning curves whose runs are not stored, in the figures of environments."""

from pathlib import Path

import numpy as np
import pytest
import synthetic

from headwise.errors import ConfigError
from headwise.report.cells import Band
from headwise.report.figures.curves import curve_figures
from headwise.report.means import MeanCurve, read_means
from headwise.report.runs import read_store
from headwise.report.sweeps import sweeps_of
from headwise.report.write import write_report
from headwise.study.measures import NUM_POINTS

FILE = Path(__file__).parents[2] / "results" / "paper_mean_curves.csv"
RISE = np.arange(1.0, NUM_POINTS + 1)
BARE = ("platform", "discrete", "ppo", "vdn")


def store(tmp_path, episodes=True):
    """PPO on Platform, `shared` with curves and `vdn` without, unless there are no episodes."""
    runs = []
    for factorization in ("shared", "vdn"):
        for seed in (0, 1):
            c = synthetic.config("Platform", "ppo", factorization, seed, 1000)
            c["labels"] = {"environment": "platform"}
            step, returns = np.arange(20, 1001, 20), np.full(50, 0.5)
            runs.append((c, (step, returns), {}, synthetic.summary(step, returns, 1000)))
    folder = tmp_path / "s"
    synthetic.write_store(folder, "s", runs)
    for c, *_ in runs:
        if c["factorization"] == "vdn" or not episodes:
            (folder / "runs" / synthetic.run_id(c) / "episodes.parquet").unlink()
    return folder


def drawn(folder, means):
    kept = read_store(folder)
    (sweep,) = sweeps_of(kept.name, kept.runs)
    return list(curve_figures(sweep, means))


def a_mean(steps=1000):
    return {BARE: MeanCurve(steps, Band(RISE, RISE - 1, RISE + 1, 4))}


def test_a_mean_stands_in_for_curves_that_are_not_stored(tmp_path):
    folder = store(tmp_path)
    (figure,) = drawn(folder, a_mean())
    shared, vdn = figure.panels[0].series
    assert (shared.label, shared.dash, shared.num_runs) == ("Shared", "solid", 2)
    assert (vdn.key, vdn.label, vdn.dash, vdn.num_runs) == ("vdn", "VDN (mean of 4)", "dot", 4)
    assert vdn.y.tolist() == RISE.tolist()
    assert vdn.low.tolist() == (RISE - 1).tolist()
    assert "1 of 2 lines, dotted and named as means," in figure.caption
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
