import gymnasium as gym
import numpy as np
import pytest

import headwise as hw
from headwise import ConfigError, EnvError, HeadwiseError, _core
from headwise.envs.foreign import foreign_env
from headwise.envs.lander_task import LanderVecEnv
from headwise.envs.make import env_names, environments, make_vec, own_name, plain_name
from headwise.envs.native.vec_env import NativeVecEnv
from headwise.envs.probes import probes
from headwise.study.environment import Environment


def test_every_environment_can_be_had_by_name():
    names = env_names()
    assert {plain_name(name) for name in names} >= set(_core.environments())
    assert "Lander" in names
    assert {f"probe/{name}" for name in probes.names()} <= set(names)
    for name in names:
        env = make_vec(name, [1, 2], 3)
        assert env.reset().shape == (2, 3, env.obs_spec.size)
        env.close()


def test_a_name_an_id_and_settings():
    assert isinstance(make_vec("HybridShoot", [0], 2), NativeVecEnv)
    assert isinstance(make_vec("headwise/Lander-v0", [0], 2), LanderVecEnv)
    assert isinstance(make_vec("probe/agree", [0], 2), probes.get("agree"))
    env = make_vec(
        "headwise/HybridShoot-v0", [0], 2, view="discrete", num_targets=4, max_episode_steps=1
    )
    assert env.spec.cardinalities == (4, 10, 10)
    env.reset()
    assert env.step(np.zeros((1, 2, 3), dtype=np.float32)).truncated.all()
    assert make_vec("Lander", [0], 2, view="hybrid", bins=5).spec.cardinalities == (5, 0)
    # The only view there is may be named, so that a study can name the view of every environment.
    assert make_vec("ContextualDecoupler", [0], 2, view="discrete").spec.joint_size == 25


