"""The report as a whole: what is in it, that it is the same each time, and who is told what."""

import csv
import hashlib
import json
import re
import shutil

import pytest
import synthetic

from headwise.cli.report import main
from headwise.errors import ConfigError
from headwise.report import read_store, write_report
from headwise.report.figures.paper import save
from headwise.report.figures.scores import score_figures
from headwise.report.write import gather


def files(folder):
    """Every file with a hash of its bytes."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A sweep of one environment and the factorial study."""
    root = tmp_path_factory.mktemp("small")
    some = {"platform": synthetic.ENVIRONMENTS["platform"]}
    return [
        synthetic.sweep(root / "paper", 2, 60, some),
        synthetic.factorial(root / "demo", seeds=3),
    ]


def moved(stores, target):
    """The same stores elsewhere, their files made in another order."""
    for old in stores:
        (target / old.name / "runs").mkdir(parents=True)
        shutil.copy(old / "study.json", target / old.name)
        for run in sorted((old / "runs").iterdir(), reverse=True):
            shutil.copytree(run, target / old.name / "runs" / run.name)
    return [target / old.name for old in stores]


def test_the_same_store_gives_the_same_bytes(tmp_path, small):
    elsewhere = moved(small, tmp_path / "moved")
    first = write_report(small, tmp_path / "first", formats=()).parent
    again = write_report(elsewhere, tmp_path / "again", formats=()).parent
    assert files(first) == files(again)
    # with figures: those of the decoupler, and of the sweep one of each kind
    first = write_report(small[1], tmp_path / "first").parent
    again = write_report(elsewhere[1], tmp_path / "again").parent
    (sweep,) = gather([read_store(small[0])]).sweeps
    kinds = {type(figure.panels[0]): figure for figure in score_figures(sweep)}
    assert {kind.__name__ for kind in kinds} == {"Heat", "Intervals", "Lines", "Scatter"}
    for figure in kinds.values():
        for folder in (first, again):
            save(figure, folder / "figures")
    assert files(first) == files(again)
    assert sum(name.endswith(".pdf") for name in files(first)) == 4 + 4


def test_everything_that_was_promised_is_there(tmp_path, small):
    page = write_report(small, tmp_path / "r", formats=())
    figures = {figure["name"] for figure in data_of(page.read_text())["figures"]}
    assert figures >= {
        "curves-by-type-and-family-paper", "curves-by-family-paper", "curves-by-action-type-paper",
        "environment-platform-hybrid-paper", "score-heatmap-paper", "score-intervals-paper",
        "performance-profiles-paper", "probability-of-improvement-paper",
        "compute-versus-score-paper", "decoupler-factorial-sound-demo",
        "importance-recovery-as-published-demo",
    }  # fmt: skip
    names = set(files(page.parent))
    for table in ("claims", "decoupler-factorial-sound-demo", "scores-paper", "comparisons-paper",
                  "decoupler-significance-as-published-demo", "compute-paper", "runs"):  # fmt: skip
        assert {f"tables/{table}.csv", f"tables/{table}.tex"} <= names


def test_times_from_another_folder(tmp_path):
    def store(name, steps, **result):
        runs = [
            (synthetic.config("Platform", "ppo", f, seed, steps), ([steps], [1.0]), {}, result)
            for f in ("vdn", "ar")
            for seed in range(3)
        ]
        return synthetic.write_store(tmp_path / name, name, runs)

    paper, costs = store("paper", 500_000, final_return=1.0), store("costs", 9000, update_ms=2.0)
    for times, verdict in ((None, "not yet measured"), (costs, "holds")):
        page = write_report(paper, times=times, formats=())
        (line,) = (
            row
            for row in rows(page.parent / "tables" / "claims.csv")
            if row["we measure"] == "time per update, VDN-PPO over AR-PPO"
        )
        assert line["verdict"] == verdict
    assert float(line["ours"]) == 1.0
    made = rows(page.parent / "tables" / "machines.csv")
    assert [row["study"] for row in made] == ["costs", "paper"]
    scores = rows(page.parent / "tables" / "scores-paper.csv")
    assert [row["steps"] for row in scores] == ["500000", "500000"]


