"""The studies that come with the library: what they hold, and that every one of them runs."""

import csv
import itertools
import math
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwise import ConfigError
from headwise.algorithms.sac import SAC
from headwise.envs.make import make_vec
from headwise.study import Options, Store, Study, conduct, load_study
from headwise.study.planner import pack_runs
from headwise.study.source import SHIPPED, find_study, question_of, study_files

RESULTS_FOLDER = Path(__file__).parents[2] / "results"
CELLS = {  # and seeds
    "decoupler_factorial": (14, 16),
    "decoupler_cross_family": (15, 5),
    "importance_recovery": (16, 5),
    "lambda_sweep": (20, 8),
    "critic_target": (6, 16),
    "signed_weights": (6, 16),
    "centering": (13, 5),
    "divergence": (9, 8),
    "decoupler_target_entropy": (15, 5),
    "ar_order": (18, 5),
    "action_rate": (16, 5),
    "hit_radius": (12, 5),
    "equal_budgets": (44, 3),
    "joint_options": (8, 5),
    "target_entropy": (45, 3),
    "actor_gradient": (6, 3),
    "sac_settings": (96, 3),
    "entropy_bonus": (27, 3),
    "paper": (220, 5),
    "costs": (220, 1),
    "demo": (14, 8),
    "learning": (48, 3),
    "zoom": (12, 5),
}
EXPERIMENTS = {
    "joint_options", "target_entropy", "actor_gradient", "sac_settings", "entropy_bonus", "costs",
    "learning", "zoom",
}  # fmt: skip
"""Those that are kept beside their results, in the repository."""
NAMES = {"learning": "learning-ppo"}
"""Of studies that are called otherwise than their files."""


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    """What comes with the library is there wherever one is; the others are in the repository."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "results").symlink_to(RESULTS_FOLDER)
    monkeypatch.chdir(tmp_path / "empty")


def test_all_are_listed_here():
    assert set(study_files()) == set(CELLS)
    Path("results").unlink()
    assert set(study_files()) == set(CELLS) - EXPERIMENTS


@pytest.mark.parametrize("name", CELLS)
def test_each_says_what_it_asks(name):
    path = find_study(name)
    home = Path("results/studies") if name in EXPERIMENTS else SHIPPED
    assert path == home / f"{name}.py"
    assert len(question_of(path)) > 20


@pytest.mark.parametrize("name", CELLS)
def test_plans(name):
    study = load_study(name)
    cells, seeds = CELLS[name]
    title = NAMES.get(name, name)
    assert (study.name, len(study.cells), len(study.seeds)) == (title, cells, seeds)
    assert len({run.id for run in study.runs()}) == cells * seeds
    assert str(SHIPPED) not in sys.path  # `import demo` is nobody's business
    smoke = load_study(name, smoke=True)
    assert smoke.name == f"{title}-smoke"
    assert len(smoke.cells) == cells
    assert [c.title for c in smoke.cells] == [c.title for c in study.cells]


ON_THE_DECOUPLER = [
    "decoupler_factorial",
    "decoupler_cross_family",
    "importance_recovery",
    "lambda_sweep",
    "critic_target",
    "signed_weights",
    "centering",
    "divergence",
    "decoupler_target_entropy",
]


@pytest.mark.parametrize("name", ON_THE_DECOUPLER)
def test_smoke_versions_run(name, tmp_path):
    study = load_study(name, smoke=True).with_seeds(1)
    summary = conduct(study, tmp_path, Options(executor="inline"))
    assert (summary.finished, summary.failed) == (len(study.cells), 0)
    store = Store(tmp_path)
    for run in study.runs():
        result, names = store.result(run.id), set(store.metrics(run.id).name)
        assert result["updates"] >= 2
        assert result["episodes"] >= 4
        assert "steps_to_50" in result
        if run.algorithm == "ppo" and run.factorization != "shared":
            assert names >= {"credit/correlation", "credit/accuracy", "credit/variance_ratio"}
            assert "credit/weight_ratio" in names


@pytest.mark.parametrize("name", ["ar_order", "action_rate", "hit_radius", "equal_budgets"])
def test_smoke_versions_of_the_sweeps_environments_run(name, tmp_path):
    study = load_study(name, smoke=True)
    summary = conduct(study, tmp_path, Options(executor="inline"))
    assert (summary.finished, summary.failed) == (len(study.cells), 0)


def test_actions_of_another_rate_have_the_same_seconds_and_discounts():
    for cell in load_study("action_rate").cells:
        settings = cell.environment.settings
        steps, each = settings["max_episode_steps"], settings["num_physics_steps"]
        assert steps * each == 200 * 10  # the default's
        assert cell.settings["gamma"] ** (10 / each) == pytest.approx(0.98, abs=1e-5)
        assert cell.labels["physics_steps"] == str(each)


def test_orders_are_of_auto_regressive_heads_alone():
    study = load_study("ar_order")
    for cell in study.cells:
        order = cell.factorization_settings.get("order")
        assert (
            (cell.factorization == "ar") == (order is not None) == (cell.labels["order"] != "none")
        )
        if order is not None:
            first = {"select first": "select", "select last": "aim_x"}
            first |= {"kind first": "kind", "kind last": "run"}
            assert order[0] == first[cell.labels["order"]]
    assert Counter(cell.labels["order"] for cell in study.cells)["none"] == 6


def test_joint_options_runs_and_is_called_by_its_numbers_of_options(tmp_path):
    study = load_study("joint_options", smoke=True)
    summary = conduct(study, tmp_path, Options(executor="inline"))
    assert (summary.finished, summary.failed) == (8, 0)
    for run in study.runs():
        env = make_vec(run.env, [0], 1, view=run.view, **run.env_settings)
        options = math.prod(head.n for head in env.spec.heads)
        assert run.labels["environment"] == f"push-{options}"


def test_lambdas_of_a_critic_train_together():
    packs = pack_runs(load_study("lambda_sweep").runs(), max_members=40)
    assert [len(pack.runs) for pack in packs] == [40] * 4
    assert set(packs[0].config().algorithm.gae_lambda) == {0.0, 0.5, 0.9, 0.95, 1.0}


def test_target_entropies_of_a_cell_train_together():
    packs = pack_runs(load_study("target_entropy").runs())
    assert [len(pack.runs) for pack in packs] == [9] * 15
    assert set(packs[0].config().algorithm.target_entropy) == {0.5, 0.2, 0.1}


@pytest.mark.parametrize("settings", [{}, {"activation": "tanh"}, {"target_entropy_end": 0.2}])
def test_sac_learns_with_our_own_settings_in_the_cells_of_the_off_policy_study(settings):
    ours = load_study("learning", family="sac", settings=settings)
    theirs = load_study("learning", family="off_policy").without(algorithm="dqn")
    assert [(c.title, c.total_timesteps) for c in ours.cells] == [
        (c.title, c.total_timesteps) for c in theirs.cells
    ]
    own = SAC(**settings)
    names = ("target_entropy", "entropy_bonus", "actor_gradient", "activation", *settings)
    for run in ours.runs():
        config = SAC(**run.settings)
        assert [getattr(config, name) for name in names] == [getattr(own, name) for name in names]


def test_gradients_differ_in_what_their_names_say():
    found = {
        run.labels["gradient"]: (run.settings["actor_gradient"], run.settings["gumbel_floor"])
        for run in load_study("actor_gradient").runs()
    }
    assert found == {
        "straight-through": ("straight_through", 0.01),
        "straight-through, softer": ("straight_through", 0.5),
        "counterfactual": ("counterfactual", 0.01),
    }


def test_every_value_of_a_setting_of_sac_meets_every_other():
    runs = load_study("sac_settings").with_seeds(1).runs()
    names = ("activation", "actor_gradient", "target_entropy")
    tried = {}
    for run in runs:
        where = "/".join(run.name.split("/")[:4])
        tried.setdefault(where, Counter())[tuple(run.settings[name] for name in names)] += 1
    both, straight = ("straight_through", "counterfactual"), ("straight_through",)
    for where, found in tried.items():
        options = "continuous" not in where
        gradients = both if options and where.endswith("shared") else straight
        targets = (0.5, 0.2) if options else (0.5,)
        assert found == Counter(itertools.product(("tanh", "relu"), gradients, targets)), where


# --- the paper ----------------------------------------------------------------------------------


def test_the_paper_has_44_cells_of_each_environment():
    cells = load_study("paper").cells
    assert Counter(c.environment.label for c in cells) == dict.fromkeys(
        ("push", "shoot-dep", "shoot-indep", "lander", "platform"), 44
    )
    assert Counter(c.algorithm for c in cells) == {"dqn": 80, "ppo": 80, "sac": 60}
    of_one = [c for c in cells if c.environment.label == "push"]
    assert Counter((c.algorithm, c.view) for c in of_one) == {
        ("dqn", "discrete"): 6,
        ("dqn", "hybrid"): 5,
        ("dqn", "continuous"): 5,
        ("ppo", "discrete"): 6,
        ("ppo", "hybrid"): 5,
        ("ppo", "continuous"): 5,
        ("sac", "discrete"): 5,
        ("sac", "hybrid"): 4,
        ("sac", "continuous"): 3,
    }


# environment, view, algorithm: steps, gamma; then rollout, minibatch, epochs, or replay, batch
APPENDIX = """
push discrete ppo 2000000 .98 4096 128 4
push discrete sac 1000000 .98 50000 128
push discrete dqn 1000000 .98 50000 128
push continuous ppo 2000000 .98 4096 128 4
push continuous sac 1000000 .98 50000 256
push continuous dqn 1000000 .98 50000 256
push hybrid ppo 3000000 .98 4096 128 5
push hybrid sac 2000000 .98 50000 256
push hybrid dqn 2000000 .98 50000 256
lander discrete ppo 600000 .99 2048 64 4
lander discrete sac 400000 .99 50000 128
lander discrete dqn 400000 .99 50000 128
lander continuous ppo 600000 .99 2048 64 4
lander continuous sac 400000 .99 50000 128
lander continuous dqn 400000 .99 50000 128
lander hybrid ppo 1000000 .99 2048 64 4
lander hybrid sac 600000 .99 50000 128
lander hybrid dqn 600000 .99 50000 128
shoot-dep hybrid ppo 1500000 .99 4096 128 5
shoot-dep hybrid sac 800000 .99 100000 256
shoot-dep hybrid dqn 800000 .99 100000 256
shoot-indep hybrid ppo 1500000 .99 4096 128 5
shoot-indep hybrid sac 800000 .99 100000 256
shoot-indep hybrid dqn 800000 .99 100000 256
shoot-dep discrete ppo 1500000 .99 4096 128 4
shoot-dep discrete sac 800000 .99 100000 256
shoot-dep discrete dqn 800000 .99 100000 256
shoot-indep discrete ppo 1500000 .99 4096 128 4
shoot-indep discrete sac 800000 .99 100000 256
shoot-indep discrete dqn 800000 .99 100000 256
shoot-dep continuous ppo 1500000 .99 4096 128 4
shoot-dep continuous sac 800000 .99 100000 256
shoot-dep continuous dqn 800000 .99 100000 256
shoot-indep continuous ppo 1500000 .99 4096 128 4
shoot-indep continuous sac 800000 .99 100000 256
shoot-indep continuous dqn 800000 .99 100000 256
platform discrete ppo 500000 .99 4096 128 4
platform discrete sac 200000 .99 100000 256
platform discrete dqn 200000 .99 100000 256
platform continuous ppo 500000 .99 4096 128 4
platform continuous sac 200000 .99 100000 256
platform continuous dqn 200000 .99 100000 256
platform hybrid ppo 500000 .99 4096 128 5
platform hybrid sac 200000 .99 100000 256
platform hybrid dqn 200000 .99 100000 256
"""


def test_hyperparameters_and_budgets_are_those_of_the_appendix():
    rows = {tuple(row.split()[:3]): row.split()[3:] for row in APPENDIX.strip().splitlines()}
    seen = set()
    for run in load_study("paper").with_seeds(1).runs():
        key = (run.labels["environment"], run.view, run.algorithm)
        seen.add(key)
        steps, gamma, *rest = rows[key]
        found = dict(run.settings)
        if run.algorithm == "ppo":  # the appendix counts all environments together
            found["n_steps"] *= run.num_envs
        on_policy, off_policy = ("n_steps", "batch_size", "n_epochs"), ("buffer_size", "batch_size")
        names = on_policy if run.algorithm == "ppo" else off_policy
        assert run.total_timesteps == int(steps)
        assert run.settings["gamma"] == float(gamma)
        assert [found[name] for name in names] == [int(number) for number in rest]
        assert run.settings["learning_rate"] == 5e-4
        assert run.settings["net_arch"] == [128 if key[0] == "lander" else 256] * 2
        if run.algorithm == "ppo":
            assert (run.settings["clip_range"], run.settings["gae_lambda"]) == (0.2, 0.95)
        else:
            assert run.settings["tau"] == 0.01
        if run.algorithm == "sac":
            assert run.settings["target_entropy"] == 0.5
    assert seen == set(rows)


def test_costs_are_those_of_the_papers_cells():
    paper = {run.name: run.to_json() for run in load_study("paper").with_seeds(1).runs()}
    for run in load_study("costs").runs():
        assert {**run.to_json(), "total_timesteps": 0} == {**paper[run.name], "total_timesteps": 0}
        s = run.settings  # at least two updates of PPO, and a hundred of the others
        rollouts = 2 * s.get("n_steps", 0) * run.num_envs
        enough = rollouts if run.algorithm == "ppo" else s["learning_starts"] + 400
        assert enough <= run.total_timesteps < 20_000


def test_equal_budgets():
    study = load_study("paper", equal_budget=True)
    assert study.name == "paper-equal_budget"
    budgets = {(c.environment.label, c.total_timesteps) for c in study.cells}
    assert budgets == {
        ("push", 1_000_000),
        ("lander", 400_000),
        ("shoot-dep", 800_000),
        ("shoot-indep", 800_000),
        ("platform", 200_000),
    }


def test_as_published_is_what_the_docs_say():
    """Every setting that the preset pins is in the table, and the table has no other."""
    text = (RESULTS_FOLDER.parent / "docs" / "paper.md").read_text().split("### As published")[1]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    names = ("shared", "vdn", "qplex")
    said: dict[str, dict[str, Any]] = {name: {} for name in names}
    for setting, *values in rows[: rows.index(next(r for r in rows if "on Push" in r[0])) + 1]:
        for name, value in zip(names, values, strict=True):
            if value != "-":
                said[name][setting] = eval(value.strip("`"), {})
    published, ours = load_study("paper", preset="as_published"), load_study("paper")
    assert published.name == "paper-as_published"
    assert len(published.cells) == 45
    by_title = {cell.title: cell for cell in ours.cells}
    for cell in published.cells:
        wanted = {}
        for setting, value in said[cell.factorization].items():
            name, _, where = setting.partition(",")
            skipped = (where == " with numbers" and cell.view == "discrete") or (
                where == " on Push" and cell.environment.label != "push"
            )
            if not skipped:
                wanted[name.strip("`")] = value
        before = by_title[cell.title]
        assert cell.settings == before.settings | wanted, cell.title
        assert set(wanted) - set(before.settings) >= {"policy_gain"}
        assert replace(cell, settings={}) == replace(before, settings={})
    smoke = load_study("paper", preset="as_published", smoke=True)
    assert [c.title for c in smoke.cells] == [c.title for c in published.cells]


def test_the_sweep_as_published_runs(tmp_path):
    study = load_study("paper", preset="as_published", smoke=True)
    study = study.without(environment=("push", "lander", "shoot-dep", "shoot-indep"))
    summary = conduct(study, tmp_path, Options(executor="inline"))
    assert (summary.finished, summary.failed) == (9, 0)


# --- results ------------------------------------------------------------------------------------

STRAIGHT = {"actor_gradient": "straight_through"}
SAC_SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    STRAIGHT,
    STRAIGHT | {"target_entropy": 0.2},
    STRAIGHT | {"target_entropy": 0.2, "activation": "tanh"},
    STRAIGHT | {"target_entropy_end": 0.2},
)
RESULTS = {
    "paper": [("paper", {})],
    "learning": [("learning", {}), ("learning", {"family": "off_policy"})],
    "learning_dqn": [
        ("learning", {"family": "dqn", "settings": settings})
        for settings in (
            {},
            {"dueling": False},
            {"dueling": False, "net_arch": (256, 256, 256)},
        )
    ],
    "learning_sac": [
        *(("learning", {"family": "sac", "settings": settings}) for settings in SAC_SETTINGS),
        ("learning", {"family": "sac", "part": 1}),
    ],
    "joint_options": [("joint_options", {})],
    "target_entropy": [("target_entropy", {})],
    "actor_gradient": [("actor_gradient", {})],
    "sac_settings": [("sac_settings", {})],
    "entropy_bonus": [("entropy_bonus", {}), ("entropy_bonus", {"target_entropy": 0.2})],
    "costs": [("costs", {})],
    "decoupler": [
        ("decoupler_factorial", {}),
        ("decoupler_cross_family", {}),
        ("importance_recovery", {}),
        ("lambda_sweep", {}),
    ],
    "decoupler_settings": [
        ("critic_target", {}),
        ("signed_weights", {}),
        ("divergence", {}),
        ("centering", {}),
    ],
    "variance_law": [("decoupler_factorial", {})],
}
"""Tables in `results/`, and the studies that their runs belong to."""


def test_all_results_are_listed_here():
    tables = {path.stem for path in RESULTS_FOLDER.glob("*.csv")}
    assert tables == {
        *RESULTS,
        "claims",
        "paper_engines",
        "paper_mean_curves",
    }  # these have no rows of runs


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_of_the_runs_that_the_studies_plan(name):
    """A default that changes makes other runs; then studies must say what they were run with."""
    with (RESULTS_FOLDER / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    seeds = max(int(row["seed"]) for row in rows) + 1
    planned = {
        run.id
        for study, args in RESULTS[name]
        for run in load_study(study, **args).with_seeds(seeds).runs()
    }
    assert len({(row.get("study"), row["run"]) for row in rows}) == len(rows) > 0
    assert [row["run"] for row in rows if row["run"] not in planned] == []


# --- finding and loading ------------------------------------------------------------------------


def test_a_study_is_found_by_name_and_by_path(tmp_path):
    assert find_study("paper") == SHIPPED / "paper.py"
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from headwise.study import Study\n"
        "study = Study.grid('mine', environments=['Platform'], algorithms=['dqn'],"
        " factorizations=['vdn'], total_timesteps=10)\n"
    )
    assert isinstance(load_study(mine), Study)
    with pytest.raises(ConfigError, match="takes no arguments"):
        load_study(mine, smoke=True)
    mine.write_text("x = 1\n")
    with pytest.raises(ConfigError, match="defines no study"):
        load_study(mine)


def test_a_study_of_ones_own_hides_a_shipped_one_of_that_name():
    own = Path("studies/paper.py")
    own.parent.mkdir()
    own.write_text("")
    Path("studies/_part_of_others.py").write_text("")
    assert find_study("paper") == own
    assert find_study("demo") == SHIPPED / "demo.py"
    assert set(study_files()) == set(CELLS)
    assert question_of(own) == ""


BROKEN = {
    "x = (": r"mine.py cannot be loaded; got SyntaxError: .*line 1",
    "import nosuchmodule": "at line 1; got ModuleNotFoundError: No module named 'nosuchmodule'",
    "x = 1\ny = z": "at line 2; got NameError: name 'z' is not defined",
    "def make():\n    return 1 / 0": "at line 2; got ZeroDivisionError",
    "def make(steps: int, seeds=3): ...": "needs its argument 'steps'; allowed: int.*--args",
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_file_that_cannot_be_run_says_where(tmp_path, text):
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(ConfigError, match=BROKEN[text]):
        load_study(tmp_path / "mine.py")


def test_mistakes_of_a_study_are_told_as_they_are(tmp_path):
    (tmp_path / "mine.py").write_text("from headwise.study import Study\nStudy('a/b')\n")
    with pytest.raises(ConfigError, match="a study needs a name"):
        load_study(tmp_path / "mine.py")


def test_a_study_may_say_nothing_of_its_arguments(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from __future__ import annotations\n"
        "from headwise.study import Study\n"
        "def make(total_timesteps=10, kind: Unknown = None):\n"
        "    return Study.grid('mine', environments=['Platform'], algorithms=['dqn'],"
        " factorizations=['vdn'], total_timesteps=total_timesteps)\n"
    )
    assert load_study(mine, total_timesteps=20, kind=3).cells[0].total_timesteps == 20


def test_what_is_not_there_is_told():
    with pytest.raises(ConfigError, match="Did you mean 'lambda_sweep'"):
        load_study("lambda_swep")
    with pytest.raises(ConfigError, match="no such study"):
        load_study("nowhere/x.py")
    with pytest.raises(ConfigError, match="Did you mean 'smoke'"):
        load_study("paper", smoky=True)
    for wrong, allowed in (
        ({"family": "sca"}, "'ppo', 'off_policy', 'sac', 'dqn'"),
        ({"part": 0}, r"1, 2, 5, 10 \| None"),
        ({"settings": 3}, r"dict\[str, Any\] \| None"),
        ({"seeds": "three"}, "int"),
        ({"seeds": True}, "int"),
        ({"smoke": 1}, "bool"),
    ):
        with pytest.raises(ConfigError, match=f"cannot be this; got .*; allowed: {allowed}"):
            load_study("learning", **wrong)
    with pytest.raises(ConfigError, match="cannot be this"):
        load_study("entropy_bonus", target_entropy="much")
    load_study("entropy_bonus", target_entropy=1)  # a whole number will do for another one
