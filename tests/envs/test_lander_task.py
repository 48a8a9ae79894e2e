import numpy as np
import pytest

from headwise import EnvError
from headwise.envs.lander import landers
from headwise.envs.lander_task import LanderVecEnv
from headwise.envs.seeds import slot_seeds

BACKENDS = ("envpool", "gymnasium")


def random_actions(env, rng, steps):
    shape = (steps, env.num_members, env.num_slots)
    heads = env.spec.sample(rng, int(np.prod(shape))).astype(np.float32)
    return heads.reshape(*shape, -1)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("view", ["discrete", "hybrid", "continuous"])
def test_no_fake_transition_reaches_a_learner(backend, view):
    """Raw landers, stepped beside it, say what is a transition and what is a reset."""
    seeds, slots = [4, 9], 3
    env = LanderVecEnv(seeds, slots, view=view, backend=backend, max_episode_steps=90)
    raw = landers(backend, 6, max_episode_steps=90)
    obs = env.reset().copy()
    first, _ = raw.reset(seed=slot_seeds(seeds, slots))
    np.testing.assert_array_equal(obs.reshape(6, 8), first)
    ended = np.zeros((2, 3), dtype=bool)
    returns, lengths, num_invalid = np.zeros((2, 3)), np.zeros((2, 3), dtype=int), 0
    for action in random_actions(env, np.random.default_rng(0), 200):
        engines = env._view.to_native(action.reshape(6, 2)).astype(np.float32)
        raw_obs = raw.step(engines)[0]
        step = env.step(action)
        np.testing.assert_array_equal(step.valid, ~ended)  # exactly the steps after an end
        np.testing.assert_array_equal(step.next_obs.reshape(6, 8), raw_obs)
        np.testing.assert_array_equal(step.obs, step.next_obs)
        fresh = ~step.valid
        assert (step.reward[fresh] == 0).all()
        assert not (step.terminated | step.truncated)[fresh].any()
        assert not (step.terminated & step.truncated).any()
        # A new episode starts up in the middle, whatever the action was.
        assert (np.abs(step.obs[fresh][:, 0]) < 0.02).all()
        assert (step.obs[fresh][:, 1] > 1.3).all()
        returns = np.where(fresh, 0, returns + step.reward)
        lengths = np.where(fresh, 0, lengths + 1)
        ended = step.terminated | step.truncated
        np.testing.assert_allclose(step.episode_return[ended], returns[ended], rtol=1e-4)
        np.testing.assert_array_equal(step.episode_length[ended], lengths[ended])
        assert (lengths[step.truncated] == 90).all()
        num_invalid += fresh.sum()
    assert num_invalid > 6


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_member_alone_is_the_member_in_a_population(backend):
    rng = np.random.default_rng(1)
    both = LanderVecEnv([5, 6], 3, view="continuous", backend=backend)
    alone = LanderVecEnv([6], 2, view="continuous", backend=backend)
    actions = random_actions(both, rng, 120)
    np.testing.assert_array_equal(both.reset()[1, :2], alone.reset()[0])
    for action in actions:
        many, few = both.step(action), alone.step(np.ascontiguousarray(action[1:, :2]))
        for name, large in many.arrays().items():
            np.testing.assert_array_equal(large[1, :2], few.arrays()[name][0], err_msg=name)
    assert (many.obs[0] != many.obs[1]).any()


def test_seeds_of_slots_do_not_repeat():
    """Neighboring seeds and slots, the ones people use, all get seeds of their own."""
    seeds = slot_seeds(range(64), 64)
    assert len(set(seeds)) == 64 * 64
    assert min(seeds) >= 0
    assert max(seeds) < 2**32
    # The first word of Philox at (slot, 0, 0, 0) under the member's seed; for zeros it is known.
    assert slot_seeds([0], 1) == [0x6627E8D5]


@pytest.mark.parametrize(
    ("view", "bad"),
    [
        ("continuous", [0.0, 1.5]),
        ("continuous", [np.nan, 0.0]),
        ("hybrid", [3.0, 0.0]),
        ("hybrid", [0.5, 0.0]),
        ("hybrid", [0.0, -2.0]),
        ("discrete", [-1.0, 0.0]),
        ("discrete", [np.nan, 0.0]),
        ("discrete", [1e30, 0.0]),
    ],
)
def test_a_refused_action_changes_nothing(view, bad):
    env, twin = (LanderVecEnv([1], 4, view=view) for _ in range(2))
    env.reset()
    twin.reset()
    action = np.zeros((1, 4, 2), dtype=np.float32)
    wrong = action.copy()
    wrong[0, 2] = bad
    with pytest.raises(EnvError, match=r"Lander: head '(main|lateral)' of action \(2,\)"):
        env.step(wrong)
    np.testing.assert_array_equal(env.step(action).obs, twin.step(action).obs)
    with pytest.raises(EnvError, match="wrong shape"):
        env.step(np.zeros((1, 4, 3), dtype=np.float32))


def test_it_says_that_it_cannot_be_resumed():
    env = LanderVecEnv([1], 2)
    assert not env.can_snapshot
    with pytest.raises(EnvError, match=r"cannot be resumed exactly.*call reset\(\)"):
        env.snapshot()
    with pytest.raises(EnvError, match="cannot be resumed exactly"):
        env.restore(b"")


def test_calls_out_of_order_are_refused():
    env = LanderVecEnv([1], 2)
    action = np.zeros((1, 2, 2), dtype=np.float32)
    with pytest.raises(EnvError, match="step before reset"):
        env.step(action)
    env.reset()
    env.step(action)
    env.close()
    with pytest.raises(EnvError, match=r"closed\. Make a new one"):
        env.step(action)
    with pytest.raises(EnvError, match=r"closed\. Make a new one"):
        env.reset()
    with pytest.raises(EnvError, match="a lander to fly"):
        LanderVecEnv([], 2)
