"""The loop in environments whose every step is known: masks, normalization, cuts, early stops."""

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from small_agents import SETTINGS, Countdown, small_agent, states_equal

import headwise as hw
from headwise.algorithms import algorithms
from headwise.envs.types import StepBatch, VecEnv
from headwise.training.build import make_loop
from headwise.training.config import RunConfig
from headwise.training.evaluate import evaluate_loop


class OneLegal(gym.Env):
    """Only one option of five is legal, and it is another one at every step."""

    observation_space = spaces.Box(0, 4, (1,))
    action_space = spaces.MultiDiscrete([5, 3])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._seen()

    def _seen(self):
        self.now = int(self.np_random.integers(5))
        mask = np.zeros(8, dtype=np.int8)
        mask[self.now] = mask[5:] = 1
        return np.array([self.now], dtype=np.float32), {"action_mask": mask}

    def step(self, action):
        assert action[0] == self.now, "an illegal option was taken"
        self.time += 1
        obs, info = self._seen()
        return obs, 1.0, False, self.time == 7, info


@pytest.mark.parametrize("factorization", ["shared", "ar"])
@pytest.mark.parametrize("algo", ["ppo", "dqn", "sac"])
def test_illegal_options_are_never_taken(algo, factorization):
    agent = small_agent(algo, OneLegal, factorization=factorization)
    agent.learn(160, progress=False)  # the environment itself looks
    assert agent.evaluate(4).returns.tolist() == [[7.0] * 4] * 2
    kept = agent.loop.memory._tensors
    filled = min(agent.loop.ticks, kept["obs"].shape[1])
    assert (kept["legal"].sum((-1, -2))[:, :filled] == 4).all()  # 1 of 5 and 3 of 3
    if algo == "ppo":
        assert agent.loop.updates >= 2


class Counts(VecEnv):
    """A vector environment of one's own, with what it must have: options earn their number."""

    num_members, num_slots, can_snapshot = 2, 3, False
    spec, obs_spec = hw.ActionSpec.of([hw.Choice(4)]), hw.ObsSpec.flat(1)

    def reset(self):
        self.batch = StepBatch.of_shape(2, 3, 1)
        self.batch.valid[...] = True
        return self.batch.obs

    def step(self, action):
        self.batch.reward[...] = self.batch.episode_return[...] = action[..., 0]
        self.batch.terminated[...] = True
        return self.batch


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_a_vector_environment_without_masks_need_not_speak_of_them(algo):
    config = algorithms.get(algo)(net_arch=(8,), learning_rate=0.02, **SETTINGS[algo])
    plan = RunConfig.of(config, factorization="shared", total_timesteps=1200)
    loop = make_loop(Counts(), plan, (0, 1))
    loop.run(1200)
    assert loop.legal is None
    assert evaluate_loop(loop, Counts(), 3).returns.tolist() == [[3.0] * 3] * 2


def test_masks_in_predict():
    agent = small_agent("ppo", OneLegal)
    for option in range(5):
        mask = np.zeros(8, dtype=bool)
        mask[[option, 6]] = True
        assert agent.predict(np.zeros(1), action_mask=mask).tolist() == [option, 1]
    batch = agent.predict(np.zeros((2, 1)), action_mask=[([1, 0, 0, 0, 0], [0, 0, 1])] * 2)
    assert batch.tolist() == [[0, 2]] * 2


def test_dqn_with_bins_can_be_masked_too():
    class Mixed(OneLegal):
        action_space = spaces.Tuple((spaces.Discrete(5), spaces.Box(-1, 1, (1,))))

        def _seen(self):
            obs, info = super()._seen()
            return obs, {"action_mask": info["action_mask"][:5]}

    agent = small_agent("dqn", Mixed)
    assert agent.loop.binning.spec.cardinalities == (5, 11)
    agent.learn(120, progress=False)
    kept = agent.loop.memory._tensors["legal"][:, : agent.loop.ticks]
    assert (kept.sum(-1) == torch.tensor([1, 11])).all()


def test_ppo_remembers_what_it_saw_and_replay_what_there_was():
    ppo = small_agent("ppo", Countdown, normalize_obs=True, normalize_reward=True, n_steps=100)
    ppo.learn(200, progress=False)
    seen = ppo.loop.memory._tensors["obs"][:, 10:50]
    assert seen.abs().max() < 5  # standardized; raw ones go to 9
    sac = small_agent("dqn", Countdown, normalize_obs=True, normalize_reward=True)
    sac.learn(200, progress=False)
    kept = sac.loop.memory._tensors["obs"][:, :50]
    assert set(kept.unique().tolist()) <= set(map(float, range(1, 10)))
    assert (sac.loop.memory._tensors["reward"][:, :50] == 1.0).all()


def test_the_policy_plays_with_the_same_scale_as_it_learned():
    agent = small_agent("ppo", Countdown, normalize_obs=True).learn(200, progress=False)
    mean, std = agent.loop.normalizer.obs_mean, agent.loop.normalizer.obs_std
    obs = torch.full((2, 1, 1), 4.0)
    by_hand = agent.loop.algorithm.policy(((obs - mean[:, None]) / std[:, None]).float())
    member = agent.best_member
    assert agent.predict(np.array([4.0]), deterministic=True) == by_hand[member, 0, 0]


