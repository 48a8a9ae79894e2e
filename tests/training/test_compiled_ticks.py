"""Ticks of compiled calls, and whole rollouts as one: to the bit what Python's ticks come to."""

import gc
import random
from unittest import mock

import gymnasium as gym
import numpy as np
import pytest
import torch
from small_agents import SETTINGS, Countdown, small_agent, states_equal

import headwise as hw
from headwise.algorithms import algorithms
from headwise.envs.make import make_vec
from headwise.envs.native.vec_env import NativeVecEnv
from headwise.factorizations import factorizations
from headwise.heads.layout import Layout
from headwise.ops import Buffer
from headwise.ops.collect import step_env, time_passes, to_heads, write_rows
from headwise.spaces import ActionSpec, Choice, Range
from headwise.spaces.bins import Binning
from headwise.training import compiled_ticks as module
from headwise.training.build import make_loop
from headwise.training.config import RunConfig
from headwise.training.lazy_env import LazyEnv

CASES = {
    "cart pole": ("headwise/CartPole-v1", "shared", {}, {}),
    "pendulum": ("headwise/Pendulum-v1", "shared", {}, {}),
    "bins": ("headwise/Pendulum-v1", "shared", {"bins": 7}, {}),
    "mountain car": ("headwise/MountainCar-v0", "independent", {}, {}),
    "decoupler": ("ContextualDecoupler", "vdn", {}, {}),
    "hybrid": ("HybridShoot", "shared", {}, {"view": "hybrid"}),
    "bins of some": ("HybridShoot", "ar", {"bins": 5}, {"view": "hybrid"}),
    "joint": ("HybridShoot", "joint", {}, {"view": "discrete"}),
    "joint of bins": ("CoopPush", "joint", {"bins": 3}, {"view": "hybrid"}),
    "platform": ("Platform", "shared", {}, {}),
    "qplex": ("HybridShoot", "qplex", {}, {"view": "discrete"}),
}
SLOTS = 4


def loop_of(case="hybrid", seeds=(0, 1), algo="ppo", **more):
    name, kind, settings, env = CASES[case]
    config = algorithms.get(algo).small(**SETTINGS[algo] | settings | more)
    env = make_vec(name, seeds, SLOTS, **env)
    small = factorizations.get(kind).small()
    return make_loop(env, RunConfig.of(config, factorization=small, total_timesteps=1000), seeds)


def by_ticks(loop, env_steps):
    """One tick after another, as learners and environments without compiled ways take them."""
    loop._compiled_ticks = lambda *_: None
    loop._compiled = None
    while loop.env_steps < env_steps:
        loop.tick()
    return loop


def forbid_ticks(loop, monkeypatch):
    """Lets nothing but compiled calls go on."""
    monkeypatch.setattr(loop, "tick", lambda: pytest.fail("an ordinary tick"))


@pytest.mark.parametrize("seeds", [(0,), (0, 1, 2)], ids=["alone", "population"])
@pytest.mark.parametrize("case", CASES)
def test_equals_ticks(case, seeds, monkeypatch):
    """Rows of the rollout, episodes, the environment and what was learned, for any split."""
    slow, fast = loop_of(case, seeds), loop_of(case, seeds)
    rng = random.Random(case)
    fast.run(1)  # the first tick allocates
    forbid_ticks(fast, monkeypatch)
    while fast.env_steps < 3 * 64 + 36:
        fast.run(fast.env_steps + rng.choice([1, 4, 12, 60, 200]))
        assert states_equal(by_ticks(slow, fast.env_steps), fast)
    assert fast.updates >= 3
    assert fast.memory.size or fast.updates > 3
    assert len(fast.episodes.table) or case not in ("cart pole", "platform")


def test_equals_ticks_on_threads(monkeypatch):
    monkeypatch.setattr(module, "WORTH_THREADS", 0)
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    fast = loop_of(seeds=(0, 1, 2))
    fast.run(300)
    assert states_equal(by_ticks(loop_of(seeds=(0, 1, 2)), 300), fast)


def test_a_member_that_has_diverged_acts_by_zeros():
    loops = [loop_of("bins of some"), loop_of()]
    for fast in loops:
        slow = loop_of("bins of some" if fast is loops[0] else "hybrid")
        for loop in (slow, fast):
            loop.algorithm.store.parameters.tensor[1] = torch.nan
        fast.run(200)
        assert states_equal(by_ticks(slow, 200), fast)
        assert torch.isfinite(fast.obs).all()


