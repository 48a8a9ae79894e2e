"""Greedy evaluation on a schedule: what it measures, what it leaves alone, what it keeps."""

import csv

import numpy as np
import pytest
from small_agents import Countdown, small_agent, states_equal

import headwise as hw
from headwise.envs.native.vec_env import NativeVecEnv
from headwise.training.evaluate import evaluate_loop, fresh_seeds
from headwise.training.watch import LATER, RunCallback, Watch


class Reports:
    """Remembers every report."""

    def __init__(self):
        self.all = []

    def __call__(self, report):
        self.all.append(report)

    @property
    def evaluated(self):
        return {
            r.step: r.values["eval/mean_return"] for r in self.all if "eval/mean_return" in r.values
        }


@pytest.mark.parametrize(
    ("algo", "env", "more"),
    [
        ("ppo", "HybridShoot", {}),
        ("ppo", "HybridShoot", {"normalize_obs": True, "normalize_reward": True}),
        ("ppo", Countdown, {}),
        ("dqn", "CartPole-v1", {}),
        ("dqn", "HybridShoot", {"bins": 3}),
        ("sac", "HybridShoot", {}),
    ],
)
def test_learning_is_the_same_with_and_without(algo, env, more):
    with_it, without = (small_agent(algo, env, **more) for _ in range(2))
    reports = Reports()
    with_it.learn(
        400, progress=False, eval_every=100, eval_episodes=3, callbacks=[reports], log_every=1000
    )
    without.learn(400, progress=False)
    assert list(reports.evaluated) == [100, 200, 300, 400]
    assert states_equal(with_it.loop, without.loop)
    reports = [Reports(), Reports()]
    for agent, seen in zip((with_it, without), reports, strict=True):
        agent.learn(200, progress=False, callbacks=[seen], log_every=40)
    for one, other in zip(*(seen.all for seen in reports), strict=True):
        np.testing.assert_array_equal(one.returns, other.returns)


def test_what_is_logged_is_what_an_evaluation_of_that_moment_says():
    agent, seen = small_agent(), {}

    class Compare(RunCallback):
        def next_due(self, env_steps):
            return env_steps + 1

        def __call__(self, run):
            step = run.loop.env_steps
            if run.evaluated_at == step:
                seeds = fresh_seeds(run.loop.keys, 3, step)
                env = NativeVecEnv("HybridShoot", seeds, 3)
                seen[step] = evaluate_loop(run.loop, env, 3).scores
            return False

    reports = Reports()
    agent.learn(
        300, progress=False, eval_every=100, eval_episodes=3, callbacks=[reports, Compare()]
    )
    assert list(seen) == list(reports.evaluated) == [100, 200, 300]
    for step, scores in seen.items():
        np.testing.assert_array_equal(scores, reports.evaluated[step])
    np.testing.assert_array_equal(agent._scores, seen[300])
    assert agent.best_member == int(np.argmax(seen[300]))
    agent.learn(100, progress=False)
    assert agent._scores is None  # of the past


def test_a_member_scores_the_same_alone_and_after_a_break(tmp_path):
    scores = []
    for seeds in ([0, 1], [1]):
        reports = Reports()
        small_agent(seeds=seeds).learn(
            400, progress=False, eval_every=100, eval_episodes=2, callbacks=[reports]
        )
        scores.append({step: x[-1] for step, x in reports.evaluated.items()})
    assert scores[0] == scores[1]
    reports, agent = Reports(), small_agent()
    agent.learn(400, progress=False, eval_every=100, eval_episodes=2)
    agent.save(tmp_path / "whole.zip")
    agent = small_agent()
    agent.learn(200, progress=False, eval_every=100, eval_episodes=2, checkpoint=tmp_path / "x.zip")
    agent = hw.Agent.load(tmp_path / "x.zip")
    agent.learn(200, progress=False, eval_every=100, eval_episodes=2, callbacks=[reports])
    assert {step: x[-1] for step, x in reports.evaluated.items()} == {
        step: scores[0][step] for step in (300, 400)
    }


