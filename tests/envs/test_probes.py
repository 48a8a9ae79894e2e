import itertools
from pathlib import Path

import numpy as np
import pytest

from headwise import Choice, EnvError
from headwise.envs.probes import probes

ALL = pytest.mark.parametrize(("name", "probe"), list(probes.items()), ids=probes.names())


def every_action(spec, points=40):
    """All options and the middles of equal parts of a range, in the learner's form."""
    units = (2 * np.arange(points) + 1) / points - 1
    columns = [np.arange(head.n) if isinstance(head, Choice) else units for head in spec.heads]
    return np.array(list(itertools.product(*columns)), dtype=np.float32)


def play(env, policy, steps):
    """Mean return of the episodes that ended, under policy(obs (P, E)) -> actions (P, E, H)."""
    obs, ends = env.reset(), []
    for _ in range(steps):
        step = env.step(policy(obs[..., 0]).astype(np.float32))
        obs = step.obs
        ends.extend(step.episode_return[step.terminated | step.truncated].tolist())
    return np.mean(ends)


@pytest.mark.parametrize(
    ("name", "gamma", "values"),
    [
        ("constant", 0.9, {0: 1.0}),
        ("observation", 0.9, {1: 1.0, -1: -1.0}),
        ("delay", 0.9, {0: 0.9, 1: 1.0}),  # 0 + 0.9 * 1
        ("delay", 0.5, {0: 0.5, 1: 1.0}),
        ("endless", 0.9, {0: 10.0}),  # 1 / (1 - 0.9)
        ("endless", 0.99, {0: 100.0}),
        ("action", 0.9, {0: 1.0}),
        ("context", 0.9, {0: 1.0, 1: 1.0}),
        ("agree", 0.9, {0: 1.0}),
        ("agree-context", 0.9, {0: 1.0, 1: 1.0, 2: 1.0}),
        ("spare-head", 0.9, {0: 1.0, 1: 1.0, 2: 1.0}),
        ("aim", 0.9, {-1: 1.0, 1: 1.0}),
        ("choose-and-aim", 0.9, {0: 1.0}),
    ],
)
def test_the_values_worked_out_by_hand(name, gamma, values):
    assert probes.get(name).values(gamma) == pytest.approx(values)


@ALL
def test_the_best_action_is_the_best(name, probe):
    """No action of a fine grid earns more anywhere, and the best one is nowhere regretted."""
    observations = np.unique(np.concatenate(probe.episodes)).astype(np.float32)
    actions = every_action(probe.spec)
    for obs in observations:
        assert (probe.regret(np.full(len(actions), obs), actions) >= 0).all()
    np.testing.assert_array_equal(probe.regret(observations, probe.best_action(observations)), 0)


@ALL
def test_the_known_returns_are_what_is_earned(name, probe):
    env = probe(seeds=[0, 1], num_slots=6)
    assert play(env, probe.best_action, 60) == pytest.approx(probe.known.best_return, abs=1e-6)
    actions = probe.native(every_action(probe.spec, 2000))
    at_random = [
        sum(probe.reward(np.full(len(actions), obs), actions).mean() for obs in episode)
        for episode in probe.episodes
    ]
    assert np.mean(at_random) == pytest.approx(probe.known.random_return, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "obs", "action", "regret"),
    [
        ("agree", 0, (2, 2), 0.0),
        ("agree", 0, (2, 1), 1.0),
        ("agree-context", 2, (2, 2), 0.0),
        ("agree-context", 2, (1, 1), 1.0),
        ("spare-head", 1, (1, 0), 0.0),
        ("spare-head", 1, (1, 2), 0.0),
        ("spare-head", 1, (0, 1), 1.0),
        ("action", 0, (0,), 2.0),
        ("context", 1, (1,), 0.0),
        ("aim", 1, (0.5,), 0.0),  # half of a range from -2 to 2 is 1
        ("aim", -1, (0.0,), 1.0),
        ("aim", -1, (1.0,), 9.0),  # 2 is 3 away from -1
        ("choose-and-aim", 0, (0, -0.5), 0.0),
        ("choose-and-aim", 0, (1, 0.5), 0.0),
        ("choose-and-aim", 0, (1, -0.5), 1.0),
    ],
)
def test_right_and_wrong_actions(name, obs, action, regret):
    assert float(probes.get(name).regret(obs, action)) == pytest.approx(regret)


def test_a_delay_step_by_step():
    env = probes.get("delay")(seeds=[3], num_slots=1)
    action = np.zeros((1, 1, 1), dtype=np.float32)
    assert env.reset()[0, 0, 0] == 0
    rows = []
    for _ in range(4):
        step = env.step(action)
        rows.append([float(array.reshape(-1)[0]) for array in step.arrays().values()])
    # obs, next_obs, reward, terminated, truncated, valid, return, length
    first, last = [1, 1, 0, 0, 0, 1, 0, 1], [0, 1, 1, 1, 0, 1, 1, 2]
    assert rows == [first, last, first, last]


def test_a_truncation_step_by_step():
    env = probes.get("endless")(seeds=[0], num_slots=2)
    env.reset()
    for t in range(1, 13):
        step = env.step(np.zeros((1, 2, 1), dtype=np.float32))
        assert not step.terminated.any()
        assert step.truncated.all() == (t % 5 == 0)
        assert (step.episode_length == (t - 1) % 5 + 1).all()
        assert (step.episode_return == (t - 1) % 5 + 1).all()


def test_kinds_of_episodes_take_turns():
    env = probes.get("agree-context")(seeds=[0, 1], num_slots=4)
    np.testing.assert_array_equal(env.reset()[..., 0], [[0, 1, 2, 0], [1, 2, 0, 1]])
    step = env.step(np.zeros((2, 4, 2), dtype=np.float32))
    np.testing.assert_array_equal(step.reward, [[1, 0, 0, 1], [0, 0, 1, 0]])
    np.testing.assert_array_equal(step.next_obs[..., 0], [[0, 1, 2, 0], [1, 2, 0, 1]])
    np.testing.assert_array_equal(step.obs[..., 0], [[1, 2, 0, 1], [2, 0, 1, 2]])


@ALL
def test_bad_calls_change_nothing(name, probe):
    env = probe(seeds=[0], num_slots=2)
    good = np.zeros((1, 2, probe.spec.num_heads), dtype=np.float32)
    with pytest.raises(EnvError, match="step before reset"):
        env.step(good)
    env.reset()
    before = env.snapshot()
    for value in (np.nan, 7.0, -1.5):
        bad = good.copy()
        bad[0, 1, 0] = value
        with pytest.raises(EnvError, match=rf"{probe.__name__}: head 'head_0' of action \(0, 1\)"):
            env.step(bad)
    with pytest.raises(EnvError, match="wrong shape"):
        env.step(good[:, :1])
    for wrong in (b"", before[:-1], before.replace(b"/1/", b"/2/", 1)):
        with pytest.raises(EnvError, match="another environment"):
            env.restore(wrong)
    with pytest.raises(EnvError, match="damaged"):
        env.restore(before[:-24] + b"\xff" * 24)
    assert env.snapshot() == before
    with pytest.raises(EnvError, match="a member and a slot"):
        probe(seeds=[], num_slots=2)


def test_the_docs_name_every_probe():
    page = (Path(__file__).parents[2] / "docs" / "probes.md").read_text()
    for name, probe in probes.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        assert ", ".join(map(str, probe.spec.heads)) in row
