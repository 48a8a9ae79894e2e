"""The worked example of docs/extending.md runs, learns, and keeps the promises of its kind."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)

CHECKS = """
from headwise.population import Keys

for name, config in settings.items():
    both = {}
    for chosen in ((0, 1, 2), (2, 0), (1,)):
        rates = tuple((0.01, 0.02, 0.03)[s] for s in chosen) if name == "reinforce" else config.lr
        import dataclasses
        own = dataclasses.replace(config, lr=rates)
        loop = make_loop(make_vec("probe/opposite", chosen, 16), own, Mean(), chosen, 512)
        loop.run(512)
        for seed, row in zip(chosen, loop.algorithm.state_dict()["values"]):
            assert torch.equal(both.setdefault(seed, row), row), (name, seed, chosen)
"""


def run(code):
    # In a process of its own: what it registers must not be seen by other tests.
    words = [sys.executable, "-W", "error", "-c", "import torch\ntorch.set_num_threads(1)\n" + code]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_runs_finds_the_answers_and_members_are_equal_alone():
    assert len(BLOCKS) == 4
    printed = run("\n".join(BLOCKS) + CHECKS)
    best = "[[0.0, 1.0], [1.0, 0.0]]"
    assert printed.splitlines() == [f"reinforce {best}", f"dqn {best}"]


def test_a_new_factorization_is_tested_by_existing():
    """Registered before the contract tests are collected, it is among their cases."""
    code = BLOCKS[0] + (
        "\nimport sys; sys.path.insert(0, 'tests/contracts')"
        "\nimport cases"
        "\nassert ('mean', 'discrete') in cases.offers('value')"
        "\nassert ('mean', 'hybrid') in cases.offers('policy', ('hybrid',))"
        "\nassert not [name for name, _ in cases.offers('soft') if name == 'mean']"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
