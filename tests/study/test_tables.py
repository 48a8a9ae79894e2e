"""Reading tables: what is asked for, and nothing that outlives the reading."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from headwise.study.tables import UNREADABLE, read_table

READ = """
import os, sys
from pathlib import Path
import pyarrow.parquet
from headwise.study.tables import read_table

def threads():
    return len(os.listdir("/proc/self/task"))

before = threads()
path = Path(sys.argv[1])
assert read_table(path).num_rows == read_table(path.read_bytes()).num_rows == 1000
print(threads() - before)
"""


@pytest.fixture
def path(tmp_path):
    columns = {name: list(range(1000)) for name in ("step", "return", "length")}
    parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


def test_no_thread_is_left_to_abort_a_program_that_is_done(path):
    if not sys.platform.startswith("linux"):
        pytest.skip("needs Linux's /proc")
    done = subprocess.run(
        [sys.executable, "-c", READ, path], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"


def test_columns_and_bytes(path):
    assert read_table(path, ["return"]).column_names == ["return"]
    assert read_table(path.read_bytes()).equals(parquet.read_table(path))


def test_what_is_no_table(tmp_path):
    (tmp_path / "x").write_bytes(b"PAR1")
    for source in (tmp_path / "x", tmp_path / "absent", b""):
        with pytest.raises(UNREADABLE):
            read_table(source)
