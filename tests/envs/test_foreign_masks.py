"""Action masks in every form, from every source, for heads of unequal size."""

import functools

import numpy as np
import pytest
from foreign_toys import Counter, Masked, true_mask
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, OneOf, Tuple
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from headwise import ActionCodec, EnvError
from headwise.envs.foreign import foreign_env
from headwise.envs.foreign.codec import EnvCodec
from headwise.envs.legal import check_legal
from headwise.envs.masks import MaskReader


def reader(space):
    return MaskReader(space, ActionCodec(space).spec)


# --- forms --------------------------------------------------------------------------------------

THREE, TWO = np.array([1, 0, 1]), np.array([0, 1])
EXPECTED = np.array([[1, 0, 1], [0, 1, 0]], dtype=bool)


@pytest.mark.parametrize(
    "mask",
    [
        np.array([1, 0, 1, 0, 1], dtype=np.int8),
        np.array([1, 0, 1, 0, 1], dtype=bool),
        np.array([1.0, 0.0, 1.0, 0.0, 1.0]),
        [True, False, True, False, True],
        (THREE, TWO),
        [[1, 0, 1], [0, 1]],
        np.array([[1, 0, 1], [0, 1, 0]]),
    ],
)
@pytest.mark.parametrize("space", [Tuple((Discrete(3), Discrete(2))), MultiDiscrete([3, 2])])
def test_one_mask_in_many_forms(space, mask):
    np.testing.assert_array_equal(reader(space).read(mask), EXPECTED)


@pytest.mark.parametrize(
    "mask", [{"a": THREE, "b": TWO}, {"b": TWO, "a": THREE}, [1, 0, 1, 0, 1], EXPECTED]
)
def test_dicts(mask):
    np.testing.assert_array_equal(reader(Dict(a=Discrete(3), b=Discrete(2))).read(mask), EXPECTED)


def test_what_is_missing_is_legal():
    space = Dict(a=Discrete(3), b=Discrete(2))
    everything = [[1, 1, 1], [1, 1, 0]]
    np.testing.assert_array_equal(reader(space).read(None), everything)
    np.testing.assert_array_equal(reader(space).read({}), everything)
    np.testing.assert_array_equal(reader(space).read({"b": TWO}), [[1, 1, 1], [0, 1, 0]])
    np.testing.assert_array_equal(reader(space).read({"a": None, "b": TWO}), [[1, 1, 1], [0, 1, 0]])


def test_numbers_have_rows_of_truths():
    space = Tuple((Discrete(2), Box(-1, 1, (2,)), Discrete(3)))
    expected = [[0, 1, 0], [1, 1, 1], [1, 1, 1], [1, 0, 1]]
    for mask in ((TWO, None, THREE), [0, 1, 1, 0, 1], expected):
        np.testing.assert_array_equal(reader(space).read(mask), expected)
    with pytest.raises(EnvError, match=r"mask of the action at \[1\].*no options"):
        reader(space).read((TWO, [1, 1], THREE))


def test_multi_binary_in_gymnasiums_own_form():
    """0 and 1 name the only value, 2 leaves both; sb3-contrib's form has two truths for each."""
    space = MultiBinary(3)
    expected = [[1, 0], [0, 1], [1, 1]]
    for mask in (np.array([0, 1, 2], dtype=np.int8), [1, 0, 0, 1, 1, 1], expected):
        np.testing.assert_array_equal(reader(space).read(mask), expected)
    with pytest.raises(EnvError, match="does not fit"):
        reader(space).read(np.array([0, 1, 3]))


def test_arrays_of_more_dimensions_are_nested():
    space = MultiDiscrete([[2, 3], [4, 2]])
    mask = (([1, 0], [0, 1, 1]), ([0, 0, 0, 1], [1, 1]))
    expected = [[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]]
    np.testing.assert_array_equal(reader(space).read(mask), expected)
    flat = [1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1]
    np.testing.assert_array_equal(reader(space).read(flat), expected)