def test_early_stop_on_a_score():
    agent = small_agent("ppo", "HybridShoot")
    reports = []
    agent.learn(
        4000,
        progress=False,
        callbacks=[reports.append, hw.StopOnReturn(-100.0, episodes=20)],
        log_every=20,
    )
    assert [r.step for r in reports] == list(range(20, agent.steps + 1, 20))
    assert min(map(len, reports[-1].last_returns)) >= 20 > min(map(len, reports[-2].last_returns))
    before = agent.steps
    agent.learn(400, progress=False, callbacks=[hw.StopOnReturn(1e9)], log_every=100)
    assert agent.steps == before + 400


def told(alive, last):
    from headwise.training.report import Report

    returns = tuple(np.array(mine, dtype=float) for mine in last)
    return Report(1, 2, (0, 1, 2), {}, np.array(alive), returns)


def test_who_must_reach_the_score():
    last = [[1.0] * 100, [9.0] + [5.0] * 100, []]
    for score, members, alive, stops in (
        (4.0, "any", [True, True, True], True),
        (4.0, "all", [True, True, True], False),
        (5.01, "any", [True, True, True], False),  # the first of 101 is no longer counted
        (4.0, "all", [False, True, False], True),  # the diverged are not waited for
        (4.0, "all", [False, False, False], True),  # nobody is left
    ):
        assert hw.StopOnReturn(score, members)(told(alive, last)) == stops


def test_a_few_lucky_episodes_are_no_score():
    alive = [True, True, True]
    assert not hw.StopOnReturn(4.0)(told(alive, [[5.0] * 99] * 3))
    assert hw.StopOnReturn(4.0)(told(alive, [[5.0] * 100] * 3))
    assert hw.StopOnReturn(4.0, episodes=2)(told(alive, [[0.0, 5.0, 5.0]] * 3))
    for episodes in (0, 1001, 2.5, True):
        with pytest.raises(hw.ConfigError, match="episodes must be a count"):
            hw.StopOnReturn(4.0, episodes=episodes)


def test_a_diverged_member_is_reported_once_and_the_others_go_on(caplog):
    def poison(report):
        if report.step == 200:
            agent.loop.memory._tensors["reward"][1] = torch.nan

    agent = small_agent("dqn", seeds=3)
    reports = []
    agent.learn(600, progress=False, callbacks=[poison, reports.append], log_every=100)
    assert caplog.text.count("Seed 1 has diverged") == 1
    assert "Seed 0" not in caplog.text
    assert reports[-1].alive.tolist() == [True, False, True]
    clean = small_agent("dqn", seeds=3).learn(600, progress=False)
    ours, theirs = (a.loop.algorithm.state_dict()["values"] for a in (agent, clean))
    assert torch.equal(ours[[0, 2]], theirs[[0, 2]])
    assert agent.best_member != 1


def test_a_temperature_that_runs_away_is_pointed_out_once(caplog):
    """The paper's failure on HybridShoot, and its cure in the message."""
    agent = small_agent("sac", seeds=2, ent_coef="auto_60.0", learning_rate=1e-6)
    agent.learn(600, progress=False, log_every=100)
    assert caplog.text.count("A temperature has run away") == 1
    assert "target_entropy=0.1" in caplog.text
    caplog.clear()
    small_agent("sac", seeds=2).learn(600, progress=False, log_every=100)
    assert "temperature" not in caplog.text


def test_threads_are_restored_and_never_more_than_members(monkeypatch):
    seen = []
    agent = small_agent(seeds=1)
    # The loop's own use of torch: making a learner's first values sets threads, too.
    counted = SimpleNamespace(get_num_threads=lambda: 8, set_num_threads=seen.append)
    monkeypatch.setattr("headwise.ops.threads.torch", counted)
    agent.learn(8, progress=False)
    assert seen == [1, 8]


def test_sinks_and_callbacks_do_not_change_the_run(tmp_path):
    plain = small_agent("sac").learn(200, progress=False)
    watched = small_agent("sac").learn(
        200,
        progress=False,
        loggers=[hw.CSVLogger(tmp_path / "x.csv"), hw.JSONLLogger(tmp_path / "x.jsonl")],
        callbacks=[lambda report: None],
        log_every=50,
        checkpoint=tmp_path / "x.zip",
        checkpoint_every=60,
    )
    assert states_equal(plain.loop, watched.loop)
    text = (tmp_path / "x.csv").read_text()
    for name in (
        "rollout/ep_rew_mean", "rollout/ep_len_mean", "time/fps", "time/total_timesteps",
        "train/critic_loss", "train/ent_coef", "heads/select/entropy", "heads/aim_x/alpha",
    ):  # fmt: skip
        assert f",{name}," in text
    steps = {int(line.split(",")[0]) for line in text.splitlines()[1:]}
    assert steps == {52, 100, 152, 200}  # the first tick at or after 50, 100, ...


def test_tensors_are_fetched_only_when_someone_wants_them(monkeypatch):
    from headwise.training import watch

    made = []
    real = watch.make_report
    monkeypatch.setattr(watch, "make_report", lambda *a: made.append(1) or real(*a))
    small_agent().learn(400, progress=False, log_every=100)
    assert len(made) == 4
