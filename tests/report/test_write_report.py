"""The report as a whole: what is in it, that it is the same each time, and who is told what."""

import csv
import hashlib
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import synthetic

from headwise.cli.report import main
from headwise.errors import ConfigError
from headwise.report import read_store, write_report
from headwise.report.figures.figure import Dot, Figure, Heat, Intervals
from headwise.report.figures.paper import STYLE, _draw, save
from headwise.report.figures.scores import score_figures
from headwise.report.names import slug
from headwise.report.tables.claims import failures_table
from headwise.report.write import gather
from headwise.study import Store
from headwise.study.archive import read_archive, restore, write_archive


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
        "curves-by-family-paper", "curves-by-action-type-paper",
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
            (
                synthetic.config(env, "ppo", f, seed, steps, view, env_settings=settings,
                                 labels={"environment": label}),
                ([steps], [1.0]), {}, result,
            )
            for label, (env, settings, *_) in synthetic.ENVIRONMENTS.items()
            for f in ("vdn", "ar", "shared")
            for view in synthetic.VIEWS
            for seed in range(3)
        ]  # fmt: skip
        return synthetic.write_store(tmp_path / name, name, runs)

    paper, costs = store("paper", 2_000_000, final_return=1.0), store("costs", 9000, update_ms=2.0)
    for times, verdict in ((None, "not yet measured"), (costs, "holds")):
        page = write_report(paper, times=times, formats=())
        (line,) = (
            row
            for row in rows(page.parent / "tables" / "claims.csv")
            if row["we measure"].startswith("time per update on a CPU")
            and row["we measure"].endswith("VDN-PPO over AR-PPO")
        )
        assert line["verdict"] == verdict
    assert float(line["ours"]) == 1.0
    made = rows(page.parent / "tables" / "machines.csv")
    assert [row["study"] for row in made] == ["costs", "paper"]
    scores = rows(page.parent / "tables" / "scores-paper.csv")
    assert {row["steps"] for row in scores} == {"2000000"}


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
    measured = [row for row in claims if row["settings"]]  # theory is known without runs
    assert len(measured) > 40
    assert {row["verdict"] for row in measured} == {"not yet measured"}
    assert any("so far" in row["note"] for row in claims)


def test_figures_hold_the_numbers_of_the_store(tmp_path, small):
    page = write_report(small, tmp_path / "r", formats=()).read_text()
    figures = {figure["name"]: figure for figure in data_of(page)["figures"]}
    panels = figures["environment-platform-discrete-paper"]["panels"]
    assert [panel["title"] for panel in panels] == ["PPO", "SAC", "DQN"]
    assert [s["key"] for s in panels[0]["series"]] == [
        "independent", "shared", "vdn", "qplex", "ar", "joint",
    ]  # fmt: skip
    ends = {s["key"]: s["y"][-1] for s in panels[0]["series"]}
    assert ends["ar"] == pytest.approx(0.15 + 0.85 * 0.8, abs=0.15)
    assert ends["joint"] == pytest.approx(0.15 + 0.85 * 0.3, abs=0.15)
    curve = panels[0]["series"][0]
    assert all(a <= b <= c for a, b, c in zip(curve["low"], curve["y"], curve["high"], strict=True))
    assert panels[0]["references"] == [["random play", 0.1472], ["best known", 0.9998]]
    costs = figures["compute-versus-score-paper"]["panels"]
    assert [panel["title"] for panel in costs] == [
        "Parameters", "Floating-point operations per action", "Milliseconds per update",
        "Milliseconds per action",
    ]  # fmt: skip
    assert costs[1]["points"] == []  # not in the store: the page says so
    assert {p["label"]: p["x"] for p in costs[0]["points"]}["VDN-PPO"] == 77_000


def test_a_study_that_has_not_begun_says_so(tmp_path):
    (tmp_path / "study.json").write_text(
        json.dumps({"name": "new", "version": 1, "plan": [{"id": "a"}]})
    )
    page = write_report(tmp_path, formats=()).read_text()
    assert "No run has finished yet." in page
    assert "0 of 1" in page
    assert re.findall(r"<h2>(.*?)</h2>", page) == ["Runs"]


