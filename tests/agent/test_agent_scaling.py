"""Observations of users' environments, which agents scale unless they are told not to."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

import headwise as hw

SMALL = {
    "ppo": {"n_steps": 16, "batch_size": 16, "n_epochs": 2, "net_arch": (8,), "branch_width": 8},
    "sac": {"buffer_size": 200, "learning_starts": 16, "batch_size": 8, "net_arch": (8,)},
}


class Dial(gym.Env):
    """Angles and a lamp; what is seen is a function of the time and the seed."""

    observation_space = spaces.Dict(
        angle=spaces.Box(0.0, 360.0, (1,)),
        lamp=spaces.Discrete(2),
        drift=spaces.Box(-np.inf, np.inf, (1,)),
    )
    action_space = spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._seen(), {}

    def step(self, action):
        self.time += 1
        return self._seen(), float(action[0]), False, self.time == 20, {}

    def _seen(self):
        angle, drift = self.np_random.uniform([0.0, 500.0], [90.0, 600.0])
        return {
            "angle": np.float32([angle]),
            "lamp": self.time % 2,
            "drift": np.float32([drift]),
        }

    def get_state(self):
        return bytes([self.time])

    def set_state(self, state):
        self.time = state[0]


def agent(algo="ppo", seeds=2, **settings):
    settings = {"num_envs": 2, "normalize_obs": "auto", **SMALL[algo], **settings}
    return hw.Agent(algo, Dial, seeds=seeds, **settings)


def scale(one):
    return one.loop.normalizer.obs_mean, one.loop.normalizer.obs_std


def test_it_begins_by_the_bounds_and_goes_by_what_is_seen():
    one = agent()
    assert one.config.normalization.normalize_obs == "auto"
    mean, std = scale(one)
    order = one.face.obs_spec.slices  # by name: a Dict is sorted
    angle, drift, lamp = (order[name].start for name in ("angle", "drift", "lamp"))
    assert mean[0, angle] == 180.0
    assert std[0, angle] == pytest.approx(90.0)
    assert (mean[0, drift], float(std[0, drift])) == (0.0, pytest.approx(1.0))
    one.learn(64, progress=False)
    mean, std = scale(one)
    assert (mean[:, angle] < 180.0).all()
    assert (mean[:, drift] > 500.0).all()
    assert (std[:, drift] > 10.0).all()
    assert (mean[:, lamp] == 0.0).all()
    assert (std[:, lamp] == 1.0).all()


@pytest.mark.parametrize(
    ("env", "expected"),
    [("HybridShoot", False), ("CartPole-v1", "auto"), ("FrozenLake-v1", False)],
)
def test_compiled_environments_and_categories_stay_as_they_are(env, expected):
    algo = "dqn" if env == "FrozenLake-v1" else "ppo"
    assert (
        hw.Agent(algo, env, num_envs=1, normalize_obs="auto").config.normalization.normalize_obs
        == expected
    )


def test_it_can_be_left_out():
    assert agent(normalize_obs=False).loop.normalizer is None
    assert hw.Agent("ppo", Dial, num_envs=2, **SMALL["ppo"]).loop.normalizer is None
    assert agent(normalize_obs=True).config.normalization.normalize_obs is True


@pytest.mark.parametrize("algo", SMALL)
def test_a_member_alone_is_the_member_in_a_population(algo):
    many = agent(algo, seeds=[0, 1, 2]).learn(96, progress=False)
    alone = agent(algo, seeds=[1]).learn(96, progress=False)
    for ours, theirs in zip(scale(many), scale(alone), strict=True):
        assert torch.equal(ours[1:2], theirs)
    learned, one = many.loop.algorithm.state_dict(), alone.loop.algorithm.state_dict()
    for name, x in one.items():
        assert torch.equal(learned[name][1:2], x), name


@pytest.mark.parametrize("algo", SMALL)
@pytest.mark.parametrize("at", [8, 40])
def test_a_run_goes_on_to_the_bit(algo, at, tmp_path):
    def saved(report):
        if report.step == at:
            half.save(tmp_path / "half.zip")

    whole = agent(algo).learn(96, progress=False)
    half = agent(algo)
    half.learn(96, progress=False, callbacks=[saved], log_every=2)
    resumed = hw.Agent.load(tmp_path / "half.zip", Dial).learn(progress=False)
    assert resumed.steps == 96
    ours, theirs = (one.loop.state_dict() for one in (whole, resumed))
    for part in ("learner", "normalizer"):
        assert all(torch.equal(theirs[part][name], x) for name, x in ours[part].items())


def test_probabilities_at_the_first_minibatch_are_those_that_acted(monkeypatch):
    """The scale stands still within a rollout: what was seen then is what is learned from."""
    one = agent("ppo", seeds=1, n_steps=32).learn(64, progress=False)
    learner, normalizer = one.loop.algorithm, one.loop.normalizer
    update, take = learner.update, normalizer.take
    learned, raw = [], []

    def watched_update(batch):
        learned.append(batch.obs.clone())
        return update(batch)

    def watched_take(obs, valid):
        raw.append(obs.clone())
        take(obs, valid)

    monkeypatch.setattr(learner, "update", watched_update)
    monkeypatch.setattr(normalizer, "take", watched_take)
    mean, std = (x.clone() for x in scale(one))
    one.learn(64, progress=False)
    assert len(raw) == 32
    seen = torch.stack(raw, dim=1)  # (P, T, E, O)
    by_hand = ((seen - mean[:, None, None]) / std[:, None, None]).clamp(-10, 10).float()
    assert torch.equal(learned[0], by_hand)
    assert not torch.equal(scale(one)[0], mean)  # and then it has moved


def test_what_is_exported_scales_too(tmp_path):
    torch_file = tmp_path / "policy.pt2"
    one = agent(seeds=2).learn(64, progress=False)
    one.evaluate(1)
    one.export(torch_file)
    obs = {"angle": np.float32([30.0]), "lamp": 1, "drift": np.float32([550.0])}
    expected = one.predict(obs, deterministic=True)
    policy = torch.export.load(torch_file).module()
    named = {
        "observation/angle": torch.tensor([[30.0]]),
        "observation/lamp": torch.tensor([1]),
        "observation/drift": torch.tensor([[550.0]]),
    }
    (action,) = policy(observation=named, uniform=None, action_mask=None).values()
    np.testing.assert_allclose(action.detach().numpy().ravel(), expected, rtol=1e-5)
    for name, moved in (("angle", 300.0), ("drift", 700.0)):
        other = one.predict(obs | {name: np.float32([moved])}, deterministic=True)
        assert not np.array_equal(other, expected)  # it is not all clipped away
