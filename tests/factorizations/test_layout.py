"""An action spec as tensors: what may not be chosen."""

import re
from pathlib import Path

import headwise
from headwise.factorizations.parts.layout import NEVER

SOURCE = Path(headwise.__file__).parent
HEADER = Path(__file__).parents[2] / "cpp/core/draw_options.h"


def test_kernels_have_the_same_number_for_what_may_not_be_chosen():
    kernels = [*SOURCE.glob("factorizations/kernels/*.py"), *SOURCE.glob("algorithms/kernels/*.py")]
    texts = [path.read_text() for path in (*kernels, HEADER)]
    numbers = [float(found) for text in texts for found in re.findall(r"- ?(\d+e\d+)", text)]
    assert len(numbers) >= 7  # six in kernels, one in C++
    assert {-number for number in numbers} == {NEVER}
