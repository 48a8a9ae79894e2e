"""Agents that are loaded into an environment: the same, another one, fewer slots, or none."""

import functools
import sys
import types

import gymnasium as gym
import numpy as np
import pytest
import torch
from robots import DQN, PPO, Free, Masked, Robot, Team, saved

import headwise as hw
from headwise import ENGINE
from headwise.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint


@pytest.fixture
def package():
    """A package that registers Robot-v0 when it is imported, and says so."""
    name = "robots_of_a_test"
    module = types.ModuleType(name)
    gym.register("headwise_test/Robot-v0", entry_point=Robot)
    sys.modules[name] = module
    yield f"{name}:headwise_test/Robot-v0"
    del sys.modules[name], gym.registry["headwise_test/Robot-v0"]


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
    settings = {"normalize_obs": True, "normalize_reward": True}
    settings |= {"n_steps": 64} if algo == "ppo" else {}
    trained = saved(tmp_path / "x.zip", Robot, algo, **settings)
    robot = Robot(length=7)
    agent = hw.Agent.load(tmp_path / "x.zip", env=robot)
    assert (agent.config.num_envs, agent.steps) == (1, 80)
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
    saved(tmp_path / "x.zip", Robot, seeds=3, normalize_reward=True)
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
    assert (agent.config.num_envs, agent.steps) == (3, 110)
    vector = gym.vector.SyncVectorEnv([Robot] * 2)
    vector.metadata = {}
    told = {"autoreset": "next_step"}
    hw.Agent("ppo", vector, env_settings=told, net_arch=(8,)).save(tmp_path / "y.zip")
    assert hw.Agent.load(tmp_path / "y.zip", env=vector).config.num_envs == 2
    assert hw.Agent.load(tmp_path / "y.zip", env=Robot()).config.num_envs == 1


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
    tuned = hw.Agent.load(tmp_path / "x.zip", env=Robot, learning_rate=1e-7)
    assert tuned.config.algorithm.learning_rate == 1e-7
    ours, theirs = (a.loop.algorithm.state_dict() for a in (trained, tuned))
    rates = {name for name in theirs if name.endswith("learning_rate")}
    optimizers = tuned.loop.algorithm.optimizers.values()
    assert len(rates) == len(optimizers) > 0
    assert all((optimizer.learning_rate.tensor < 2e-7).all() for optimizer in optimizers)
    for name in ours.keys() - rates:
        assert torch.equal(ours[name], theirs[name]), name
    tuned.save(tmp_path / "y.zip")
    assert hw.Agent.load(tmp_path / "y.zip").config.algorithm.learning_rate == 1e-7
    assert (
        hw.Agent.load(tmp_path / "x.zip").config.algorithm.learning_rate
        == trained.config.algorithm.learning_rate
    )


@pytest.mark.parametrize("before", [0.0, 0.5])
def test_the_weight_of_a_penalty_can_be_another(before, tmp_path):
    """It adapts as it learns, so a checkpoint keeps it; who asks for another gets it."""
    x = tmp_path / "x.zip"

    def weight(agent):
        return agent.loop.algorithm.kl_coef.tensor

    kept = weight(saved(x, Robot, kl_coef=before))
    assert torch.equal(weight(hw.Agent.load(x, env=Robot)), kept)
    assert torch.equal(weight(hw.Agent.load(x, env=Robot, learning_rate=1e-5)), kept)
    agent = hw.Agent.load(x, env=Robot, kl_coef=3.0)
    assert weight(agent).flatten().tolist() == [3.0]
    agent.learn(80, progress=False)
    # While nothing moves it shrinks with each of two minibatches of two rollouts.
    assert weight(agent).item() == pytest.approx(3.0 / 1.5**4)