def test_the_page_needs_nothing_from_outside(tmp_path, small):
    page = write_report(small, tmp_path / "r", formats=()).read_text()
    addresses = set(re.findall(r"https?://[^\"'\s)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a name, not a place
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=(?!\"data:)", page)
    assert len(page) < 2_000_000


def test_every_cell_of_the_220_appears_also_with_one_seed_and_a_tiny_budget(tmp_path):
    store = synthetic.sweep(tmp_path / "s", seeds=1, episodes=3, share=0.0001)
    # a run in which no episode ended is still a cell
    run = read_store(store).runs[0]
    result = {**run.result, "final_return": None, "final_smoothed": None, "auc": None}
    (run.folder / "result.json").write_text(json.dumps(result))
    page = write_report(store, formats=())
    assert page == store / "report" / "index.html"
    table = rows(page.parent / "tables" / "scores-paper.csv")
    cells = {(row["environment"], row["view"], row["method"]) for row in table}
    assert len(table) == len(cells) == 220
    assert sum(row["seeds"] == "0" for row in table) == 1
    (heat,) = [
        f for f in data_of(page.read_text())["figures"] if f["name"] == "score-heatmap-paper"
    ]
    assert sum(text != "" for row in heat["panels"][0]["texts"] for text in row) == 220
    assert sum(v is not None for row in heat["panels"][0]["values"] for v in row) == 219
    claims = rows(page.parent / "tables" / "claims.csv")
    assert len(claims) > 100
    assert {row["verdict"] for row in claims} == {"not yet measured"}
    assert any("so far" in row["note"] for row in claims)


def test_figures_hold_the_numbers_of_the_store(tmp_path, small):
    page = write_report(small, tmp_path / "r", formats=()).read_text()
    figures = {figure["name"]: figure for figure in data_of(page)["figures"]}
    panels = figures["curves-by-type-and-family-paper"]["panels"]
    assert [panel["title"] for panel in panels][:3] == [
        "PPO, discrete", "PPO, hybrid", "PPO, continuous",
    ]  # fmt: skip
    assert [s["key"] for s in panels[0]["series"]] == [
        "independent", "shared", "vdn", "qplex", "ar", "joint",
    ]  # fmt: skip
    ends = {s["key"]: s["y"][-1] for s in panels[0]["series"]}
    assert ends["ar"] == pytest.approx(0.8, abs=0.15)
    assert ends["joint"] == pytest.approx(0.3, abs=0.15)
    curve = panels[0]["series"][0]
    assert all(a <= b <= c for a, b, c in zip(curve["low"], curve["y"], curve["high"], strict=True))
    reference = figures["environment-platform-discrete-paper"]["panels"][0]["references"]
    assert reference == [["random play", 0.1472], ["best known", 0.9998]]
    costs = figures["compute-versus-score-paper"]["panels"]
    assert [panel["title"] for panel in costs] == [
        "Parameters", "Floating-point operations per action", "Milliseconds per update",
        "Milliseconds per action",
    ]  # fmt: skip
    assert costs[1]["points"] == []  # not in the store: the page says so
    assert {p["label"]: p["x"] for p in costs[0]["points"]}["VDN-PPO"] == 77_000


def test_what_is_missing_says_so(tmp_path):
    (tmp_path / "study.json").write_text(
        json.dumps({"name": "new", "version": 1, "plan": [{"id": "a"}]})
    )
    page = write_report(tmp_path, formats=()).read_text()
    assert page.count("Not yet measured.") >= 4  # scores, curves, decoupler, compute
    assert "0 of 1" in page
    assert "not yet measured" in page


def test_files_that_a_report_no_longer_has_are_taken_away(tmp_path, small):
    out = tmp_path / "r"
    write_report(small, out, formats=())
    (out / "mine.txt").write_text("keep")
    assert (out / "tables" / "scores-paper.csv").exists()
    write_report(small[1], out, formats=())
    assert not (out / "tables" / "scores-paper.csv").exists()
    assert (out / "tables" / "scores-demo.csv").exists()
    assert (out / "mine.txt").read_text() == "keep"


def test_a_hostile_name_is_only_text(tmp_path):
    evil = "</script><img src=x onerror=alert(1)>"
    c, episodes, metrics, result = synthetic.decoupler_run("ppo", "vdn", "range", 0, 80.0)
    c["labels"] = {"environment": evil}
    failed = synthetic.config("Platform", "ppo", "vdn", 1, 100)
    store = synthetic.write_store(tmp_path / "s", "s", [(c, episodes, metrics, result)],
                                  f"about {evil}", failed=[failed])  # fmt: skip
    page = write_report(store, formats=()).read_text()
    assert "<img" not in page
    assert page.count("</script>") == 2
    assert "it &lt;broke&gt; &amp; fell" in page


def test_errors_say_what_to_do(tmp_path, small):
    with pytest.raises(ConfigError, match="no study in this folder"):
        write_report(tmp_path)
    with pytest.raises(ConfigError, match="needs the folder"):
        write_report([])
    with pytest.raises(ConfigError, match="unknown format of figures; got 'svg'"):
        write_report(small, tmp_path / "r", formats=("svg",))
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot write the report.*--out"):
        write_report(small, tmp_path / "file" / "r", formats=())


def test_the_command(tmp_path, small, capsys, monkeypatch):
    out = tmp_path / "out"
    assert main([*map(str, small), "--out", str(out), "--formats"]) == 0
    assert (out / "index.html").exists()
    assert f"report: {out / 'index.html'}" in capsys.readouterr().err.replace("\n", "")
    # a bare name is looked for in ./runs
    monkeypatch.chdir(tmp_path)
    shutil.copytree(small[1], tmp_path / "runs" / "demo")
    assert main(["demo", "--formats", "png"]) == 0
    made = tmp_path / "runs" / "demo" / "report" / "figures"
    assert {path.suffix for path in made.iterdir()} == {".png"}
