"""What every environment promises, whichever it is and however it is set up."""

import gymnasium as gym
import numpy as np
import pytest

from headwise import EnvError, _core
from headwise.envs.make import env_names, make_vec, own_name, plain_name
from headwise.envs.native import NATIVE_NAMES, env_id
from headwise.envs.native.engine import Autoreset, Engine
from headwise.envs.native.info import NativeInfo, info_of
from headwise.envs.native.parallel_env import TEAMS
from headwise.envs.native.vec_env import NativeVecEnv
from headwise.envs.reference import reference_score
from headwise.envs.types import StepBatch

PILE = {  # everything on top of everything: bodies that are pushed apart as far as can be
    "particles": [[0.0, 0.0]] * 8 + [[1.0, 0.0]] * 8,
    "boulders": [[0.0, 0.0]] * 8,
    "landmarks": [[5.0, 5.0], [-7.0, 2.0]],
}
VARIANTS = {
    "ContextualDecoupler": [{}, {"one_hot": True, "num_options": 7}],
    "Platform": [{}, {"noise": 0.0}, {"param_heads": 2, "bins": 4}],
    "HybridShoot": [{}, {"mode": "independent"}, {"num_targets": 16, "aim": "scalar"}],
    "CoopPush": [
        {},
        {"layout": "independent"},
        {"observation": "positions", "visit": "one", "dense": False},
        {**PILE, "start_noise": 3.0},
    ],
    "CartPole": [{}, {"sutton_barto_reward": True}],
    "Acrobot": [{}],
    "MountainCar": [{}, {"goal_velocity": 0.02}],
    "MountainCarContinuous": [{}, {"goal_velocity": 0.02}],
    "Pendulum": [{}, {"g": 9.81}],
}
CASES = [
    pytest.param(name, {**variant, "view": view}, id=f"{name}-{view}-{number}")
    for name, variants in VARIANTS.items()
    for number, variant in enumerate(variants)
    for view in info_of(name).reference.views
]
every_case = pytest.mark.parametrize(("name", "settings"), CASES)
every_name = pytest.mark.parametrize("name", env_names())
RESULTS = ("obs", "next_obs", "reward", "terminated", "truncated", "episode_return",
           "episode_length")  # fmt: skip


def test_no_compiled_environment_is_forgotten():
    """Each is a header and a Python file: what registers itself here is registered there."""
    assert set(VARIANTS) == set(_core.environments()) == set(NATIVE_NAMES)


@pytest.mark.parametrize("name", NATIVE_NAMES)
def test_an_environment_is_known_wherever_environments_are(name):
    """By name and by id, with its scores, a picture, and a policy that beats random play."""
    assert env_id(name) in gym.registry
    public = own_name(env_id(name))
    assert public in (name, env_id(name))
    assert public in env_names()
    info = info_of(name)
    assert isinstance(info, NativeInfo)
    assert gym.make(env_id(name)).unwrapped.metadata["render_fps"] == info.frames_per_second
    for mode, view in info.reference.measured:
        setting = {info.reference.mode: mode} if mode else {}
        score = reference_score(env_id(name), view=view, **setting)
        errors = np.hypot(score.random.error, score.best.error)
        assert score.best.mean > score.random.mean + 10 * errors
    assert reference_score(name) == reference_score(name, view=info.reference.default_view)
    env = gym.make(env_id(name), render_mode="rgb_array")
    env.reset(seed=0)
    start = env.render()
    env.step(env.action_space.sample())
    assert start.shape == (400, 600, 3)
    assert (env.render() != start).any()
    has_team = info.agents is not None
    assert has_team == (name in TEAMS)


def engine(name, settings, num_envs, seed=7, **options):
    made = Engine(name, num_envs, settings, **options)
    made.seed(np.full(num_envs, seed), np.arange(num_envs))
    made.reset()
    return made


def act(env, rng):
    """Writes random actions into the arrays of an engine."""
    heads = env.spec.sample(rng, env.num_envs)
    env.choices[...] = heads[:, : env.spec.num_choices]
    env.ranges[...] = heads[:, env.spec.num_choices :]


