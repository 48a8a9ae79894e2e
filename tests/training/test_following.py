"""Settings that follow the rest of a run: learning rates that fall, clip ranges that narrow."""

import json

import numpy as np
import pytest
import torch
from small_agents import SETTINGS, small_agent, states_equal

import headwise as hw
from headwise.algorithms.schedules import Table, plain_schedule
from headwise.envs.make import make_vec
from headwise.study.run import Run
from headwise.training.build import make_loop
from headwise.training.config import RunConfig

ALGORITHMS = ["ppo", "dqn", "sac"]
STEPS = 240


def halved(remaining):
    return 2e-3 if remaining > 0.5 else 1e-3


def rates_of(agent, steps=STEPS, name="train/learning_rate"):
    """The rate of the last update at every report after a new one, beside the steps by then."""
    seen, updates = [], [agent.loop.updates]

    def keep(report):
        if agent.loop.updates > updates[-1] and name in agent.loop.metrics:
            updates.append(agent.loop.updates)
            seen.append((report.step, *agent.loop.metrics[name].tolist()))

    agent.learn(steps, progress=False, callbacks=[keep], log_every=4)
    return np.array(seen)


# --- what a setting may be ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("linear", "linear_0.0005"),
        ("linear_3e-4", "linear_0.0003"),
        ("lin_3e-4", "linear_0.0003"),  # as the zoo of SB3 has it
        (3e-4, 3e-4),
        ((1e-3, "lin_1"), (1e-3, "linear_1.0")),
        (np.array([0.5, 0.25]), (0.5, 0.25)),
        (["linear", np.float32(0.5)], ("linear_0.0005", 0.5)),
    ],
)
def test_what_is_given_is_kept_in_one_form(given, kept):
    assert plain_schedule("x", given, 5e-4) == kept
    assert hw.DQN(learning_rate=given).learning_rate == kept


def test_a_function_is_kept_as_a_table_with_lines_between():
    table = hw.PPO(learning_rate=lambda remaining: 1e-3 * remaining**2).learning_rate
    assert isinstance(table, Table)
    assert len(table.values) == 1001
    assert (table.values[0], table.values[-1]) == (1e-3, 0.0)
    for remaining in np.linspace(0.0, 1.0, 777):
        assert table(remaining) == pytest.approx(1e-3 * remaining**2, abs=1e-9)
    assert (table(1.0), table(0.0)) == (1e-3, 0.0)
    assert repr(table) == "Table(0.001 to 0)"


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        (
            "learning_rate",
            "fast",
            r"must be a number or a schedule, or one for each member; got fast",
        ),
        ("learning_rate", "linear_", r"got linear_; allowed: 3e-4, 'linear'"),
        ("learning_rate", "linear_x", "got linear_x"),
        ("learning_rate", "linear_nan", "gives no number; got nan"),
        ("learning_rate", "linear_-1", "out of range"),
        ("learning_rate", "linear_0", "out of range"),
        ("clip_range", "linear_20", "out of range"),
        ("learning_rate", None, "must be a number or a schedule"),
        ("learning_rate", True, "must be a number or a schedule"),
        ("learning_rate", {"values": [1.0]}, "must be a number or a schedule"),
        ("learning_rate", {"values": [1.0, "x"]}, "gives no number; got x"),
        ("learning_rate", {"values": [1.0, 2.0], "more": 1}, "must be a number or a schedule"),
        ("learning_rate", (0.1, "fast"), "got fast"),
        (
            "learning_rate",
            lambda remaining: None,
            "gives no number where 1 of the run remains; got None",
        ),
        (
            "learning_rate",
            lambda remaining: float("nan"),
            "gives no number where 1 of the run remains",
        ),
        (
            "learning_rate",
            lambda remaining: 1.0 / remaining,
            "fails where 0 of the run remains; got ZeroDiv",
        ),
        ("learning_rate", lambda: 0.1, r"fails where 1 of the run remains; got TypeError"),
        ("learning_rate", lambda remaining: 0.0, "out of range"),
        ("learning_rate", lambda remaining: remaining - 0.5, "out of range"),
        ("gamma", "linear", "must be a number, or one for each member; got linear"),
        ("gamma", lambda remaining: remaining, "must be a number, or one for each member"),
    ],
)
def test_what_cannot_be_a_schedule_is_refused(setting, value, message):
    with pytest.raises(hw.ConfigError, match=message):
        hw.PPO(**{setting: value})


@pytest.mark.parametrize("rate", ["linear_1e-3", halved, (halved, "linear"), (0.1, halved)])
def test_a_run_with_a_schedule_is_plain_data(rate):
    config = RunConfig.of(
        "ppo", "HybridShoot", learning_rate=rate, clip_range="linear", total_timesteps=100
    )
    read = RunConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert read == config
    assert read.run_id(0) == config.run_id(0)
    assert config.run_id(0) != config.replace(learning_rate=1e-3).run_id(0)
    if not isinstance(rate, tuple):
        run = Run.of(config, 3, {})
        assert Run.from_json(json.loads(json.dumps(run.to_json()))).config == config
        merged = RunConfig.merged([config, config.replace(learning_rate=1e-3)])
        assert merged.for_member(0) == config
        assert merged.for_member(1) == config.replace(learning_rate=1e-3)


