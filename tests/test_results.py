"""What is written about our own runs is what the files in results/ say."""

import csv
import importlib.util
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from headwise.study.archive import read_archive

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def scores():
    spec = importlib.util.spec_from_file_location("scores", ROOT / "tools" / "scores.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def archive():
    return read_archive(ROOT / "results" / "paper.parquet")


@pytest.fixture(scope="module")
def runs(scores):
    return scores.runs_of(ROOT / "results" / "paper.parquet")


def test_the_table_of_runs_is_that_of_the_archive(scores, runs):
    assert (ROOT / "results" / "paper.csv").read_text() == scores.as_csv(runs)


def test_the_table_of_scores_is_that_of_the_archive(scores, runs):
    assert scores.as_table(runs) in (ROOT / "benchmarks" / "RESULTS.md").read_text()


def rows_of(name):
    with (ROOT / "results" / name).open(newline="") as file:
        return list(csv.DictReader(file))


def tables_of(path):
    """The tables of a page as lists of rows, each a list of cells; the first is the head."""
    for block in re.findall(r"(?:^\|.*\n)+", (ROOT / path).read_text(), re.M):
        yield [[cell.strip() for cell in line.strip()[1:-1].split("|")]
               for line in block.splitlines() if not line.startswith("| ---")]  # fmt: skip


def table_of(path, head):
    (found,) = (table for table in tables_of(path) if table[0][: len(head)] == head)
    return found[1:]


def means(name, *keys):
    found = {}
    for row in rows_of(name):
        found.setdefault(tuple(row[key] for key in keys), []).append(float(row["score"]))
    return {key: f"{np.mean(values):.2f}" for key, values in found.items()}


def test_the_tables_of_settings_of_sac_are_those_of_the_runs():
    known = means("sac_settings.csv", "factorization", "environment", "view", "activation",
                  "actor_gradient", "target_entropy")  # fmt: skip
    seen = set()

    def same(text, *key):
        assert text == known.get(key, ""), key
        seen.add(key)

    settings = [(activation, gradient, target)
                for gradient in ("straight_through", "counterfactual")
                for activation in ("tanh", "relu") for target in ("0.5", "0.2")]  # fmt: skip
    for what, *cells in table_of("benchmarks/RESULTS.md", ["`shared`", "tanh 0.5"]):
        for text, setting in zip(cells, settings, strict=True):
            same(text, "shared", *what.split(), *setting)
    for what, *cells in table_of("benchmarks/RESULTS.md", ["`vdn`, tanh unless said"]):
        where, _, activation = what.partition(", ")
        for text, target in zip(cells, ("0.5", "0.2"), strict=True):
            same(text, "vdn", *where.split(), activation or "tanh", "straight_through", target)
    for what, *cells in table_of("benchmarks/RESULTS.md", ["others, tanh"]):
        name, where = what.split(", ")
        for text, target in zip(cells, ("0.5", "0.2"), strict=True):
            same(text, name.strip("`"), *where.split(), "tanh", "straight_through", target)
    assert set(known) <= seen  # every run is in a table


def test_the_table_of_networks_of_dqn_is_that_of_the_runs():
    known = means("learning_dqn.csv", "environment", "view", "factorization", "dueling", "hidden")
    names = ["independent", "shared", "vdn", "joint"]
    for env, view, *cells in table_of("benchmarks/RESULTS.md",
                                      ["environment", "view", "`independent`"]):  # fmt: skip
        hidden = "128x128" if env == "lander" else "256x256"
        for name, text in zip(names, cells, strict=True):
            pair = [known.get((env, view, name, dueling, hidden)) for dueling in ("True", "False")]
            assert text == ("" if pair == [None, None] else " / ".join(pair)), (env, view, name)


def test_the_table_of_target_entropies_is_that_of_the_runs():
    known = {}
    for row in rows_of("target_entropy.csv"):
        key = tuple(row[k] for k in ("environment", "view", "factorization", "target_entropy"))
        known.setdefault(key, []).append(float(row["score"]))
    table = table_of("benchmarks/RESULTS.md", ["environment", "view", "factorization", "0.5"])
    assert 3 * len(table) == len(known)
    for env, view, name, *cells in table:
        for text, target in zip(cells, ("0.5", "0.2", "0.1"), strict=True):
            values = known[env, view, name.strip("`"), target]
            spread = f"{min(values):.2f} to {max(values):.2f}" if len(values) > 1 else "1 seed"
            assert text.replace("**", "") == f"{np.mean(values):.2f} ({spread})", (env, view, name)


def test_commits_are_those_of_the_archive(archive):
    """Every commit that runs of the archive were made with is named, and no other."""
    text = (ROOT / "benchmarks" / "RESULTS.md").read_text()
    (passage,) = re.findall(r"1,060 on an NVIDIA H200: (.*?)\. The commits", text)
    counts = Counter(
        re.fullmatch(r"(\w{7})\w*(\+?)", files["fingerprint.json"]["commit"]).groups()
        for _, files in archive.runs
    )
    said = re.findall(r"(\d+) of (?:commit )?([0-9a-f]{7}\+?)", passage)
    assert {c: int(n) for n, c in said} == {"".join(c): n for c, n in counts.items()}
