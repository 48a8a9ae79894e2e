"""Masks where an agent only acts: in `predict`, on the way to a video, and in exported files."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import headwise as hw

TINY = {"net_arch": (8,), "num_envs": 2, "n_steps": 8}


class Turning(gym.Env):
    """One of four options is legal, another one at every step; the mask comes from `source`."""

    action_space = spaces.Discrete(4)

    def __init__(self, source="obs", form="flat", render_mode=None):
        self.source, self.form, self.render_mode = source, form, render_mode
        seen, mask = spaces.Box(-1, 1, (2,)), spaces.MultiBinary(4)
        if form == "nested":
            self.action_space = spaces.Dict(a=spaces.Discrete(4))
            mask = spaces.Dict(a=spaces.MultiBinary(4))
        whole = spaces.Dict(seen=seen, action_mask=mask)
        self.observation_space = whole if source == "obs" else seen

    def action_masks(self):
        assert self.source == "method"
        return self._mask()

    def has_wrapper_attr(self, name):
        return super().has_wrapper_attr(name) and (
            name != "action_masks" or self.source == "method"
        )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._told()

    def step(self, action):
        option = action["a"] if self.form == "nested" else action
        assert option == self.time % 4, "an illegal option was taken"
        self.time += 1
        obs, info = self._told()
        return obs, 1.0, False, self.time == 9, info

    def _mask(self):
        flat = (np.arange(4) == self.time % 4).astype(np.int8)
        return {"a": flat} if self.form == "nested" else flat

    def _told(self):
        seen = np.zeros(2, dtype=np.float32)
        obs = {"seen": seen, "action_mask": self._mask()} if self.source == "obs" else seen
        return obs, {"action_mask": self._mask()} if self.source == "info" else {}


def trained(**settings):
    return hw.Agent("ppo", Turning, env_settings=settings, **TINY).learn(40, progress=False)


@pytest.mark.parametrize("form", ["flat", "nested"])
def test_the_mask_in_an_observation_is_heeded(form):
    agent, env = trained(form=form), Turning(form=form)
    obs, _ = env.reset()
    for _ in range(9):
        obs, *_ = env.step(agent.predict(obs))  # the environment itself looks
    every = gym.vector.SyncVectorEnv([lambda: Turning(form=form)] * 3)
    obs, _ = every.reset()
    actions = agent.predict(obs)
    assert (actions["a"] if form == "nested" else actions).tolist() == [0, 0, 0]


def test_a_mask_that_is_given_wins():
    agent = trained()
    obs, _ = Turning().reset()
    assert agent.predict(obs, action_mask=[0, 0, 1, 0]) == 2
    assert agent.predict({"seen": np.zeros(2)}, action_mask=[0, 0, 1, 0]) == 2
    ignoring = trained_without_masks()
    actions = {int(ignoring.predict(obs)) for _ in range(60)}
    assert actions == {0, 1, 2, 3}


def trained_without_masks():
    class Lenient(Turning):
        def step(self, action):
            return super().step(self.time % 4)

    return hw.Agent("ppo", Lenient, env_settings={"masks": False}, **TINY)


class Pair:
    """Two agents with a mask each in their observation; only option `time` of 3 is legal."""

    metadata = {"name": "pair"}  # noqa: RUF012
    possible_agents = ("a", "b")
    agents = ()

    def observation_space(self, agent):
        return spaces.Dict(observation=spaces.Box(0, 9, (1,)), action_mask=spaces.MultiBinary(3))

    def action_space(self, agent):
        return spaces.Discrete(3)

    def reset(self, seed=None, options=None):
        self.agents, self.time = list(self.possible_agents), 0
        return self._obs(), {agent: {} for agent in self.agents}

    def step(self, actions):
        assert all(action == self.time % 3 for action in actions.values())
        self.time += 1
        team = list(self.agents)
        told = (dict.fromkeys(team, x) for x in (1.0, False, self.time == 6, {}))
        obs = self._obs()
        self.agents = [] if self.time == 6 else team
        return obs, *told

    def _obs(self):
        one = {"observation": np.zeros(1), "action_mask": (np.arange(3) == self.time % 3) * 1}
        return {agent: one for agent in self.agents}

    def close(self):
        pass


def test_the_masks_of_a_team_are_heeded():
    agent = hw.Agent("ppo", Pair, **TINY).learn(40, progress=False)
    team = Pair()
    obs, _ = team.reset()
    for _ in range(6):
        obs, *_ = team.step(agent.predict(obs))
    two = {
        "observation": np.zeros((2, 1)),
        "action_mask": np.array([[1, 0, 0], [0, 0, 1]]),
    }
    assert {n: x.tolist() for n, x in agent.predict({"a": two, "b": two}).items()} == {
        "a": [0, 2],
        "b": [0, 2],
    }


@pytest.mark.parametrize("source", ["obs", "info", "method"])
def test_the_face_finds_a_mask_wherever_the_environment_tells_it(source):
    agent, env = trained(source=source), Turning(source)
    obs, info = env.reset()
    for _ in range(9):
        mask = agent.face.told_mask(env, obs, info)
        obs, _, _, _, info = env.step(agent.predict(obs, action_mask=mask))
    deaf = hw.Agent("ppo", Turning, env_settings={"source": source, "masks": False}, **TINY)
    assert deaf.face.told_mask(env, *env.reset()) is None


def test_a_mask_that_is_forgotten_is_pointed_out_once(caplog, tmp_path):
    agent = trained(source="info")
    caplog.clear()
    agent.save(tmp_path / "x.zip")
    for one in (agent, agent.best(), hw.Agent.load(tmp_path / "x.zip")):
        for _ in range(2):
            one.predict(np.zeros(2))
        one.predict(np.zeros(2), action_mask=[1, 0, 0, 0])
        assert caplog.text.count("may choose an illegal option") == 1
        caplog.clear()
    trained(source="obs").predict(Turning().reset()[0])
    assert "illegal" not in caplog.text


@pytest.mark.parametrize("source", ["obs", "info"])
def test_an_exported_policy_takes_masks_if_the_environment_gives_them(source, tmp_path):
    import onnxruntime

    def inputs(agent, **options):
        agent.export(tmp_path / "x.onnx", **options)
        session = onnxruntime.InferenceSession(tmp_path / "x.onnx")
        return "action_mask" in [x.name for x in session.get_inputs()]

    agent = trained(source=source)
    assert inputs(agent)
    agent.best().save(tmp_path / "x.zip")
    assert inputs(hw.Agent.load(tmp_path / "x.zip"))
    assert not inputs(agent, masks=False)
    assert not inputs(trained_without_masks())
