import numpy as np
import pytest

from headwise import ActionSpec, Choice, Range
from headwise.envs.make import make_vec
from headwise.envs.native.tasks.hybrid_shoot import hilbert_points
from headwise.envs.reference import scripted_policy
from headwise.envs.scripted import in_view

VIEWS = pytest.mark.parametrize("view", ["discrete", "hybrid", "continuous"])


def first_episodes(name, num_slots, **settings):
    """Returns, lengths and whether they terminated, of the first episode of each slot."""
    env = make_vec(name, [3], num_slots, **settings)
    policy = scripted_policy(name, env.spec, **settings)
    obs, returns, lengths = env.reset()[0], np.full(num_slots, np.nan), np.zeros(num_slots, int)
    terminated = np.zeros(num_slots, dtype=bool)
    while np.isnan(returns).any():
        step = env.step(policy(obs)[None])
        obs = step.obs[0]
        new = (step.terminated | step.truncated)[0] & np.isnan(returns)
        returns[new], lengths[new] = step.episode_return[0, new], step.episode_length[0, new]
        terminated[new] = step.terminated[0, new]
    env.close()
    return returns, lengths, terminated


def test_decoupler_is_played_perfectly():
    returns, _, _ = first_episodes("ContextualDecoupler", 64)
    np.testing.assert_allclose(returns, 100.0)


@VIEWS
def test_shoot_is_played_perfectly(view):
    returns, lengths, terminated = first_episodes("HybridShoot", 500, view=view)
    np.testing.assert_allclose(returns, 34.7, rtol=1e-6)  # 9.9 + 9.9 + 14.9
    assert (lengths == 3).all()
    assert terminated.all()


@VIEWS
def test_shoot_independent_is_played_perfectly(view):
    returns, _, _ = first_episodes("HybridShoot", 500, view=view, mode="independent")
    perfect = np.isclose(returns, 33.2, rtol=1e-6)  # 8.9 + 9.4 + 14.9
    # A hundred points of the curve leave 0.0009 of the square out of reach.
    assert perfect.all() if view != "discrete" else perfect.mean() > 0.98


@VIEWS
def test_push_beats_the_best_score_known_of_the_default_layout(view):
    """In continuous view 37.46 was known, in 39 steps."""
    returns, lengths, terminated = first_episodes("CoopPush", 48, view=view)
    assert terminated.all()
    assert (lengths <= 30).all()
    assert (returns > 37.1).all()
    if view == "continuous":
        np.testing.assert_allclose(returns, 37.469, atol=1e-3)
        assert (lengths == 29).all()


@VIEWS
def test_push_independent(view):
    """Straight behind its own boulder, a particle needs 37 steps: 0.4 a step for 14 units."""
    returns, lengths, terminated = first_episodes("CoopPush", 48, view=view, layout="independent")
    assert terminated.all()
    assert (lengths == 37).all()
    np.testing.assert_allclose(returns, 30.08, atol=1e-3)


@pytest.mark.parametrize("given", [dict, lambda layout: {"layout": layout}])
def test_push_in_a_layout_of_ones_own(given):
    """One particle to the left of each of three boulders, whose landmark is to the right."""
    rows = [-12.0, 0.0, 12.0]
    layout = {
        "particles": [(-12.0, y) for y in rows],
        "boulders": [(0.0, y) for y in rows],
        "landmarks": [(12.0, y) for y in rows],
    }
    settings = {**given(layout), "visit": "one", "view": "continuous"}
    _, lengths, terminated = first_episodes("CoopPush", 3, **settings)
    assert terminated.all()
    assert (lengths < 60).all()


@VIEWS
def test_platform_reaches_the_end(view):
    returns, _, terminated = first_episodes("Platform", 8, view=view, noise=0.0)
    np.testing.assert_allclose(returns, 1.0, rtol=1e-6)
    assert terminated.all()
    returns, _, _ = first_episodes("Platform", 400, view=view)
    assert (returns > 0.9999).mean() > 0.99


def test_the_classics_are_solved():
    """By the thresholds that Gymnasium registers; those without one by what is known of them."""
    for name, least, share in (
        ("CartPole", 500, 1.0), ("Acrobot", -100, 0.9), ("MountainCar", -121, 0.95),
        ("MountainCarContinuous", 98, 0.99), ("Pendulum", -400, 0.99),
    ):  # fmt: skip
        returns, lengths, terminated = first_episodes(name, 300)
        assert (returns >= least).mean() >= share, name
        if name in ("CartPole", "Pendulum"):
            assert not terminated.any()
        else:
            assert terminated.mean() > 0.99
            assert lengths[terminated].max() < 500


@VIEWS
@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
def test_lander_lands(view, backend):
    num_slots = 48 if backend == "envpool" else 12
    returns, _, _ = first_episodes("Lander", num_slots, view=view, backend=backend)
    assert np.median(returns) > 260
    assert (returns > 200).mean() > 0.9  # 200 counts as solved


def test_the_curve_is_the_one_of_the_spec():
    d = np.array([0, 1, 2, 3, 4, 5, 19, 21, 42, 64, 85, 100, 128, 170, 192, 234, 255])
    cells = [
        (0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 3), (5, 0), (7, 0), (7, 7), (0, 8), (0, 15),
        (4, 14), (8, 8), (15, 15), (15, 7), (8, 0), (15, 0),
    ]  # fmt: skip
    np.testing.assert_allclose(hilbert_points(d / 256) * 15, cells)
    numbers = np.array([0.1, 0.25, 1 / 3, 0.5, 0.75, 0.9, 1.0])
    cells = [(7, 3), (0, 8), (0, 15), (8, 8), (15, 7), (8, 2), (15, 0)]
    np.testing.assert_allclose(hilbert_points(numbers) * 15, cells)


def test_intents_in_a_view():
    native = ActionSpec.of(kind=Choice(3), strength=Range(0, 10))
    intent = np.array([[0, 0.0], [2, 10.0], [1, 6.0]])
    same = in_view(intent, native, native)
    np.testing.assert_allclose(same, [[0, -1], [2, 1], [1, 0.2]])
    binned = in_view(intent, native, ActionSpec.of(kind=Choice(3), strength=Choice(5)))
    np.testing.assert_allclose(binned, [[0, 0], [2, 4], [1, 2]])  # bins 0, 2.5, 5, 7.5, 10
    driven = in_view(intent, native, ActionSpec.of(kind=Range(-1, 1), strength=Range(0, 10)))
    np.testing.assert_allclose(driven[:, 0], [-2 / 3, 2 / 3, 0])  # the middles of three parts