def test_alternatives_are_masked_in_the_flat_form_and_their_parts_in_a_tuple():
    space = OneOf((Discrete(2), Discrete(3)))
    flat = [1, 0, 0, 1, 1, 1, 0]  # the alternatives come first
    np.testing.assert_array_equal(reader(space).read(flat), [[1, 0, 0], [0, 1, 0], [1, 1, 0]])
    parts = (np.array([0, 1]), None)
    np.testing.assert_array_equal(reader(space).read(parts), [[1, 1, 0], [0, 1, 0], [1, 1, 1]])


def test_elements_that_are_no_heads_have_no_rows():
    box = Box(np.array([-1, 2, 0], np.float32), np.array([1, 2, 3], np.float32))
    read = reader(Tuple((Discrete(2), box, Discrete(3))))
    expected = [[0, 1, 0], [1, 1, 1], [1, 1, 1], [1, 0, 1]]
    for mask in ((TWO, None, THREE), [0, 1, 1, 0, 1], expected):
        np.testing.assert_array_equal(read.read(mask), expected)


def test_gymnasium_samples_by_the_same_masks():
    """The structure is that of `space.sample(mask)`: what it samples is what we call legal."""
    space = Dict(
        a=Discrete(4, start=3), b=Tuple((MultiDiscrete([2, 3]), Box(0, 1, (1,)))), c=MultiBinary(2)
    )
    space.seed(0)
    int8 = functools.partial(np.array, dtype=np.int8)
    mask = {
        "a": int8([0, 1, 0, 1]),
        "b": ((int8([0, 1]), int8([1, 0, 1])), None),
        "c": int8([2, 0]),
    }
    legal = reader(space).read(mask)
    codec = ActionCodec(space)
    drawn = np.stack([codec.to_heads(space.sample(mask)) for _ in range(200)])
    for head, options in enumerate(codec.spec.cardinalities):
        if options:
            np.testing.assert_array_equal(
                legal[head, :options], np.isin(np.arange(options), drawn[:, head])
            )


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones(4), r"does not fit; got an array of shape \(4,\)"),
        (np.ones((3, 2)), "does not fit"),
        ("yes", "does not fit"),
        (([1, 0, 1], [1, 0], [1]), "does not fit"),
        (([1, 0, 1], [1, 0, 1, 1]), r"at \[1\] does not fit"),
        ([1, 0, 2, 1, 1], r"else than truths; got 2"),
        ([1, 0, 0.5, 1, 1], r"else than truths; got 0.5"),
        ([1, 0, np.nan, 1, 1], "else than truths"),
        ({"a": [1]}, "does not fit"),
    ],
)
def test_masks_that_do_not_fit(mask, message):
    with pytest.raises(EnvError, match=message):
        reader(Tuple((Discrete(3), Discrete(2)))).read(mask)


def test_a_misspelt_key():
    with pytest.raises(EnvError, match=r"keys out of \['a', 'b'\]"):
        reader(Dict(a=Discrete(3), b=Discrete(2))).read({"A": [1, 1, 1]})


def test_batches():
    space = Tuple((Discrete(3), Discrete(2)))
    singles = [reader(space).read(np.concatenate(true_mask(time))) for time in range(4)]
    present = np.array([True, True, False, True])
    expected = np.stack([*singles[:2], reader(space).all_legal, singles[3]])
    flat = np.stack([np.concatenate(true_mask(time)) for time in range(4)])
    tuples = np.full(4, None, dtype=object)
    for time in range(4):
        tuples[time] = true_mask(time)
    tuples[2] = None
    for masks in (flat, list(flat), np.stack(singles), tuples, list(tuples)):
        out = np.zeros((4, 2, 3), dtype=bool)
        reader(space).read_batch(masks, present, out)
        np.testing.assert_array_equal(out, expected)


BEYOND = r"head 'action\[0\]' lacks; got True for option 2; allowed: options from 0 to 1"
TRANSPOSED = np.array([[1, 0, 1, 1, 0], [1, 1, 1, 1, 1]], dtype=bool)