def results(env):
    return {key: getattr(env, key).copy() for key in RESULTS}


def trajectory(env, steps, seed=0):
    """All results of so many random steps, as one string of bytes."""
    rng, parts = np.random.default_rng(seed), []
    for _ in range(steps):
        act(env, rng)
        env.step()
        parts.extend(getattr(env, key).tobytes() for key in RESULTS)
    return b"".join(parts)


# --- engines -------------------------------------------------------------------------------------


@every_case
@pytest.mark.parametrize("limit", [None, 1, 3])
def test_observations_stay_in_their_bounds(name, settings, limit):
    env = engine(name, settings, 40, max_episode_steps=limit)
    rng = np.random.default_rng(0)
    assert (env.obs_low < env.obs_high).all() or name == "Platform"  # whose last entry is always 0
    for _ in range(150):
        act(env, rng)
        env.step()
        for obs in (env.obs, env.next_obs):
            assert (env.obs_low <= obs).all()
            assert (obs <= env.obs_high).all()


@every_case
@pytest.mark.parametrize("autoreset", list(Autoreset)[:2])
def test_threads_do_not_change_a_bit(name, settings, autoreset):
    num_envs = 420  # enough work for threads, and no multiple of a block
    runs = {
        trajectory(engine(name, settings, num_envs, autoreset=autoreset, num_threads=threads), 25)
        for threads in (1, 2, 5)
    }
    assert len(runs) == 1


@every_case
def test_other_seeds_and_other_lanes_differ(name, settings):
    def run(seed, lane):
        env = Engine(name, 1, settings)
        env.seed([seed], [lane])
        env.reset()
        return env.obs.tobytes() + trajectory(env, 40)

    chance = name != "Platform" or settings.get("noise") != 0.0
    if settings.get("layout") == "independent":
        chance = True  # two particles deal two places
    same = run(3, 0)
    assert same == run(3, 0)
    others = {run(3 + 2**k, 0) for k in range(0, 64, 9)} | {run(3, 2**k) for k in range(0, 32, 5)}
    assert (others != {same}) == chance


@every_case
@pytest.mark.parametrize("autoreset", list(Autoreset))
def test_a_snapshot_goes_on_as_if_nothing_had_happened(name, settings, autoreset):
    def reset_the_ended(env):
        ended = env.terminated | env.truncated
        if autoreset is Autoreset.DISABLED and ended.any():
            env.reset(ended)

    def play(env, rng, steps):
        rows = []
        for _ in range(steps):
            reset_the_ended(env)
            act(env, rng)
            env.step()
            rows.extend(getattr(env, key).tobytes() for key in RESULTS)
        return rows

    env = engine(name, settings, 21, autoreset=autoreset)
    rng = np.random.default_rng(0)
    play(env, rng, 13)  # in the middle of most episodes
    reset_the_ended(env)
    snapshot, state = env.snapshot(), rng.bit_generator.state
    seen = env.obs.copy()
    first = play(env, rng, 30)
    rng.bit_generator.state = state
    env.restore(snapshot)
    assert env.snapshot() == snapshot
    np.testing.assert_array_equal(env.obs, seen)
    assert play(env, rng, 30) == first
    fresh = Engine(name, 21, settings, autoreset=autoreset, num_threads=1)
    fresh.restore(snapshot)
    rng.bit_generator.state = state
    assert play(fresh, rng, 30) == first


