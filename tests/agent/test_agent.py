"""The agent as its user sees it."""

import json
import zipfile

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

import headwise as hw
from headwise.algorithms.ppo import PPO
from headwise.envs.native.parallel_env import parallel_env
from headwise.factorizations.vdn import VDN

TINY = {"net_arch": (16,), "n_steps": 16, "batch_size": 16, "n_epochs": 1, "num_envs": 2}


class Nested(gym.Env):
    """Every kind of space, nested in both directions."""

    observation_space = spaces.Dict(
        image=spaces.Box(0, 255, (2, 2), np.uint8),
        pair=spaces.Tuple((spaces.Discrete(3, start=1), spaces.MultiBinary(2))),
    )
    action_space = spaces.Dict(
        zoom=spaces.Box(-3, 5, (2,)),
        buttons=spaces.Tuple((spaces.MultiDiscrete([2, 4]), spaces.Discrete(3, start=-1))),
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.time = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.time += 1
        return self.observation_space.sample(), 1.0, False, self.time == 5, {}


def shoot(**more):
    return hw.Agent("ppo", "headwise/HybridShoot-v0", **{**TINY, "seeds": 2, **more})


@pytest.mark.parametrize("algo", ["ppo", "dqn", "sac"])
def test_actions_come_in_the_environments_own_structure(algo):
    settings = {"ppo": TINY, "dqn": {"net_arch": (16,)}, "sac": {"net_arch": (16,)}}[algo]
    agent = hw.Agent(algo, Nested, **{**settings, "num_envs": 2})
    agent.learn(40, progress=False)
    env = Nested()
    obs, _ = env.reset(seed=0)
    assert env.action_space.contains(agent.predict(obs))
    assert env.action_space.contains(agent.predict(obs, deterministic=True))
    batched = spaces.Dict(env.observation_space.spaces)
    batch = gym.vector.utils.batch_space(batched, 3).sample()
    actions = agent.predict(batch)
    assert actions["zoom"].shape == (3, 2)
    assert actions["buttons"][0].shape == (3, 2)
    assert actions["buttons"][1].shape == (3,)


def test_the_front_door_of_the_readme():
    agent = hw.Agent(
        "ppo", gym.make("headwise/HybridShoot-v0"), factorization="vdn", seeds=3, **TINY
    )
    agent.learn(64, progress=False)
    assert "(3 seeds: too few to say" in str(agent.evaluate(episodes=4))
    option, aim = agent.predict(np.zeros(9, dtype=np.float32))
    assert option in range(3)
    assert ((aim >= 0) & (aim <= 1)).all()
    assert agent.seeds == (0, 1, 2)


KINDS = {
    "an id of ours": "headwise/HybridShoot-v0",
    "a name of ours": "HybridShoot",
    "a probe": "probe/agree",
    "an id of Gymnasium": "CartPole-v1",
    "an environment": lambda: gym.make("CartPole-v1"),
    "an environment without a spec": Nested,
    "a vector environment": lambda: gym.make_vec("CartPole-v1", 3),
    "a parallel environment": lambda: parallel_env("HybridShoot"),
}


@pytest.mark.parametrize("what", KINDS)
@pytest.mark.parametrize("called", [False, True])
def test_every_kind_of_environment(what, called):
    """Called: the callable itself is handed over. Not called: what it makes."""
    env = KINDS[what]
    if not called and callable(env):
        env = env()
    settings = {k: v for k, v in TINY.items() if k != "num_envs"}
    agent = hw.Agent("ppo", env, **settings).learn(33, progress=False)
    assert agent.steps >= 33
    assert agent.evaluate(2).returns.shape == (1, 2)
    agent.learn(10, progress=False)  # goes on after an evaluation, also in the same environment


def test_vector_environments_that_are_made_have_the_slots_that_they_have():
    made = []

    def three():
        made.append(gym.make_vec("CartPole-v1", 3, vectorization_mode="sync"))
        return made[-1]

    settings = {k: v for k, v in TINY.items() if k != "num_envs"}
    agent = hw.Agent("ppo", three, **settings)
    agent.learn(33, progress=False, eval_every=15, eval_episodes=2)
    for one in (agent, agent.member(0)):
        assert one.evaluate(2).returns.shape == (1, 2)
    assert [one.closed for one in made].count(False) <= 2  # those of the two agents


def test_a_team_acts_as_one():
    agent = hw.Agent("ppo", lambda: parallel_env("CoopPush", view="discrete"), **TINY)
    assert agent.face.spec.names[0] == "particle_0/action"
    agent.learn(40, progress=False)
    team = parallel_env("CoopPush", view="discrete")
    obs, _ = team.reset(seed=0)
    actions = agent.predict(obs)
    assert set(actions) == set(team.possible_agents)
    team.step(actions)


def test_settings_go_to_whom_they_belong():
    agent = hw.Agent(
        "ppo",
        "HybridShoot",
        factorization="qplex",
        mixer_width=8,
        learning_rate=(1e-3, 1e-4),
        seeds=2,
        **TINY,
    )
    assert agent.config.factorization.mixer_width == 8
    assert agent.config.algorithm.learning_rate == (1e-3, 1e-4)
    same = hw.Agent(PPO(net_arch=(16,)), "HybridShoot", factorization=VDN(), num_envs=2)
    assert same.config.algorithm.net_arch == (16,)
    changed = hw.Agent(PPO(net_arch=(16,)), "HybridShoot", num_envs=2, learning_rate=0.01)
    assert changed.config.algorithm.learning_rate == 0.01


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"policy_kwargs": {}}, "unknown setting of ppo or shared"),
        ({"n_stepps": 32}, "Did you mean 'n_steps'"),
        ({"num_env": 3}, "Did you mean 'num_envs'"),
        ({"factorization": "vdm"}, "Did you mean 'vdn'"),
        ({"learning_rate": -1.0}, "out of range"),
        ({"learning_rate": (0.1, 0.1, 0.1)}, "one for each member"),
        ({"seeds": 0}, "seed"),
        ({"seeds": [1, 1]}, "twice"),
        ({"num_envs": 0}, "num_envs"),
        ({"view": "hybridd"}, "hybrid"),
        ({"device": "tpu"}, "device"),
        ({"normalize_obs": "yes"}, "True or False"),
        ({"env_settings": {"num_target": 3}}, "Did you mean 'num_targets'"),
    ],
)
def test_impossible_settings_fail_at_once_with_a_suggestion(settings, words):
    with pytest.raises(hw.HeadwiseError, match=words):
        hw.Agent("ppo", "headwise/HybridShoot-v0", **settings)


