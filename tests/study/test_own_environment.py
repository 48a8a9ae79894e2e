"""An environment of one's own in a study, from the first command to the report.

The study is the one in docs/studies.md, with a tiny budget, trained by worker processes. It runs in
processes of its own: what it registers must not be seen by other tests.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headwise.report.runs import read_store
from headwise.study import Store

PAGE = Path(__file__).parents[2] / "docs" / "studies.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
(FILE,) = (block for block in BLOCKS if "gym.register(" in block)
TINY = """
study = study.change(
    total_timesteps=128, num_envs=2, normalize_obs=True,
    settings={"net_arch": (8, 8), "branch_width": 8},
).change(algorithm="ppo", settings={"n_steps": 16, "batch_size": 16, "n_epochs": 1}).change(
    algorithm="sac", settings={"learning_starts": 16, "batch_size": 8, "buffer_size": 64}
)
slow = study.without(algorithm="sac").without(factorization="vdn")
slow = slow.change(env_settings={"vectorization": "async"}, labels={"slots": "processes"})
study = study.adding(*slow.cells)
"""
RUN = ["study", "run", "robot.py", "--workers", "1", "--keep-checkpoints"]
REST = f"""
from headwise.cli import main

def headwise(*words):
    assert main(list(words)) == 0, words

if __name__ == "__main__":
    headwise(*{RUN})
    headwise("study", "status", "robot.py")
    headwise("study", "run", "robot.py", "--dry-run")
    headwise("study", "archive", "robot.py")
    headwise("study", "restore", "robot.parquet", "--out", "back")
    headwise("study", "run", "robot.py", "--out", "back")
    for folder in ("back", "robot"):
        headwise("report", folder, "--formats")
    from headwise import Agent
    from headwise.study import Store
    store = Store("runs/robot")
    for run in store.plan()[:2]:
        agent = Agent.load(store.checkpoint(run.id))
        observation, action = agent.face.observation_space.sample(), agent.face.action_space
        assert agent.predict(observation) in action
        assert agent.evaluate(episodes=2).lengths.tolist() == [[20.0, 20.0]]
        print("scale", agent.loop.normalizer.obs_mean.abs().sum().item())
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Where it was run, killed in the middle and run again, and what was said."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "robot.py").write_text(FILE + TINY)
    (folder / "rest.py").write_text(REST)
    driver = subprocess.Popen([sys.executable, "-m", "headwise.cli", *RUN], cwd=folder)
    finished = folder / "runs/robot/runs"
    try:
        while driver.poll() is None and not list(finished.glob("*")):
            time.sleep(0.02)
    finally:
        driver.kill()
        driver.wait()
    assert 0 < len(list(finished.iterdir())) < 15
    rest = subprocess.run(
        [sys.executable, "rest.py"], cwd=folder, capture_output=True, text=True, timeout=200
    )
    assert rest.returncode == 0, rest.stderr
    return folder, rest.stdout + rest.stderr


def test_it_is_trained_by_workers_in_populations(done):
    store = Store(done[0] / "runs/robot")
    runs = store.plan()
    assert len(runs) == 15
    for run in runs:
        assert run.env == "Robot-v0"
        assert run.env_settings.items() >= {"length": 20, "bins": 7}.items()
        assert store.result(run.id)["episodes"] == 6  # of two slots, 64 steps each, 20 an episode
        assert set(store.episodes(run.id).length.tolist()) == {20}
        assert store.has_checkpoint(run.id)
    assert max(len(store.fingerprint(run.id)["packed_with"]) for run in runs) == 3


def test_slots_that_are_processes_make_no_difference(done):
    store = Store(done[0] / "runs/robot")
    scores = {}
    for run in store.plan():
        if (run.algorithm, run.factorization) == ("ppo", "shared"):
            how = run.env_settings.get("vectorization", "sync")
            scores.setdefault(how, []).append(store.result(run.id)["final_return"])
    assert len(scores["sync"]) == 3
    assert scores["sync"] == scores["async"]


def test_every_command_knows_it(done):
    said = done[1]
    for words in (
        "15 of 15 runs are finished in runs/robot",
        "15 of 15 finished runs have a checkpoint",
        "15 runs in 5 populations, 0 to do",
        "wrote robot.parquet: 15 of 15 runs",
        "15 of 15 runs are finished in back",
    ):
        assert words in said


def test_the_report_has_every_cell(done):
    for folder in (done[0] / "back", done[0] / "runs/robot"):
        assert {(run.task, run.view) for run in read_store(folder)} == {("robot", "discrete")}
        tables = (folder / "report/tables").glob("scores-robot*.csv")
        assert sum(len(table.read_text().splitlines()) - 1 for table in tables) == 5


def test_trained_agents_have_each_a_scale_of_their_own(done):
    scales = re.findall(r"scale (\S+)", done[1])
    assert len(set(scales)) == 2
    assert all(float(scale) > 0.0 for scale in scales)
