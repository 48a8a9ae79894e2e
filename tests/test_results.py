"""What is written about our own runs is what the files in results/ say."""

import csv
import importlib.util
import json
import re
from collections import Counter
from html import unescape
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from headwise.report.claims import Evidence, all_claims, ledger
from headwise.report.runs import read_store
from headwise.report.statistics import compare, holm, sample, welch
from headwise.report.sweeps import sweeps_of
from headwise.report.tables.claims import claims_table
from headwise.report.tables.table import to_csv
from headwise.study import load_study

ROOT = Path(__file__).parents[1]
BONUS = ROOT / "results" / "studies" / "entropy_bonus.py"


@pytest.fixture(scope="module")
def scores():
    spec = importlib.util.spec_from_file_location("scores", ROOT / "tools" / "scores.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def runs():
    return read_store(ROOT / "results" / "paper.parquet").runs


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
        lines = [line for line in block.splitlines() if not re.match(r"\|( ---|---)", line)]
        yield [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines]


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
    known = means("learning_dqn.csv", "environment", "view", "factorization", "dueling", "net_arch")
    names = ["independent", "shared", "vdn", "joint"]
    for env, view, *cells in table_of("benchmarks/RESULTS.md",
                                      ["environment", "view", "`independent`"]):  # fmt: skip
        hidden = "128x128" if env == "lander" else "256x256"
        for name, text in zip(names, cells, strict=True):
            pair = [known.get((env, view, name, dueling, hidden)) for dueling in ("True", "False")]
            assert text == ("" if pair == [None, None] else " / ".join(pair)), (env, view, name)


def test_what_is_said_of_plain_networks_of_dqn_tells_both_sides():
    scores = {}
    for row in rows_of("learning_dqn.csv"):
        where = tuple(row[key] for key in ("environment", "view", "factorization", "net_arch"))
        scores.setdefault(where, {}).setdefault(row["dueling"], []).append(float(row["score"]))
    pairs = {where: (of["False"], of["True"]) for where, of in scores.items() if len(of) == 2}
    gaps = {where: np.mean(plain) - np.mean(dueling) for where, (plain, dueling) in pairs.items()}
    adjusted = holm([float(welch(*pair).p) for pair in pairs.values()])
    certain = [where for where, p in zip(pairs, adjusted, strict=True) if p < 0.05]
    row, = (line for line in (ROOT / "docs" / "what-holds.md").read_text().splitlines()
            if line.startswith("| DQN: plain networks"))  # fmt: skip

    def ahead(environment, *names):
        return [gap > 0 for (env, _, name, _), gap in gaps.items()
                if env.startswith(environment) and name in (names or (name,))]  # fmt: skip

    assert len(pairs) == 50
    assert "ahead in 20 of 20 cells, in seven beyond chance" in row
    assert (sum(ahead("shoot")), len(ahead("shoot"))) == (20, 20)
    assert sum(where[0].startswith("shoot") for where in certain) == 7
    assert "on CoopPush behind in 10 of 10, of `independent` and `shared` all six" in row
    assert ahead("push") == [False] * 10
    assert ahead("push", "independent", "shared") == [False] * 6
    worse = {f"{view} `{f}` by {-gaps[env, view, f, hidden]:.2f}"
             for env, view, f, hidden in certain if env == "push"}  # fmt: skip
    assert worse == set(re.search(r"in three: (.*?) \(a fifth", row)[1].split(", "))
    assert "On Lander behind in nine of ten, on Platform in two of ten, none beyond" in row
    assert (sum(ahead("lander")), sum(ahead("platform"))) == (1, 8)
    assert len(certain) == 7 + 3


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


def test_runs_of_the_entropy_bonus_are_of_the_commands_named():
    kept = {row["run"] for row in rows_of("entropy_bonus.csv")}
    plain, less = ({run.id for run in load_study(BONUS, **args).runs()} & kept
                   for args in ({}, {"target_entropy": 0.2}))  # fmt: skip
    assert plain | less == kept
    text = (ROOT / "results" / "README.md").read_text()
    assert f"PPO ({len(plain)} runs); {len(less - plain)} with `--args target_entropy=0.2`" in text


def test_commits_are_those_of_the_archive(runs):
    """Every commit that runs of the archive were made with is named, and no other."""
    text = (ROOT / "benchmarks" / "RESULTS.md").read_text()
    (passage,) = re.findall(r"1,060 on an NVIDIA H200: (.*?)\. The commits", text)
    counts = Counter(
        re.fullmatch(r"(\w{7})\w*(\+?)", run.fingerprint["commit"]).groups() for run in runs
    )
    said = re.findall(r"(\d+) of (?:commit )?([0-9a-f]{7}\+?)", passage)
    assert {c: int(n) for n, c in said} == {"".join(c): n for c, n in counts.items()}


def test_the_ledger_of_the_sweep_is_that_of_the_archives():
    sweeps = sweeps_of(
        "paper",
        *(read_store(ROOT / "results" / name).runs for name in ("paper.parquet", "costs.parquet")),
    )
    evidence = Evidence((), tuple(sweeps))
    made = claims_table(ledger(all_claims(evidence), evidence))
    made = list(csv.DictReader(to_csv(made).splitlines()))
    kept = [row for row in rows_of("claims.csv") if row["settings"] in ("paper", "")]
    # Corrected for the tests of the sweep alone it is less than for those of the decoupler, too.
    pairs = [(one.pop("p (Holm)"), all_.pop("p (Holm)"))
             for one, all_ in zip(made, kept, strict=True)]  # fmt: skip
    assert made == kept
    assert all(one == all_ == "" or float(one) <= float(all_) for one, all_ in pairs)


def test_lines_about_squared_weights_are_those_of_the_runs():
    found = {}
    for row in rows_of("variance_law.csv"):
        preset = row["preset"].replace("_", " ")
        name = f"{row['factorization'].upper()} ({row['estimator']}): the variance scales with"
        ratio = float(row["variance_ratio"]) / float(row["weight_ratio"])
        found.setdefault((name, preset), []).append(ratio)
    kept = [row for row in rows_of("claims.csv") if "scales with the square" in row["claim"]]
    assert len(kept) == len(found) == 8
    for row in kept:
        (ratios,) = (values for (name, preset), values in found.items()
                     if row["claim"].startswith(name) and row["settings"] == preset)  # fmt: skip
        mean, half = np.mean(ratios), 2.131450 * np.std(ratios, ddof=1) / 4  # Student's, 15 free
        assert len(ratios) == int(row["seeds"]) == 16
        assert float(row["ours"]) == pytest.approx(mean, rel=1e-4)
        assert row["95 % interval"] == f"[{mean - half:.4g}, {mean + half:.4g}]"
        low, high = map(float, row["true for"].split(" to "))
        inside = low <= mean - half and mean + half <= high
        outside = mean + half < low or mean - half > high
        verdict = "holds" if inside else "does not hold" if outside else "undecided"
        assert row["verdict"] == verdict
        assert row["p (Holm)"] == ""


def test_the_page_has_the_same_ledger():
    page = (ROOT / "results" / "report.html").read_text()
    shown = [
        tuple(json.loads(unescape(tags))[key] for key in ("verdict", "key"))
        for tags in re.findall(r'<tr data-claim="(.*?)">', page)
    ]
    assert [verdict for verdict, _ in shown] == [row["verdict"] for row in rows_of("claims.csv")]


def said(value):
    """A number as the pages have it."""
    number = float(value.replace(",", ""))
    digits = 0 if abs(number) >= 1000 else 1 if abs(number) >= 2 else 3
    return f"{round(number, digits) + 0.0:,.{digits}f}" if np.isfinite(number) else "inf"


def test_what_holds_is_what_the_ledger_says():
    text = (ROOT / "docs" / "what-holds.md").read_text()
    parts = dict(zip(
        ("holds", "does not hold", "no meaningful difference", "undecided"),
        re.split(r"^## ", text, flags=re.M)[1:5], strict=True,
    ))  # fmt: skip
    rows = rows_of("claims.csv")
    for row in rows:
        if row["settings"] != "paper":
            continue
        if row["verdict"] == "not yet measured":
            assert f"| {row['claim']} | {row['true for']} | not yet measured |" in text
            continue
        low, high = row["95 % interval"].strip("[]").split(", ")
        number = f"{said(row['ours'])} [{said(low)}, {said(high)}]"
        line = f"| {row['claim']} | {row['true for'].removeprefix(chr(39))} | {number} |"
        assert [verdict for verdict, part in parts.items() if line in part] == [row["verdict"]]
        unequal = re.search(rf"{re.escape(line)} (.*unequal.*) \|", text)
        assert bool(unequal) == ("unequal" in row["note"]), line
    words = " ".join(text.split())
    of = Counter(row["verdict"] for row in rows)
    said_of_all = f"of {len(rows)} claims {of['holds']} hold, {of['does not hold']} do not"
    said_of_all += f", of {of['no meaningful difference']} there is no meaningful difference"
    said_of_all += f", and {of['undecided']} are undecided; {of['not yet measured']} about GPUs are"
    assert f"{said_of_all} not yet measured" in words
    theory = Counter(row["verdict"] for row in rows if not row["settings"])
    assert f"worked out: {theory['holds']} hold, {theory['does not hold']} do not." in words
    tested = [row for row in rows if row["p (Holm)"] and row["verdict"] != "undecided"]
    firm = sum(float(row["p (Holm)"]) < 0.05 for row in tested)
    assert f"{firm} of the {len(tested)} verdicts that rest on a test" in words
    of = Counter((row["settings"], row["verdict"]) for row in rows)
    holds, alike, undecided = (
        [of[preset, verdict] for preset in ("as published", "sound")]
        for verdict in ("holds", "no meaningful difference", "undecided")
    )
    assert f"for {alike[0]} and {alike[1]} there is no meaningful difference" in words
    assert f"claims {holds[0]} hold with the published settings and {holds[1]} with" in words
    assert f"{sum(undecided)} of 114 verdicts, {undecided[0]} with" in words
    assert f"and {undecided[1]} with the sound ones" in words


def test_every_number_of_the_decoupler_in_what_holds_is_in_its_runs():
    found = {}
    for row in rows_of("decoupler.csv"):
        if row["study"] == "decoupler_factorial":
            estimator = "" if row["factorization"] == "shared" else row["estimator"]
            key = row["factorization"], estimator, row["preset"]
            found.setdefault(key, []).append(float(row["final_return"]))
    table = table_of("docs/what-holds.md", ["critic", "estimator", "paper"])
    assert len(table) == 7
    for critic, estimator, _, *cells in table:
        name = critic.split()[0].lower()
        for text, preset in zip(cells, ("as_published", "sound"), strict=True):
            values = np.array(found[name, estimator, preset])
            error = values.std(ddof=1) / np.sqrt(values.size)
            assert text.strip("*") == f"{values.mean():.1f} ± {error:.1f}"


def test_what_pairs_of_seeds_show_of_weights_is_in_the_runs_and_in_the_ledger():
    text = " ".join((ROOT / "docs" / "statistics.md").read_text().split())
    runs = [row for row in rows_of("decoupler.csv") if row["study"] == "decoupler_factorial"]
    found = {}
    for preset in ("as_published", "sound"):
        paired, apart = [], []
        for f, estimator, name in product(
            ("vdn", "qplex"), ("grad", "range"), ("final_return", "auc", "steps_to_50")
        ):
            sides = [
                sample(*zip(*(
                    (float(row[name] or 100_000), int(row["seed"])) for row in runs
                    if (row["preset"], row["factorization"], row["estimator"]) == (preset, f, e)
                ), strict=True))
                for e in (estimator, "uniform")
            ]  # fmt: skip
            paired.append(float(compare(*sides).p))
            apart.append(float(welch(*(side.values for side in sides)).p))
        found[preset] = [sum(np.less(p, 0.05)) for p in (paired, apart, holm(paired))]
    alone, unpaired, after = zip(*found.values(), strict=True)
    assert f"weights {alone[0]} as published and {alone[1]} sound are beyond chance" in text
    assert f"(Welch's test: {unpaired[0]} and {unpaired[1]}), {after[0]} and {after[1]}" in text
    beyond = Counter()
    for row in rows_of("claims.csv"):
        if ": weighting by" in row["claim"] and row["we measure"].endswith("minus uniform"):
            low, high = map(float, row["95 % interval"].strip("[]").split(", "))
            beyond[row["settings"]] += low > 0 or high < 0
    assert f"by which it is {beyond['as published']} and {beyond['sound']}." in text
