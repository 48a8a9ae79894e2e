"""What every algorithm promises with products in bfloat16, where the processor has them."""

import pytest
import torch
from cells import cells, check_diverged_member, loop_for, parameters, plain_cells

from headwise.ops.core import has_bf16
from headwise.training.matmul_precision import matmul_precision_as

CELLS = [(*cell[:2], {}) for cell in cells(("discrete",))]
CELLS += [(*cell[:2], {"dueling": False}) for cell in plain_cells(("discrete",))]


@pytest.mark.parametrize(("algorithm", "factorization", "more"), CELLS)
def test_a_member_alone_equals_itself_in_any_population(algorithm, factorization, more):
    learned = {}
    with matmul_precision_as("bf16"):
        for seeds in ((0, 1, 2), (2, 0), (1,)):
            loop = loop_for(algorithm, factorization, "discrete", seeds, steps=96, **more)
            loop.run(96)
            assert loop.updates >= 3
            for seed, row in zip(seeds, parameters(loop), strict=True):
                assert torch.equal(learned.setdefault(seed, row), row), f"seed {seed} of {seeds}"
    assert not torch.equal(learned[0], learned[1])


@pytest.mark.parametrize("algorithm", ["dqn", "sac"])
def test_it_learns_other_digits_only_where_it_is_asked_for(algorithm):
    def learned(products):
        with matmul_precision_as(products):
            loop = loop_for(algorithm, "shared", "discrete", (0,), steps=96)
            loop.run(96)
        return parameters(loop)

    full = learned("float32")
    assert torch.equal(learned("tf32"), full)
    assert torch.equal(learned(None), full)
    assert torch.equal(learned("bf16"), full) is not has_bf16()


def test_a_diverged_member_leaves_the_others_bit_equal():
    with matmul_precision_as("bf16"):
        check_diverged_member("sac", "shared", "discrete")
