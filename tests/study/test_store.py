"""The store: whole or not there, whatever happens while it is written."""

import errno
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from tiny_study import tiny_study

from headwise import ConfigError
from headwise.errors import HeadwiseError, StoreError
from headwise.report.runs import read_store
from headwise.study import Store
from headwise.study.result import EpisodeTable, MetricTable, RunFailure, RunResult

STUDY = tiny_study()
RUN, OTHER = STUDY.runs()[:2]


def result(run=RUN, value=1.5, checkpoint=None):
    return RunResult(
        run,
        EpisodeTable(
            np.array([4, 8], np.int64), np.array([value, 2], np.float32), np.array([4, 4], np.int32)
        ),
        MetricTable(
            np.array([8, 8], np.int64), ["train/loss", "heads/x/entropy"], np.array([1, 2], "f4")
        ),
        {"final_return": value, "wall_s": 0.1},
        {"device": "cpu"},
        checkpoint,
    )


def failure(run=RUN):
    return RunFailure(run, "ValueError", "no", "Traceback ...", {})


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    store.begin(STUDY.to_json())
    return store


def test_what_is_put_in_comes_out(store):
    assert not store.is_finished(RUN.id)
    assert store.put(result())
    assert store.is_finished(RUN.id)
    assert store.result(RUN.id) == {"final_return": 1.5, "wall_s": 0.1}
    assert store.fingerprint(RUN.id) == {"device": "cpu"}
    episodes, metrics = store.episodes(RUN.id), store.metrics(RUN.id)
    assert (episodes.step.tolist(), episodes.returns.tolist()) == ([4, 8], [1.5, 2.0])
    assert episodes.length.tolist() == [4, 4]
    assert (metrics.name, metrics.value.tolist()) == (["train/loss", "heads/x/entropy"], [1, 2])
    config = json.loads((store.runs / RUN.id / "config.json").read_text())
    assert config == RUN.to_json()
    assert not store.has_checkpoint(RUN.id)
    assert store.put(result(OTHER, checkpoint=b"an agent"))
    assert store.checkpoint(OTHER.id).read_bytes() == b"an agent"


def test_types_of_the_tables_are_the_contract(store):
    import pyarrow.parquet as parquet

    store.put(result())
    schema = parquet.read_schema(store.runs / RUN.id / "episodes.parquet")
    assert [(f.name, str(f.type)) for f in schema] == [
        ("step", "int64"),
        ("return", "float"),
        ("length", "int32"),
    ]
    schema = parquet.read_schema(store.runs / RUN.id / "metrics.parquet")
    assert schema.names == ["step", "name", "value"]


def test_the_plan_is_kept(store):
    assert store.plan() == list(STUDY.runs())
    data = store.study()
    assert (data["name"], data["version"], data["thresholds"]) == ("tiny", 2, [0.0])
    assert [entry["id"] for entry in data["plan"]] == [run.id for run in STUDY.runs()]


def test_the_first_result_stays(store):
    assert store.put(result(value=1.0))
    assert not store.put(result(value=2.0))
    assert store.result(RUN.id)["final_return"] == 1.0
    assert not store.put_failure(failure())
    assert not store.is_failed(RUN.id)
    assert list(store.scratch.iterdir()) == []


def test_a_failure_gives_way_to_a_result(store):
    assert store.put_failure(failure())
    assert store.is_failed(RUN.id)
    assert not store.is_finished(RUN.id)
    assert store.error(RUN.id) == {
        "type": "ValueError",
        "message": "no",
        "traceback": "Traceback ...",
    }
    assert store.put_failure(failure())
    assert store.put(result())
    assert store.is_finished(RUN.id)
    assert not store.is_failed(RUN.id)


def test_a_folder_belongs_to_one_study_but_its_plan_may_grow(store):
    with pytest.raises(ConfigError, match="another study"):
        store.begin(tiny_study("other").to_json())
    store.put(result())
    store.begin(tiny_study(seeds=5).to_json())
    assert len(store.plan()) == 10
    assert store.is_finished(RUN.id)


