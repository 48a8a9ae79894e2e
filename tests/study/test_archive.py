"""Archives: a study as one file, and back: what is kept, what is refused, what a report sees."""

import json
import subprocess
import sys
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from tiny_study import tiny_cell, tiny_study

from headwise import ENGINE, ConfigError
from headwise.errors import StoreError
from headwise.report.runs import read_store
from headwise.study import Options, Store, conduct
from headwise.study.archive import read_archive, restore, write_archive
from headwise.study.export import marl_eval_json, results_csv
from headwise.study.result import EpisodeTable, MetricTable, RunFailure, RunResult
from headwise.study.status import standings

MADE = {"commit": "abc", "engine": ENGINE}


@pytest.fixture
def store(tmp_path):
    """Of four runs two are finished, one of them without an episode, one has failed."""
    study = tiny_study(about="What for?")
    store = Store(tmp_path / "here")
    store.begin(study.to_json())
    none = MetricTable(np.empty(0, np.int64), [], np.empty(0, np.float32))
    first, second, third, _ = study.runs()
    step = np.array([8, 16, 40], np.int64)
    returns = np.array([1, 3, 10], np.float32)
    episodes = EpisodeTable(step, returns, np.array([8, 8, 24], np.int32))
    empty = EpisodeTable(step[:0], returns[:0], np.empty(0, np.int32))
    result = {"final_return": 4.5, "diverged": False}
    store.put(RunResult(first, episodes, none, result, {**MADE, "packed_with": []}))
    store.put(RunResult(second, empty, none, {"final_return": None}, MADE))
    store.put_failure(RunFailure(third, "ValueError", "no", "line 1", MADE))
    return store


def archived(store, name="x.parquet"):
    path = store.folder.with_name(name)
    write_archive(store, path)
    return path


def finished(store):
    return sum(map(store.is_finished, store.run_ids()))


def test_there_and_back(store, tmp_path):
    path = archived(store)
    archive = read_archive(path)
    assert (archive.study()["name"], len(archive.run_ids()), finished(archive)) == ("tiny", 4, 2)
    there = Store(tmp_path / "there")
    assert restore(archive, there) == 3
    assert there.study() == store.study()
    first, second, third, fourth = there.plan()
    for run in (first, second):
        assert there.result(run.id) == store.result(run.id)
        assert there.fingerprint(run.id) == store.fingerprint(run.id)
    np.testing.assert_allclose(there.curve(first.id), store.curve(first.id), rtol=1e-6)
    assert np.isnan(there.curve(second.id)).all()
    assert there.error(third.id)["message"] == "no"
    assert not there.is_finished(fourth.id)
    files = {path.name for path in (there.runs / first.id).iterdir()}
    assert files == {"config.json", "fingerprint.json", "result.json", "curve.json"}
    again = archived(there, "y.parquet")  # nothing more is lost the second time
    assert again.read_bytes() == path.read_bytes()


def test_a_report_sees_the_same_curves_and_scores(store, tmp_path):
    restore(read_archive(archived(store)), Store(tmp_path / "there"))
    here, there = read_store(tmp_path / "here"), read_store(tmp_path / "there")
    assert (there.name, there.about, there.num_planned) == ("tiny", "What for?", 4)
    assert [run.id for run in there] == [run.id for run in here]
    for ours, theirs in zip(there, here, strict=True):
        np.testing.assert_allclose(ours.curve(), theirs.curve(), rtol=1e-6)
        assert ours.result == theirs.result
    assert [failure.error for failure in there.failures] == [f.error for f in here.failures]


def test_the_study_goes_on_with_what_is_missing(store, tmp_path):
    there = tmp_path / "there"
    restore(read_archive(archived(store)), Store(there))
    before = (there / "runs" / Store(there).plan()[0].id / "result.json").read_text()
    options = Options(executor="inline", retry_failed=True)
    summary = conduct(tiny_study(about="What for?"), there, options)
    assert (summary.finished, summary.failed) == (4, 0)
    assert (there / "runs" / Store(there).plan()[0].id / "result.json").read_text() == before