# --- what it does ---------------------------------------------------------------------------------


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_a_line_falls_with_the_steps_taken(algo):
    found = rates_of(small_agent(algo, learning_rate=("linear_2e-3", 1e-3)))
    assert len(found) >= 3
    assert found[:, 1] == pytest.approx(2e-3 * (1.0 - found[:, 0] / STEPS), rel=1e-6, abs=1e-12)
    assert (found[:, 2] == np.float32(1e-3)).all()


def test_a_clip_range_narrows():
    found = rates_of(small_agent("ppo", clip_range="linear"), name="train/clip_range")
    assert found[:, 1] == pytest.approx(0.2 * (1.0 - found[:, 0] / STEPS), rel=1e-6, abs=1e-9)
    assert "train/learning_rate" not in small_agent("ppo").learn(STEPS, progress=False).loop.metrics


def test_the_actor_of_sac_has_its_share():
    agent = small_agent("sac", learning_rate=halved, actor_lr_scale=0.5).learn(
        STEPS // 2, progress=False
    )
    rates = {
        name: x.learning_rate.tensor.flatten().tolist()
        for name, x in agent.loop.algorithm.optimizers.items()
    }
    low = pytest.approx([1e-3, 1e-3], rel=1e-6)
    assert rates == {"critic": low, "alpha": low, "actor": pytest.approx([5e-4, 5e-4], rel=1e-6)}


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_a_schedule_that_stays_is_its_number_to_the_bit(algo):
    more = {"clip_range": lambda remaining: 0.2} if algo == "ppo" else {}
    followed = small_agent(algo, learning_rate=lambda remaining: 5e-4, **more).learn(
        STEPS, progress=False
    )
    plain = small_agent(algo).learn(STEPS, progress=False)
    assert states_equal(followed.loop, plain.loop, leave_out=("metrics",))


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_a_member_that_follows_is_what_it_is_alone(algo):
    rates = ("linear_2e-3", 1e-3, halved)
    together = small_agent(algo, learning_rate=rates, seeds=3).learn(STEPS, progress=False)
    ends = []
    for member, rate in enumerate(rates):
        alone = small_agent(algo, learning_rate=rate, seeds=[member]).learn(STEPS, progress=False)
        ours, theirs = (x.loop.algorithm.state_dict() for x in (together, alone))
        for name, x in theirs.items():
            assert torch.equal(ours[name][member], x[0]), (member, name)
        ends.append(
            small_agent(algo, learning_rate=5e-4, seeds=[member]).learn(STEPS, progress=False)
        )
        own = ends[-1].loop.algorithm.state_dict()
        assert not all(torch.equal(own[name], x) for name, x in theirs.items())


# --- how long a run is ----------------------------------------------------------------------------


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_an_agent_that_is_told_late_how_long_a_run_is_learns_as_one_that_knew(algo):
    """The learner is built once, and has acted already when its schedules are laid out."""
    config = RunConfig.of(
        algo, "HybridShoot", net_arch=(16, 16), num_envs=4, learning_rate="linear", **SETTINGS[algo]
    )
    agent = small_agent(algo, learning_rate="linear")
    loop, learner = agent.loop, agent.loop.algorithm
    agent.evaluate(episodes=1)
    agent.predict(np.zeros(agent.face.obs_spec.size, np.float32))
    agent.learn(STEPS, progress=False)
    assert (agent.loop, agent.loop.algorithm) == (loop, learner)
    known = config.replace(total_timesteps=STEPS)
    other = make_loop(make_vec("HybridShoot", (0, 1), 4), known, (0, 1))
    other.run(STEPS)
    assert states_equal(agent.loop, other, leave_out=("episodes",))


def test_a_run_that_is_made_longer_is_followed_to_its_new_end():
    agent = small_agent("ppo", learning_rate="linear_1e-3").learn(128, progress=False)
    assert agent.loop.algorithm.optimizer.learning_rate.tensor.flatten().tolist() == [0.0, 0.0]
    found = rates_of(agent, 128)
    assert found[:, 0].tolist() == [192, 256]
    assert found[:, 1] == pytest.approx([1e-3 / 4, 0.0])


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_half_and_half_with_schedules_equals_the_whole(algo, tmp_path):
    """A function is in the file as a table, so that nobody has to give it again."""
    more = {"clip_range": "linear"} if algo == "ppo" else {}
    settings = {"learning_rate": (lambda remaining: 1e-3 * remaining**0.5, "linear_2e-3"), **more}
    whole = small_agent(algo, **settings)
    whole.learn(
        STEPS, progress=False, log_every=4,
        callbacks=[lambda report: report.step == 148 and whole.save(tmp_path / "x.zip")],
    )  # fmt: skip
    half = hw.Agent.load(tmp_path / "x.zip")
    assert half.config == whole.config
    half.learn(progress=False)
    assert states_equal(half.loop, whole.loop)


def test_another_rate_for_the_rest_of_a_run(tmp_path):
    small_agent("ppo").learn(128, progress=False).save(tmp_path / "x.zip")
    found = rates_of(hw.Agent.load(tmp_path / "x.zip", learning_rate="linear_1e-3"), 128)
    assert found[:, 1] == pytest.approx([1e-3 / 4, 0.0])
