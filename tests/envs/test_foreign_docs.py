import re
from pathlib import Path

import numpy as np

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "your-environment.md"


def test_no_page_names_what_may_be_a_setting():
    """`seeds` and `num_slots` by name are settings of the environment, which may have such."""
    found = [
        (page.name, call)
        for page in DOCS.glob("*.md")
        for call in re.findall(r"(?:make_vec|foreign_env)\([^)]*\)", page.read_text())
        if re.search(r"\b(env|seeds|num_slots)=", call)
    ]
    assert found == []


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
