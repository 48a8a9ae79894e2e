"""What `make third-party` tries, as far as it can be known without those packages."""

import importlib.util
import re
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import headwise as hw

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def third_party():
    spec = importlib.util.spec_from_file_location("third_party", ROOT / "tools/third_party.py")
    module = sys.modules["third_party"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Grid(gym.Env):
    """The spaces of grid2op's case 14: six parts, and elements with one value only."""

    dispatch = np.array([5, 10, 0, 0, 0, 15], dtype=np.float32)
    floor = np.array([-1, -1, 0, 0, 0, -1], dtype=np.float32)
    action_space = spaces.Dict(
        change_bus=spaces.MultiBinary(57),
        change_line_status=spaces.MultiBinary(20),
        curtail=spaces.Box(floor, np.where(floor < 0, floor, 1).astype(np.float32)),
        redispatch=spaces.Box(-dispatch, dispatch),
        set_bus=spaces.Box(-1, 2, (57,), np.int32),
        set_line_status=spaces.Box(-1, 1, (20,), np.int32),
    )
    observation_space = spaces.Dict(rho=spaces.Box(0, np.inf, (20,)), day=spaces.Discrete(8))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return {"rho": np.ones(20, dtype=np.float32), "day": 0}, {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.time += 1
        obs = {"rho": np.ones(20, dtype=np.float32), "day": self.time % 8}
        return obs, 1.0, False, self.time == 8, {}


@pytest.mark.parametrize("algo", ["ppo", "dqn", "sac"])
def test_a_dict_of_160_heads_is_a_line_and_acts_within_its_bounds(third_party, algo):
    agent = hw.Agent(algo, Grid, num_envs=2, net_arch=(8,), **third_party.LEARNERS[algo])
    assert agent.face.spec.num_heads == 57 + 20 + 3 + 3 + 57 + 20
    assert len(repr(agent)) <= third_party.LONGEST
    agent.learn(96, progress=False)
    action = agent.predict(Grid().reset(seed=0)[0])
    assert action["curtail"][[0, 1, 5]].tolist() == [-1, -1, -1]
    assert action["redispatch"][2:5].tolist() == [0, 0, 0]


def test_every_environment_is_in_the_docs_and_every_package_has_a_version(third_party):
    page = (ROOT / "docs/tried.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \|.* works \|$", page, re.MULTILINE)
    assert rows == list(third_party.CASES)
    told = (ROOT / "tools/third_party.txt").read_text() + (ROOT / "Makefile").read_text()
    for name in ("grid2op", "gymnasium-robotics", "highway-env", "lbforaging", "minigrid", "nle"):
        assert re.search(rf"\b{name}==[\d.]+", told), name


def test_what_does_not_work_is_a_row_and_ends_the_run(third_party, monkeypatch, capsys):
    monkeypatch.setitem(third_party.CASES, "rware", third_party.Case(lambda: 1 / 0, "dqn"))
    found = {"error": "EnvError: it could not be made"}
    monkeypatch.setattr(third_party, "_in_a_process", lambda name, steps: found)
    monkeypatch.setattr("sys.argv", ["third_party.py", "rware"])
    with pytest.raises(SystemExit, match="failed: rware"):
        third_party.main()
    assert "| rware | | | | nothing | | EnvError: it could not be made |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.Discrete(5), "Discrete(5)"),
        (spaces.Box(-1, 1, (2,)), "Box(2,)"),
        (spaces.Tuple([spaces.Discrete(6)] * 2), "Tuple: 2 x Discrete(6)"),
        ({"a": spaces.Discrete(3), "b": spaces.Discrete(5)}, "agents: Discrete(3), Discrete(5)"),
        (spaces.Dict(a=spaces.MultiBinary(3)), "Dict: MultiBinary(3,)"),
    ],
)
def test_spaces_in_words(third_party, space, words):
    assert third_party.in_words(space) == words


def test_a_round_is_whole(third_party, monkeypatch, tmp_path):
    monkeypatch.setitem(third_party.CASES, "grid, small", third_party.Case(Grid, "dqn"))
    found = third_party.tried("grid, small", 64, tmp_path)
    assert found["heads"] == 160
    assert not found["cnn"]
    assert {path.name for path in tmp_path.iterdir()} == {"ppo.zip", "dqn.zip"}
    refused = third_party.Case(Grid, "dqn", refusal="reward_weights")
    monkeypatch.setitem(third_party.CASES, "grid, small", refused)
    with pytest.raises(AssertionError, match="the refusal says nothing"):
        third_party.tried("grid, small", 64, tmp_path)
