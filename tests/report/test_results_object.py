"""`Results`: of studies and of anybody's table, chosen from, summed up and compared."""

import numpy as np
import pyarrow as pa
import pytest
import synthetic

import headwise as hw
from headwise.report import Results, read_store
from headwise.report.rows import NoRunsError
from headwise.report.statistics import by_seed, estimate, iqm, sample
from headwise.report.sweeps import sweeps_of
from headwise.report.tables.scores import comparison_tables

SOME = {name: synthetic.ENVIRONMENTS[name] for name in ("platform", "lander")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return synthetic.sweep(tmp_path_factory.mktemp("results"), 4, 60, SOME)


@pytest.fixture(scope="module")
def results(folder):
    return Results.read(folder)


def test_runs_are_chosen_by_what_they_are(results):
    assert len(results) == 2 * 44 * 4
    assert results.names == ("environment", "view", "algorithm", "factorization")
    some = results.where(algorithm="ppo", factorization=["vdn", "shared"], view="hybrid")
    assert len(some) == 2 * 2 * 4
    assert some.values("factorization") == ["shared", "vdn"]
    assert len(results.where(algorithm="none")) == 0
    with pytest.raises(hw.ConfigError, match="Did you mean 'algorithm'"):
        results.where(algorithms="ppo")


def test_an_iqm_is_over_all_seeds_and_tasks(folder, results):
    found = results.where(algorithm="ppo").iqm(by="factorization")
    (sweep,) = sweeps_of("paper", read_store(folder))
    for one in found:
        cells = sweep.where(algorithm="ppo", factorization=one.group[0])
        strata = [sweep.scaled(cell, cell.scores) for cell in cells]
        wanted = estimate(strata, iqm, np.random.default_rng(0))
        assert one.estimate.value == pytest.approx(wanted.value)
        assert one.estimate.low == pytest.approx(wanted.low, abs=0.01)
        assert (one.runs, one.tasks) == (4 * len(cells), len(cells))
    assert found["vdn"] == found.groups[2].estimate
    assert str(found) == str(results.where(algorithm="ppo").iqm(by="factorization"))
    several = results.mean(by=("algorithm", "view"))
    assert len(several) == 9
    assert np.isfinite(several["sac", "hybrid"].value)
    with pytest.raises(KeyError):
        found["none"]


def test_a_difference_is_that_of_the_table_of_comparisons(folder, results):
    (sweep,) = sweeps_of("paper", read_store(folder))
    (table,) = comparison_tables(sweep)
    rows = {row[:2]: row for row in table.rows}
    ppo = results.where(algorithm="ppo")
    found = ppo.where(factorization="shared") - ppo.where(factorization="vdn")
    row = rows["PPO shared", "VDN-PPO"]
    assert (found.tasks, found.seeds) == row[2:4]
    assert found.estimate.value == pytest.approx(row[5])
    assert found.p == pytest.approx(row[7])
    families = results.where(algorithm="sac") - results.where(algorithm="dqn")
    assert families.tasks == 2 * 12  # sac has no qplex, and no vdn on continuous actions


def test_a_side_without_runs_is_told(results):
    nobody = results.where(algorithm="none")
    for ask in (lambda: nobody - results, lambda: nobody.iqm(), lambda: results - nobody):
        with pytest.raises(NoRunsError, match=r"no such runs; allowed: environment: \['"):
            ask()
    discrete, hybrid = (results.where(view=v, algorithm="ppo") for v in ("discrete", "hybrid"))
    joint = discrete.where(factorization="joint")
    with pytest.raises(NoRunsError, match="no task has runs of both"):
        _ = joint.where(environment="lander") - hybrid.where(environment="platform")


def test_failed_runs_are_counted_and_spoil_a_difference(tmp_path):
    configs = [
        synthetic.config("Platform", "ppo", f, seed, 1000)
        for f in ("vdn", "shared")
        for seed in range(3)
    ]
    runs = [
        (
            c,
            synthetic.rising(synthetic.chance(c), 0, 1, 1000, 30),
            {},
            {"final_return": 0.5 + i / 9},
        )
        for i, c in enumerate(configs[:-1])
    ]
    results = Results.read(synthetic.write_store(tmp_path / "s", "s", runs, failed=configs[-1:]))
    assert [one.without_score for one in results.iqm("factorization")] == [0, 1]
    difference = results.where(factorization="vdn") - results.where(factorization="shared")
    assert difference.incomplete == "1 runs have no score"
    assert "incomplete" in str(difference)


TABLE = {
    "env": ["a"] * 4 + ["b"] * 4,
    "method": ["x", "x", "y", "y"] * 2,
    "seed": [0, 1] * 4,
    "return": [1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 50.0],
}


class Frame:
    """As pandas and polars have them."""

    columns = tuple(TABLE)

    def __getitem__(self, name):
        return type("Column", (), {"to_list": lambda self: TABLE[name]})()


@pytest.mark.parametrize("kind", ["columns", "arrow", "frame", "csv"])
def test_any_table_will_do(kind, tmp_path):
    from pyarrow import csv

    path = tmp_path / "x.csv"
    csv.write_csv(pa.table(TABLE), path)
    table = {"columns": TABLE, "arrow": pa.table(TABLE), "frame": Frame(), "csv": path}[kind]
    results = Results.of(table, score="return", task="env")
    assert results.names == ("env", "method")
    one = results.where(env="a")
    # All runs of both tasks decide the scale: a from 1 to 5.
    assert one.mean("method")["y"].value == pytest.approx((0.5 + 1.0) / 2)
    found = results.where(method="y") - results.where(method="x")
    scaled = [[0.5, 1.0], [0.0, 0.25], [0.5, 1.0], [0.0, 0.25]]
    parts = [sample(values, [0, 1]) for values in scaled]
    wanted = by_seed([[(0.5, parts[0]), (-0.5, parts[1])], [(0.5, parts[2]), (-0.5, parts[3])]])
    assert found.estimate.value == pytest.approx(float(wanted.value))
    assert found.p == pytest.approx(float(wanted.p))
    assert results.table().num_rows == 8


def test_returns_of_one_task_stay_as_they_are():
    first = {name: values[:4] for name, values in TABLE.items()}
    results = Results.of(first, score="return", task="env")
    assert results.mean("method")["y"].value == 4.0
    assert results.scale == "returns as they are"


def test_a_row_for_each_point_of_a_curve():
    steps, rows = [10, 20, 30, 40], []
    for seed in (0, 1):
        rows += [(seed, step, step + seed) for step in reversed(steps)]
    seeds, at, values = map(list, zip(*rows, strict=True))
    table = {"environment": ["a"] * 8, "seed": seeds, "step": at, "score": values}
    results = Results.of(table, step="step", last=0.5)
    assert [run.score for run in results] == [35.0, 36.0]  # the mean of what is after step 20
    assert results.curve_table()["value"].to_pylist() == [10, 20, 30, 40, 11, 21, 31, 41]
    with pytest.raises(hw.ConfigError, match="two rows are the same run"):
        Results.of({name: x for name, x in table.items() if name != "step"})


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"environment": ["a"], "seed": [0]}, "column"),
        ({"environment": ["a"], "seed": [0, 1], "score": [1.0]}, "of one length"),
        (3, "this is no table"),
        ("nowhere.csv", "cannot read the table"),
    ],
)
def test_what_is_no_table_is_refused(table, words):
    with pytest.raises(hw.ConfigError, match=words):
        Results.of(table)