@pytest.mark.parametrize(
    ("algo", "setting", "same", "other"),
    [
        ("sac", "ent_coef", "auto_0.2", "auto_0.9"),
        ("sac", "policy_gain", 2.0**0.5, 0.1),
        ("ppo", "policy_gain", 0.01, 0.1),
        ("ppo", "critic_orthogonal", True, False),
    ],
)
def test_how_learning_begins_cannot_be_said_later(algo, setting, same, other, tmp_path):
    saved(tmp_path / "x.zip", Robot, algo)
    hw.Agent.load(tmp_path / "x.zip", env=Robot, **{setting: same})
    with pytest.raises(hw.ConfigError, match=f"which the checkpoint is past; got {setting}"):
        hw.Agent.load(tmp_path / "x.zip", env=Robot, **{setting: other})


def test_a_smaller_replay_or_rollout_is_no_obstacle(tmp_path):
    saved(tmp_path / "x.zip", Robot, "dqn")
    agent = hw.Agent.load(tmp_path / "x.zip", env=Robot, buffer_size=40, n_step=2)
    assert int(agent.loop.memory.state_dict()["count"].sum()) == 40
    agent.learn(40, progress=False)
    saved(tmp_path / "y.zip", Robot)
    hw.Agent.load(tmp_path / "y.zip", env=Robot, n_steps=8).learn(40, progress=False)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"net_arch": (9,)}, "what was learned does not fit these settings; got net_arch"),
        ({"learn_rate": 0.1}, "unknown setting"),
        ({"learning_rate": -1.0}, "out of range"),
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
        ({"normalize_obs": True}, "normalize_obs is fixed .*new Agent"),
        ({"normalize_reward": True}, "normalize_reward is fixed .*new Agent"),
        ({"num_env": 3}, "Did you mean 'num_envs'"),
    ],
)
def test_what_a_checkpoint_settles_is_said_so(settings, words, tmp_path):
    saved(tmp_path / "x.zip", Robot)
    with pytest.raises(hw.ConfigError, match=words) as error:
        hw.Agent.load(tmp_path / "x.zip", env=Robot, **settings)
    assert "seeds," not in str(error.value)  # which cannot be set here


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


# --- other engines --------------------------------------------------------------------------------


def of_the_first_engine(path):
    """A file as it was before operations: optimizers kept `lr`, and nobody said which engine."""
    saved(path, Robot, "dqn", view="discrete")
    info, tensors = read_checkpoint(path)
    learner = dict(tensors["learner"])
    learner["lr"] = learner.pop("learning_rate").flatten()
    learner["steps"] = learner.pop("acts")
    for name in ("values", "mean", "square", "target"):  # without padding
        learner[name] = learner[name][:, :-7].clone()
    info = {n: x for n, x in info.items() if n not in ("engine", "entries")}
    write_checkpoint(path, Checkpoint(info, tensors | {"learner": learner}))


def test_a_checkpoint_of_the_first_engine_is_refused_in_a_sentence(tmp_path):
    of_the_first_engine(tmp_path / "x.zip")
    for env in (None, Robot):
        with pytest.raises(hw.CheckpointError) as error:
            hw.Agent.load(tmp_path / "x.zip", env=env)
        assert str(error.value) == (
            f"'{tmp_path}/x.zip' was trained by another engine, whose networks this one cannot go "
            f"on with; got engine 1 of headwise {hw.__version__}; allowed: engine 2. Train it "
            "again, or load it with the version that made it."
        )


@pytest.mark.parametrize("engine", [1, 3, "2", None])
def test_so_is_one_of_any_other_engine(engine, tmp_path):
    saved(tmp_path / "x.zip", Robot)
    found = read_checkpoint(tmp_path / "x.zip")
    assert found.info["engine"] == ENGINE == 2
    forged = found._replace(info=found.info | {"engine": engine, "versions": 7})
    write_checkpoint(tmp_path / "y.zip", forged)
    with pytest.raises(hw.CheckpointError, match=f"got engine {engine} of headwise None; allowed"):
        hw.Agent.load(tmp_path / "y.zip", env=Robot)
