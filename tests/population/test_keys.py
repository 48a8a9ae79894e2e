import numpy as np
import pytest
import torch

from headwise import ConfigError, _core
from headwise.ops import Buffer, advance
from headwise.ops import uniform as draw
from headwise.ops.philox import tensor_uniforms
from headwise.population import Keys, Stream, seeds_of
from headwise.population.keys import to_normal

FIRST_STREAM = 16  # learners draw from other counters than environments do


def test_the_words_are_those_of_the_compiled_generator():
    numbers = Keys([7]).uniform(Stream.REPLAY, 5, (10,))[0]
    stream = FIRST_STREAM + Stream.REPLAY
    words = [word for draw in range(3) for word in _core.philox([draw, 5, stream, 0], 7)]
    expected = np.array([(word >> 8) * 2.0**-24 for word in words[:10]], dtype=np.float32)
    np.testing.assert_array_equal(numbers.numpy(), expected)


def test_large_seeds_and_steps_use_all_their_bits():
    seed, step = 2**63 + 11, 2**40 + 3
    numbers = Keys([seed]).uniform(Stream.ACT, step, (4,))[0]
    words = _core.philox([0, step & 0xFFFFFFFF, FIRST_STREAM + Stream.ACT, step >> 32], seed)
    np.testing.assert_array_equal(numbers.numpy(), np.float32([(w >> 8) * 2.0**-24 for w in words]))


def test_a_member_draws_the_same_alone_and_in_company():
    together = Keys([3, 1, 2]).uniform(Stream.ACT, 9, (5, 7))
    for row, seed in zip(together, [3, 1, 2], strict=True):
        assert torch.equal(Keys([seed]).uniform(Stream.ACT, 9, (5, 7))[0], row)


def test_a_longer_row_begins_like_a_shorter_one():
    long = Keys([1]).uniform(Stream.ACT, 0, (300,))
    for size in (1, 3, 64, 65, 255):
        assert torch.equal(Keys([1]).uniform(Stream.ACT, 0, (size,)), long[:, :size])


def test_streams_steps_and_seeds_are_independent():
    keys = Keys([0, 1])
    draws = [
        keys.uniform(stream, step, (4000,))[member]
        for stream in (Stream.ACT, Stream.EXPLORE)
        for step in (0, 1)
        for member in (0, 1)
    ]
    correlations = np.corrcoef(torch.stack(draws).numpy()) - np.eye(len(draws))
    assert np.abs(correlations).max() < 0.06  # 4 standard errors of 1 / sqrt(4000)
    for numbers in draws:
        assert abs(float(numbers.mean()) - 0.5) < 0.02
        assert abs(float(numbers.var()) - 1 / 12) < 0.005


def test_normals():
    from scipy import stats

    numbers = to_normal(Keys([5]).uniform(Stream.ACT, 0, (20_000,))[0])
    assert stats.kstest(numbers.numpy(), "norm").pvalue > 0.001
    extremes = to_normal(torch.tensor([0.0, 1.0 - 2.0**-24]))
    assert torch.isfinite(extremes).all()
    assert extremes[0] == -extremes[1]


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ([], "at least one seed"),
        ([-1], "must be a whole number; got -1"),
        ([1.5], "got 1.5"),
        ([True], "got True"),
        ([2**64], "from 0 to 2"),
    ],
)
def test_seeds_that_make_no_sense(seeds, message):
    with pytest.raises(ConfigError, match=message):
        Keys(seeds)


def test_members_with_one_seed_draw_the_same_numbers():
    first, second, third = Keys([1, 2, 1]).uniform(Stream.ACT, 3, (5,))
    assert torch.equal(first, third)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("step", [0, 7, 2**32 - 1, 2**33 + 5])
def test_tensor_operations_give_the_same_numbers(step):
    keys = Keys([0, 3, 2**63 + 11, 2**64 - 1])
    clock = torch.full((4,), step)
    for stream in (Stream.INIT, Stream.EVALUATE):
        expected = keys.uniform(stream, step, (37,))
        assert torch.equal(tensor_uniforms(keys.bits, clock, 37, int(stream)), expected)
        assert torch.equal(keys.uniform(stream, torch.tensor(step), (37,)), expected)


@pytest.mark.parametrize("step", [0, 2**32 - 1, 2**33 + 5])
def test_operations_give_the_same_numbers_by_a_clock_of_their_own(step):
    keys, clock = Keys([0, 2**63 + 11]), Buffer(2, 1, 2)
    out, seeds = Buffer(2, 3, 7), seeds_of(keys)
    clock.longs.fill_(step)
    for later in (0, 1):
        draw(out, seeds, clock, Stream.REPLAY)
        expected = keys.uniform(Stream.REPLAY, step + later, (3, 7))
        assert torch.equal(out.tensor[:, 0], expected)
        advance(clock)


def test_members_have_clocks_of_their_own():
    keys, clock, out = Keys([5, 5]), Buffer(2, 1, 2), Buffer(2, 1, 9)
    clock.longs[:, 0, 0, 0] = torch.tensor([3, 8])
    draw(out, seeds_of(keys), clock, Stream.ACT)
    for member, step in enumerate((3, 8)):
        assert torch.equal(out.tensor[member, 0, 0], keys.uniform(Stream.ACT, step, (9,))[member])


@pytest.mark.parametrize("stream", Stream)
def test_learners_and_environments_never_draw_the_same(stream):
    """Their counters differ in the third word, which environments leave below this."""
    assert FIRST_STREAM + stream >= 16
    numbers = Keys([7]).uniform(stream, 5, (4,))[0]
    words = _core.philox([0, 5, int(stream), 0], 7)
    assert numbers.tolist() != [(word >> 8) * 2.0**-24 for word in words]
