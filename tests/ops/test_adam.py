"""Adam's definition in tensor operations takes the steps of the compiled one, also the first."""

import pytest
import torch
from kernel_cases import Stepped

from headwise.ops.adam import definition


def defined(values, mean, square, count, rate, alive, norm, *, betas, eps, max_norm, follower, tau):
    count.longs.add_(1)
    definition(
        values.tensor, values.gradient, mean.tensor, square.tensor, count.longs, rate.tensor,
        alive.tensor, norm.tensor, betas, eps, max_norm,
        None if follower is None else follower.tensor, tau,
    )  # fmt: skip


@pytest.mark.parametrize("max_norm", [0.0, 0.05])
@pytest.mark.parametrize("follows", [False, True])
def test_the_definition(max_norm, follows):
    wanted = Stepped("cpu", max_norm, 40, follows=follows).run()
    found = Stepped("cpu", max_norm, 40, follows=follows).run(defined)
    for name, x in wanted.items():
        torch.testing.assert_close(found[name], x, rtol=2e-6, atol=5e-7, msg=name)
