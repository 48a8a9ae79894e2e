"""Agents that are loaded into an environment: the same, another one, fewer slots, or none."""

import functools
import sys
import types

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

import headwise as hw
from headwise.agent.face import Face
from headwise.envs.foreign import wrap
from headwise.envs.make import environments
from headwise.training.checkpoint import read_checkpoint, write_checkpoint

PPO = {"hidden": (8,), "rollout": 40, "minibatch": 20, "epochs": 1, "num_envs": 2}
DQN = {"hidden": (8,), "warmup": 16, "replay": 200, "batch_size": 8, "num_envs": 4}


class Robot(gym.Env):
    """An episode of `length` steps; `closed` once somebody closes it."""

    observation_space = spaces.Box(-1, 1, (3,))
    action_space = spaces.Dict(grip=spaces.Discrete(3), joints=spaces.Box(-1, 1, (2,)))
    closed = False

    def __init__(self, length=10, tool=None, render_mode=None):
        self.length, self.tool, self.render_mode = length, tool, render_mode

    def reset(self, *, seed=None, options=None):
        assert not self.closed
        super().reset(seed=seed)
        self.time = 0
        return self._obs(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.time += 1
        return self._obs(), 1.0, False, self.time == self.length, {}

    def _obs(self):
        return self.np_random.uniform(-1, 1, 3).astype(np.float32)

    def close(self):
        self.closed = True


class Free(Robot):
    action_space = spaces.Box(-np.inf, np.inf, (2,))


class Masked(Robot):
    action_space = spaces.Discrete(3)

    def reset(self, **given):
        return super().reset(**given)[0], {"action_mask": np.array([1, 0, 0])}

    def step(self, action):
        obs, _, *ends, _ = super().step(action)
        return obs, float(action > 0), *ends, {"action_mask": np.array([1, 0, 0])}


class Team:
    """Two agents, each of whom earns 1 in every one of 4 steps."""

    metadata = {"name": "team"}  # noqa: RUF012
    possible_agents = ("a", "b")

    def __init__(self):
        self.agents = []

    def observation_space(self, agent):
        return spaces.Box(0, 9, (1,))

    def action_space(self, agent):
        return spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.agents, self.time = list(self.possible_agents), 0
        return self._each(np.zeros(1)), self._each({})

    def step(self, actions):
        self.time += 1
        over = self.time == 4
        told = tuple(self._each(x) for x in (np.zeros(1), 1.0, over, False, {}))
        self.agents = [] if over else self.agents
        return told

    def _each(self, value):
        return dict.fromkeys(self.agents, value)

    def close(self):
        pass


@pytest.fixture
def package():
    """A package that registers Robot-v0 when it is imported, and says so."""
    name = "robots_of_a_test"
    module = types.ModuleType(name)
    gym.register("headwise_test/Robot-v0", entry_point=Robot)
    sys.modules[name] = module
    yield f"{name}:headwise_test/Robot-v0"
    del sys.modules[name], gym.registry["headwise_test/Robot-v0"]


def saved(path, env, algo="ppo", **more):
    settings = PPO if algo == "ppo" else DQN
    agent = hw.Agent(algo, env, **{**settings, **more}).learn(80, progress=False)
    agent.save(path)
    return agent


# --- what translates goes along -------------------------------------------------------------------

TRANSLATED = {
    "a view": (Robot, {"view": "discrete"}),
    "bins": (Robot, {"view": "discrete", "env_settings": {"bins": 5}}),
    "bounds": (Free, {"env_settings": {"bounds": {"action": (-1, 1)}}}),
    "bounds of arrays": (Free, {"env_settings": {"bounds": {"action": (-np.ones(2), np.ones(2))}}}),
}


@pytest.mark.parametrize("what", TRANSLATED)
@pytest.mark.parametrize("kind", ["class", "lambda", "instance"])
def test_how_the_action_is_seen_goes_along(what, kind, tmp_path):
    env, settings = TRANSLATED[what]
    trained = saved(tmp_path / "x.zip", env, **settings)
    given = {"class": env, "lambda": lambda: env(), "instance": env()}[kind]
    agent = hw.Agent.load(tmp_path / "x.zip", env=given)
    assert agent.face.spec == trained.face.spec
    assert agent.learn(40, progress=False).steps == 120
    agent.save(tmp_path / "y.zip")  # and once more
    hw.Agent.load(tmp_path / "y.zip").save(tmp_path / "z.zip")  # and without an environment
    again = hw.Agent.load(tmp_path / "z.zip", env=env)
    assert again.face.spec == trained.face.spec


def test_what_a_team_earns_goes_along(tmp_path):
    agent = saved(tmp_path / "x.zip", Team, env_settings={"team_reward": "mean"})
    assert agent.evaluate(2).scores == [4.0]
    for env in (Team, Team()):
        assert hw.Agent.load(tmp_path / "x.zip", env=env).evaluate(2).scores == [4.0]
    summed = hw.Agent.load(tmp_path / "x.zip", env=Team, env_settings={"team_reward": "sum"})
    assert summed.evaluate(2).scores == [8.0]


def test_ignored_masks_stay_ignored(tmp_path):
    saved(tmp_path / "x.zip", Masked, env_settings={"masks": False})
    agent = hw.Agent.load(tmp_path / "x.zip", env=Masked)
    assert agent.evaluate(4, deterministic=False).scores > 0
    heeding = hw.Agent.load(tmp_path / "x.zip", env=Masked, env_settings={"masks": True})
    assert heeding.evaluate(4, deterministic=False).scores == 0


# --- what makes it is for what is made by it ------------------------------------------------------


def lengths(path, env=None, **more):
    return set(hw.Agent.load(path, env=env, **more).evaluate(3).lengths.ravel().tolist())


def test_settings_of_a_callable_are_for_callables_that_take_them(tmp_path, caplog):
    saved(tmp_path / "x.zip", Robot, env_settings={"length": 3})
    x = tmp_path / "x.zip"
    assert lengths(x, Robot) == {3}
    assert lengths(x, lambda **settings: Robot(**settings)) == {3}
    assert lengths(x, lambda: Robot(length=5)) == {5}
    assert lengths(x, Robot(length=5)) == {5}
    assert lengths(x, functools.partial(Robot, length=5)) == {5}
    assert lengths(x, functools.partial(Robot, tool="arm")) == {3}
    assert lengths(x, Robot, env_settings={"length": 4}) == {4}
    assert caplog.text == ""
    assert lengths(x, lambda tool=None: Robot(tool=tool)) == {10}
    assert "is not given: length" in caplog.text


def test_settings_of_an_id_are_for_that_id(package, tmp_path, caplog):
    x = tmp_path / "x.zip"
    saved(x, "headwise_test/Robot-v0", env_settings={"length": 3})
    assert lengths(x) == {3}
    assert lengths(x, package) == {3}
    assert lengths(x, Robot) == {3}
    assert lengths(x, lambda: Robot(length=5)) == {5}
    assert lengths(x, gym.make("headwise_test/Robot-v0", length=5)) == {5}
    assert lengths(x, env_settings={"length": 4}) == {4}
    assert caplog.text == ""
    gym.register("headwise_test/Robot-v1", entry_point=Robot)
    assert lengths(x, "headwise_test/Robot-v1") == {10}
    assert "is not given: length" in caplog.text
    del gym.registry["headwise_test/Robot-v1"]


def test_settings_that_a_file_cannot_hold_are_asked_for(package, tmp_path, caplog):
    x, settings = tmp_path / "x.zip", {"length": np.int64(3), "tool": object()}
    saved(x, "headwise_test/Robot-v0", env_settings=settings)
    agent = hw.Agent.load(x)
    agent.predict(np.zeros(3))
    with pytest.raises(hw.EnvError, match="could not hold the settings tool"):
        agent.evaluate(2)
    assert lengths(x, env_settings={"tool": "arm"}) == {3}
    assert caplog.text == ""
    assert lengths(x, "headwise_test/Robot-v0") == {3}
    assert "is not given: tool" in caplog.text


def test_environments_of_ours_as_others_know_them(tmp_path):
    settings = {"env_settings": {"num_targets": 4}, "view": "discrete"}
    saved(tmp_path / "x.zip", "HybridShoot", **settings)
    made = gym.make("headwise/HybridShoot-v0", num_targets=4, view="discrete")
    for env in (made, "headwise/HybridShoot-v0", None):
        assert hw.Agent.load(tmp_path / "x.zip", env=env).learn(40, progress=False).steps == 120


# --- modules --------------------------------------------------------------------------------------


def test_a_checkpoint_alone_never_imports_a_module(package, tmp_path):
    x = tmp_path / "x.zip"
    saved(x, package, env_settings={"length": 3})
    module = sys.modules.pop(package.partition(":")[0])
    agent = hw.Agent.load(x)
    assert Robot.action_space.contains(agent.predict(np.zeros(3)))
    agent.best().predict(np.zeros(3))
    for call in (lambda: agent.learn(20, progress=False), lambda: agent.evaluate(2)):
        with pytest.raises(hw.EnvError, match=rf"import a module.*load\(path, env='{package}'\)"):
            call()
    agent.save(tmp_path / "y.zip")
    sys.modules[module.__name__] = module
    assert lengths(tmp_path / "y.zip", package) == {3}  # settings and all
    assert lengths(x, Robot) == {3}


def test_where_the_environment_is_not_registered_it_can_still_act(package, tmp_path):
    """As on a machine that the policy is only deployed to."""
    x, name = tmp_path / "x.zip", "headwise_test/Robot-v0"
    saved(x, name, env_settings={"length": 3})
    spec = gym.registry.pop(name)
    agent = hw.Agent.load(x, device="auto")
    agent.predict(np.zeros(3))
    for call in (lambda: agent.learn(20, progress=False), lambda: agent.evaluate(2)):
        with pytest.raises(hw.EnvError, match=r"unknown environment.*Import what reg"):
            call()
    agent.save(tmp_path / "y.zip")
    with pytest.raises(hw.EnvError, match="unknown environment"):
        hw.Agent.load(x, env=name)
    gym.registry[name] = spec
    assert lengths(tmp_path / "y.zip") == {3}


# --- slots ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_on_to_one_real_robot(algo, tmp_path, caplog):
    """Trained in several, it goes on in the one that is handed over: not copied, not closed."""
    settings = {"normalise_obs": True, "normalise_reward": True}
    settings |= {"rollout": 64} if algo == "ppo" else {}
    trained = saved(tmp_path / "x.zip", Robot, algo, **settings)
    robot = Robot(length=7)
    agent = hw.Agent.load(tmp_path / "x.zip", env=robot)
    assert (agent.plan.num_envs, agent.steps) == (1, 80)
    if algo == "dqn":
        assert int(agent.loop.memory.state_dict()["count"].sum()) == 80
        assert caplog.text == ""
    else:
        assert "rollout under way" in caplog.text
    before = trained.predict(np.zeros(3), deterministic=True)
    assert before["grip"] == agent.predict(np.zeros(3), deterministic=True)["grip"]
    agent.learn(5, progress=False)
    assert agent.steps == 85
    assert robot.time == 5
    assert agent.evaluate(2).lengths.tolist() == [[7, 7]]
    agent.save(tmp_path / "y.zip")
    back = hw.Agent.load(tmp_path / "y.zip", env=Robot, num_envs=4)
    assert back.learn(40, progress=False).steps == 125
    assert not robot.closed


def test_the_best_of_several_goes_to_the_robot(tmp_path):
    saved(tmp_path / "x.zip", Robot, seeds=3, normalise_reward=True)
    agent = hw.Agent.load(tmp_path / "x.zip")
    with pytest.raises(hw.EnvError, match=r"cannot serve several members.*best\(env=\.\.\.\)"):
        hw.Agent.load(tmp_path / "x.zip", env=Robot())
    robot = Robot(length=7)
    best = agent.best(env=robot)
    assert best.evaluate(2).lengths.tolist() == [[7, 7]]
    best.learn(5, progress=False)
    assert robot.time == 5


def test_vector_environments_bring_their_slots(tmp_path):
    saved(tmp_path / "x.zip", Robot, "dqn", n_step=3)
    vector = gym.vector.SyncVectorEnv([Robot] * 3)
    agent = hw.Agent.load(tmp_path / "x.zip", env=vector).learn(30, progress=False)
    assert (agent.plan.num_envs, agent.steps) == (3, 110)
    vector = gym.vector.SyncVectorEnv([Robot] * 2)
    vector.metadata = {}
    told = {"autoreset": "next_step"}
    hw.Agent("ppo", vector, env_settings=told, hidden=(8,)).save(tmp_path / "y.zip")
    assert hw.Agent.load(tmp_path / "y.zip", env=vector).plan.num_envs == 2
    assert hw.Agent.load(tmp_path / "y.zip", env=Robot()).plan.num_envs == 1


def test_exact_resuming_needs_the_same_slots(tmp_path):
    """With others, a compiled environment begins new episodes; nothing breaks."""
    saved(tmp_path / "x.zip", "HybridShoot", "dqn", view="discrete")
    same = hw.Agent.load(tmp_path / "x.zip")
    assert same.loop.in_episodes
    other = hw.Agent.load(tmp_path / "x.zip", num_envs=2)
    assert not other.loop.in_episodes
    assert int(other.loop.memory.state_dict()["count"].sum()) == 80
    first = [np.array(agent.loop.env.reset()) for agent in (same, other)]
    assert not np.isin(first[1], first[0]).all()
    assert other.learn(20, progress=False).steps == 100


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("algo", ["ppo", "dqn", "sac"])
def test_settings_can_be_others_to_fine_tune(algo, tmp_path):
    trained = hw.Agent(algo, Robot, **(PPO if algo == "ppo" else DQN)).learn(80, progress=False)
    trained.save(tmp_path / "x.zip")
    tuned = hw.Agent.load(tmp_path / "x.zip", env=Robot, lr=1e-7)
    assert tuned.plan.config.lr == 1e-7
    steps = {n: x for n, x in tuned.loop.algorithm.state_dict().items() if n.endswith("lr")}
    assert steps
    assert all((x < 2e-7).all() for x in steps.values())
    ours, theirs = (a.loop.algorithm.state_dict() for a in (trained, tuned))
    for name in ours.keys() - steps.keys():
        assert torch.equal(ours[name], theirs[name]), name
    tuned.save(tmp_path / "y.zip")
    assert hw.Agent.load(tmp_path / "y.zip").plan.config.lr == 1e-7
    assert hw.Agent.load(tmp_path / "x.zip").plan.config.lr == trained.plan.config.lr


@pytest.mark.parametrize("before", [0.0, 0.5])
def test_the_weight_of_a_penalty_can_be_another(before, tmp_path):
    """It adapts as it learns, so a checkpoint keeps it; who asks for another gets it."""
    x = tmp_path / "x.zip"
    kept = saved(x, Robot, kl_coef=before).loop.algorithm.kl_coef
    assert torch.equal(hw.Agent.load(x, env=Robot).loop.algorithm.kl_coef, kept)
    assert torch.equal(hw.Agent.load(x, env=Robot, lr=1e-5).loop.algorithm.kl_coef, kept)
    agent = hw.Agent.load(x, env=Robot, kl_coef=3.0)
    assert agent.loop.algorithm.kl_coef.tolist() == [3.0]
    agent.learn(80, progress=False)
    # While nothing moves it shrinks with each of two minibatches of two rollouts.
    assert agent.loop.algorithm.kl_coef.item() == pytest.approx(3.0 / 1.5**4)


@pytest.mark.parametrize(
    ("algo", "setting", "same", "other"),
    [
        ("sac", "first_temperature", 0.2, 0.9),
        ("sac", "policy_gain", 2.0**0.5, 0.1),
        ("ppo", "policy_gain", 0.01, 0.1),
        ("ppo", "critic_orthogonal", True, False),
    ],
)
def test_how_learning_begins_cannot_be_said_later(algo, setting, same, other, tmp_path):
    saved(tmp_path / "x.zip", Robot, algo)
    hw.Agent.load(tmp_path / "x.zip", env=Robot, **{setting: same})
    with pytest.raises(hw.ConfigError, match=f"has begun already; got {setting}"):
        hw.Agent.load(tmp_path / "x.zip", env=Robot, **{setting: other})


def test_a_smaller_replay_or_rollout_is_no_obstacle(tmp_path):
    saved(tmp_path / "x.zip", Robot, "dqn")
    agent = hw.Agent.load(tmp_path / "x.zip", env=Robot, replay=40, n_step=2)
    assert int(agent.loop.memory.state_dict()["count"].sum()) == 40
    agent.learn(40, progress=False)
    saved(tmp_path / "y.zip", Robot)
    hw.Agent.load(tmp_path / "y.zip", env=Robot, rollout=8).learn(40, progress=False)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hidden": (9,)}, "what was learned does not fit these settings; got hidden"),
        ({"learning_rate": 0.1}, "unknown setting"),
        ({"lr": -1.0}, "out of range"),
        ({"num_envs": 0}, "num_envs must be a count"),
        ({"env_settings": [1]}, "env_settings must be a dict"),
    ],
)
def test_settings_that_cannot_be_changed(settings, words, tmp_path):
    saved(tmp_path / "x.zip", Robot)
    with pytest.raises(hw.ConfigError, match=words):
        hw.Agent.load(tmp_path / "x.zip", env=Robot, **settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"seeds": 3}, r"seeds is fixed in a checkpoint; got 3\. .*best\(\), or \.member\(2\)"),
        ({"factorization": "ar"}, "factorization is fixed in a checkpoint; got ar.*new Agent"),
        ({"view": "discrete"}, "view is fixed .* heads .*new Agent"),
        ({"normalise_obs": True}, "normalise_obs is fixed .*new Agent"),
        ({"normalise_reward": True}, "normalise_reward is fixed .*new Agent"),
        ({"num_env": 3}, "Did you mean 'num_envs'"),
    ],
)
def test_what_a_checkpoint_settles_is_said_so(settings, words, tmp_path):
    saved(tmp_path / "x.zip", Robot)
    with pytest.raises(hw.ConfigError, match=words) as error:
        hw.Agent.load(tmp_path / "x.zip", env=Robot, **settings)
    assert "seeds," not in str(error.value)  # which cannot be set here