def test_parts_of_a_study_come_together(tmp_path):
    study = tiny_study()
    parts = []
    for place, only in enumerate(("seed0", "seed1")):
        folder = tmp_path / str(place)
        conduct(study, folder, Options(executor="inline", only=only))
        parts.append(read_archive(archived(Store(folder))))
    assert [finished(part) for part in parts] == [2, 2]
    together = Store(tmp_path / "all")
    assert [restore(part, together) for part in parts] == [2, 2]
    assert all(together.is_finished(run.id) for run in study.runs())
    assert [restore(part, together) for part in parts] == [0, 0]


def test_a_larger_plan_stays(store, tmp_path):
    """Seeds that were added to the study in the folder are not forgotten."""
    there = Store(tmp_path / "there")
    there.begin(tiny_study(seeds=3, about="What now?").to_json())
    restore(read_archive(archived(store)), there)
    assert {run.id for run in there.plan()} == {run.id for run in tiny_study(seeds=3).runs()}
    assert there.study()["about"] == "What now?"


def test_runs_of_an_earlier_plan_come_along(store, tmp_path):
    """A study that now has other cells keeps what was run of the old ones."""
    first, second, third, _ = store.plan()
    later = tiny_study(cells=[tiny_cell("sac", "shared")], seeds=1)
    store.begin(later.to_json())
    archive = read_archive(archived(store))
    assert (len(archive.run_ids()), finished(archive)) == (4, 2)
    there = Store(tmp_path / "there")
    restore(archive, there)
    assert there.is_finished(first.id)
    assert there.study() == store.study()
    assert {run.id for run in there.plan()} == {run.id for run in later.runs()}
    beside = {run.id for run in there.beside_the_plan()}
    assert beside == {run.id for run in (first, second, third)}
    reports = [read_store(folder) for folder in (store.folder, there.folder)]
    assert [(len(report.runs), report.num_beside) for report in reports] == [(0, 2), (0, 2)]
    assert archived(there, "y.parquet").read_bytes() == archived(store).read_bytes()


def test_runs_beside_one_plan_are_of_another(store, tmp_path):
    """What the folder plans stays planned, though the archive does not ask for it any more."""
    before = {run.id for run in store.plan()}
    there = Store(tmp_path / "there")
    there.begin(store.study())
    later = tiny_study(cells=[tiny_cell("sac", "shared")], seeds=1)
    store.begin(later.to_json())
    restore(read_archive(archived(store)), there)
    assert {run.id for run in there.plan()} == before | {run.id for run in later.runs()}


def test_an_archive_that_does_not_tell_them_plans_all_its_runs(store, tmp_path):
    """Those that were written before it was kept which runs are beside the plan."""
    first, second, third, _ = store.plan()
    later = tiny_study(cells=[tiny_cell("sac", "shared")], seeds=1)
    store.begin(later.to_json())
    path = archived(store)
    said = json.loads(parquet.read_schema(path).metadata[b"headwise.study"])
    del said["beside_the_plan"]
    table = parquet.read_table(path).replace_schema_metadata({"headwise.study": json.dumps(said)})
    path.write_bytes(bytes_of(table))
    there = Store(tmp_path / "there")
    restore(read_archive(path), there)
    assert {run.id for run in there.plan()} == {
        *(run.id for run in later.runs()),
        *(run.id for run in (first, second, third)),
    }


def test_another_study_is_not_mixed_in(store, tmp_path):
    there = Store(tmp_path / "there")
    there.begin(tiny_study("other").to_json())
    with pytest.raises(ConfigError, match=r"holds another study; got tiny"):
        restore(read_archive(archived(store)), there)


def changed(path, **columns):
    """An archive with other columns."""
    table = parquet.read_table(path)
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array(values, table.schema.field(name).type))
    return bytes_of(table)


def bytes_of(table):
    logger = pa.BufferOutputStream()
    parquet.write_table(table, logger)
    return logger.getvalue().to_pybytes()


