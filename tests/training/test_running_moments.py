import numpy as np
import torch

from headwise.training.running_moments import RunningMoments


def rows(shape, seed=0):
    return torch.as_tensor(np.random.default_rng(seed).normal(3.0, 2.0, shape), dtype=torch.float32)


def test_three_rows_by_hand():
    moments = RunningMoments(1, 1)
    moments.update(torch.tensor([[[1.0], [3.0]]]))
    moments.update(torch.tensor([[[8.0]]]))
    # Mean 4, squares 9 + 1 + 16 = 26.
    np.testing.assert_allclose(moments.mean, [[4.0]], rtol=1e-14)
    np.testing.assert_allclose(moments.variance, [[26 / 3]], rtol=1e-14)


def test_before_any_data_it_is_the_identity():
    moments = RunningMoments(2, 3)
    assert (moments.mean == 0).all()
    assert (moments.variance == 1).all()


def test_what_never_changes_is_divided_by_one():
    moments = RunningMoments(1, 2)
    moments.update(torch.tensor([[[4.0, 1.0], [4.0, 3.0]]]))
    np.testing.assert_array_equal(moments.variance, [[1.0, 1.0]])
    moments.update(torch.tensor([[[4.0, 8.0]]]))
    np.testing.assert_allclose(moments.variance, [[1.0, 26 / 3]], rtol=1e-14)


def test_many_batches_are_one():
    data = rows((3, 400, 5))
    moments = RunningMoments(3, 5)
    for start, stop in [(0, 1), (1, 8), (8, 300), (300, 400)]:
        moments.update(data[:, start:stop])
    np.testing.assert_allclose(moments.mean, data.double().mean(1), rtol=1e-5)
    np.testing.assert_allclose(moments.variance, data.double().var(1, correction=0), rtol=1e-5)


def test_a_large_offset_costs_no_precision():
    """The naive E[x^2] - E[x]^2 in float32 would give nonsense here."""
    moments = RunningMoments(1, 1)
    data = 1e6 + rows((1, 4000, 1), seed=1)
    for batch in data.split(50, dim=1):
        moments.update(batch)
    np.testing.assert_allclose(moments.variance, data.double().var(1, correction=0), rtol=1e-9)


def test_rows_that_do_not_count_change_nothing():
    data, counts = rows((2, 6, 3)), torch.tensor([[1, 0, 1, 1, 0, 1], [0, 0, 0, 0, 0, 0]]).bool()
    moments, picked = RunningMoments(2, 3), RunningMoments(2, 3)
    moments.update(data, counts)
    picked.update(data[:, [0, 2, 3, 5]])
    np.testing.assert_allclose(moments.mean[0], picked.mean[0], rtol=1e-12)
    np.testing.assert_allclose(moments.variance[0], picked.variance[0], rtol=1e-12)
    assert (moments.mean[1] == 0).all()  # a member of whom nothing counts
    assert (moments.variance[1] == 1).all()


def test_a_member_alone_is_the_member_in_a_population_to_the_bit():
    for size in (1, 2, 7, 33):
        for batch in (1, 3, 16, 129):
            data = rows((9, 5, batch, size), seed=size)
            many, alone = RunningMoments(5, size), RunningMoments(1, size)
            for step in data:
                many.update(step)
                alone.update(step[3:4])
            for name, x in many.state_dict().items():
                assert torch.equal(x[3:4], alone.state_dict()[name])


def test_a_member_of_nan_stays_by_itself():
    data = rows((2, 8, 3))
    clean = RunningMoments(2, 3)
    clean.update(data)
    data[0, 0, 0] = torch.nan
    moments = RunningMoments(2, 3)
    moments.update(data)
    assert torch.equal(moments.mean[1], clean.mean[1])
    assert moments.mean[0].isnan().any()
