"""The final checkpoint of a run: the member that was trained, as an agent of its own."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_study import contents, leftovers, tiny_cell, tiny_study

from headwise import Agent
from headwise.agent.world import World
from headwise.errors import EnvError, StoreError
from headwise.population import select_members
from headwise.study import Cell, Options, Store, Study, conduct, train
from headwise.study.executors import inline, streams
from headwise.study.keeper import Keeper
from headwise.study.planner import Pack
from headwise.study.progress import StudyProgress
from headwise.study.train import train_by_turns, train_pack
from headwise.training.evaluate import Player
from headwise.training.loop import Loop

KEEP = Options(executor="inline", keep_checkpoints=True)
ROWS = np.random.default_rng(0).normal(size=(64, 9)).astype(np.float32)


class Heard(StudyProgress):
    """Remembers what was said about checkpoints."""

    def __init__(self):
        super().__init__()
        self.said = []

    def say(self, text):
        if "checkpoint" in text:
            self.said.append(text)


@pytest.fixture
def loops(monkeypatch):
    """The loops that were trained, each with its pack."""
    made, make = [], train.make_pack_loop

    def recorded(pack, *arguments):
        made.append((pack, make(pack, *arguments)))
        return made[-1][1]

    monkeypatch.setattr(train, "make_pack_loop", recorded)
    return made


# --- what is in it --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "factorization"), [("ppo", "vdn"), ("dqn", "qplex"), ("sac", "ar")]
)
def test_a_checkpoint_is_the_member_that_was_trained(tmp_path, loops, algorithm, factorization):
    # Several step sizes in one population, so that each member has a plan of its own.
    steps = enumerate((0.01, 0.003, 0.001))
    runs = [
        tiny_cell(algorithm, factorization, learning_rate=learning_rate).run(seed)
        for seed, learning_rate in steps
    ]
    pack, store = Pack(tuple(runs)), Store(tmp_path)
    store.begin(tiny_study().to_json())
    for result in train_pack(pack, keep_checkpoints=True):
        store.put(result)
    ((_, loop),) = loops
    before = train.make_pack_loop(pack)
    before.env.close()
    acted = []
    for member, run in enumerate(pack.runs):
        agent = Agent.load(store.checkpoint(run.id))
        assert (agent.seeds, agent.config.algorithm.learning_rate) == (
            (run.seed,),
            run.settings["learning_rate"],
        )
        assert f"steps=0 after {run.total_timesteps:,};" in repr(agent)
        units = Player(loop).act_alone(ROWS, member)
        expected = agent.face.act(units, batched=True)
        np.testing.assert_equal(agent.predict(ROWS, deterministic=True), expected)
        assert not np.array_equal(units, Player(before).act_alone(ROWS, member))  # it has learned
        acted.append(units)
        learned = select_members(loop.algorithm.state_dict(), [member])
        state = agent.loop.algorithm.state_dict()
        assert learned.keys() == state.keys()
        for name, x in learned.items():  # the optimizer too, so that it can learn on
            assert torch.equal(state[name], x), name
        agent.close()
    for k, units in enumerate(acted):  # none is another one
        assert not any(np.array_equal(units, other) for other in acted[:k])


@pytest.mark.parametrize("switches", [("obs",), ("reward",), ("obs", "reward")])
@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
def test_what_a_member_normalizes_by_is_kept(tmp_path, loops, algorithm, switches):
    on = {f"normalize_{what}": True for what in switches}
    study = tiny_study(cells=[tiny_cell(algorithm, "shared")], seeds=3).change(**on)
    conduct(study, tmp_path, KEEP)
    ((_, loop),) = loops
    learned = loop.normalizer.state_dict()
    for member, run in enumerate(study.runs()):
        agent = Agent.load(Store(tmp_path).checkpoint(run.id))
        state = agent.loop.normalizer.state_dict()
        assert state.keys() == learned.keys()
        for name, x in select_members(learned, [member]).items():
            if name == "so_far":  # of episodes that do not go on
                x = torch.zeros_like(x)
            assert torch.equal(state[name], x), name
        expected = agent.face.act(Player(loop).act_alone(ROWS, member), batched=True)
        np.testing.assert_equal(agent.predict(ROWS, deterministic=True), expected)
        agent.close()


def test_a_run_that_normalizes_is_what_an_agent_is_that_does(tmp_path):
    cell = tiny_cell("ppo", "vdn")
    study = tiny_study(cells=[cell], seeds=2).change(normalize_obs=True, normalize_reward=True)
    conduct(study, tmp_path, KEEP)
    config = cell.config()
    agent = Agent(
        config.algorithm,
        "HybridShoot",
        factorization=config.factorization,
        seeds=2,
        num_envs=4,
        view="hybrid",
        normalize_obs=True,
        normalize_reward=True,
    ).learn(64, progress=False)
    for member, run in enumerate(study.runs()):
        kept = Agent.load(Store(tmp_path).checkpoint(run.id))
        mine = agent.member(member).loop.state_dict()
        for part in ("learner", "normalizer"):
            theirs = kept.loop.state_dict()[part]
            assert all(torch.equal(theirs[name], x) for name, x in mine[part].items())
        kept.close()
    agent.close()


def test_it_is_an_agent_like_any_other(tmp_path):
    study = tiny_study(cells=[tiny_cell("ppo", "vdn")], seeds=1)
    conduct(study, tmp_path / "study", KEEP)
    path = Store(tmp_path / "study").checkpoint(study.runs()[0].id)
    agent = Agent.load(path)
    assert agent.world.settings == {"view": "hybrid"}
    assert agent.evaluate(episodes=2).returns.shape == (1, 2)
    agent.export(tmp_path / "policy.onnx")
    assert (tmp_path / "policy.onnx").stat().st_size > 0
    agent.learn(64, progress=False)
    assert agent.steps == 64
    agent.close()


@pytest.mark.parametrize(
    ("name", "view", "settings"),
    [
        ("ContextualDecoupler", None, {}),
        ("Platform", "discrete", {}),
        ("HybridShoot", "continuous", {"mode": "dependent", "num_targets": 3}),
        ("CoopPush", "hybrid", {}),
        ("Lander", "discrete", {}),
        ("probe/agree", None, {}),
    ],
)
def test_every_environment_of_a_study_can_be_kept(tmp_path, name, view, settings):
    tiny = tiny_cell("ppo", "shared").config()
    cell = Cell.of(
        name, tiny.algorithm, tiny.factorization, total_timesteps=64, num_envs=2, view=view
    )
    study = Study("mine", (cell,), (7,)).change(env_settings=settings)
    pack = Pack(study.runs())
    loop = train.make_pack_loop(pack)
    (data,) = Keeper(pack, loop.env).checkpoints(loop)
    (tmp_path / "run.zip").write_bytes(data)
    agent = Agent.load(tmp_path / "run.zip")
    assert agent.face.spec == loop.env.spec
    (rows,) = np.array(loop.env.reset())
    actions = Player(agent.loop).act_alone(rows, 0)
    np.testing.assert_array_equal(actions, Player(loop).act_alone(rows, 0))
    assert agent.predict(agent.face.observation_space.sample()) in agent.face.action_space
    loop.env.close()
    agent.close()


# --- the store ------------------------------------------------------------------------------------


def test_nothing_is_kept_unasked_and_the_flag_changes_nothing_else(tmp_path):
    study = tiny_study()
    assert conduct(study, tmp_path / "plain", Options(executor="inline")).checkpoints == 0
    assert conduct(study, tmp_path / "kept", KEEP).checkpoints == 4
    plain, kept = contents(tmp_path / "plain"), contents(tmp_path / "kept")
    assert plain.keys() == kept.keys() == {run.id for run in study.runs()}
    for run_id, (rest, checkpoint) in kept.items():
        assert plain[run_id] == (rest, None)
        assert checkpoint is not None
    assert Store(tmp_path / "plain").study() == Store(tmp_path / "kept").study()


def test_finished_runs_stay_as_they_are_and_that_is_told(tmp_path, monkeypatch):
    conduct(tiny_study(seeds=1), tmp_path, Options(executor="inline"))
    trained = []

    def recorded(pack, *arguments, **more):
        trained.extend(run.seed for run in pack.runs)
        return train_by_turns(pack, *arguments, **more)

    monkeypatch.setattr(inline, "train_by_turns", recorded)
    heard = Heard()
    summary = conduct(tiny_study(seeds=1), tmp_path, KEEP, heard)
    assert (summary.finished, summary.checkpoints, trained) == (2, 0, [])
    (said,) = heard.said
    assert said.startswith("2 of 2 finished runs have no checkpoint.")
    assert "never repeated" in said
    assert "--out" in said
    study = tiny_study(seeds=2)  # the same study grows: what is new is kept
    summary = conduct(study, tmp_path, KEEP)
    assert (summary.finished, summary.checkpoints, trained) == (4, 2, [1, 1])
    store = Store(tmp_path)
    assert [store.has_checkpoint(run.id) for run in study.runs()] == [False, True] * 2
    heard = Heard()
    conduct(study, tmp_path, Options(executor="inline"), heard)
    assert heard.said == []  # nobody asked


def test_a_run_without_one_says_why(tmp_path):
    store = Store(tmp_path)
    cells = [tiny_cell(), tiny_cell("sac", "joint", view="continuous")]
    study = tiny_study(cells=cells, seeds=2)
    good, left, bad, _ = study.runs()
    conduct(study, tmp_path, Options(executor="inline", only=good.id))
    conduct(study, tmp_path, Options(executor="inline", keep_checkpoints=True, only=bad.id))
    for run, why in ((good, "finished without one"), (left, "not finished"), (bad, "failed")):
        assert not store.has_checkpoint(run.id)
        with pytest.raises(StoreError, match=rf"{run.id}, which .*{why}.*--keep-checkpoints"):
            store.checkpoint(run.id)


def test_what_cannot_be_kept_is_found_before_the_training(tmp_path, monkeypatch):
    def faceless(self, env):
        raise EnvError("this world has no face")

    monkeypatch.setattr(World, "face", faceless)
    monkeypatch.setattr(Loop, "tick", lambda self: pytest.fail("it was trained all the same"))
    study = tiny_study(cells=[tiny_cell()], seeds=1)
    assert conduct(study, tmp_path, KEEP).failed == 1
    error = Store(tmp_path).error(study.runs()[0].id)
    assert (error["type"], error["message"]) == ("EnvError", "this world has no face.")


KILLED = """
# A runner that dies in the middle of writing a checkpoint.
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from test_keeper import KEEP, tiny_study
from headwise.study import conduct, store

