"""Environments that an agent fits because they mean the same, and those that it refuses."""

import functools

import gymnasium as gym
import pytest
from gymnasium import spaces
from robots import Robot, Team, saved

import headwise as hw
from headwise.agent.face import Face
from headwise.envs.foreign import wrap
from headwise.envs.make import environments


class Shaped(Robot):
    """With whatever spaces it is given."""

    def __init__(self, observation_space=None, action_space=None):
        super().__init__()
        self.observation_space = observation_space or Robot.observation_space
        self.action_space = action_space or Robot.action_space

    def _obs(self):
        return self.observation_space.sample()


def shaped(**given):
    return functools.partial(Shaped, **given)


THREE, TWO, NUMBER = spaces.Discrete(3), spaces.Discrete(2), spaces.Box(-1, 1, (1,))
KEYS = "the keys of every Dict in this order"
OTHERWISE = {
    "heads in another order": (
        {"action_space": spaces.Dict(grip=THREE, lift=THREE)},
        {"action_space": spaces.Dict(lift=THREE, grip=THREE)},
        r"heads come in another order; got lift: Choice\(3\), grip: .*; allowed: grip: .*" + KEYS,
    ),
    "heads of other names": (
        {"action_space": spaces.Dict(grip=THREE, lift=THREE)},
        {"action_space": spaces.Dict(grip=THREE, turn=THREE)},
        "heads are others; got grip: .*, turn: .*; allowed: grip: .*, lift: .*",
    ),
    "heads that are always in use": (
        {"action_space": spaces.OneOf((THREE, TWO))},
        {"action_space": spaces.MultiDiscrete([2, 3, 2])},
        r"heads are others; .*; allowed: action: Choice\(2\), action:0: Choice\(3\) "
        r"\(if 0 <= action < 1\), action:1: ",
    ),
    "observations in another order": (
        {"observation_space": spaces.Dict(speed=NUMBER, target=NUMBER)},
        {"observation_space": spaces.Dict(target=NUMBER, speed=NUMBER)},
        r"laid out otherwise; got target: numbers of shape \(1,\), speed: .*allowed: speed.*"
        + KEYS,
    ),
    "options for numbers": (
        {"observation_space": spaces.Box(-1, 1, (3,))},
        {"observation_space": THREE},
        r"got observation: 3 options; allowed: observation: numbers of shape \(3,\)",
    ),
    "another shape": (
        {"observation_space": spaces.Box(-1, 1, (2, 3))},
        {"observation_space": spaces.Box(-1, 1, (3, 2))},
        r"got observation: numbers of shape \(3, 2\); allowed: observation: .*\(2, 3\)",
    ),
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_an_environment_that_means_something_else_is_refused(what, tmp_path):
    trained, other, words = OTHERWISE[what]
    agent = saved(tmp_path / "x.zip", shaped(**trained))
    with pytest.raises(hw.SpaceError, match=f"not the one that the agent was trained in.*{words}"):
        hw.Agent.load(tmp_path / "x.zip", env=shaped(**other))
    with pytest.raises(hw.SpaceError, match="not the one that the agent was trained in"):
        agent.best(env=Shaped(**other))
    assert hw.Agent.load(tmp_path / "x.zip", env=shaped(**trained)).evaluate(1).lengths == [[10]]


ALIKE = {
    "other bounds of what is seen": ({}, {"observation_space": spaces.Box(-2, 2, (3,))}),
    "a tuple for an array": (
        {"action_space": spaces.MultiDiscrete([3, 2])},
        {"action_space": spaces.Tuple((THREE, TWO))},
    ),
    "options from another number": (
        {"action_space": THREE}, {"action_space": spaces.Discrete(3, start=-1)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", ALIKE)
def test_spaces_that_say_the_same_otherwise_are_taken(what, tmp_path):
    trained, other = ALIKE[what]
    saved(tmp_path / "x.zip", shaped(**trained))
    assert hw.Agent.load(tmp_path / "x.zip", env=shaped(**other)).evaluate(1).lengths == [[10]]


@pytest.mark.parametrize("name", ["Platform", "HybridShoot", "CoopPush", "ContextualDecoupler"])
def test_a_compiled_environment_is_the_same_behind_its_face(name, tmp_path):
    by_id, made = f"headwise/{name}-v0", functools.partial(gym.make, f"headwise/{name}-v0")
    saved(tmp_path / "x.zip", by_id)
    saved(tmp_path / "y.zip", made)
    for path, env in (("x.zip", made), ("x.zip", name), ("y.zip", by_id)):
        assert hw.Agent.load(tmp_path / path, env=env).evaluate(1, max_steps=3).lengths.size == 1


def test_a_team_is_the_same_by_a_registered_name(tmp_path, monkeypatch):
    """A checkpoint of an earlier version knew its observations as one vector only."""
    monkeypatch.setitem(environments._entries, "TestTeam", functools.partial(wrap, Team))
    agent = saved(tmp_path / "x.zip", "TestTeam")
    assert agent.face.observation_space.keys() == {"a", "b"}
    assert hw.Agent.load(tmp_path / "x.zip", env=Team).evaluate(1).lengths == [[4]]
    Face.plain(agent.face.spec, agent.face.obs_spec).check(agent.face)