class TwoAndFive(Counter):
    """Its mask allows what the first head does not have."""

    def __init__(self):
        super().__init__()
        self.action_space = MultiDiscrete([2, 5])

    def reset(self, **how):
        obs, _ = super().reset(**how)
        return obs, {"action_mask": TRANSPOSED}


def test_truths_beyond_the_options_of_a_head_are_refused():
    read = reader(MultiDiscrete([2, 5]))
    with pytest.raises(EnvError, match=BEYOND):
        read.read(TRANSPOSED)
    good = TRANSPOSED & read.all_legal
    masks, out = np.stack([good, good, TRANSPOSED]), np.zeros((3, 2, 5), bool)
    with pytest.raises(EnvError, match=f"number 2 of 3 masks: .*{BEYOND}"):
        read.read_batch(masks, np.array([True, True, True]), out)
    read.read_batch(masks, np.array([True, True, False]), out)  # the third is none
    np.testing.assert_array_equal(out, [good, good, read.all_legal])
    with pytest.raises(EnvError, match=f"in slot 0 of member 0: .*{BEYOND}"):
        foreign_env(TwoAndFive, [0, 1], 3).reset()


# --- nothing legal ------------------------------------------------------------------------------


def test_a_head_with_nothing_legal_is_named():
    spec = ActionCodec(Dict(a=Discrete(3), b=Discrete(2))).spec
    every = spec.option_mask
    legal = np.tile(every, (2, 3, 1, 1))
    legal[1, 2, 1] = False
    with pytest.raises(EnvError, match=r"nothing legal for head 'b' in slot 2 of member 1"):
        check_legal(legal, spec, every, np.zeros((2, 3), bool))
    over = np.zeros((2, 3), bool)
    over[1, 2] = True
    check_legal(legal, spec, every, over)  # at an end nothing has to be legal
    np.testing.assert_array_equal(legal[1, 2], every)


def test_heads_of_an_illegal_alternative_need_nothing_legal():
    space = OneOf((Discrete(2), Discrete(3)))
    spec = ActionCodec(space).spec
    every = spec.option_mask
    nobody = np.zeros((1, 1), bool)
    # Heads: the alternative, then the options of each.
    legal = reader(space).read([1, 0, 1, 1, 0, 0, 0])[None, None]
    check_legal(legal, spec, every, nobody)
    np.testing.assert_array_equal(legal[0, 0], [[1, 0, 0], [1, 1, 0], [1, 1, 1]])
    legal = reader(space).read([1, 1, 1, 1, 0, 0, 0])[None, None]
    with pytest.raises(EnvError, match="nothing legal for head 'action:1'"):
        check_legal(legal, spec, every, nobody)


# --- sources ------------------------------------------------------------------------------------


def padded(time):
    first, second = true_mask(time)
    return np.stack([first, np.append(second, False)])


SOURCES = [
    ("info", "flat", "tuple"),
    ("info", "list", "multi"),
    ("info", "padded", "tuple"),
    ("info", "parts", "tuple"),
    ("info", "parts", "multi"),
    ("info", "parts", "hybrid"),
    ("info", "dict", "dict"),
    ("method", "flat", "multi"),
    ("method", "parts", "tuple"),
    ("method", "dict", "dict"),
    ("obs", "flat", "tuple"),
    ("obs", "padded", "multi"),
    ("obs", "parts", "tuple"),
    ("obs", "dict", "dict"),
]


def ways(make):
    yield "own-sync", foreign_env(make, [1, 2], 2)
    yield "own-async", foreign_env(make, [1, 2], 2, vectorization="async")
    for mode in AutoresetMode:
        yield mode.name, foreign_env(SyncVectorEnv([make] * 4, autoreset_mode=mode), [1, 2])
    mode = AutoresetMode.SAME_STEP
    yield mode.name, foreign_env(AsyncVectorEnv([make] * 4, autoreset_mode=mode), [1, 2])