@pytest.mark.parametrize(
    ("name", "settings", "complaint"),
    [
        ("HybridShot", {}, "unknown environment; got 'HybridShot'.*Did you mean 'HybridShoot'"),
        ("headwise/Landr-v0", {}, "Did you mean 'Lander'"),
        ("probe/agrees", {}, "Did you mean 'probe/agree'"),
        ("agree", {}, "Did you mean 'probe/agree'"),
        ("Lander-v3", {}, "unknown environment"),
        ("CartPole-v1", {}, "unknown environment.*Did you mean 'headwise/CartPole-v1'"),
        ("headwise/CartPole-v0", {}, "unknown environment.*'headwise/CartPole-v1'"),
        ("HybridShoot", {"num_target": 3}, "Did you mean 'num_targets'"),
        ("Lander", {"views": "hybrid"}, "setting of Lander.*Did you mean 'view'"),
        ("probe/agree", {"view": "discrete"}, "setting of probe/agree"),
        ("ContextualDecoupler", {"view": "hybrid"}, "one view only.*allowed: 'discrete'"),
        ("Pendulum", {"view": "discrete"}, "one view only.*allowed: 'continuous'"),
    ],
)
def test_misspelt_names_get_suggestions(name, settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        make_vec(name, [0], 2, **settings)


@pytest.mark.parametrize("name", ["HybridShoot", "Lander", "probe/aim"])
@pytest.mark.parametrize(
    ("seeds", "num_slots", "complaint"),
    [
        ([], 2, "no members"),
        ([0], 0, "num_slots"),
        ([0], 1.5, "num_slots"),
        ([-1], 2, "seed"),
        ([2**64], 2, "seed"),
        ([0.5], 2, "seed"),
        (["x"], 2, "seed"),
    ],
)
def test_impossible_populations(name, seeds, num_slots, complaint):
    with pytest.raises(EnvError, match=f"{name}: .*{complaint}"):
        make_vec(name, seeds, num_slots)


def test_arrays_are_made_by_the_caller():
    for name in ("HybridShoot", "Lander", "probe/aim"):
        made = []

        def allocate(shape, dtype, made=made):
            made.append(np.zeros(shape, dtype))
            return made[-1]

        env = make_vec(name, [0, 1], 4, allocate=allocate)
        env.reset()
        assert any(np.shares_memory(env.reset(), array) for array in made)


def test_others_may_add_their_own():
    @environments.register("Mine")
    def mine(seeds, num_slots, *, depth=1):
        return ("mine", seeds, num_slots, depth)

    try:
        assert "Mine" in env_names()
        assert make_vec("Mine", [3], 2, depth=4) == ("mine", [3], 2, 4)
        with pytest.raises(ConfigError, match="Did you mean 'depth'"):
            make_vec("Mine", [3], 2, dept=4)
    finally:
        environments._entries.pop("Mine")


class Theirs(gym.Env):
    """An environment of a user, by an id that looks like ours."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (5,))
    action_space = gym.spaces.Discrete(7)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(5, np.float32), {}

    def step(self, action):
        return np.zeros(5, np.float32), 0.0, False, False, {}


@pytest.mark.parametrize("theirs", ["Platform-v0", "Lander-v0", "Platform"])
def test_what_a_user_has_registered_is_theirs(theirs, monkeypatch):
    monkeypatch.setattr(gym.envs.registration, "registry", gym.registry.copy())
    monkeypatch.setattr(gym, "registry", gym.envs.registration.registry)
    gym.register(theirs, entry_point=Theirs)
    assert own_name(theirs) is None
    assert foreign_env(theirs, [0], 2).spec.cardinalities == (7,)
    assert hw.Agent("dqn", theirs, num_envs=2).face.spec.cardinalities == (7,)
    assert Environment(theirs).name == theirs
    assert own_name("headwise/Platform-v0") == "Platform"
    assert isinstance(foreign_env("headwise/Platform-v0", [0], 2), NativeVecEnv)


@pytest.mark.parametrize("id", ["CartPole-v1", "MountainCar-v0", "Pendulum-v1"])
def test_the_classics_without_our_namespace_are_gymnasiums(id):
    """By their ids, and by a name without a version, which Gymnasium completes."""
    name, ours = id.partition("-")[0], f"headwise/{id}"
    assert own_name(ours) == own_name(f"my_module:{ours}") == ours
    assert Environment(ours).name == ours
    assert isinstance(foreign_env(ours, [0], 2), NativeVecEnv)
    assert isinstance(make_vec(ours, [0], 2), NativeVecEnv)
    for theirs in (id, name, f"headwise/{name}-v7"):
        assert own_name(theirs) is None
    assert Environment(id).name == id
    assert not isinstance(foreign_env(id, [0], 2), NativeVecEnv)
    with pytest.raises(ConfigError, match=f"unknown env.*'{name}'.*Did you mean '{id}'"):
        Environment(name)
    with pytest.warns(UserWarning, match=f"Using the latest versioned environment `{id}`"):
        assert not isinstance(foreign_env(name, [0], 2), NativeVecEnv)


@pytest.mark.parametrize("name", ["Platform", "Lander", "HybridShoot"])
def test_an_id_without_our_namespace_is_asked_about(name):
    for make in (
        lambda: foreign_env(f"{name}-v0", [0], 2),
        lambda: hw.Agent("ppo", f"{name}-v0"),
        lambda: make_vec(f"{name}-v0", [0], 2),
        lambda: Environment(f"{name}-v0"),
    ):
        with pytest.raises(HeadwiseError, match=f"unknown env.*'{name}-v0'.*Did you mean '{name}'"):
            make()
    assert own_name(name) == own_name(f"headwise/{name}-v0") == name


@pytest.mark.parametrize("name", ["CoopPush", "Lander"])
@pytest.mark.parametrize("threads", [0, -1, 1.5, False])
def test_no_threads_are_refused_and_none_named_is_one_for_each_core(name, threads):
    with pytest.raises(EnvError, match=f"num_threads must be a count; got {threads}; .* from 1"):
        make_vec(name, [0], 2, num_threads=threads)
    make_vec(name, [0], 2, num_threads=None).close()