@every_case
def test_flags_successors_and_statistics(name, settings):
    """An episode's return and length, added up here; the successor and what is acted on."""
    env = engine(name, settings, 33)
    rng = np.random.default_rng(1)
    returns, lengths, ends = np.zeros(33, np.float32), np.zeros(33, int), 0
    for _ in range(max(220, env.max_episode_steps)):
        act(env, rng)
        env.step()
        assert not (env.terminated & env.truncated).any()
        ended = env.terminated | env.truncated
        np.testing.assert_array_equal(env.next_obs[~ended], env.obs[~ended])
        returns, lengths = returns + env.reward, lengths + 1
        np.testing.assert_array_equal(env.episode_return, returns)
        np.testing.assert_array_equal(env.episode_length, lengths)
        np.testing.assert_array_equal(
            env.truncated, ~env.terminated & (lengths >= env.max_episode_steps)
        )
        returns, lengths = np.where(ended, np.float32(0), returns), np.where(ended, 0, lengths)
        ends += ended.sum()
    assert ends >= 33


@every_case
@pytest.mark.parametrize("limit", [1, 4, 0])
def test_time_limits(name, settings, limit):
    env = engine(name, settings, 17, max_episode_steps=limit)
    rng = np.random.default_rng(2)
    for _ in range(30):
        act(env, rng)
        env.step()
        assert (env.truncated == (~env.terminated & (env.episode_length == limit))).all()
        assert not limit or (env.episode_length <= limit).all()
    if limit == 1:
        assert (env.terminated | env.truncated).all()


@every_case
def test_the_three_autoreset_modes_play_the_same_episodes(name, settings):
    """Each mode's transitions (observation, reward, flags, successor), slot by slot, in order."""
    actions = np.random.default_rng(3).random((80, 9, 32))

    def transitions(mode):
        env = engine(name, settings, 9, autoreset=mode, max_episode_steps=7)
        rows = [[] for _ in range(9)]
        waits = np.zeros(9, dtype=bool)
        while min(map(len, rows)) < 60:
            obs = env.obs.copy()
            for slot in range(9):  # what is done depends on the transition's number alone
                unit = actions[len(rows[slot]) % 80, slot, : env.spec.num_heads]
                options = np.floor(unit * (env.spec.high + 1))
                reals = env.spec.low + unit * (env.spec.high - env.spec.low)
                heads = np.where(env.spec.is_choice, options, reals)
                env.choices[slot] = heads[: env.spec.num_choices]
                env.ranges[slot] = heads[env.spec.num_choices :]
            env.step()
            ended = env.terminated | env.truncated
            for slot in np.flatnonzero(~waits):
                rows[slot].append(
                    obs[slot].tobytes() + b"".join(
                        getattr(env, key)[slot].tobytes() for key in RESULTS if key != "obs"
                    )
                )  # fmt: skip
            for slot in np.flatnonzero(waits):  # a step that only resets is no transition
                assert env.reward[slot] == 0
                assert not ended[slot]
                assert env.episode_length[slot] == 0
            waits = ended if mode is Autoreset.NEXT_STEP else np.zeros(9, dtype=bool)
            if mode is Autoreset.DISABLED and ended.any():
                with pytest.raises(EnvError, match=rf"slot {np.argmax(ended)} has ended"):
                    env.step()
                env.reset(ended)
        return [row[:60] for row in rows]

    same, later, by_hand = map(transitions, Autoreset)
    assert same == later
    assert same == by_hand


@every_case
def test_a_refused_action_changes_nothing(name, settings):
    env = engine(name, settings, 19)
    rng = np.random.default_rng(4)
    act(env, rng)
    env.step()
    before, shown = env.snapshot(), results(env)

    def refused(step, head):
        with pytest.raises(EnvError, match=f"{name}.*slot 17.*head '{head}'.*allowed"):
            step()
        assert env.snapshot() == before
        for key, array in results(env).items():
            np.testing.assert_array_equal(array, shown[key])

    for h, head in enumerate(env.spec.names):
        option = h < env.spec.num_choices
        array, column = (env.choices, h) if option else (env.ranges, h - env.spec.num_choices)
        low, high = env.spec.low[h], env.spec.high[h]
        bad = [-1, high + 1, 2**31 - 1] if option else [np.nan, np.inf, low - 0.01, high + 0.01]
        for value in bad:
            act(env, rng)
            array[17, column] = value
            refused(env.step, head)
        units = np.zeros((19, env.spec.num_heads), dtype=np.float32)
        for value in (np.nan, -1.5, np.inf, 1e30) + ((0.5, high + 1) if option else (1.01,)):
            units[17, h] = value
            refused(lambda units=units: env.step_units(units), head)
    for wrong in (
        np.zeros((19, 1 + env.spec.num_heads), np.float32),
        np.zeros((18, 2), np.float32),
    ):
        with pytest.raises(EnvError, match="one row for each slot"):
            env.step_units(wrong)
    with pytest.raises(TypeError):
        env.step_units(np.zeros((19, env.spec.num_heads)))  # float64
    assert env.snapshot() == before


