"""Every run in `results/` is one that its study plans, and is what it was in layout 1."""

import importlib.util
from collections import Counter
from pathlib import Path

import pytest

from headwise.study import Store
from headwise.study.run import Run
from headwise.upgrade import plain_id

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location(
        "migrate_results", ROOT / "tools" / "migrate_results.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def before(tool):
    return tool.read()


@pytest.fixture(scope="module")
def known(tool):
    """What each is, by its id of today."""
    return {config.pop("id"): config for config in tool.migrated().values()}


def test_every_row_of_the_results_is_known_and_is_what_its_row_says(tool, known):
    rows = list(tool.rows())
    assert len(rows) == 3775
    assert {row["run"] for row in rows} == set(known)
    said = Counter()
    for row in rows:
        config = known[row["run"]]
        texts = config | config["settings"] | config["labels"]
        texts["net_arch"] = "x".join(map(str, config["settings"]["net_arch"]))
        for name, text in row.items():
            # The words of a study may be another's settings.
            if name in ("bonus", "change", "gradient") or name not in texts or text == "":
                continue
            said[name] += 1
            assert str(texts[name]) == text, (row["run"], name)
    assert said["seed"] == said["algorithm"] == said["factorization"] == len(rows)
    assert said["environment"] >= 2800
    assert said["net_arch"] >= 500


def test_ids_are_what_they_were(before, known):
    for id_, config in before.items():
        assert plain_id(config) == id_
    assert len(known) == len(before)  # no two have become one
    for id_, config in known.items():
        assert Run.from_json(config).id == id_


def test_archives_hold_the_same_configurations(known):
    for name in ("paper", "costs"):
        for run in Store(ROOT / "results" / f"{name}.parquet").plan():
            assert known[run.id] == run.to_json()


def test_studies_plan_these_runs(tool, known):
    assert tool.configurations() == known


def test_tables_are_in_the_words_of_today(tool):
    ids = {id_: config["id"] for id_, config in tool.migrated().items()}
    for path in (ROOT / "results").glob("*.csv"):
        assert tool.in_todays_words(path.read_text(), ids) == path.read_text(), path.name