def test_no_study_and_a_newer_one_are_told_apart(tmp_path, store):
    with pytest.raises(StoreError, match="no study in"):
        Store(tmp_path / "nowhere").study()
    path = store.folder / "study.json"
    path.write_text(json.dumps({"version": 99}))
    with pytest.raises(StoreError, match="another layout"):
        store.study()
    path.write_text("{")
    with pytest.raises(StoreError, match="no JSON"):
        store.study()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "null",
        "{}",
        '{"version": 1}',
        '{"version": 1, "name": "tiny", "plan": {}}',
        '{"version": 1, "name": "tiny", "plan": [1]}',
        '{"version": 1, "name": "tiny", "plan": [{}]}',
        '{"version": "1", "name": "tiny", "plan": []}',
    ],
)
def test_a_plan_that_is_none_is_told_to_everyone_who_reads_it(store, text):
    (store.folder / "study.json").write_text(text)
    for read in (store.plan, lambda: read_store(store.folder)):
        with pytest.raises(HeadwiseError, match=r"study.json.*Delete that file"):
            read()


def test_a_report_does_not_read_another_layout(store):
    data = {**store.study(), "version": 3}
    (store.folder / "study.json").write_text(json.dumps(data))
    with pytest.raises(StoreError, match="another layout; got 3; allowed: 1 or 2"):
        read_store(store.folder)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("result.json", "{"),
        ("result.json", "[1]"),
        ("fingerprint.json", None),
        ("episodes.parquet", "PAR1"),
        ("metrics.parquet", "PAR1"),
        ("config.json", None),
        ("config.json", "{}"),
    ],
)
def test_what_cannot_be_read_of_a_run_is_told_with_its_path(store, name, text):
    store.put(result())
    path = store.runs / RUN.id / name
    path.unlink() if text is None else path.write_text(text)
    asked = {"episodes.parquet": store.curve, "config.json": store.curve}
    asked |= {n: getattr(store, n.partition(".")[0]) for n in ("result.json", "fingerprint.json")}
    with pytest.raises(StoreError, match=rf"cannot read {path}; got .+ Delete the run's folder"):
        asked.get(name, store.metrics)(RUN.id)


@pytest.mark.parametrize("call", range(1, 9))
def test_a_full_disk_at_any_file_leaves_nothing_behind(store, monkeypatch, call):
    store.put(result(OTHER))
    count = 0
    sync = os.fsync

    def full(handle):
        nonlocal count
        count += 1
        if count == call:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    if call <= 6:  # config, fingerprint, episodes, metrics, checkpoint, result
        with pytest.raises(StoreError, match=r"no space left .* Finished runs are safe"):
            store.put(result(checkpoint=b"an agent"))
        assert not store.is_finished(RUN.id)
        assert not store.has_checkpoint(RUN.id)
    else:  # syncing a folder is a courtesy
        store.put(result(checkpoint=b"an agent"))
    monkeypatch.undo()
    assert list(store.scratch.iterdir()) == []
    assert store.episodes(OTHER.id).step.tolist() == [4, 8]
    store.put(result())
    assert store.is_finished(RUN.id)


FULL_DISK = """
import sys, numpy as np
sys.path.insert(0, {here!r})
import test_store
from headwise.errors import StoreError
from headwise.study import Store
store = Store({folder!r})
store.begin(test_store.STUDY.to_json())
big = test_store.result()
object.__setattr__(big, "scalars", {{"x": ["no repetition"] + np.random.default_rng(0).random(200_000).tolist()}})
assert store.put(test_store.result(test_store.OTHER))
try:
    store.put(big)
except StoreError as error:
    print(error)
assert not store.is_finished(test_store.RUN.id)
assert list(store.scratch.iterdir()) == []
assert store.put(test_store.result())
"""  # noqa: E501


def test_a_disk_that_is_really_full(tmp_path):
    mount = f"mount -t tmpfs -o size=1m tmpfs {tmp_path}"
    can = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mount], capture_output=True, text=True, check=False
    )
    if can.returncode:
        pytest.skip(f"no small file system can be made here: {can.stderr.strip()}")
    script = tmp_path.parent / "full_disk.py"
    script.write_text(FULL_DISK.format(here=os.path.dirname(__file__), folder=f"{tmp_path}/s"))
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", f"{mount} && {sys.executable} {script}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "no space left" in done.stdout


def test_a_folder_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used"):
        Store(tmp_path / "file").begin(STUDY.to_json())


def test_remnants_go_unless_someone_works_on_them(store):
    for name in (f"{RUN.id}.abc", f"{OTHER.id}.def"):
        (store.scratch / name).mkdir()
        (store.scratch / name / "config.json").write_text("{")
    store.sweep(lambda ids: [run_id for run_id in ids if run_id == OTHER.id])
    assert [path.name for path in store.scratch.iterdir()] == [f"{OTHER.id}.def"]
