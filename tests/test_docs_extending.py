"""The worked example of docs/extending.md runs, learns, and keeps the promises of its kind."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)

CHECKS = """
from headwise.factorizations.vdn import VDN
from headwise.population import Keys

# By hand: V is 1, the first head loses 2 by option 1, the second 4 by option 0.
layout = Layout(ActionSpec.of([Choice(2), Choice(2)]))
plan = lambda: Blueprint(layout=layout, obs_size=1, init=Initializer(Keys([0, 1])), hidden=(8,))
value, action = Mean().value(plan()), torch.tensor([[[1.0, 0.0]]]).expand(2, 1, 2)
given = torch.tensor([[0.0, -2.0], [-4.0, 0.0]]).expand(2, 1, 2, 2)
value.branches = lambda obs, legal=None: (torch.ones(2, 1), given, None)
assert value.predict(torch.zeros(2, 1, 1), action).tolist() == [[[1 - (2 + 4) / 2]]] * 2
# And with networks: half of what VDN takes off for two heads.
mean, vdn, obs = Mean().value(plan()), VDN().value(plan()), torch.randn(2, 1, 1)
lost = [x.best_value(obs) - x.predict(obs, 1.0 - x.best(obs)) for x in (mean, vdn)]
assert torch.allclose(2 * lost[0], lost[1]) and (lost[0] > 0).all()

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

# What is registered is taken by name, by all that an agent does.
import tempfile
import headwise as hw

agent = hw.Agent("reinforce", "probe/opposite", factorization="mean", seeds=2, hidden=(8,))
agent.learn(600, progress=False)
agent.evaluate(4, deterministic=False)
with tempfile.TemporaryDirectory() as folder:
    agent.save(folder + "/x.zip")
    again = hw.Agent.load(folder + "/x.zip")
assert again.predict([1.0], deterministic=True) == agent.predict([1.0], deterministic=True)
bonus = hw.Agent("reinforce", "probe/opposite", seeds=2, entropy_coef=(0.1, 0.2), hidden=(8,))
assert bonus.member(1).plan.config.entropy_coef == 0.2  # it is known to be one for each member
mask = [[1, 0], [0, 1]]
assert {tuple(map(int, agent.predict([1.0], False, mask))) for _ in range(20)} == {(0, 1)}
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
