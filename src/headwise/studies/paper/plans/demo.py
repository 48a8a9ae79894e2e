"""What `make demo` runs: the decoupler factorial, both presets, 8 seeds.

`headwise study run demo`, then `headwise report runs/demo`.
"""

from dataclasses import replace

from headwise.studies.paper.plans.decoupler_factorial import make as make_factorial
from headwise.study import Study


def make(smoke: bool = False) -> Study:
    """The study; `smoke` is the same with tiny budgets and two seeds."""
    name = "demo-smoke" if smoke else "demo"
    return replace(make_factorial(seeds=8, smoke=smoke), name=name)