def test_settings_that_are_tried_tell_runs_apart(tmp_path):
    runs = []
    for learning_rate in (0.1, 0.2):
        for seed in range(3):
            c = synthetic.config(
                "Platform", "ppo", "vdn", seed, 1000, settings={"learning_rate": learning_rate}
            )
            step, returns = synthetic.rising(synthetic.chance(c), 0, 1, 1000, 30)
            runs.append(
                (
                    c,
                    (step, returns),
                    {"x": ([500, 1000], [learning_rate, 2 * learning_rate])},
                    {"final_return": learning_rate},
                )
            )
    results = Results.read(synthetic.write_store(tmp_path / "s", "s", runs))
    assert results.names[-1] == "learning_rate"
    assert results.mean(by="learning_rate")[0.2].value == pytest.approx(0.2)
    metric = results.metric("x")
    assert metric.mean(by="learning_rate")[0.1].value == pytest.approx(0.2)
    assert metric.runs[0].curve()[0].tolist() == [500, 1000]
    with pytest.raises(NoRunsError, match="no run has this metric"):
        results.metric("none")


def test_notebooks_show_tables(results):
    page = results._repr_html_()
    assert f"Results of {len(results)} runs" in page
    assert page.count("<tr>") == 88 + 1
    assert "Results of 352 runs (environment=['platform', 'lander']" in repr(results)
    assert "<th>IQM</th>" in results.iqm("algorithm")._repr_html_()
    difference = results.where(view="hybrid") - results.where(view="discrete")
    assert "<td>" in difference._repr_html_()


def test_frames_need_pandas(results, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    for make in (results.frame, results.curves):
        with pytest.raises(hw.ConfigError, match="pip install pandas"):
            make()


def test_a_report_of_what_was_read(results, folder, tmp_path):
    page = results.report(tmp_path / "r", formats=())
    assert page.is_file()
    with pytest.raises(hw.ConfigError, match="a report is of studies"):
        Results.of(TABLE, score="return", task="env").report()
    with pytest.raises(hw.ConfigError, match="no study to read"):
        Results.read()
