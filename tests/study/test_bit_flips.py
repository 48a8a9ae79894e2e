"""Files of a study of which one bit is another: refused, or as if nothing had happened."""

import io
import json

import numpy as np
import pyarrow.parquet as parquet
import pytest
from tiny_study import tiny_study

from headwise.study import Store
from headwise.study.archive import read_archive, write_archive
from headwise.study.result import EpisodeTable, MetricTable, RunResult
from headwise.study.tables import UNREADABLE, episodes_bytes, metrics_bytes, read_table

ROWS = 60
CHANCE = np.random.default_rng(0)
STEP = np.arange(1, ROWS + 1)
NUMBERS = CHANCE.normal(size=ROWS).astype(np.float32)
EPISODES = EpisodeTable(STEP, NUMBERS, np.full(ROWS, 8, np.int32))
METRICS = MetricTable(STEP, ["train/loss", "heads/a/entropy"] * (ROWS // 2), NUMBERS)


def flipped(data, every):
    """The same bytes with one other bit, again and again: all of the last 1000, some before."""
    for at in (*range(0, len(data) - 1000, every), *range(max(len(data) - 1000, 0), len(data))):
        for bit in range(8) if every == 1 else (at % 8,):
            other = bytearray(data)
            other[at] ^= 1 << bit
            yield bytes(other)


def outcomes(data, read, every=1):
    """How many flipped bits were refused, made no difference, and went through as other values."""
    good, counts = read(data), {"refused": 0, "harmless": 0, "wrong": 0}
    for other in flipped(data, every):
        try:
            found = read(other)
        except (*UNREADABLE, TypeError):
            counts["refused"] += 1
        else:
            counts["harmless" if found == good else "wrong"] += 1
    return counts


@pytest.mark.parametrize(
    ("data", "columns"),
    [
        (episodes_bytes(EPISODES), ["step", "return", "length"]),
        (metrics_bytes(METRICS), ["step", "name", "value"]),
    ],
    ids=["episodes", "metrics"],
)
def test_no_flipped_bit_of_a_table_is_another_value(data, columns):
    counts = outcomes(data, lambda data: read_table(data, columns).to_pydict())
    assert counts["wrong"] == 0
    assert counts["refused"] > len(data)


def test_without_checksums_most_go_through():
    """So the test above can fail."""
    sink = io.BytesIO()
    parquet.write_table(read_table(episodes_bytes(EPISODES)), sink, compression="zstd")
    counts = outcomes(sink.getvalue(), lambda data: read_table(data, ["return"]).to_pydict())
    assert counts["wrong"] > 500


def of_archive(path):
    store = read_archive(path)
    return store.study(), store.archive.files


def test_no_flipped_bit_of_an_archive_is_another_study(tmp_path):
    store = Store(tmp_path / "here")
    store.begin(tiny_study(about="What for?").to_json())
    for run in store.plan()[:2]:
        store.put(RunResult(run, EPISODES, METRICS, {"final_return": 4.5}, {"commit": "abc"}))
    write_archive(store, tmp_path / "x.parquet")

    def read(data):
        (tmp_path / "y.parquet").write_bytes(data)
        return of_archive(tmp_path / "y.parquet")

    counts = outcomes((tmp_path / "x.parquet").read_bytes(), read, every=3)
    assert counts["wrong"] == 0
    assert counts["refused"] > 500


def test_what_an_earlier_version_archived_is_read(tmp_path):
    """It has no checksums, and no digest of what it says of the study."""
    store = Store(tmp_path / "here")
    store.begin(tiny_study(about="What for?").to_json())
    write_archive(store, tmp_path / "x.parquet")
    table = parquet.read_table(tmp_path / "x.parquet")
    said = table.schema.metadata[b"headwise.study"]
    parquet.write_table(
        table.replace_schema_metadata({"headwise.study": said}), tmp_path / "old.parquet"
    )
    assert of_archive(tmp_path / "old.parquet") == of_archive(tmp_path / "x.parquet")


def test_a_folder_that_holds_another_run_is_refused(tmp_path):
    store = Store(tmp_path / "here")
    store.begin(tiny_study().to_json())
    first, second, *_ = store.plan()
    store.put(RunResult(first, EPISODES, METRICS, {"final_return": 4.5}, {}))
    assert store.result(first.id) == {"final_return": 4.5}
    (store.runs / first.id).rename(store.runs / second.id)
    for read in (store.result, store.curve):
        with pytest.raises(OSError, match=rf"id is not the hash .*got {second.id}"):
            read(second.id)
    config = {**first.to_json(), "total_timesteps": first.total_timesteps + 1}
    (store.runs / second.id / "config.json").write_text(json.dumps(config))
    with pytest.raises(OSError, match="id is not the hash"):
        store.result(second.id)