def write_bytes(path, data, write=store.write_bytes):
    if path.name != "checkpoint.zip":
        return write(path, data)
    write(path, data[: len(data) // 2])
    os.kill(os.getpid(), signal.SIGKILL)

store.write_bytes = write_bytes
conduct(tiny_study(), sys.argv[2], KEEP)
"""


def test_a_kill_while_it_is_written_leaves_no_half_of_it(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    folder = tmp_path / "killed"
    done = subprocess.run([sys.executable, script, Path(__file__).parent, folder], check=False)
    assert done.returncode == -signal.SIGKILL
    (half,) = folder.glob(".scratch/*/checkpoint.zip")
    assert half.stat().st_size > 0
    assert list(Store(folder).runs.iterdir()) == []
    conduct(tiny_study(), folder, KEEP)
    conduct(tiny_study(), tmp_path / "calm", KEEP)
    assert contents(folder) == contents(tmp_path / "calm")
    assert leftovers(folder) == []


# --- executors (local and ray: in their own files) ------------------------------------------------


def test_streams_keep_them_too(tmp_path, monkeypatch):
    """Without a GPU: the turns are real, the streams are not (tests/gpu has the real ones)."""

    def on_cpu(pack, thresholds, device, **more):
        assert device == "cuda"
        return train_by_turns(pack, thresholds, "cpu", **more)

    class Stream:
        def __init__(self, device):
            self.asked = 0

        def query(self):
            self.asked += 1
            return self.asked % 3 == 0

    monkeypatch.setattr(streams, "train_by_turns", on_cpu)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "set_stream", lambda stream: None)
    options = Options(executor="streams", device="cuda", workers=2, keep_checkpoints=True)
    assert conduct(tiny_study(), tmp_path / "streams", options).checkpoints == 4
    monkeypatch.undo()
    conduct(tiny_study(), tmp_path / "inline", KEEP)
    assert contents(tmp_path / "streams") == contents(tmp_path / "inline")
