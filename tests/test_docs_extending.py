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
from headwise.heads.blueprint import Blueprint
from headwise.heads.layout import Layout
from headwise.ops import Buffer
from headwise.population.keys import Keys

def made(kind, members=2):
    "A value of two heads of two options, whose networks have begun."
    layout, keys = Layout(ActionSpec.of([Choice(2), Choice(2)])), Keys(range(members))
    value = kind.value(
        Blueprint(
            layout=layout, members=members, features=1, rows=4, device=keys.device, net_arch=(8,)
        )
    )
    Store(keys, value.parts)
    return value


def filled(columns, numbers=None, members=2, rows=1):
    x = Buffer(members, rows, columns, gradient=True)
    x.tensor.copy_(torch.randn(x.tensor.shape) if numbers is None else torch.tensor(numbers))
    return x

# By hand: V is 1, the first head loses 2 by option 1, the second 4 by option 0.
value, action = made(Mean()), filled(2, [1.0, 0.0])
given = filled(1, 1.0), filled(4, [0.0, -2.0, -4.0, 0.0])
value.net.forward = lambda x: (*given, None)
q = value.predict(filled(1), action, None)
assert q.tensor.tolist() == [[[[1 - (2 + 4) / 2]]]] * 2
# And its way back: a mean of two halves a gradient; what is best gets the opposite.
value.net.rows = lambda count: given
value.net.backward = lambda x, weights: None
q.gradient.fill_(1.0)
value.backward(filled(1), action, None)
assert given[0].gradient.tolist() == [[[[1.0]]]] * 2
assert given[1].gradient.tolist() == [[[[-0.5, 0.5, 0.5, -0.5]]]] * 2
# And with networks: half of what VDN takes off for two heads.
mean, vdn, obs = made(Mean()), made(VDN()), filled(1)
lost = []
for x in (mean, vdn):
    x.greedy(obs, best := filled(2), None)
    other = filled(2, (1.0 - best.tensor).tolist())
    top = x.greedy_value(obs, None).tensor.clone()
    assert torch.allclose(x.predict(obs, best, None).tensor, top)
    lost.append(top - x.predict(obs, other, None).tensor)
assert torch.allclose(2 * lost[0], lost[1]) and (lost[0] > 0).all()

for name, algorithm in settings.items():
    both = {}
    for chosen in ((0, 1, 2), (2, 0), (1,)):
        rates = tuple((0.01, 0.02, 0.03)[s] for s in chosen)
        own = RunConfig.of(algorithm, factorization=Mean(), total_timesteps=512)
        own = own.replace(learning_rate=rates) if name == "reinforce" else own
        loop = make_loop(make_vec("probe/opposite", chosen, 16), own, chosen)
        loop.run(512)
        for seed, row in zip(chosen, loop.algorithm.state_dict()["values"]):
            assert torch.equal(both.setdefault(seed, row), row), (name, seed, chosen)

# What is registered is taken by name, by all that an agent does.
import tempfile
import headwise as hw

agent = hw.Agent("reinforce", "probe/opposite", factorization="mean", seeds=2, net_arch=(8,))
agent.learn(600, progress=False)
agent.evaluate(4, deterministic=False)
with tempfile.TemporaryDirectory() as folder:
    agent.save(folder + "/x.zip")
    again = hw.Agent.load(folder + "/x.zip")
assert again.predict([1.0], deterministic=True) == agent.predict([1.0], deterministic=True)
bonus = hw.Agent("reinforce", "probe/opposite", seeds=2, ent_coef=(0.1, 0.2), net_arch=(8,))
assert bonus.member(1).config.algorithm.ent_coef == 0.2  # it is known to be one for each member
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
        "\nassert ('mean', 'hybrid') in cases.offers('policy')"
        "\nassert not [name for name, _ in cases.offers('twins') if name == 'mean']"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