@pytest.mark.parametrize(("source", "form", "space"), SOURCES)
def test_masks_are_those_of_the_observation(source, form, space):
    """The observation says the time, and the time says what is legal."""
    make = functools.partial(Masked, form, source, space, length=2, spread=3)
    for mode, env in ways(make):
        obs = env.reset()
        assert obs.shape == (2, 2, 3)  # the mask is no part of it
        last = slice(-2, None)
        legal = env.first_legal
        assert legal.shape == (2, 2, env.spec.num_heads, 3)
        obs = obs.copy()
        for _ in range(25):
            for index in np.ndindex(2, 2):
                np.testing.assert_array_equal(legal[index][last], padded(obs[index][2]))
            assert legal[..., :-2, :].all()  # ranges
            action = np.zeros((2, 2, env.spec.num_heads), dtype=np.float32)
            action[..., last] = legal[..., last, :].argmax(-1)
            step = env.step(action)
            ended = step.terminated | step.truncated
            known = source != "method" or mode != "SAME_STEP"
            for index in np.ndindex(2, 2):
                if step.valid[index] and (known or not ended[index]):
                    told = step.next_legal[index][last]
                    np.testing.assert_array_equal(told, padded(step.next_obs[index][2]))
            obs, legal = step.obs.copy(), step.legal.copy()
        env.close()


def test_a_method_that_was_not_asked_in_time_leaves_all_legal():
    """With SAME_STEP nobody can ask for the mask of the last observation any more."""
    make = functools.partial(Masked, "flat", "method", length=1)
    env = foreign_env(SyncVectorEnv([make], autoreset_mode=AutoresetMode.SAME_STEP), [1])
    env.reset()
    step = env.step(np.array([[[0, 1]]], dtype=np.float32))
    assert step.terminated.all()
    np.testing.assert_array_equal(step.next_legal[0, 0], [[1, 1, 1], [1, 1, 0]])
    np.testing.assert_array_equal(step.legal[0, 0], padded(0))


@pytest.mark.parametrize("source", ["info", "method", "obs"])
def test_nothing_has_to_be_legal_at_an_end(source):
    make = functools.partial(Masked, "flat", source, bare_end=True, length=2)
    for _, env in ways(make):
        env.reset()
        legal, ends = env.first_legal, 0
        for _ in range(8):
            step = env.step(legal.argmax(-1).astype(np.float32))
            ended = step.terminated | step.truncated
            assert step.next_legal.any(-1).all()
            assert step.legal.any(-1).all()
            legal, ends = step.legal.copy(), ends + ended.sum()
        assert ends
        env.close()


class Trapped(Masked):
    def mask(self):
        return np.array([1, 1, 1, self.time == 0, 0], dtype=np.int8)

    def step(self, action):
        return Counter.step(self, action[0])


def test_a_trap_in_the_middle_of_an_episode_is_an_error():
    for _, env in ways(Trapped):
        env.reset()
        with pytest.raises(
            EnvError, match=r"nothing legal for head 'action\[1\]' in slot 0 of mem"
        ):
            env.step(np.zeros((2, 2, 2), dtype=np.float32))
        env.close()


class Fickle(Masked):
    """A Counter that tells its mask only in episodes, or at times, that a test chooses."""

    tells = staticmethod(lambda episode, time: True)

    def _info(self):
        return super()._info() if self.tells(self.episode, self.time) else {}


def fickle(tells):
    return type("Fickle", (Fickle,), {"tells": staticmethod(tells)})


ONE_LEGAL = np.array([[[0, 1], [0, 1]]], dtype=np.float32)  # what is legal at time 0
EVERYTHING = [[1, 1, 1], [1, 1, 0]]


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_masks_may_first_come_with_a_step(vectorization):
    env = foreign_env(fickle(lambda episode, time: time > 0), [1], 2, vectorization=vectorization)
    env.reset()
    assert env.first_legal is None
    step = env.step(ONE_LEGAL)
    np.testing.assert_array_equal(step.legal[0, 1], padded(1))
    np.testing.assert_array_equal(step.next_legal[0, 1], padded(1))
    env.reset()  # which tells none
    np.testing.assert_array_equal(env.first_legal[0, 0], EVERYTHING)
    env.close()