@every_case
def test_the_learners_form_is_the_same_action(name, settings):
    """Units of a range and the environment's own, options and options: the same bytes."""
    ours, theirs = engine(name, settings, 12), engine(name, settings, 12)
    rng = np.random.default_rng(5)
    for _ in range(20):
        unit = (rng.integers(0, 9, (12, ours.spec.num_heads)) / 4 - 1).astype(np.float32)
        options = rng.integers(0, ours.spec.high + 1, (12, ours.spec.num_heads))
        low, high = ours.spec.low.astype(np.float32), ours.spec.high.astype(np.float32)
        values = low + (unit + 1) * np.float32(0.5) * (high - low)
        k = ours.spec.num_choices
        ours.step_units(np.where(ours.spec.is_choice, options, unit).astype(np.float32))
        theirs.choices[...], theirs.ranges[...] = options[:, :k], values[:, k:]
        theirs.step()
        for key, array in results(ours).items():
            np.testing.assert_array_equal(array, getattr(theirs, key))


@every_case
def test_calls_out_of_order_are_refused(name, settings):
    env = Engine(name, 3, settings)
    with pytest.raises(EnvError, match="step before reset"):
        env.step()
    with pytest.raises(EnvError, match="first reset must be of all slots"):
        env.reset(np.array([True, False, True]))
    env.reset()
    for wrong in (b"", b"nonsense", env.snapshot()[:-1], env.snapshot() + b"x"):
        with pytest.raises(EnvError, match="snapshot"):
            env.restore(wrong)
    with pytest.raises(EnvError, match="there is no slot 3"):
        env.state(3)
    with pytest.raises(EnvError, match="there is no slot -1"):
        env.set_state(-1, {})
    with pytest.raises(EnvError, match="unknown part of the state"):
        env.set_state(0, {"color": [1]})


@every_case
def test_a_state_read_is_a_state_that_can_be_set(name, settings):
    env, other = engine(name, settings, 5), engine(name, settings, 5, seed=99)
    for _ in range(2):
        act(env, np.random.default_rng(6))
        env.step()
    for slot in range(5):
        other.set_state(slot, env.state(slot))
        for key, part in env.state(slot).items():
            np.testing.assert_array_equal(part, other.state(slot)[key])
        for key, part in env.state(slot).items():
            before = other.snapshot()
            for poison in (np.nan, 1e30, -1e30):
                with pytest.raises(EnvError, match=key.removesuffix("s")):
                    other.set_state(slot, {key: np.full(part.shape, poison)})
                assert other.snapshot() == before
    np.testing.assert_array_equal(other.obs, env.obs)


# --- everything that trains ----------------------------------------------------------------------


def learner_actions(env, rng, steps):
    shape = (steps, env.num_members, env.num_slots, env.spec.num_heads)
    options = rng.integers(0, np.maximum(env.spec.high + 1, 1), shape)
    return np.where(env.spec.is_choice, options, rng.uniform(-1, 1, shape)).astype(np.float32)


