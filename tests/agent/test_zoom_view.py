"""Agents with the zoom view: in compiled environments and users' own, on the way in and out."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import headwise as hw
from headwise.cli import main
from headwise.envs.make import make_vec
from headwise.envs.reference import reference_score

onnxruntime = pytest.importorskip("onnxruntime")
SMALL = {
    "ppo": {"n_steps": 8, "batch_size": 16, "n_epochs": 1},
    "dqn": {"learning_starts": 16, "batch_size": 8},
    "sac": {"learning_starts": 16, "batch_size": 8},
}
CELLS = [("ppo", "ar"), ("ppo", "vdn"), ("dqn", "ar"), ("dqn", "qplex"), ("sac", "shared")]


class Bench(gym.Env):
    """A tool and how far it goes, with a mask; what is not as said fails."""

    observation_space = spaces.Box(0, 1, (2,), np.float32)
    action_space = spaces.Dict(tool=spaces.Discrete(3), reach=spaces.Box(-1, 3, (1,), np.float32))

    def show(self):
        mask = {"tool": np.array([1, 0, 1], dtype=np.int8)}
        return self.np_random.random(2, dtype=np.float32), {"action_mask": mask}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.show()

    def step(self, action):
        assert self.action_space.contains(action)
        assert action["tool"] != 1
        steps = (float(action["reach"][0]) + 1) / 4 * 124  # 125 values, and no others
        assert abs(steps - round(steps)) < 1e-3
        self.time += 1
        obs, info = self.show()
        return obs, float(action["reach"][0]), False, self.time == 5, info


def agent(algo, kind, env, **settings):
    settings = {"net_arch": (16,), "num_envs": 2, "seeds": 2} | SMALL[algo] | settings
    return hw.Agent(algo, env, factorization=kind, view="zoom", **settings)


def exported(one, tmp_path, obs):
    """What the exported policy does, by name."""
    one.export(tmp_path / "policy.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx")
    given = {session.get_inputs()[0].name: obs}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, given), strict=True))


@pytest.mark.parametrize(("algo", "kind"), CELLS)
def test_a_users_environment(algo, kind, tmp_path):
    one = agent(algo, kind, Bench).learn(64, progress=False)
    assert one.face.spec.names == ("tool", *(f"reach[0][{level}]" for level in range(3)))
    assert np.isfinite(one.evaluate(3).scores).all()
    obs = np.random.default_rng(0).random((20, 2), dtype=np.float32)
    masks = np.tile(np.array([True, False, True]), (20, 1))
    batch = one.predict(obs, deterministic=True, action_mask=[{"tool": m} for m in masks], member=0)
    assert (batch["tool"] != 1).all()
    one.save(tmp_path / "agent.zip")
    again = hw.Agent.load(tmp_path / "agent.zip", env=Bench)
    free = {"tool": np.ones(3, dtype=np.int8)}
    ours, theirs = (
        x.predict(obs, deterministic=True, action_mask=[free] * 20, member=0) for x in (one, again)
    )
    for name in ("tool", "reach"):
        np.testing.assert_array_equal(ours[name], theirs[name])
    again.learn(32, progress=False)


@pytest.mark.parametrize(("algo", "kind"), [("ppo", "ar"), ("dqn", "vdn")])
def test_a_compiled_environment_and_its_file(algo, kind, tmp_path):
    one = agent(algo, kind, "HybridShoot", env_settings={"mode": "independent", "zoom_levels": 2})
    one.learn(64, progress=False)
    assert one.face.spec.names == ("select", "aim[0]", "aim[1]")
    assert np.isfinite(one.evaluate(3).scores).all()
    obs = np.random.default_rng(1).random((50, 9), dtype=np.float32)
    select, aim = one.predict(obs, deterministic=True, member=0)
    assert np.allclose(np.round(aim * 24), aim * 24, atol=1e-4)
    env = gym.make("headwise/HybridShoot-v0", mode="independent")  # whose own actions these are
    env.reset(seed=0)
    env.step(one.predict(obs[0], deterministic=True))
    policy = one.member(0)
    numbers = list(exported(policy, tmp_path, obs).values())
    np.testing.assert_array_equal(numbers[0].ravel(), select)
    np.testing.assert_allclose(numbers[1].ravel(), aim.ravel(), atol=1e-6)
    one.save(tmp_path / "agent.zip")
    again = hw.Agent.load(tmp_path / "agent.zip")
    assert again.face.spec == one.face.spec
    np.testing.assert_array_equal(again.predict(obs, deterministic=True, member=0)[1], aim)


def test_steps_are_those_of_the_numbers_that_levels_stand_for():
    plain = make_vec("Pendulum", [0, 1], 3)
    zoomed = make_vec("Pendulum", [0, 1], 3, view="zoom", zoom_levels=2, zoom_bins=3)
    np.testing.assert_array_equal(plain.reset(), zoomed.reset())
    levels = np.random.default_rng(0).integers(0, 3, (20, 2, 3, 2)).astype(np.float32)
    for action in levels:
        unit = (action[..., :1] * 3 + action[..., 1:]) / 4 - 1
        one, other = plain.step(unit), zoomed.step(action)
        for name, array in one.arrays().items():
            np.testing.assert_array_equal(array, getattr(other, name))


def test_its_scores_are_those_of_the_view_that_it_refines():
    settings = {"mode": "independent", "zoom_bins": 4}
    zoomed = reference_score("HybridShoot", view="zoom", **settings)
    assert zoomed == reference_score("HybridShoot", view="hybrid", mode="independent")
    with pytest.raises(hw.ConfigError, match="no reference scores"):
        reference_score("HybridShoot", view="hybrid", zoom_bins=4)


def test_an_environment_of_options_has_nothing_to_refine():
    with pytest.raises(hw.HeadwiseError, match="this action has none"):
        agent("dqn", "vdn", "headwise/CartPole-v1")
    with pytest.raises(hw.HeadwiseError, match="zoom_levels"):
        make_vec("HybridShoot", [0], 1, view="hybrid", zoom_levels=2)


def test_from_the_command_line(tmp_path):
    words = "train --algo dqn --env Pendulum-v1 --view zoom --env-settings zoom_levels=2"
    small = "--total-timesteps 64 --seeds 1 --num-envs 2 --learning-starts 16 --batch-size 8"
    run = str(tmp_path / "run")
    assert main([*words.split(), *small.split(), "--no-progress", "--out", run]) == 0
    names = hw.Agent.load(tmp_path / "run" / "checkpoint.zip").face.spec.names
    assert names == ("action[0][0]", "action[0][1]")
    assert main(["eval", run, "--episodes", "1"]) == 0
    assert main(["export", run, "--out", str(tmp_path / "policy.onnx")]) == 0