def test_one_environment_is_kept_and_closed(monkeypatch):
    made, closed = [], []

    class Watched(Countdown):
        def __init__(self):
            made.append(self)

        def close(self):
            closed.append(self)

    agent = hw.Agent("ppo", Watched, num_envs=4, seeds=2, net_arch=(8,), n_steps=4)
    before = len(made)
    agent.learn(200, progress=False, eval_every=40, eval_episodes=3)
    fresh = made[before:]
    assert len(fresh) == 6  # three copies for each member, whatever the number of evaluations
    assert set(map(id, closed)) >= set(map(id, fresh))
    assert not set(map(id, closed)) & set(map(id, made[before - 8 : before]))


def test_a_native_environment_seeded_again_is_as_new():
    first = NativeVecEnv("HybridShoot", [3, 4], 2)
    first.reset()
    for _ in range(5):
        first.step(np.zeros((2, 2, first.spec.num_heads), dtype=np.float32))
    first.reseed([8, 9])
    again = NativeVecEnv("HybridShoot", [8, 9], 2)
    np.testing.assert_array_equal(first.reset(), again.reset())
    for _ in range(60):
        action = np.zeros((2, 2, first.spec.num_heads), dtype=np.float32)
        one, other = first.step(action), again.step(action)
        for name, array in one.arrays().items():
            np.testing.assert_array_equal(array, other.arrays()[name])


def test_it_is_written_and_shown(tmp_path, capsys):
    small_agent(seeds=[5, 6]).learn(
        300, eval_every=100, eval_episodes=2, loggers=[hw.CSVLogger(tmp_path / "x.csv")],
        log_every=150,
    )  # fmt: skip
    rows = list(csv.DictReader((tmp_path / "x.csv").read_text().splitlines()))
    found = [(int(r["step"]), r["seed"]) for r in rows if r["name"] == "eval/mean_return"]
    assert found == [(step, seed) for step in (100, 200, 300) for seed in ("5", "6")]
    assert {int(r["step"]) for r in rows} == {100, 152, 200, 300}
    assert "eval/mean_ep_length" in {r["name"] for r in rows}
    assert ", evaluated " in capsys.readouterr().err


# --- the best -------------------------------------------------------------------------------------


class Scripted:
    """Evaluations that score what they are told."""

    def __init__(self, monkeypatch, *scores):
        self.scores = iter(scores)
        monkeypatch.setattr("headwise.agent.scheduled.evaluate_loop", self)

    def __call__(self, loop, env, episodes):
        mine = np.array(next(self.scores), dtype=float)
        returns = np.repeat(mine[:, None], episodes, axis=1)
        return hw.Evaluation(loop.keys.seeds, returns, np.ones_like(returns))


def learn(agent, path, steps=300):
    agent.learn(steps, progress=False, eval_every=100, eval_episodes=2, checkpoint=path)


def test_the_best_agent_is_kept_beside_the_checkpoint(tmp_path, monkeypatch):
    Scripted(monkeypatch, [1, 2], [4, 3], [3, 3])
    agent = small_agent()
    learn(agent, tmp_path / "run.zip")
    best = hw.Agent.load(tmp_path / "run-best.zip")
    assert (best.steps, best.best_member) == (200, 0)
    last = hw.Agent.load(tmp_path / "run.zip")
    assert last.steps == 300
    # It goes on: what is worse does not replace it, what is better does.
    Scripted(monkeypatch, [3.9, 0], [0, 4.5])
    learn(last, tmp_path / "run.zip", 100)
    assert hw.Agent.load(tmp_path / "run-best.zip").steps == 200
    learn(last, tmp_path / "run.zip", 100)
    best = hw.Agent.load(tmp_path / "run-best.zip")
    assert (best.steps, best.best_member) == (500, 1)