def test_misspelt_names():
    with pytest.raises(hw.EnvError, match="this is no environment; got None"):
        hw.Agent("ppo", None)
    with pytest.raises(hw.ConfigError, match="Did you mean 'ppo'"):
        hw.Agent("ppoo", "HybridShoot")
    with pytest.raises(hw.HeadwiseError, match="Did you mean"):
        hw.Agent("ppo", "HybridShot")
    with pytest.raises(hw.ConfigError, match="max_joint"):
        hw.Agent("dqn", "CoopPush", factorization="joint", view="discrete", bins=30, max_joint=100)


def test_best_is_one_member_that_acts_the_same(tmp_path):
    agent = shoot(seeds=[5, 6, 7]).learn(128, progress=False)
    scores = agent.evaluate(6).scores
    best = agent.best()
    assert best.seeds == (agent.seeds[int(np.argmax(scores))],)
    obs = np.random.default_rng(0).random((20, 9), dtype=np.float32)
    for member in range(3):
        alone = agent.member(member)
        ours = agent.predict(obs, deterministic=True, member=member)
        theirs = alone.predict(obs, deterministic=True)
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_array_equal(ours[1], theirs[1])
    best.save(tmp_path / "best.zip")
    again = hw.Agent.load(tmp_path / "best.zip")
    np.testing.assert_array_equal(again.predict(obs, True)[1], best.predict(obs, True)[1])
    before = again.predict(obs, True)[1]
    again.learn(16, progress=False)  # too little for an update: what was learned is still there
    np.testing.assert_array_equal(again.predict(obs, True)[1], before)


def test_drawn_actions_differ_and_are_reproducible():
    obs = np.zeros((50, 9), dtype=np.float32)
    first, second = shoot(), shoot()
    a, b = first.predict(obs), first.predict(obs)
    assert not np.array_equal(a[1], b[1])
    np.testing.assert_array_equal(a[1], second.predict(obs)[1])


def test_load_without_the_environment_can_still_act(tmp_path):
    agent = hw.Agent("ppo", Nested, **TINY).learn(40, progress=False)
    agent.save(tmp_path / "x.zip")
    obs, _ = Nested().reset(seed=0)
    alone = hw.Agent.load(tmp_path / "x.zip")
    ours, theirs = (a.predict(obs, deterministic=True) for a in (agent, alone))
    np.testing.assert_array_equal(ours["zoom"], theirs["zoom"])
    for call in (lambda: alone.learn(10), lambda: alone.evaluate(2)):
        with pytest.raises(hw.EnvError, match=r"Agent.load\(path, env=...\)"):
            call()
    whole = hw.Agent.load(tmp_path / "x.zip", env=Nested).learn(40, progress=False)
    assert whole.steps == 80