@every_name
def test_step_batches_keep_their_word(name):
    short = {"max_episode_steps": 200} if plain_name(name) in NATIVE_NAMES else {}
    env = make_vec(name, [1, 2, 3], 5, **short)
    assert (env.num_members, env.num_slots) == (3, 5)
    obs = env.reset()
    shape = (3, 5)
    assert obs.shape == (*shape, env.obs_spec.size)
    assert env.first_legal is None  # none of ours has masks
    waits = np.zeros(shape, dtype=bool)
    returns, lengths, ends = np.zeros(shape), np.zeros(shape, int), 0
    previous = None
    for action in learner_actions(env, np.random.default_rng(0), 260):
        step = env.step(action)
        assert isinstance(step, StepBatch)
        for key, array in step.arrays().items():
            assert array.shape[:2] == shape, key
        assert step.obs.dtype == step.next_obs.dtype == step.reward.dtype == np.float32
        assert step.terminated.dtype == step.truncated.dtype == step.valid.dtype == np.bool_
        if previous is not None:  # the arrays are the environment's and are used again
            assert all(
                a is b or np.shares_memory(a, b)
                for a, b in zip(step.arrays().values(), previous.arrays().values(), strict=True)
            )
        previous = step
        assert np.isfinite(step.obs).all()
        ended = step.terminated | step.truncated
        assert not (step.terminated & step.truncated).any()
        assert not (ended & ~step.valid).any()
        np.testing.assert_array_equal(step.next_obs[~ended], step.obs[~ended])
        # Where no transition takes place, it is the step after an end, and it earns nothing.
        assert not (~step.valid & ~waits).any()
        assert (step.reward[~step.valid] == 0).all()
        returns = np.where(step.valid, returns + step.reward, 0)
        lengths = np.where(step.valid, lengths + 1, 0)
        np.testing.assert_allclose(step.episode_return[ended], returns[ended], rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(step.episode_length[ended], lengths[ended])
        returns, lengths = np.where(ended, 0, returns), np.where(ended, 0, lengths)
        waits = ended
        ends += ended.sum()
    assert ends >= 15
    env.close()


@every_name
def test_a_member_alone_is_the_member_in_a_population(name):
    """And the first slots of many are the slots of few."""
    many = make_vec(name, [5, 6, 7], 16)
    few = make_vec(name, [6], 4)
    np.testing.assert_array_equal(many.reset()[1, :4], few.reset()[0])
    for action in learner_actions(many, np.random.default_rng(1), 130):
        large, small = many.step(action), few.step(np.ascontiguousarray(action[1:2, :4]))
        for key, a in large.arrays().items():
            np.testing.assert_array_equal(a[1, :4], small.arrays()[key][0], err_msg=key)


@every_name
def test_a_run_can_be_resumed_or_says_that_it_cannot(name):
    env = make_vec(name, [1, 2], 3)
    env.reset()
    actions = learner_actions(env, np.random.default_rng(2), 60)
    for action in actions[:25]:
        env.step(action)
    if not env.can_snapshot:
        with pytest.raises(EnvError, match="cannot be resumed exactly"):
            env.snapshot()
        with pytest.raises(EnvError, match="cannot be resumed exactly"):
            env.restore(b"")
        return
    snapshot = env.snapshot()
    first = [
        [array.copy() for array in env.step(action).arrays().values()] for action in actions[25:]
    ]
    for again in (env, make_vec(name, [8, 9], 3)):
        again.restore(snapshot)
        for action, expected in zip(actions[25:], first, strict=True):
            for a, b in zip(again.step(action).arrays().values(), expected, strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_compiled_members_do_not_depend_on_the_population(name, settings):
    many = NativeVecEnv(name, [11, 12, 2**63], 16, **settings)
    alone = NativeVecEnv(name, [2**63], 16, **settings)
    few = NativeVecEnv(name, [2**63], 4, **settings)
    many.reset(), alone.reset(), few.reset()
    for action in learner_actions(many, np.random.default_rng(3), 40):
        a = many.step(action)
        b = alone.step(np.ascontiguousarray(action[2:]))
        c = few.step(np.ascontiguousarray(action[2:, :4]))
        for key, x in a.arrays().items():
            np.testing.assert_array_equal(x[2], b.arrays()[key][0], err_msg=key)
            np.testing.assert_array_equal(x[2, :4], c.arrays()[key][0], err_msg=key)
