import pytest
from bad_inputs import TABLE, all_cases, outcome, row

import headwise as hw

CASES = all_cases()
PAGE = TABLE.read_text()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what.replace("\0", "NUL"))
def test_a_bad_input_ends_in_an_error_of_ours(case):
    error = outcome(case)
    assert isinstance(error, hw.HeadwiseError), repr(error)
    # What, got or allowed, or what to do: never a bare complaint.
    assert len(str(error)) > 20
    assert any(word in str(error) for word in ("got ", "allowed: ", "must be", ". "))
    assert "?;" not in str(error)  # what is wrong is said and not asked
    assert row(case, error) in PAGE, "run `python tests/agent/bad_inputs.py`"


def test_there_are_hundreds_of_them_and_the_table_has_them_all():
    names = [case.what for case in CASES]
    assert len(names) >= 200
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(names), "run `python tests/agent/bad_inputs.py`"