@pytest.mark.parametrize("begun", [36, 64, 100])
def test_resumes_in_the_middle_of_a_rollout(begun):
    whole, first, second = (loop_of("platform") for _ in range(3))
    whole.run(264)
    first.run(begun)
    state = first.state_dict()
    first.run(begun + 40)  # what was saved is not overwritten
    second.load_state_dict(state)
    second.run(264)
    assert states_equal(whole, second)


def test_goes_on_elsewhere_after_a_cut():
    slow, fast = loop_of(), loop_of()
    for loop in (slow, fast):
        by_ticks(loop, 20)
        loop.begin_episodes()
    fast.run(200)
    assert states_equal(by_ticks(slow, 200), fast)


def test_by_turns_it_is_the_same():
    loop = loop_of()
    pauses = sum(question() for question in loop.turns(200))
    assert states_equal(by_ticks(loop_of(), 200), loop)
    assert pauses < 10


class Python(NativeVecEnv):
    """With a step of its own, whose arrays are as told: kept, new ones, or of another type."""

    taken, arrays = 0, "kept"

    def step(self, action):
        self.taken += 1
        batch = super().step(action)
        if self.arrays == "new":
            return batch._replace(reward=batch.reward.copy(), obs=batch.obs.copy())
        if self.arrays == "wide" and self.taken > 2:
            return batch._replace(reward=batch.reward.astype(np.float64))
        return batch


@pytest.mark.parametrize("case", ["hybrid", "joint of bins", "platform"])
@pytest.mark.parametrize("arrays", ["kept", "new", "wide"])
def test_ticks_of_a_python_environment_are_compiled_but_for_its_step(case, arrays, monkeypatch):
    loops = [loop_of(case), loop_of(case)]
    for loop in loops:
        name, _, _, settings = CASES[case]
        loop.lazy_env = LazyEnv.of(Python(name, (0, 1), SLOTS, **settings))
        loop.env.arrays = arrays
    slow, fast = by_ticks(loops[0], 228), loops[1]
    monkeypatch.setattr(fast.algorithm, "act", acts := mock.Mock(side_effect=fast.algorithm.act))
    writes = mock.Mock(side_effect=fast.memory.write)
    monkeypatch.setattr(fast.memory, "write", writes)
    for steps in (100, 101, 228):
        fast.run(steps)
        fast.algorithm.policy(torch.zeros_like(fast.obs))  # others may ask what it would do
    assert states_equal(slow, fast)
    assert fast.env.taken == 57
    assert acts.call_count == 1  # the first
    assert writes.call_count == {"kept": 1, "new": 55, "wide": 56}[arrays]


@pytest.mark.parametrize("case", ["joint", "qplex", "cart pole"])
def test_acting_of_dqn_is_compiled(case, monkeypatch):
    act_is_compiled(loop_of(case, algo="dqn"), loop_of(case, algo="dqn"), monkeypatch)


@pytest.mark.parametrize("case", ["hybrid", "pendulum", "bins of some", "joint of bins"])
def test_acting_of_sac_is_compiled(case, monkeypatch):
    act_is_compiled(loop_of(case, algo="sac"), loop_of(case, algo="sac"), monkeypatch)


def act_is_compiled(slow, fast, monkeypatch):
    monkeypatch.setattr(fast.algorithm, "act", lambda *_: pytest.fail("not compiled"))
    for steps in (20, 80):
        fast.run(steps)
        fast.algorithm.policy(torch.ones_like(fast.obs))
    assert states_equal(by_ticks(slow, 80), fast)
    assert fast.updates > 5


class MasksComeLate(Countdown):
    """In its second half of a thousand steps it says what is legal."""

    def __init__(self):
        self.action_space = gym.spaces.Discrete(3)
        self.time = 0

    def step(self, action):
        self.time += 1
        obs, reward, over, cut, info = super().step(action)
        return obs, reward, over, cut, info | self.masks()

    def reset(self, **given):
        obs, info = super().reset(**given)
        return obs, info | self.masks()

    def masks(self):
        return {"action_mask": np.array([1, 0, 1], dtype=np.int8)} if self.time > 30 else {}


