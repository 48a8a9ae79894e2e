"""Runs of a study are evaluated greedily, by draws of their own, and ranked by that."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tiny_study import contents, tiny_cell, tiny_study

import headwise as hw
from headwise.agent import Agent
from headwise.report.cells import cells_of
from headwise.report.runs import read_store
from headwise.report.sweeps import sweeps_of
from headwise.study import Evaluate, Options, Store, conduct
from headwise.study.export import marl_eval_json, results_csv

HOW = Evaluate(every=0.25, episodes=3, last=7)
CELLS = (tiny_cell(), tiny_cell("ppo", "shared"), tiny_cell("sac", "ar", view="continuous"))
INLINE = Options(executor="inline", device="cpu", keep_checkpoints=True)


def study(how=HOW, cells=CELLS):
    return tiny_study(cells=[replace(cell, evaluate=how) for cell in cells])


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluated")
    conduct(study(), folder, INLINE)
    return Store(folder)


def test_the_last_evaluation_is_that_of_the_trained_agent(evaluated):
    for run in study().runs():
        result = evaluated.result(run.id)
        agent = Agent.load(evaluated.checkpoint(run.id))
        assert agent.evaluate(episodes=7).scores.tolist() == [result["eval_return"]]
        said = result["evaluations"]
        assert said["return"][-1] == result["eval_return"]
        assert len(said["step"]) == len(said["length"]) == 4
        assert said["step"] == sorted(said["step"])
        assert said["step"][-1] >= 64


def test_training_is_the_same_with_and_without(evaluated, tmp_path):
    conduct(study(None), tmp_path, INLINE)
    plain = Store(tmp_path)
    for one, other in zip(study().runs(), study(None).runs(), strict=True):
        assert one.id != other.id
        told = evaluated.result(one.id)
        for name, value in plain.result(other.id).items():
            if not name.endswith(("_ms", "wall_s")):
                assert told[name] == value, name
        for table in ("episodes.parquet", "metrics.parquet"):
            first, second = (
                s.runs / i / table for s, i in ((evaluated, one.id), (plain, other.id))
            )
            assert first.read_bytes() == second.read_bytes()


def test_what_a_run_scores_does_not_depend_on_its_company(evaluated, tmp_path):
    conduct(study(), tmp_path, replace(INLINE, max_members=1))
    assert contents(tmp_path) == contents(evaluated.folder)


def test_a_run_that_is_not_evaluated_has_the_id_that_it_had():
    (run, *_) = study(None).runs()
    assert "evaluate" not in run.to_json()
    (other, *_) = study().runs()
    more = other.to_json()
    assert more.pop("evaluate") == HOW.to_json()
    assert more == run.to_json()


def test_cells_are_ranked_by_evaluation(evaluated):
    store = read_store(evaluated.folder)
    for cell in cells_of(store.runs):
        wanted = [run.result["eval_return"] for run in cell.runs]
        assert cell.scores.tolist() == wanted
        assert np.array_equal(cell.curves[:, -1], wanted)
        assert not np.array_equal(cell.curves, cell.training_curves)
    assert "greedy" in sweeps_of("x", store.runs)[0].scale
    rows = results_csv(evaluated).splitlines()
    assert "eval_return" in rows[0]
    assert "evaluations" not in rows[0]
    (ours,) = json.loads(marl_eval_json(evaluated)).values()
    algorithms = ours["shoot/hybrid"]
    found = algorithms["dqn/vdn"]["seed_0"]["absolute_metrics"]["mean_episode_return"]
    assert found == [store.runs[0].result["eval_return"]]


def test_what_was_ranked_in_training_is_never_compared_with_it(evaluated, tmp_path):
    conduct(study(None), tmp_path, INLINE)
    runs = [*read_store(evaluated.folder).runs, *read_store(tmp_path).runs]
    names = {sweep.variant: len(sweep.cells) for sweep in sweeps_of("both", runs)}
    assert names == {"": 3, "ranked in training": 3}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"every": 0.001}, "from 0.005 to 1"),
        ({"every": "often"}, "from 0.005 to 1"),
        ({"episodes": 0}, "episodes"),
        ({"last": 1.5}, "last"),
        ({"max_steps": 0}, "max_steps"),
    ],
)
def test_impossible_evaluations_are_refused(settings, words):
    with pytest.raises(hw.ConfigError, match=words):
        Evaluate(**settings)


def test_an_episode_that_never_ends_is_cut():
    endless = tiny_cell("ppo", "shared", view="discrete")
    how = replace(HOW, max_steps=2)
    from headwise.study.planner import Pack
    from headwise.study.train import train_pack

    (result,) = train_pack(Pack(tiny_study(seeds=1, cells=[replace(endless, evaluate=how)]).runs()))
    assert max(result.scalars["evaluations"]["length"]) <= 2