@pytest.mark.parametrize("mode", AutoresetMode)
def test_masks_may_first_come_with_an_autoreset(mode):
    make = functools.partial(fickle(lambda episode, time: episode > 0 and time == 0), length=1)
    env = foreign_env(SyncVectorEnv([make] * 2, autoreset_mode=mode), [1])
    env.reset()
    step = env.step(ONE_LEGAL)
    assert step.terminated.all()
    if mode is AutoresetMode.NEXT_STEP:
        assert step.legal is None
        step = env.step(ONE_LEGAL)
        assert not step.valid.any()
    np.testing.assert_array_equal(step.legal[0, 1], padded(0))
    if mode is not AutoresetMode.NEXT_STEP:
        np.testing.assert_array_equal(step.next_legal[0, 1], EVERYTHING)


def test_masks_may_first_come_with_a_later_reset():
    env = foreign_env(fickle(lambda episode, time: episode == 1), [1], 2)
    env.reset()
    assert env.step(ONE_LEGAL).legal is None
    env.reset()
    np.testing.assert_array_equal(env.first_legal[0, 1], padded(0))
    np.testing.assert_array_equal(env.step(ONE_LEGAL).legal[0, 1], padded(1))


def test_masks_may_vanish():
    env = foreign_env(fickle(lambda episode, time: time == 0), [1], 2)
    env.reset()
    np.testing.assert_array_equal(env.first_legal[0, 1], padded(0))
    step = env.step(ONE_LEGAL)
    np.testing.assert_array_equal(step.legal[0, 1], EVERYTHING)
    np.testing.assert_array_equal(step.next_legal[0, 1], EVERYTHING)


def test_masks_can_be_ignored():
    env = foreign_env(functools.partial(Masked, "flat", "obs"), [1], 2, masks=False)
    assert env.reset().shape == (1, 2, 8)  # it is an observation then
    assert env.first_legal is None


def test_views_of_masked_actions():
    make = functools.partial(Masked, "parts", "info", "hybrid")
    binned = foreign_env(make, [1], 2, view="discrete", bins=7)
    binned.reset()
    assert binned.first_legal.shape == (1, 2, 4, 7)
    assert binned.first_legal[..., :2, :].all()  # a binned Range may take any bin
    np.testing.assert_array_equal(binned.first_legal[0, 0, 2:, :3], padded(0))
    assert not binned.first_legal[..., 2:, 3:].any()
    with pytest.raises(EnvError, match=r"gives masks, but the learner sees heads .* into numbers"):
        foreign_env(make, [1], 2, view="continuous").reset()
    foreign_env(make, [1], 2, view="continuous", masks=False).reset()


def test_masks_for_numbers_only_are_refused():
    class Free(Masked):
        def __init__(self):
            super().__init__()
            self.action_space = Box(-1, 1, (5,))

    with pytest.raises(EnvError, match=r"an action of numbers only.*masks=False"):
        foreign_env(Free, [1], 2).reset()


def test_the_codec_reads_a_mask_for_one_action():
    codec = EnvCodec(Box(0, 1, (2,)), Dict(a=Discrete(3), b=Discrete(2)))
    np.testing.assert_array_equal(codec.legal({"a": THREE}), [[1, 0, 1], [1, 1, 0]])
    assert codec.to_env([2, 1]) == {"a": 2, "b": 1}


def test_taxi():
    """Gymnasium's own example of a mask in the info."""
    env = foreign_env("Taxi-v4", [1, 2], 3)
    env.reset()
    legal, rng = env.first_legal, np.random.default_rng(0)
    for _ in range(30):
        scores = np.where(legal[..., 0, :], rng.random(legal.shape[:2] + legal.shape[-1:]), -1)
        before = env._batch.obs.copy()
        step = env.step(scores.argmax(-1)[..., None].astype(np.float32))
        moved = (step.next_obs != before).any(-1)
        # In Taxi an action is legal if it changes the state.
        assert moved.all()
        legal = step.legal.copy()