def test_masks_that_come_late_are_heeded():
    slow, fast = (small_agent(env=MasksComeLate).loop for _ in range(2))
    fast.run(400)
    assert states_equal(by_ticks(slow, 400), fast)
    late = fast.memory.arrays
    assert fast.legal is not None
    assert (late["action"][:, : fast.memory.size] != 1.0).all()


def test_evaluation_and_new_weights_between_ticks_change_nothing():
    slow, fast = (small_agent(env=Countdown) for _ in range(2))
    by_ticks(slow.loop, 0)
    for agent in (slow, fast):
        for _ in range(3):
            agent.learn(60, progress=False)
            agent.evaluate(3)
            agent.loop.load_state_dict(agent.loop.state_dict())
    assert states_equal(slow.loop, fast.loop)


@pytest.mark.parametrize("what", ["class", "object", "normalizer", "dqn", "masks"])
def test_what_is_not_compiled_takes_ticks(what, monkeypatch):
    loop = loop_of(algo="dqn", case="qplex") if what == "dqn" else loop_of()
    if what == "class":
        loop.lazy_env = LazyEnv.of(Python("HybridShoot", (0, 1), SLOTS, view="hybrid"))
    elif what == "object":
        monkeypatch.setattr(loop.env, "step", loop.env.step)
    elif what == "normalizer":
        loop = small_agent(normalize_reward=True).loop
    elif what == "masks":
        loop = small_agent(env=Countdown).loop
    ticks = loop.tick
    seen = []
    monkeypatch.setattr(loop, "tick", lambda: (seen.append(1), ticks()))
    loop.run(80)
    assert len(seen) == loop.ticks == 20
    assert what != "class" or loop.env.taken == 20


def test_a_step_that_is_refused_ends_the_run_as_a_tick_would(monkeypatch):
    monkeypatch.setattr(Binning, "units", lambda self: {0: torch.full((7,), 5.0)})
    loop = loop_of("bins")
    loop.tick()
    with pytest.raises(hw.EnvError, match="Pendulum: the action of slot 0 is out of range"):
        loop.run(100)
    assert (loop.ticks, loop.env_steps, loop.memory.size) == (1, SLOTS, 1)
    assert not loop.in_episodes
    by_ticks(loop, 2 * SLOTS)
    assert loop.in_episodes
    assert loop.memory.arrays["truncated"][:, 0].all()  # cut off, where new episodes began


def test_environment_and_arrays_outlive_who_made_them():
    loop = loop_of()
    loop.run(8)
    rollout = loop._compiled
    obs = loop.obs.clone()
    del loop
    gc.collect()
    rollout.run(3)
    assert torch.isfinite(rollout.obs).all()
    assert not torch.equal(rollout.obs, obs)


# --- watching -------------------------------------------------------------------------------------


