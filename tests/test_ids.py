"""Every run in `results/` can be told from its id: `tools/ids_v1.json.gz` says what it was."""

import importlib.util
from collections import Counter
from pathlib import Path

import pytest

from headwise.study import Store
from headwise.study.run import Run

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("write_ids", ROOT / "tools" / "write_ids.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def known(tool):
    return tool.read()


def test_every_row_of_the_results_is_known_and_is_what_its_row_says(tool, known):
    rows = list(tool.rows())
    assert len(rows) == 3775
    assert {row["run"] for row in rows} == set(known)
    said = Counter()
    for row in rows:
        config = known[row["run"]]
        texts = config | config["settings"] | config["labels"]
        texts["hidden"] = "x".join(map(str, config["settings"]["hidden"]))
        for name, text in row.items():
            # The words of a study may be another's settings.
            if name in ("bonus", "change", "gradient") or name not in texts or text == "":
                continue
            said[name] += 1
            assert str(texts[name]) == text, (row["run"], name)
    assert said["seed"] == said["algorithm"] == said["factorization"] == len(rows)
    assert said["environment"] >= 2800


def test_ids_are_what_they_were(known):
    for id_, config in known.items():
        assert Run.from_json(config).id == id_


def test_archives_hold_the_same_configurations(known):
    for name in ("paper", "costs"):
        for run in Store(ROOT / "results" / f"{name}.parquet").plan():
            assert known[run.id] == run.to_json()


def test_studies_still_plan_these_runs(tool, known):
    assert tool.configurations() == known
