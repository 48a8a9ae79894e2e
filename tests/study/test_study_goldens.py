"""Studies and reports are what they were; `python tools/write_study_goldens.py` if they may not."""

import pytest
from study_goldens import contents_text, machine, page_text, read


@pytest.fixture(scope="module")
def kept():
    return read()


@pytest.mark.parametrize("executor", ["inline", "local"])
def test_a_study_leaves_behind_what_it_did(tmp_path, kept, executor):
    found = contents_text(tmp_path, executor)
    assert found.keys() == kept["contents"].keys()
    if kept["machine"] != machine():  # sums round differently
        pytest.skip(f"made with {kept['machine']}")
    for run, files in kept["contents"].items():
        assert found[run] == files, run


def test_a_report_says_what_it_did(tmp_path, kept):
    found = page_text(tmp_path)
    assert found.keys() == kept["page"].keys()
    if kept["machine"] != machine():
        pytest.skip(f"made with {kept['machine']}")
    for name, text in kept["page"].items():
        assert found[name].splitlines() == text.splitlines(), name
