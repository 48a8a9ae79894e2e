"""What docs/structure.md shows runs as it stands, and its table of who obeys is true."""

import re
from pathlib import Path

from headwise.algorithms import algorithms
from headwise.factorizations import factorizations

PAGE = (Path(__file__).parents[1] / "docs" / "structure.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def test_every_block_runs():
    names = {"__name__": "bench"}
    for block in BLOCKS:
        exec(compile(block, "structure.md", "exec"), names)
    assert [link.child for link in names["spec"].links]
    assert names["agent"].steps >= 1200


def test_the_table_of_who_obeys():
    rows = re.findall(r"^\| (`.*) \|$", PAGE, flags=re.MULTILINE)
    told = {}
    for row in rows:
        names, *cells = row.split(" | ")
        for name in re.findall(r"`(\w+)`", names):
            told[name] = [cell.split()[0].rstrip(":,") for cell in cells]
    words = {"all": "all", "trees": "trees", None: "refused"}
    for name, kind in factorizations.items():
        needs = [algorithms.get(algo).needs[0] for algo in ("ppo", "dqn", "sac")]
        assert told[name] == [words[kind.obeys.get(what)] for what in needs]
