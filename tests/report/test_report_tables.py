"""Tables as CSV and LaTeX, and the numbers in them."""

import csv
import io

import numpy as np
import pytest
import synthetic

from headwise.report.cells import cells_of
from headwise.report.runs import read_store
from headwise.report.statistics import contrast, paired
from headwise.report.sweeps import sweeps_of
from headwise.report.tables.scores import comparison_tables, score_table
from headwise.report.tables.table import Table, text_of, to_csv, to_latex
from headwise.studies.paper.decoupler_runs import decouplers_of
from headwise.studies.paper.tables import decoupler_tables

DASH = "\N{EN DASH}"
TABLE = Table("t", "s", "A & B", "50 % of_it", ("name", "n"), (("x_1 ± 2", 1.5), ("<y>", None)))


def test_csv_keeps_numbers_in_full():
    rows = list(csv.reader(io.StringIO(to_csv(TABLE))))
    assert rows == [["name", "n"], ["x_1 ± 2", "1.5"], ["<y>", ""]]


def test_latex_is_escaped():
    text = to_latex(TABLE)
    assert r"\caption{A \& B. 50 \% of\_it}" in text
    assert r"x\_1 $\pm$ 2 & 1.5 \\" in text
    assert r"\begin{tabular}{lr}" in text
    assert text.count(r"\begin") == text.count(r"\end") == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, DASH), (float("nan"), DASH), (1.23456, "1.235"), (123456.7, "123,457"),
     (1e-5, "1.0e-05"), (100_000, "100,000"), (True, "yes"), ("a", "a"), (0.0, "0")],
)  # fmt: skip
def test_entries_for_people(value, text):
    assert text_of(value) == text


def test_the_factorial_table_has_the_papers_numbers_beside_ours(tmp_path):
    store = read_store(synthetic.factorial(tmp_path / "s", seeds=4, presets=("sound",)))
    (study,) = decouplers_of(store.name, store.runs)
    main, tests = decoupler_tables(study)
    assert [row[0] for row in main.rows] == [
        "no mixing", "VDN uniform", "VDN grad", "VDN range",
        "QPLEX uniform", "QPLEX grad", "QPLEX range",
    ]  # fmt: skip
    row = dict(zip(main.columns, main.rows[1], strict=True))
    values = study.metric(("vdn", "uniform"), "final").values
    assert row["Final return"] == f"{values.mean():.1f} ± {values.std(ddof=1):.1f}"
    assert main.rows[1][3] == "82.3 ± 4.5"
    assert main.rows[0][-2:] == (None, None)  # no heads to tell apart, neither ours nor theirs

    assert len(tests.rows) == 18  # four weighted and two unweighted mixers, three metrics
    entry = dict(zip(tests.columns, tests.rows[3], strict=True))
    assert entry["comparison"] == "VDN grad minus VDN uniform"
    ours, theirs = (study.metric(("vdn", e), "final") for e in ("grad", "uniform"))
    assert entry["p"] == pytest.approx(float(paired(ours.values, theirs.values).p))
    assert entry["p (Holm)"] >= entry["p"]
    assert entry["paper's difference"] == 3.04
    assert entry["paper's d"] == 0.77


def test_scores_and_comparisons(tmp_path):
    some = {name: synthetic.ENVIRONMENTS[name] for name in ("platform", "lander")}
    store = read_store(synthetic.sweep(tmp_path / "s", 4, 60, some))
    table = score_table("paper", cells_of(store))
    assert len(table.rows) == 88  # every cell has its row
    row = dict(zip(table.columns, table.rows[0], strict=True))
    cell = cells_of(store)[0]
    assert row["mean"] == pytest.approx(float(np.mean([run.score for run in cell.runs])))
    # Student's interval of four seeds: the mean and 3.182 standard errors to either side
    reach = 3.182 * cell.scores.std(ddof=1) / 2
    assert (row["low"], row["high"]) == pytest.approx(
        (row["mean"] - reach, row["mean"] + reach), 1e-3
    )

    (sweep,) = sweeps_of("paper", store)
    (pairs,) = comparison_tables(sweep)
    assert len(pairs.rows) == 15 + 10 + 15  # pairs of 6, 5 and 6 factorizations
    found = {(r[0], r[1]): dict(zip(pairs.columns, r, strict=True)) for r in pairs.rows}
    pair = found["PPO shared", "PPO AR"]
    assert (pair["tasks"], pair["seeds"]) == (6, 4)
    assert pair["difference"] == pytest.approx(0.5 - 0.8, abs=0.1)
    assert pair["conclusion"] == "PPO AR is better than PPO shared."
    # by seed on each task, then over tasks: the mean difference is that of the means of tasks
    ours, theirs = (sweep.where(algorithm="ppo", factorization=f) for f in ("shared", "ar"))
    gaps = [sweep.scaled(a, a.scores) - sweep.scaled(b, b.scores)
            for a, b in zip(ours, theirs, strict=True)]  # fmt: skip
    assert pair["difference"] == pytest.approx(np.mean(gaps))
    low, high = contrast(gaps).interval()
    assert pair["95 % interval"] == f"[{text_of(float(low))}, {text_of(float(high))}]"


def test_seeds_to_settle_are_never_fewer_than_did_not(tmp_path):
    store = read_store(synthetic.sweep(tmp_path / "s", 5, 60, {
        name: synthetic.ENVIRONMENTS[name] for name in ("platform",)
    }))  # fmt: skip
    (sweep,) = sweeps_of("paper", store)
    (pairs,) = comparison_tables(sweep)
    rows = [dict(zip(pairs.columns, row, strict=True)) for row in pairs.rows]
    open_ones = [row for row in rows if row["conclusion"] == "Inconclusive."]
    assert 0 < len(open_ones) < len(rows)
    for row in rows:
        settled = row["p (Holm)"] < 0.05
        assert (row["seeds to settle"] is None) == settled
        assert settled or row["seeds to settle"] == "> 100,000" or row["seeds to settle"] > 5


def test_a_single_seed_has_no_interval(tmp_path):
    some = {"platform": synthetic.ENVIRONMENTS["platform"]}
    store = read_store(synthetic.sweep(tmp_path / "s", 1, 60, some))
    table = score_table("paper", cells_of(store))
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["seeds"], row["low"], row["high"], row["sd"]) == (1, None, None, None)
