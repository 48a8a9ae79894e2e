import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from headwise import ConfigError, _core
from headwise.envs import reference
from headwise.envs.make import make_vec
from headwise.envs.reference import measure, measure_task, normalize, reference_score, tasks
from headwise.envs.types import StepBatch


@pytest.mark.parametrize("task", tasks(), ids="-".join)
def test_the_stored_scores_are_what_is_measured(task):
    """A quick measurement agrees with the long one within five standard errors of its own.

    Those come from the spread that the long one saw: a policy that fails once in a thousand games
    seems to have no spread at all in a few hundred.
    """
    stored = reference_score(task.name, **task.settings)
    quick = measure_task(task, 1024 if task.name != "Lander" else 64)
    for now, then in zip(quick, (stored.random, stored.best), strict=True):
        spread = then.error * math.sqrt(then.episodes)
        error = math.hypot(then.error, spread / math.sqrt(now.episodes))
        assert now.mean == pytest.approx(then.mean, abs=5 * error + 1e-3)
        assert then.episodes >= 4096


def test_every_task_is_measured():
    """Each environment in every view and mode, and the first view or mode is not the only one."""
    named = [task.name for task in tasks()]
    assert set(named) == {*_core.environments(), "Lander"}
    for name, number in {
        "ContextualDecoupler": 1, "Platform": 3, "HybridShoot": 6, "CoopPush": 6, "Lander": 3,
    }.items():  # fmt: skip
        assert named.count(name) == number
    for name, known in {name: reference.reference_of(name) for name in set(named)}.items():
        assert set(known.measured) == set(itertools.product(known.modes, known.views)), name


def test_what_is_known_without_measuring():
    """Random heads earn -0.6 - 0.08 in each of 100 steps; and there are perfect games."""
    assert reference_score("ContextualDecoupler").random.mean == pytest.approx(-68, abs=0.3)
    assert reference_score("ContextualDecoupler").best.mean == 100
    assert reference_score("HybridShoot").best.mean == pytest.approx(34.7)
    assert reference_score("HybridShoot", mode="independent").best.mean == pytest.approx(33.2)
    assert reference_score("CoopPush", view="continuous").best.mean > 37.46
    assert reference_score("CoopPush", layout="independent").best.mean == pytest.approx(30.08)
    assert 0.99 < reference_score("Platform").best.mean <= 1
    assert reference_score("Lander").best.mean > 200
    assert reference_score("CartPole").best.mean == 500
    assert reference_score("MountainCar").random.mean == -200
    assert reference_score("MountainCarContinuous").best.mean < 100


def test_normalized_scores():
    low = reference_score("headwise/HybridShoot-v0", view="discrete").random.mean
    scores = normalize([low, 34.7, (low + 34.7) / 2], "HybridShoot", view="discrete")
    np.testing.assert_allclose(scores, [0, 1, 0.5])
    assert normalize(200.0, "Lander", view="continuous", num_threads=2) == pytest.approx(
        (200 + 213.16) / (283.72 + 213.16)
    )


@pytest.mark.parametrize(
    ("name", "settings", "complaint"),
    [
        ("HybridShot", {}, "Did you mean 'HybridShoot'"),
        ("probe/agree", {}, "environment with reference scores"),
        ("HybridShoot", {"num_targets": 4}, "no reference scores.*Measure"),
        ("HybridShoot", {"mode": "both"}, "no reference scores"),
        ("CoopPush", {"layout": {"particles": [(9, 9)]}}, "no reference scores"),
        ("Platform", {"mode": "dependent"}, "no reference scores"),
        ("Lander", {"view": "sideways"}, "no reference scores"),
    ],
)
def test_no_score_is_made_up(name, settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        reference_score(name, **settings)


class TwoLengths:
    """Slot 0 plays episodes of one step that earn 1, slot 1 of ten steps that earn 0."""

    num_members, num_slots = 1, 2

    def reset(self):
        self.time = 0
        self.batch = StepBatch.of_shape(1, 2, 1)
        return self.batch.obs

    def step(self, action):
        self.time += 1
        self.batch.terminated[0] = [True, self.time % 10 == 0]
        self.batch.episode_return[0] = [1.0, 0.0]
        return self.batch


def test_short_episodes_do_not_count_more():
    score = measure(TwoLengths(), lambda obs: np.zeros((2, 1), dtype=np.float32), 100)
    assert score.mean == 0.5
    assert score.episodes == 100
    assert score.error == pytest.approx(0.5 / math.sqrt(99))


def test_a_random_policy_is_uniform():
    env = make_vec("Platform", [0], 1, view="hybrid")
    policy = reference.random_policy(env.spec, np.random.default_rng(0))
    actions = policy(np.zeros((30_000, 9)))
    np.testing.assert_allclose(np.bincount(actions[:, 0].astype(int)) / 30_000, 1 / 3, atol=0.01)
    np.testing.assert_allclose(actions[:, 1:].mean(axis=0), 0, atol=0.02)
    np.testing.assert_allclose(actions[:, 1:].var(axis=0), 1 / 3, atol=0.01)


def test_it_can_be_measured_again(capsys, monkeypatch):
    monkeypatch.setattr(
        reference, "tasks", lambda: [reference.Task("HybridShoot", "dependent", "hybrid")]
    )
    reference.main(64)
    assert capsys.readouterr().out.startswith('HybridShoot: ("dependent", "hybrid"): (')


def test_the_docs_show_the_stored_scores():
    page = (Path(__file__).parents[2] / "docs" / "scores.md").read_text()
    for task in tasks():
        scores = reference_score(task.name, **task.settings)
        numbers = " | ".join(f"{s.mean:.5g} ± {s.error:.2g}" for s in (scores.random, scores.best))
        assert f"| {task.name} | {task.mode or '-'} | {task.view} | {numbers} |" in page
    assert normalize(21.0, "HybridShoot", view="hybrid") == pytest.approx(0.61, abs=0.005)