def test_a_study_of_ones_own_has_a_page_without_the_paper(tmp_path):
    runs = [
        (
            synthetic.config("Arm", "ppo", f, seed, 1000, view=None),
            (range(20, 1001, 20), [i / 50 + 0.1 * (f == "vdn") for i in range(50)]), {},
            {"final_return": 0.9 + seed / 10, "num_parameters": 10},
        )
        for f in ("shared", "vdn") for seed in range(2)
    ]  # fmt: skip
    store = synthetic.write_store(tmp_path / "s", "arms", runs, "Which arm?")
    made = write_report(store, formats=())
    page = made.read_text()
    parts = ["Scores", "Tables", "Learning curves", "Compute", "Runs"]
    assert re.findall(r"<h2>(.*?)</h2>", page) == parts
    assert re.findall(r'<a href="#[a-z-]*">(.*?)</a>', page) == parts
    for word in ("laims", "Decoupler", "Not yet measured", "paper", "hybrid"):
        assert word not in page.partition("<body>")[2].partition("<script")[0]
    assert "Arm, actions as they are (arms)" in page
    assert not (made.parent / "tables" / "claims.csv").exists()
    # one task: no figure says what another one does
    names = [figure["name"] for figure in data_of(page)["figures"]]
    assert names == [
        "score-heatmap-arms", "score-intervals-arms", "probability-of-improvement-arms",
        "compute-versus-score-arms", "environment-arm-as-it-is-arms",
    ]  # fmt: skip


def test_runs_of_an_abandoned_plan_are_left_out_and_counted(tmp_path, capsys):
    """What was trained before an argument of the study changed is not mixed with what is."""

    def runs(rate, score):
        return [
            (synthetic.config("Platform", "ppo", f, seed, 1000, settings={"learning_rate": rate}),
             ([500, 1000], [0.1, score]), {}, {"final_return": score})
            for f in ("shared", "vdn") for seed in range(3)
        ]  # fmt: skip

    store = synthetic.write_store(tmp_path / "s", "s", [*runs(0.1, 0.25), *runs(0.01, 0.75)])
    study = json.loads((store / "study.json").read_text())
    plan = [entry for entry in study["plan"] if entry["settings"]["learning_rate"] == 0.01]
    (store / "study.json").write_text(json.dumps({**study, "plan": plan}))
    assert main([str(store), "--formats"]) == 0
    said = "6 finished runs are not in the plan as it is now, and left out"
    assert said in capsys.readouterr().err.replace("\n", " ")
    report = store / "report"
    assert said in (report / "index.html").read_text()
    assert [row["mean"] for row in rows(report / "tables" / "scores-s.csv")] == ["0.75", "0.75"]
    assert rows(report / "tables" / "runs.csv")[0]["left out"] == "6"
    assert main([str(store), "--formats", "--all-runs"]) == 0
    assert said not in capsys.readouterr().err.replace("\n", " ")
    table = rows(report / "tables" / "scores-s.csv")
    assert sorted((row["method"], row["variant"], row["mean"]) for row in table) == [
        ("PPO shared", "learning_rate=0.01", "0.75"), ("PPO shared", "learning_rate=0.1", "0.25"),
        ("VDN-PPO", "learning_rate=0.01", "0.75"), ("VDN-PPO", "learning_rate=0.1", "0.25"),
    ]  # fmt: skip


def test_parts_of_one_study_are_reported_as_one(tmp_path):
    some = {"platform": synthetic.ENVIRONMENTS["platform"]}
    whole = synthetic.sweep(tmp_path / "whole", 2, 60, some)
    for part in (0, 1):
        shutil.copytree(whole, tmp_path / f"part{part}")
        for place, run in enumerate(sorted((tmp_path / f"part{part}" / "runs").iterdir())):
            if place % 2 != part:
                shutil.rmtree(run)
    first = write_report(whole, tmp_path / "a", formats=()).parent
    again = write_report(
        [tmp_path / "part0", tmp_path / "part1"], tmp_path / "b", formats=()
    ).parent
    assert files(first) == files(again)


def test_other_studies_of_the_same_name_do_not_share_figures(tmp_path):
    stores = [
        synthetic.write_store(tmp_path / where, "s", [
            (synthetic.config("Platform", "ppo", "vdn", seed, steps), ([steps], [1.0]), {},
             {"final_return": 1.0})
            for seed in range(2)
        ])
        for steps, where in ((100, "a"), (200, "b"))
    ]  # fmt: skip
    page = write_report(stores, tmp_path / "r", formats=())
    text = page.read_text()
    names = re.findall(r'data-figure="([a-z-]*)"', text)
    assert len(names) == len(set(names)) > 4
    assert [figure["name"] for figure in data_of(text)["figures"]] != []
    assert {figure["name"] for figure in data_of(text)["figures"]} == set(names)
    titles = re.findall(r"<h3>(.*?)</h3>", text)
    assert len(titles) == len(set(titles))
    assert "Every environment, action type and method (s (a))" in titles
    assert [row["study"] for row in rows(page.parent / "tables" / "runs.csv")] == ["s (a)", "s (b)"]


