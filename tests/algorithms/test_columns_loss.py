"""How rows are shared out among the programs of a kernel. tests/gpu has the loss itself."""

import pytest

from headwise.algorithms.losses.columns_loss import parts_of


@pytest.mark.parametrize(
    ("rows", "parts", "each"),
    [(1, 1, 16), (16, 1, 16), (17, 1, 32), (48, 1, 48), (49, 2, 48), (96, 2, 48), (97, 3, 48)],
)
def test_parts_of_at_most_three_blocks_of_sixteen(rows, parts, each):
    assert parts_of(rows, 16, 3) == (parts, each)
