"""Cells of CSV files: what a spreadsheet would run is text, and numbers are numbers."""

import csv
import io

import numpy as np
import pytest

import headwise as hw
from headwise.csv_cells import csv_text
from headwise.report.tables.table import Table, to_csv
from headwise.training.report import Report

WIDE = "\N{FULLWIDTH EQUALS SIGN}1"
FORMULAS = ["=1+1", '=HYPERLINK("x","y")', "+1+1", "-1+cmd|'calc'!A0", "@SUM(A1)", "\t=1", WIDE]


def rows_of(text):
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("text", [*FORMULAS, "\n=1", "-", "-vdn"])
def test_a_formula_is_made_a_text(text):
    assert rows_of(csv_text([["name", text]])) == [["name", "'" + text]]


def test_a_carriage_return_begins_no_row():
    assert rows_of(csv_text([["a\r=1+1", "\r=2"]])) == [["a\n=1+1", "'\n=2"]]


@pytest.mark.parametrize(
    "value", [-1.5, -3, "-1.5", "+2", "-inf", float("-inf"), np.float64(-0.25)]
)
def test_numbers_stay_numbers(value):
    ((cell,),) = rows_of(csv_text([[value]]))
    assert float(cell) == float(value)


def test_other_texts_stay_as_they_are():
    row = ["a=b", "'quoted'", "1-2", "", "[-3, 4]", "a,b", 'a"b', "x ± 2"]
    assert rows_of(csv_text([[*row, None, True]])) == [[*row, "", "True"]]


def test_tables_of_a_report():
    table = Table("t", "s", "title", "caption", ("=name", "n"), (("=1+1", -2.5), ("vdn", None)))
    assert rows_of(to_csv(table)) == [["'=name", "n"], ["'=1+1", "-2.5"], ["vdn", ""]]


def test_a_log_goes_on_after_names_of_any_kind(tmp_path):
    """Lines are read again when a run is resumed, and none of them is lost."""
    names = [*FORMULAS, "a\rb", "a\nb", 'a,"b"']
    values = {name: np.array([-1.5]) for name in names}
    logger = hw.CSVLogger(tmp_path / "x.csv")
    for step in (10, 20):
        logger.open((3,), step - 10)
        logger.write(Report(step, 100, (3,), values, np.array([True])))
        logger.close()
    with open(tmp_path / "x.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == [10] * len(names) + [20] * len(names)
    assert [row["name"] for row in rows[: len(FORMULAS)]] == ["'" + name for name in FORMULAS]
    assert {row["value"] for row in rows} == {"-1.5"}
