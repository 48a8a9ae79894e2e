import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "your-environment.md"


def test_the_example_does_what_it_says():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    names = {}
    exec(compile(code, str(PAGE), "exec"), names)
    env, step = names["env"], names["step"]
    assert env.spec.names == ("grip", "joints[0]", "joints[1]")
    assert env.obs_spec.slices == {"angle": slice(0, 2), "tool": slice(2, 5)}
    assert step.obs.shape == (2, 4, 5)
    assert step.legal.shape == (2, 4, 3, 3)
    np.testing.assert_array_equal(step.legal[0, 0], [[1, 1, 1], [1, 1, 1], [1, 1, 1]])
    np.testing.assert_array_equal(env.first_legal[0, 0], [[1, 1, 0], [1, 1, 1], [1, 1, 1]])
    action = env.codec.to_env([1, 0.5, -1])
    assert action["grip"] == 1
    np.testing.assert_array_equal(action["joints"], [0.5, -1.0])