# --- another environment of its kind, or not ------------------------------------------------------


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


# --- what a member knew before --------------------------------------------------------------------


def test_a_member_says_for_how_long_it_was_trained(tmp_path):
    agent = saved(tmp_path / "x.zip", Robot, seeds=2)
    assert ", steps=80; " in repr(agent)
    alone = agent.member(1)
    assert ", steps=0 after 80; " in repr(alone)
    alone.learn(40, progress=False).save(tmp_path / "y.zip")
    again = hw.Agent.load(tmp_path / "y.zip", env=Robot)
    assert ", steps=40 after 80; " in repr(again)
    assert ", steps=0 after 120; " in repr(again.best())
    found = read_checkpoint(tmp_path / "y.zip")
    for wrong in ("many", -1, 0.5):
        write_checkpoint(
            tmp_path / "z.zip", found._replace(info=found.info | {"steps_before": wrong})
        )
        with pytest.raises(hw.CheckpointError, match="what it was trained for"):
            hw.Agent.load(tmp_path / "z.zip")


# --- earlier versions -----------------------------------------------------------------------------


def test_a_checkpoint_of_an_earlier_version_is_loaded(tmp_path):
    """It said nothing of what had no id, counted ticks, and could leave out the memory."""
    saved(tmp_path / "x.zip", Robot, "dqn", view="discrete")
    found = read_checkpoint(tmp_path / "x.zip")
    info = {
        n: x
        for n, x in found.info.items()
        if n not in ("masks", "format", "entries", "steps_before")
    }
    del found.tensors["counters"]["steps"], found.tensors["memory"]
    write_checkpoint(tmp_path / "y.zip", found._replace(info=info | {"env": None}))
    agent = hw.Agent.load(tmp_path / "y.zip", env=Robot)
    assert agent.steps == 80
    assert agent.learn(40, progress=False).steps == 120