def test_the_best_of_another_run_is_not_replaced(tmp_path):
    learn(small_agent(), tmp_path / "run.zip")
    (tmp_path / "run.zip").unlink()
    with pytest.raises(hw.CheckpointError, match="best agent of another run"):
        learn(small_agent(), tmp_path / "run.zip")
    assert not (tmp_path / "run.zip").exists()


def test_stopping_on_an_evaluation(tmp_path, monkeypatch):
    Scripted(monkeypatch, [1, 9], [5, 9], [0, 0])
    agent = small_agent()
    learn_ = {"progress": False, "eval_every": 100, "eval_episodes": 2}
    agent.learn(400, callbacks=[hw.StopOnReturn(5.0, on="eval")], **learn_)
    assert agent.steps == 200
    Scripted(monkeypatch, [1, 9])
    agent = small_agent()
    agent.learn(400, callbacks=[hw.StopOnReturn(5.0, "any", on="eval")], **learn_)
    assert agent.steps == 100
    with pytest.raises(hw.ConfigError, match="eval_every=10_000"):
        small_agent().learn(400, progress=False, callbacks=[hw.StopOnReturn(5.0, on="eval")])
    with pytest.raises(hw.ConfigError, match="'rollout' or 'eval'"):
        hw.StopOnReturn(5.0, on="evaluation")


# --- refusals -------------------------------------------------------------------------------------


def test_an_only_environment_cannot_be_measured_in_meanwhile():
    agent = hw.Agent("ppo", Countdown(), net_arch=(8,), n_steps=16)
    with pytest.raises(hw.EnvError, match="the only one there is"):
        agent.learn(40, progress=False, eval_every=20)
    agent.learn(40, progress=False)


@pytest.mark.parametrize(
    "bad", [{"eval_every": 0}, {"eval_every": "often"}, {"eval_every": 10, "eval_episodes": 0}]
)
def test_bad_numbers(bad):
    with pytest.raises(hw.ConfigError, match=list(bad)[-1]):
        small_agent().learn(40, progress=False, **bad)


# --- the stack ------------------------------------------------------------------------------------


class Marked(RunCallback):
    """Writes down what happens to it."""

    def __init__(self, name, due, log, stops=False):
        self.name, self.due, self.log, self.stops = name, due, log, stops

    def open(self, run):
        self.log.append(f"{self.name} opens")

    def next_due(self, env_steps):
        return self.due

    def __call__(self, run):
        return self.stops

    def finish(self, run):
        self.log.append(f"{self.name} finishes")

    def close(self):
        self.log.append(f"{self.name} closes")


def test_callbacks_are_asked_in_turn_and_closed_backwards():
    loop, log = small_agent().loop, []
    watch = Watch(loop, 100, [Marked("a", 70, log), Marked("b", 50, log, stops=True)])
    with watch:
        assert watch.next_due(0) == 50
        assert watch(loop)
        watch.finish()
    assert log == ["a opens", "b opens", "a finishes", "b finishes", "b closes", "a closes"]
    assert Watch(loop, 100, []).next_due(0) == LATER
    assert RunCallback().next_due(7) == LATER


def test_one_that_cannot_open_closes_those_before_it():
    log = []

    class Broken(Marked):
        def open(self, run):
            raise OSError("no")

    with (
        pytest.raises(OSError, match="no"),
        Watch(small_agent().loop, 100, [Marked("a", 70, log), Broken("b", 50, log)]),
    ):
        pass
    assert log == ["a opens", "a closes"]


def test_a_users_callback_is_one_of_the_stack():
    log = []
    agent = small_agent()
    agent.learn(100, progress=False, callbacks=[Marked("mine", LATER, log, stops=True)])
    assert agent.steps == 4  # it was looked at after the first tick
    assert log == ["mine opens", "mine finishes", "mine closes"]


def test_the_old_name_is_told():
    with pytest.warns(DeprecationWarning, match="StopOnReturn"):
        assert hw.StopOnScore is hw.StopOnReturn