def test_reports_and_checkpoints_come_at_the_steps_they_would(tmp_path):
    seen = []
    agent = small_agent(env="HybridShoot", view="hybrid", n_steps=100)
    agent.learn(
        300,
        progress=False,
        callbacks=[lambda report: seen.append((report.step, agent.loop.ticks))],
        log_every=50,
        checkpoint=tmp_path / "x.zip",
        checkpoint_every=70,
    )
    assert seen == [(n, n // 4) for n in (52, 100, 152, 200, 252, 300)]
    plain = small_agent(env="HybridShoot", view="hybrid", n_steps=100).learn(300, progress=False)
    assert states_equal(plain.loop, agent.loop)


def test_a_watcher_that_says_nothing_looks_after_every_tick():
    steps = []
    loop = loop_of()
    loop.run(40, lambda loop: steps.append(loop.env_steps) or loop.env_steps == 24)
    assert steps == [4, 8, 12, 16, 20, 24]


def test_a_callback_stops_at_its_step():
    agent = small_agent(env="HybridShoot", view="hybrid", n_steps=100)
    agent.learn(300, progress=False, callbacks=[lambda report: report.step >= 100], log_every=20)
    assert agent.loop.env_steps == 100


# --- operations -----------------------------------------------------------------------------------


def arrays_of(unit, layout, binning):
    """What `to_heads` makes of actions, and what torch does."""
    shape = unit.shape[0], unit.shape[1], layout.spec.num_heads
    action, heads = (np.full(shape, 9.0, dtype=np.float32) for _ in range(2))
    given = Buffer(unit.shape[0], unit.shape[1], unit.shape[2])
    given.write(unit.unsqueeze(1))
    to_heads(
        given,
        action=action,
        heads=heads,
        source=layout.places,
        joint=layout.joint and layout.joint.heads,
        units=binning.units(),
    )
    expected = layout.from_learner(unit)
    told = binning.to_env(expected).nan_to_num(0.0)
    return (action, heads), (expected.numpy(), told.numpy())


MIXED = ActionSpec.of(
    lift=Range(-3.0, 5.0), grip=Choice(4), turn=Range(0.0, 1.0), side=Choice(3), aim=Range(-1, 1)
)


@pytest.mark.parametrize("bins", [None, {"turn": 999}, {"lift": 6, "turn": 11, "aim": 2}])
def test_every_option_means_what_it_means_in_torch(bins):
    binning = Binning(MIXED, bins)
    layout = Layout(binning.spec)
    columns = [torch.arange(1000) % n if n else torch.linspace(-1, 1, 1000) for n in layout.options]
    unit = torch.stack(columns, -1).float().expand(2, -1, -1).clone()
    unit[1, 0, -1] = torch.nan
    if not layout.options[-1]:
        unit[1, 1:5, -1] = torch.tensor([torch.inf, -torch.inf, -0.0, 1e-40])
    found, expected = arrays_of(unit, layout, binning)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


def test_every_joint_action_means_what_it_means_in_torch():
    binning = Binning(MIXED, {"lift": 3, "turn": 5, "aim": 2})
    layout = Layout(binning.spec, joint=True)
    unit = torch.arange(layout.joint.size).float().view(1, -1, 1)
    found, expected = arrays_of(unit, layout, binning)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


def test_rows_go_to_the_cursor_and_not_beyond_the_end():
    source = np.arange(12).reshape(2, 3, 2)
    flags = np.array([[True], [False]])
    place, kept = np.zeros((2, 4, 3, 2), dtype=source.dtype), np.zeros((2, 4, 1), dtype=bool)
    cursor = Buffer(2, 1, 2)
    cursor.longs[:] = torch.tensor([1, 3]).view(2, 1, 1, 1)
    for _ in range(4):
        write_rows([(source, place), (flags, kept)], cursor)
    assert cursor.longs.flatten().tolist() == [4, 4]
    assert (place[0, 1:] == source[0]).all()
    assert (place[1, 3] == source[1]).all()
    assert not place[0, 0].any()
    assert not place[1, :3].any()
    assert kept[:, :, 0].tolist() == [[False, True, True, True], [False] * 4]


def test_arrays_that_do_not_fit_are_refused():
    x = np.zeros((2, 3, 4), dtype=np.float32)
    cursor = Buffer(2, 1, 2)
    for place in (np.zeros((2, 5, 3)), np.zeros((3, 5, 3, 4), dtype=np.float32)):
        with pytest.raises(ValueError, match="another size"):
            write_rows([(x, place)], cursor)
    with pytest.raises(ValueError, match="another size"):
        write_rows([(x, np.zeros((2, 5, 3, 4), dtype=np.float32))])
    with pytest.raises(ValueError, match="gaps"):
        write_rows([(x[:, :, ::2], x[:, :, :2])])
    with pytest.raises(ValueError, match="the cursor"):
        write_rows([(x, np.zeros((2, 5, 3, 4), dtype=np.float32))], Buffer(2, 1, 1))
    with pytest.raises(ValueError, match="a place for each source"):
        write_rows([])
    with pytest.raises(ValueError, match="another learner"):
        to_heads(Buffer(2, 3, 1), action=x, heads=x, source=[0, 1, 0, 0])
    with pytest.raises(ValueError, match="other actions"):
        to_heads(Buffer(2, 4, 4), action=x, heads=x, source=[0, 1, 2, 3])
    port = NativeVecEnv("HybridShoot", (0, 1), SLOTS, view="hybrid").compiled.port
    with pytest.raises(ValueError, match="one row for each slot"):
        step_env(port, np.zeros((2, 3, 5), dtype=np.float32))
    with pytest.raises(TypeError):
        step_env(None, x)


def test_a_stopwatch_counts_and_adds_up():
    watch = Buffer(2, 1, 6)
    for _ in range(3):
        time_passes(watch, stops=False)
        time_passes(watch, stops=True)
    _, nanoseconds, times = watch.longs.flatten(0, 2).unbind(-1)
    assert times.tolist() == [3, 3]
    assert (nanoseconds > 0).all()
    assert (nanoseconds < 1e9).all()
