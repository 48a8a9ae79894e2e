"""Many slots as Gymnasium sees them; its own SyncVectorEnv over single ones is the oracle."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics
from gymnasium.wrappers.vector import RecordEpisodeStatistics as RecordVectorStatistics

from headwise import ConfigError, EnvError, SpaceError
from headwise.envs.native import NATIVE_NAMES, env_id
from headwise.envs.native.gym_env import NativeEnv
from headwise.envs.native.vector_env import NativeVectorEnv

MODES = ["next_step", "same_step", "disabled"]
SETTINGS = [
    ("ContextualDecoupler", {"max_episode_steps": 6}),
    ("Platform", {"view": "discrete"}),
    ("Platform", {"view": "continuous", "max_episode_steps": 3}),
    ("Platform", {"action_form": "oneof"}),
    ("HybridShoot", {"view": "hybrid", "num_targets": 2, "hit_radius": 0.4}),
    ("HybridShoot", {"view": "discrete", "mode": "independent"}),
    ("CoopPush", {"view": "hybrid", "max_episode_steps": 9, "start_noise": 1.0}),
    ("CoopPush", {"layout": "independent", "view": "continuous", "max_episode_steps": 4}),
]


def make(name, num_envs, **settings):
    return gym.make_vec(env_id(name), num_envs=num_envs, **settings)


def of_singles(name, num_envs, autoreset, **settings):
    return SyncVectorEnv(
        [lambda: RecordEpisodeStatistics(NativeEnv(name, **settings))] * num_envs,
        autoreset_mode=AutoresetMode[autoreset.upper()],
    )


def assert_same_tree(ours, theirs, path="infos"):
    """Equal keys, containers, dtypes and values; returns are sums, so equal to rounding."""
    assert type(ours) is type(theirs), path
    if isinstance(ours, dict):
        theirs = {key: part for key, part in theirs.items() if key not in ("t", "_t")}
        assert set(ours) == set(theirs), path
        for key in ours:
            assert_same_tree(ours[key], theirs[key], f"{path}/{key}")
    elif isinstance(ours, np.ndarray):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), path
        if ours.dtype == object:
            for one, other in zip(ours, theirs, strict=True):
                assert_same_tree(one, other, path)
        elif path.endswith("/r"):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(ours, theirs, path)
    else:
        assert ours == theirs, path


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_it_is_many_single_ones_to_the_bit(name, settings, mode):
    ours = make(name, 5, autoreset_mode=mode, **settings)
    theirs = of_singles(name, 5, mode, **settings)
    assert ours.metadata["autoreset_mode"] is theirs.metadata["autoreset_mode"]
    for space in ("action", "observation", "single_action", "single_observation"):
        assert getattr(ours, f"{space}_space") == getattr(theirs, f"{space}_space")
    obs, infos = ours.reset(seed=11)
    other_obs, other_infos = theirs.reset(seed=11)
    np.testing.assert_array_equal(obs, other_obs)
    assert infos == other_infos == {}
    ours.action_space.seed(2)
    ends = 0
    for _ in range(40):
        actions = ours.action_space.sample()
        *results, infos = ours.step(actions)
        *other_results, other_infos = theirs.step(actions)
        for ours_now, theirs_now in zip(results, other_results, strict=True):
            assert ours_now.dtype == theirs_now.dtype
            np.testing.assert_array_equal(ours_now, theirs_now)
        ended = results[2] | results[3]
        if mode == "same_step" and ended.any():  # where we say it twice
            assert_same_tree(infos.pop("episode"), other_infos["final_info"]["episode"])
            np.testing.assert_array_equal(infos.pop("_episode"), ended)
        assert_same_tree(infos, other_infos)
        ends += ended.sum()
        if mode == "disabled" and ended.any():
            obs, infos = ours.reset(options={"reset_mask": ended})
            np.testing.assert_array_equal(obs, theirs.reset(options={"reset_mask": ended})[0])
            assert infos == {}
    assert ends >= 5


@pytest.mark.parametrize("name", NATIVE_NAMES)
def test_a_slot_is_the_single_one_of_its_seed(name):
    vector = make(name, 4, max_episode_steps=3)
    all_obs, _ = vector.reset(seed=20)
    for slot in range(4):
        np.testing.assert_array_equal(NativeEnv(name).reset(seed=20 + slot)[0], all_obs[slot])
    some_obs, _ = make(name, 2, max_episode_steps=3).reset(seed=[23, 21])
    np.testing.assert_array_equal(some_obs, all_obs[[3, 1]])


def test_seeds_for_some_slots_leave_the_others_their_stream():
    ours = make("HybridShoot", 3, autoreset_mode="disabled")
    theirs = of_singles("HybridShoot", 3, "disabled")
    for env in (ours, theirs):
        env.reset(seed=1)
    for seed, options in (
        ([5, None, 7], None),
        (None, None),
        (9, {"reset_mask": np.array([False, True, False])}),
        (None, {"reset_mask": np.array([True, True, False])}),
        ([4, 4, 4], {"reset_mask": np.array([False, False, True])}),
        (None, None),
    ):
        obs, _ = ours.reset(seed=seed, options=options)
        other, _ = theirs.reset(seed=seed, options=None if options is None else {**options})
        np.testing.assert_array_equal(obs, other)


def test_a_never_seeded_one_draws_from_np_random():
    first, second, third = (NativeVectorEnv("HybridShoot", 3) for _ in range(3))
    first.np_random, second.np_random = np.random.default_rng(1), np.random.default_rng(1)
    obs = first.reset()[0]
    assert len(np.unique(obs[:, 0])) == 3
    np.testing.assert_array_equal(obs, second.reset()[0])
    assert not np.array_equal(obs, third.reset()[0])


def test_make_vec_passes_everything_on():
    vector = make(
        "CoopPush", 64, autoreset_mode=AutoresetMode.SAME_STEP, num_threads=2, max_episode_steps=7
    )
    assert isinstance(vector, NativeVectorEnv)
    assert (vector.num_envs, vector.max_episode_steps) == (64, 7)
    assert vector.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert vector.spec.id == "headwise/CoopPush-v0"
    assert gym.make_vec(vector.spec).max_episode_steps == 7
    assert make("CoopPush", 2, autoreset_mode="NextStep").num_envs == 2  # Gymnasium's spelling
    assert make("HybridShoot", 2).metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert make("HybridShoot", 2, max_episode_steps=-1).max_episode_steps == 0
    sync = make("HybridShoot", 2, vectorization_mode="sync", max_episode_steps=7)
    assert [env.unwrapped.max_episode_steps for env in sync.envs] == [7, 7]


@pytest.mark.parametrize("mode", MODES)
def test_results_are_copies_unless_asked_otherwise(mode):
    settings = {"autoreset_mode": mode, "max_episode_steps": 50}
    ours, bare = make("CoopPush", 2, **settings), make("CoopPush", 2, copy=False, **settings)
    start = ours.reset(seed=0)[0], bare.reset(seed=0)[0]
    kept = [array.copy() for array in start]
    ours.action_space.seed(0)
    first = ours.action_space.sample()
    a, b = ours.step(first), bare.step(first)
    assert start[0] is not a[0]
    np.testing.assert_array_equal(start[0], kept[0])
    assert start[1] is b[0]  # the very array, overwritten
    for mine, theirs in zip(a[:4], b[:4], strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
    again = bare.step(first)
    assert all(old is new for old, new in zip(b[:4], again[:4], strict=True))


def test_gymnasium_may_count_the_episodes_itself():
    ours = make("HybridShoot", 3, autoreset_mode="same_step")
    plain = make("HybridShoot", 3, autoreset_mode="same_step", episode_stats=False)
    counted = RecordVectorStatistics(plain)
    ours.reset(seed=0)
    counted.reset(seed=0)
    ours.action_space.seed(0)
    for _ in range(12):
        actions = ours.action_space.sample()
        infos, others = ours.step(actions)[4], counted.step(actions)[4]
        assert ("episode" in infos) == ("episode" in others)
        if "episode" in infos:
            np.testing.assert_allclose(infos["episode"]["r"], others["episode"]["r"], rtol=1e-5)
            np.testing.assert_array_equal(infos["episode"]["l"], others["episode"]["l"])
            np.testing.assert_array_equal(infos["_episode"], others["_episode"])


def test_threads_change_nothing():
    results = []
    for threads in (1, 2):
        vector = make("CoopPush", 300, num_threads=threads, start_noise=2.0)
        vector.reset(seed=3)
        vector.action_space.seed(1)
        for _ in range(5):
            last = vector.step(vector.action_space.sample())
        results.append((last[0].tobytes(), last[1].tobytes()))
    assert results[0] == results[1]


# --- scenarios ---


def test_scenarios_for_all_slots_or_for_each():
    vector = make("HybridShoot", 3, num_targets=1, autoreset_mode="disabled")
    obs, _ = vector.reset(seed=0, options={"targets": [[0.25, 0.75]]})
    np.testing.assert_array_equal(obs, [[0.25, 0.75, 1]] * 3)
    each = np.array([[[0.0, 0.5]], [[0.5, 0.5]], [[1.0, 0.5]]])
    obs, _ = vector.reset(options={"targets": each, "elapsed": [0, 1, 4]})
    np.testing.assert_array_equal(obs[:, :2], each[:, 0])
    actions = (np.zeros(3, int), np.tile(np.float32([0.5, 0.5]), (3, 1)))
    _, _, terminated, truncated, _ = vector.step(actions)
    np.testing.assert_array_equal(terminated, [False, True, False])
    np.testing.assert_array_equal(truncated, [False, False, True])
    state = vector.get_state()
    assert {name: part.shape for name, part in state.items()} == {
        "targets": (3, 1, 2), "alive": (3, 1), "elapsed": (3,),
    }  # fmt: skip
    np.testing.assert_array_equal(vector.get_state(1)["alive"], [0])
    # only the slots of the mask take the scenario
    mask = np.array([False, True, True])
    obs, _ = vector.reset(options={"reset_mask": mask, "targets": [[0.1, 0.1]]})
    np.testing.assert_allclose(obs[:, 0], [0, 0.1, 0.1])
    obs = vector.set_state({"targets": [[0.9, 0.9]]}, slot=0)
    np.testing.assert_allclose(obs[:, 0], [0.9, 0.1, 0.1])
    np.testing.assert_allclose(vector.set_state({"targets": each})[:, 0], [0, 0.5, 1])


@pytest.mark.parametrize(
    ("seed", "options", "message"),
    [
        (
            None,
            {"resetmask": 1},
            "unknown reset option; got 'resetmask'.*Did you mean 'reset_mask'",
        ),
        (None, {"targets": np.full((3, 3, 2), 2.0)}, "slot 0: targets must be in"),
        (None, {"targets": [[0, 0]] * 3, "alive": [[1, 1, 1], [0, 0, 0], [1, 1, 1]]}, "slot 1"),
        (None, {"targets": np.zeros((4, 3, 2))}, r"allowed: \(3, 2\), or \(3, 3, 2\)"),
        (None, {"reset_mask": [True, True, True]}, "impossible reset mask"),
        (None, {"reset_mask": np.zeros(3, bool)}, "impossible reset mask"),
        (None, {"reset_mask": np.ones(4, bool)}, "impossible reset mask"),
        (None, {"reset_mask": np.ones(3, int)}, "impossible reset mask"),
        ([1, 2], None, "one for each slot"),
        ([1, 2, -3], None, "slot 2; got -3"),
        (2**64 - 2, None, "slot 2"),
        ("one", None, "a seed must be a whole number"),
    ],
)
def test_impossible_resets_change_nothing(seed, options, message):
    vector = make("HybridShoot", 3)
    vector.reset(seed=1)
    before = vector.snapshot()
    with pytest.raises(EnvError, match=message):
        vector.reset(seed=seed, options=options)
    assert vector.snapshot() == before


# --- bad input ---


@pytest.mark.parametrize(
    ("choices", "ranges", "error", "message"),
    [
        ([0, 3, 0], np.zeros((3, 2)), EnvError, "HybridShoot: the action of slot 1 .*'select'"),
        ([0, 0, 2**33], np.zeros((3, 2)), EnvError, "slot 2 is out of range at head 'select'"),
        ([0, 0, 0], [[0, 0], [0, 0], [0, np.nan]], EnvError, "slot 2 .*'aim_y'; got -?nan"),
        ([0, 0, 0], [[0, 0], [0, 2], [0, 0]], EnvError, "slot 1 .*'aim_y'; got 2"),
        ([0, 0], np.zeros((3, 2)), SpaceError, r"wrong shape; got shape \(2,\).*\(3,\)"),
        ([0, 0, 0], np.zeros(2), SpaceError, "wrong shape"),
        ([0.0, 0, 0], np.zeros((3, 2)), SpaceError, "wrong type"),
        ([0, 0, 0], None, SpaceError, "wrong type"),
    ],
)
def test_bad_actions_name_the_slot_and_change_nothing(choices, ranges, error, message):
    vector = make("HybridShoot", 3)
    vector.reset(seed=1)
    before = vector.snapshot()
    with pytest.raises(error, match=message):
        vector.step((choices, ranges))
    assert vector.snapshot() == before


def test_bad_one_of_batches():
    vector = make("Platform", 2, action_form="oneof")
    vector.reset(seed=1)
    good = vector.action_space.sample()
    for actions, message in (
        (good[:1], "wrong structure"),
        ((good[0], 3), "slot 1 has the wrong structure"),
        ((good[0], (0, np.array([31.0]))), "slot 1 .*'run'; got 31"),
        (5, "wrong structure"),
    ):
        with pytest.raises((EnvError, SpaceError), match=message):
            vector.step(actions)
    vector.step(good)


def test_calls_at_the_wrong_time():
    vector = make("HybridShoot", 2, autoreset_mode="disabled", max_episode_steps=1)
    actions = (np.zeros(2, int), np.zeros((2, 2), np.float32))
    with pytest.raises(EnvError, match="step before reset"):
        vector.step(actions)
    with pytest.raises(EnvError, match="first reset must be of all slots"):
        vector.reset(options={"reset_mask": np.array([True, False])})
    vector.reset(seed=0)
    vector.step(actions)
    with pytest.raises(EnvError, match=r"the episode of slot 0 has ended.*reset_mask"):
        vector.step(actions)
    for slot in (2, 10**10):
        with pytest.raises(EnvError, match="there is no such slot"):
            vector.set_state({}, slot=slot)
        with pytest.raises(EnvError, match="there is no such slot"):
            vector.get_state(slot)
    vector.close()
    vector.close()
    assert vector.closed
    for call in (lambda: vector.step(actions), vector.reset):
        with pytest.raises(EnvError, match="after close"):
            call()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"autoreset_mode": "same_stop"}, ConfigError, "Did you mean 'same_step'"),
        ({"num_envs": 0}, EnvError, "num_envs"),
        ({"num_envs": 10**10}, EnvError, "num_envs.* from 1 to 16,777,216"),
        ({"max_episode_steps": 10**10}, EnvError, "max_episode_steps.* from 0 to 1,000,000,000"),
        ({"num_threads": -1}, EnvError, "num_threads"),
        ({"num_threads": 10**10}, EnvError, "num_threads.* from 1 to 1,024"),
        ({"render_mode": "human"}, ConfigError, "allowed: rgb_array"),
        ({"num_target": 1}, ConfigError, "Did you mean 'num_targets'"),
    ],
)
def test_impossible_settings(settings, error, message):
    with pytest.raises(error, match=message):
        NativeVectorEnv("HybridShoot", **settings)