def test_what_is_no_archive_is_refused(store, tmp_path):
    path = archived(store)
    data = path.read_bytes()
    configs = parquet.read_table(path).column("config").to_pylist()
    by_hand = {"id": "0" * 16, **json.loads(configs[0])}
    for place, bad in enumerate(
        [
            b"",
            b"no parquet at all",
            data[: len(data) // 2],
            bytes_of(pa.table({"step": [1]})),
            bytes_of(parquet.read_table(path).drop_columns("curve")),
            changed(path, config=["{}", *configs[1:]]),
            changed(path, config=["no json", *configs[1:]]),
            changed(path, config=[None, *configs[1:]]),
            changed(path, config=[json.dumps(by_hand), *configs[1:]]),
            changed(path, result=["no json", None, None, None]),
            changed(path, result=["[1]", None, None, None]),
            changed(path, curve=[[1.0, 2.0], None, None, None]),
        ]
    ):
        file = tmp_path / f"{place}.parquet"
        file.write_bytes(bad)
        with pytest.raises(ConfigError, match=rf"{place}.parquet is no archived study; got .+"):
            read_archive(file)
    newer = parquet.read_table(path).replace_schema_metadata(
        {"headwise.study": json.dumps({**store.study(), "version": 99})}
    )
    path.write_bytes(bytes_of(newer))
    with pytest.raises(ConfigError, match="has another layout; got 99; allowed: 2"):
        read_archive(path)


def test_a_run_that_cannot_be_read_is_named(store, tmp_path):
    run = store.plan()[0]
    for text in ("{", "[1]", ""):
        (store.runs / run.id / "result.json").write_text(text)
        with pytest.raises(StoreError, match=rf"cannot read .*{run.id}.*Delete the run's folder"):
            archived(store)
    assert not (tmp_path / "x.parquet").exists()


def test_deleted_tables_leave_the_scores(store):
    run = store.plan()[0]
    (store.runs / run.id / "episodes.parquet").unlink()
    (store.runs / run.id / "metrics.parquet").unlink()
    record = read_archive(archived(store)).record(run.id)
    assert set(record.archived) == {"config.json", "fingerprint.json", "result.json"}
    assert record.score == 4.5


def test_an_archive_is_replaced_whole(store, tmp_path):
    path = tmp_path / "new" / "x.parquet"
    for _ in range(2):
        write_archive(store, path)
        assert finished(read_archive(path)) == 2
        assert [p.name for p in path.parent.iterdir()] == ["x.parquet"]
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot write .*x.parquet; got .*--out"):
        write_archive(store, tmp_path / "file" / "x.parquet")


def test_a_restored_curve_that_was_changed_is_told(store, tmp_path):
    there = Store(tmp_path / "there")
    restore(read_archive(archived(store)), there)
    run = read_store(there.folder).runs[0]
    for text in ("{", "[]", "{}", '{"returns": [1, 2]}', '{"returns": ["a"]}'):
        (run.folder / "curve.json").write_text(text)
        with pytest.raises(StoreError, match=r"cannot read .*curve.json; got .*Delete the run"):
            run.curve()
        assert [bad.id for bad in read_store(there.folder).damaged] == [run.id]


def test_a_leftover_that_cannot_be_read_is_told(store):
    leftover = store.runs / ("0" * 16)
    leftover.mkdir()
    for text, why in (("{", "Expecting property name"), ("{}", "not complete"), ("[]", "no JSON")):
        (leftover / "config.json").write_text(text)
        with pytest.raises(StoreError, match=rf"config.json; got .*{why}.*Delete the run's folder"):
            archived(store)


NAMES = [
    "../out",
    "/tmp/out",
    "..",
    ".",
    "",
    "a/b",
    "a\\b",
    ".hidden",
    "a\0b",
    "a\nb",
    "x" * 101,
    5,
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leads_out_of_the_folder_is_refused(name, store, tmp_path):
    """It comes from a file, and is to be a folder's and a file's."""
    path = archived(store)
    forged = {**store.study(), "name": name}
    table = parquet.read_table(path).replace_schema_metadata({"headwise.study": json.dumps(forged)})
    path.write_bytes(bytes_of(table))
    with pytest.raises(ConfigError, match=r"a name that no study can have; got .*letters, digits"):
        read_archive(path)
    (store.folder / "study.json").write_text(json.dumps(forged))
    with pytest.raises(StoreError, match=r"name that no study can have|does not describe a study"):
        store.study()


def test_texts_that_are_nested_too_deeply_are_refused(store):
    path = archived(store)
    table = parquet.read_table(path)
    for name in ("config", "result"):
        deep = pa.array(["[" * 100_000] * table.num_rows)
        place = table.schema.get_field_index(name)
        parquet.write_table(table.set_column(place, name, deep), path)
        with pytest.raises(ConfigError, match=r"got .*nested too deeply"):
            read_archive(path)
    parquet.write_table(table.replace_schema_metadata({"headwise.study": "[" * 100_000}), path)
    with pytest.raises(ConfigError, match=r"is no archived study; got .*nested too deeply"):
        read_archive(path)


def test_an_archive_is_read_as_it_is(store, tmp_path):
    """Like the folder that it would be restored to."""
    path = archived(store)
    archive, there = Store(path), Store(tmp_path / "there")
    restore(read_archive(path), there)
    mine, theirs = read_store(path), read_store(there.folder)
    assert (mine.name, mine.about, mine.plan) == (theirs.name, theirs.about, theirs.plan)
    assert len(mine.runs) == 2
    for part in ("runs", "failures"):
        for run, other in zip(getattr(mine, part), getattr(theirs, part), strict=True):
            assert (run.id, run.config, run.result) == (other.id, other.config, other.result)
            assert (run.error, run.fingerprint) == (other.error, other.fingerprint)
            if part == "runs":
                np.testing.assert_array_equal(run.curve(), other.curve())
    assert results_csv(archive) == results_csv(there)
    assert marl_eval_json(archive) == marl_eval_json(there)
    ours, its = standings(archive, archive.plan()), standings(there, there.plan())
    assert repr(ours) == repr(its)  # with the means that are not a number
    with pytest.raises(StoreError, match="cannot be used"):
        archive.begin(store.study())


def test_a_damaged_row_of_an_archive_costs_its_run_alone_and_is_named(store, tmp_path):
    path = archived(store)
    first, second, third, _ = store.plan()
    configs = parquet.read_table(path).column("config").to_pylist()
    results = parquet.read_table(path).column("result").to_pylist()
    by_hand = json.dumps({**json.loads(configs[0]), "id": second.id})
    for columns, name, why in (
        ({"config": ["{", *configs[1:]]}, "run 0", "Expecting property name"),
        ({"config": [None, *configs[1:]]}, "run 0", "config.json"),
        ({"config": [by_hand, *configs[1:]]}, "run 0", "not the hash"),
        ({"config": [*configs[:3], "{}"]}, "run 3", "not complete"),
        ({"result": ["[1]", *results[1:]]}, first.id, "no JSON object"),
        ({"result": ['{"final_return": "many"}', *results[1:]]}, first.id, "could not convert"),
        ({"curve": [[1.0, 2.0], None, None, None]}, first.id, "not 50 numbers"),
    ):
        (tmp_path / "bad.parquet").write_bytes(changed(path, **columns))
        report = read_store(tmp_path / "bad.parquet")
        (bad,) = report.damaged
        assert bad.id == name
        assert why in bad.why
        assert "bad.parquet" in bad.why
        left = [first, second] if name == "run 3" else [second]
        assert [run.id for run in report.runs] == [run.id for run in left]
        assert [failure.id for failure in report.failures] == [third.id]


def test_two_that_restore_at_once_lose_no_plan(store, tmp_path):
    other = Store(tmp_path / "other")
    other.begin(tiny_study(seeds=1, cells=[tiny_cell("sac", "shared")]).to_json())
    parts = [read_archive(archived(store)), read_archive(archived(other, "y.parquet"))]
    there = Store(tmp_path / "there")
    threads = [threading.Thread(target=restore, args=(part, there)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {run.id for run in there.plan()} == {run.id for part in parts for run in part.plan()}


def test_no_torch_is_needed_to_read(store):
    path = archived(store)
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from headwise.report import read_store\n"
        f"assert len(read_store({str(path)!r}).runs) == 2\n"
        f"assert len(read_store({str(store.folder)!r}).runs) == 2\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