def test_variants_of_a_study_have_titles_of_their_own(tmp_path):
    runs = [
        (synthetic.config("Platform", "sac", "vdn", seed, 100, settings={"target": target},
                          labels={"environment": "platform", "target": f"{target}"}),
         ([50, 100], [0.2, 0.9]), {}, {"final_return": 0.9})
        for seed in range(2) for target in (0.5, 0.2)
    ]  # fmt: skip
    text = write_report(synthetic.write_store(tmp_path / "s", "s", runs), formats=()).read_text()
    titles = re.findall(r"<h3>(.*?)</h3>", text)
    assert len(titles) == len(set(titles))
    assert {f"platform, discrete actions (s, target={target})" for target in (0.5, 0.2)} <= {
        *titles
    }


def test_a_dot_is_where_no_episode_has_ended(small):
    (sweep,) = gather([read_store(small[0])]).sweeps
    heat = next(iter(score_figures(sweep)))
    (panel,) = heat.panels
    values = panel.values.copy()
    values[0, 0] = np.nan
    drawn = _draw(replace(heat, panels=(replace(panel, values=values),)))
    texts = [text.get_text() for text in drawn.axes[0].texts]
    assert texts.count("·") == 1


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


def test_a_run_that_failed_is_listed_with_its_environment(tmp_path):
    failed = [synthetic.config(env, "ppo", "vdn", 1, 100) for env in ("Platform", "Robot-v0")]
    failed[1]["labels"] = {"environment": "robot"}
    done = synthetic.decoupler_run("ppo", "vdn", "range", 0, 80.0)
    store = read_store(synthetic.write_store(tmp_path / "s", "s", [done], failed=failed))
    table = failures_table([store])
    column = table.columns.index("environment")
    assert sorted(row[column] for row in table.rows) == ["Platform", "robot"]


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


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_a_full_disk_is_said_to_be_one(tmp_path, small, monkeypatch, kind):
    """/dev/full takes no byte: what is drawn into it must not break the drawing."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    (tmp_path / "r" / "figures").mkdir(parents=True)
    name = "decoupler-factorial-sound-demo"
    (tmp_path / "r" / "figures" / "draft").symlink_to("/dev/full")
    monkeypatch.setattr("headwise.files.unique", lambda name: "draft")
    with pytest.raises(ConfigError, match=r"cannot write the report.*No space left.*make room"):
        write_report(small[1], tmp_path / "r", formats=(kind,))
    assert not (tmp_path / "r" / "figures" / f"{name}.{kind}").exists()


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


def test_a_list_of_contents_that_names_other_files_takes_none_away(small, tmp_path):
    out = tmp_path / "out"
    write_report(small[1], out, formats=())
    mine = [tmp_path / "mine.csv", out / "mine.txt", out / "tables" / "old.csv"]
    for path in mine:
        path.write_text("mine")
    names = [
        "../mine.csv",
        str(mine[0]),
        "mine.txt",
        "tables/../mine.txt",
        "a\0b",
        "tables/old.csv",
    ]
    (out / "contents.txt").write_text("\n".join(names))
    write_report(small[1], out, formats=())
    assert [path.exists() for path in mine] == [True, True, False]  # the last was the report's own


def test_runs_that_cannot_be_read_are_named_left_out_and_counted(small, tmp_path):
    stores = moved(small[1:], tmp_path)
    runs = read_store(stores[0]).runs
    (runs[0].folder / "result.json").write_text("{")
    (runs[1].folder / "metrics.parquet").write_bytes(b"")
    (runs[2].folder / "config.json").write_text((runs[3].folder / "config.json").read_text())
    told = []
    page = write_report(stores, tmp_path / "out", formats=(), on_notice=told.append)
    (line,) = told
    assert line.startswith("demo: 3 runs are left out that cannot be read: ")
    assert all(run.id in line for run in runs[:3])
    text = page.read_text()
    assert "<b>3</b><span>runs cannot be read</span>" in text
    damaged = rows(tmp_path / "out" / "tables" / "damaged.csv")
    assert {row["run"] for row in damaged} == {run.id for run in runs[:3]}
    assert any("metrics.parquet" in row["what is wrong"] for row in damaged)
    entry = rows(tmp_path / "out" / "tables" / "runs.csv")[0]
    assert (entry["finished"], entry["planned"]) == (str(len(runs) - 3), str(len(runs)))


LABELS = [
    "a label of thirty-three letters ..",
    "x" * 60,
    r"$\frac$",
    "$",
    r"a_{b} \ $x^2$",
    "x" * 300,
    "half of a pair: \ud800",
]


@pytest.mark.parametrize("label", LABELS)
def test_a_label_of_any_length_and_letters_is_drawn(label, tmp_path):
    """Environments, and cells that differ in a label, are called what a user likes."""
    runs = []
    for algorithm, factorization in (("ppo", "shared"), ("ppo", "vdn"), ("sac", "vdn")):
        for seed in range(2):
            c = synthetic.config(
                "Arm", algorithm, factorization, seed, 1000,
                labels={"environment": label, "change": label},
            )  # fmt: skip
            step, returns = synthetic.rising(synthetic.chance(c), 0, 1, 1000, 30)
            runs.append((c, (step, returns), {}, synthetic.summary(step, returns, 1000)))
    store = synthetic.write_store(tmp_path / "s", "mine", runs)
    write_report(store, tmp_path / "out", formats=("png", "pdf"))
    assert len(list((tmp_path / "out" / "figures").glob("*.pdf"))) >= 4


def test_whatever_a_run_says_of_where_it_was_made_stops_no_report(small, tmp_path):
    (store,) = moved(small[1:], tmp_path)
    runs = read_store(store).runs
    sayings = [{"packages": 5}, {"packages": [1]}, {"device": "\ud800", "commit": "\udcff"}]
    for run, said in zip(runs, sayings, strict=False):
        (run.folder / "fingerprint.json").write_text(json.dumps(said))
    study = json.loads((store / "study.json").read_text())
    (store / "study.json").write_text(json.dumps({**study, "about": "\ud800 why?"}))
    page = write_report([store], tmp_path / "out", formats=())
    assert "? why?" in page.read_text()
    made = rows(tmp_path / "out" / "tables" / "machines.csv")
    assert {("5", ""), ("[1]", ""), ("", "?")} <= {(row["torch"], row["commit"]) for row in made}


@pytest.mark.parametrize("length", [10, 33, 60])
def test_labels_beside_rows_and_columns_are_within_the_sheet(length):
    names = tuple(f"{k}{'x' * (length - 1)}" for k in range(4))
    texts = ((("",) * 4),) * 4
    panels = [
        Heat("heat", names, names, np.full((4, 4), 0.5), texts),
        Intervals("rows", tuple(Dot("vdn", name, 0.5, 0.4, 0.6) for name in names)),
    ]
    for panel in panels:
        with mpl.rc_context(STYLE):
            sheet = _draw(Figure("x", "Scores", "t", "c", (panel,) * 2, columns=2))
            sheet.draw_without_rendering()
        width, height = sheet.canvas.get_width_height()
        for axis in sheet.axes:
            box = axis.get_window_extent()
            assert box.width > 30
            assert box.height > 30
            labels = (*axis.get_xticklabels(), *axis.get_yticklabels())
            for text in (label for label in labels if label.get_text() in names):
                where = text.get_window_extent()
                assert where.x0 >= -1
                assert where.y0 >= -1
                assert where.x1 <= width + 1
                assert where.y1 <= height + 1


def test_names_of_files_are_of_a_length_that_disks_take():
    assert len(slug("scores", "x" * 1000)) <= 100


def test_the_report_of_an_archive_is_that_of_its_folder(tmp_path, small, monkeypatch):
    write_archive(Store(small[0]), tmp_path / "x.parquet")
    restore(read_archive(tmp_path / "x.parquet"), Store(tmp_path / "there"))
    monkeypatch.chdir(tmp_path)
    assert main(["x.parquet", "--formats"]) == 0
    of_folder = write_report(tmp_path / "there", formats=())
    assert of_folder.read_bytes() == (tmp_path / "x" / "report" / "index.html").read_bytes()