def test_another_environment_is_refused(tmp_path):
    shoot().save(tmp_path / "x.zip")
    with pytest.raises(hw.SpaceError, match="not the one that the agent was trained in"):
        hw.Agent.load(tmp_path / "x.zip", env="CartPole-v1")


def forged(path, change):
    """A checkpoint whose description says something else."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    info = json.loads(parts["checkpoint.json"])
    change(info)
    parts["checkpoint.json"] = json.dumps(info).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


FORGERIES = {
    "an id of another kind": lambda i: i["env"].update(id=7),
    "no plan": lambda i: i.pop("plan"),
    "a plan of words": lambda i: i.update(plan="ppo"),
    "an unknown algorithm": lambda i: i["plan"].update(algorithm="__import__"),
    "a wide network": lambda i: i["plan"]["settings"].update(net_arch=[10**6, 10**6]),
    "another network": lambda i: i["plan"]["settings"].update(net_arch=[17]),
    "more seeds": lambda i: i["plan"].update(seeds=[1, 2, 3]),
    "seeds of text": lambda i: i["plan"].update(seeds=["a"]),
    "more slots": lambda i: i["plan"].update(num_envs=3),
    "no spaces": lambda i: i.update(face=None),
    "a huge space": lambda i: i["face"]["observation_space"].update(box=[2**30]),
    "another space": lambda i: i["face"]["observation_space"].update(box=[3], low=[0], high=[1]),
    "a settings list": lambda i: i["env"].update(settings=[1]),
    "other heads": lambda i: i["face"]["spec"].update(names=["a"]),
    "negative steps": lambda i: i["plan"].update(total_steps=-5),
    "no target": lambda i: i["plan"].update(target_steps="far"),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forged_description_is_refused(what, tmp_path):
    shoot().learn(40, progress=False).save(tmp_path / "x.zip")
    forged(tmp_path / "x.zip", FORGERIES[what])
    with pytest.raises(hw.HeadwiseError):
        hw.Agent.load(tmp_path / "x.zip")


def test_importance_where_the_critic_has_it():
    obs = np.zeros((4, 9), dtype=np.float32)
    shares = shoot(factorization="vdn").learn(64, progress=False).importance(obs)
    assert shares.shape == (4, 3)
    np.testing.assert_allclose(shares.sum(-1), 1.0, rtol=1e-5)
    assert shoot(factorization="vdn").importance(obs[0]).shape == (3,)
    assert shoot(factorization="shared").importance(obs) is None


def test_it_prints_what_it_is():
    text = repr(shoot(factorization="ar"))
    for part in ("ppo", "'ar'", "[0, 1]", "select: Choice(3)"):
        assert part in text


def test_the_package_knows_it_only_when_asked():
    assert "Agent" in hw.__all__
    with pytest.raises(AttributeError):
        hw.Agnet  # noqa: B018


def test_a_learner_on_another_device_is_refused_where_there_is_none(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(hw.ConfigError, match="device"):
        shoot(device="cuda")


def test_an_exported_policy_acts_the_same(tmp_path):
    import onnxruntime

    agent = shoot(normalize_obs=True).learn(64, progress=False)
    agent.best().export(tmp_path / "x.onnx")
    obs = np.random.default_rng(0).random((50, 9), dtype=np.float32)
    option, aim = onnxruntime.InferenceSession(tmp_path / "x.onnx").run(None, {"observation": obs})
    ours = agent.predict(obs, deterministic=True)
    np.testing.assert_array_equal(option, ours[0])
    np.testing.assert_allclose(aim, ours[1], atol=1e-5)
    with pytest.raises(hw.ConfigError, match="path"):
        agent.export(None)


def test_an_exported_file_is_what_its_name_says(tmp_path):
    agent = shoot()
    agent.export(tmp_path / "x.pt2")
    program = torch.export.load(tmp_path / "x.pt2").module()
    obs = torch.rand(5, 9)
    action = program(observation={"observation": obs}, uniform=None, action_mask=None)
    ours = agent.predict(obs.numpy(), deterministic=True)
    np.testing.assert_array_equal(action["action[0]"].numpy(), ours[0])
    for name in ("x.foo", "x", "x.onnx.zip", "x.ONNX"):
        with pytest.raises(hw.ConfigError, match=r"\.onnx, or in \.pt2"):
            agent.export(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["x.pt2"]
