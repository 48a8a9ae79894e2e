"""Cells that the first engine left goldens of, and how one is built and played.

`tests/goldens/engine_{ppo,dqn,sac}.npz` say what every learner of the engine before operations made
of fixed data: one cell for each algorithm, factorization and action that there was, plain and
masked, and some with settings off the usual path. Members are three, with their own seeds and data.
Nothing can write these files again. A file has

- `about`: JSON as bytes. `cells`, in order, each as `Cell` has it and
    - `first`: the array that its first parameters are in, which cells share;
    - `sections`: what its columns of parameters are, in order: `name` (`values` of each optimizer:
      PPO's is actor and critic; `target`: the target network; `alpha.values`: logarithms of
      temperatures; `kl_coef`), `columns`, how many, and `modules`: the path and the shape (without
      members) of each parameter, in the order of its columns;
    - `metrics`: the name and the columns of each number that an update reports.
- `data/SITUATION/FIELD`: what learners are handed, (batches, P, ...). PPO: two `RolloutBatch`es
  (T 12, E 4), taken in turns. DQN and SAC: a `ReplayBatch` for each update, whose rewards and
  discounts are as memory hands them out. They are made up; no environment had a part in them.
- `CELL/extra/NAME`: of PPO, what the learner itself did with that data when it was new: `action`,
  `raw` and `log_prob` (moved a little, so that ratios are not 1), heads in the order of the spec.
- `CELL/parameters`: (stages, P, columns) after the stages of `STAGES`, packed. `step` is a single
  gradient step (of DQN and SAC it is an update, and is left out).
- `CELL/acted`: actions drawn after each update, (updates, P, E, H), for the first rows of its data.
- `CELL/metrics`: what the first and the last update reported, (2, P, columns).
"""

import dataclasses
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headwise import ActionSpec, Choice, Range
from headwise.algorithms import algorithms
from headwise.algorithms.base import ReplayBatch, RolloutBatch, Task
from headwise.factorizations import factorizations
from headwise.heads.layout import Layout
from headwise.population import Keys
from headwise.spaces import Condition, ObsSpec
from headwise.upgrade import upgrade_settings

FOLDER = Path(__file__).parents[1] / "goldens"
SEEDS = (3, 0, 11)
ALONE = 1
"""The member that is also played alone."""
OBS, SLOTS, STEPS, ROWS, UPDATES = 5, 4, 12, 20, 8
STAGES = {"ppo": ("step", "one", "eight"), "dqn": ("one", "eight"), "sac": ("one", "eight")}

_WHEN = (None, Condition(0, 0, 1), Condition(0, 1, 2), Condition(2, 1, 2))
_NUMBERS_WHEN = (None, Condition(0, 0, 1), Condition(0, 1, 2), Condition(0, 1, 3))
_KINDS = ("kind", "power", "gear", "angle")
SPECS = {
    "discrete": ActionSpec.of(a=Choice(2), b=Choice(3), c=Choice(2)),
    "hybrid": ActionSpec.of(x=Range(-1, 1), a=Choice(3), y=Range(0, 5), b=Choice(2)),
    "continuous": ActionSpec.of(x=Range(-1, 1), y=Range(0, 5)),
    "hybrid_bins": ActionSpec.of(x=Choice(4), a=Choice(3), y=Choice(3), b=Choice(2)),
    "continuous_bins": ActionSpec.of(x=Choice(5), y=Choice(3)),
    "one_of": ActionSpec(
        ("kind", "run", "jump", "spin"), (Choice(3), Choice(4), Choice(2), Choice(2)), _WHEN
    ),
    "one_of_numbers": ActionSpec(
        _KINDS, (Choice(3), Range(-1, 1), Choice(2), Range(0, 5)), _NUMBERS_WHEN
    ),
    "one_of_bins": ActionSpec(_KINDS, (Choice(3), Choice(4), Choice(2), Choice(3)), _NUMBERS_WHEN),
    "pair": ActionSpec.of(a=Choice(3), b=Choice(3)),
}
"""Actions as learners see them; where it says `bins` a Range was cut into options."""

SMALL = {
    "ppo": {
        "n_steps": STEPS, "batch_size": 28, "n_epochs": 2, "branch_width": 4,
        "policy_gain": 0.5,
    },
    "dqn": {"buffer_size": 200, "batch_size": ROWS, "learning_starts": 20, "branch_width": 4},
    "sac": {"buffer_size": 200, "batch_size": ROWS, "learning_starts": 20, "branch_width": 4},
}  # fmt: skip
SMALL_FACTORIZATION = {"qplex": {"mixer_width": 6}}


@dataclass(frozen=True)
class Cell:
    """A learner, the action it learns, and its settings where they are not those of `SMALL`."""

    algorithm: str
    factorization: str
    spec: str
    masked: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    factorization_settings: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self):
        more = self.settings | self.factorization_settings
        said = [f"{k}={_short(v)}" for k, v in more.items()]
        masked = ["masked"] if self.masked else []
        return "-".join([self.algorithm, self.factorization, self.spec, *masked, *said])

    @property
    def is_off_the_path(self):
        """Whether it has settings of its own."""
        return bool(self.settings or self.factorization_settings)

    @property
    def situation(self):
        """What the data depend on."""
        return f"{self.spec}-masked" if self.masked else self.spec


def _short(value):
    return "x".join(map(str, value)) if isinstance(value, list) else str(value)


def task_of(cell, seeds=SEEDS):
    """What the learner of a cell is built for."""
    own = SMALL_FACTORIZATION.get(cell.factorization, {}) | _tuples(cell.factorization_settings)
    return Task(
        spec=SPECS[cell.spec],
        obs_spec=ObsSpec.flat(OBS),
        num_slots=SLOTS,
        total_steps=10 * SLOTS * STEPS if cell.algorithm == "ppo" else 2 * UPDATES * SLOTS,
        factorization=factorizations.get(cell.factorization)(**own),
        keys=Keys(seeds),
    )


def config_of(cell):
    """The settings of a cell's algorithm; the files name them as they were named then."""
    small = {"net_arch": (10, 6), "learning_rate": 2e-3} | SMALL[cell.algorithm]
    own = upgrade_settings(cell.algorithm, _tuples(cell.settings), SLOTS)
    return algorithms.get(cell.algorithm)(**small | own)


def _tuples(settings):
    return {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}


def build(cell, seeds=SEEDS):
    """The learner of a cell; `ConfigError` where there is none."""
    return config_of(cell).build(task_of(cell, seeds))


def act_after(cell, learner, batch):
    """Actions drawn for the first rows of a batch, (P, E, H)."""
    some = (slice(None), 0) if cell.algorithm == "ppo" else (slice(None), slice(SLOTS))
    obs, legal = (x if x is None else x[some] for x in (batch.obs, batch.legal))
    return learner.act(obs, legal).action.clone()


# --- the files --------------------------------------------------------------------------------


def unpacked(planes, first):
    """Parameters (stages, P, columns) from what of their bits changed, (4, stages, P, columns)."""
    changed = np.ascontiguousarray(np.moveaxis(planes, 0, -1)).view(np.uint32)[..., 0]
    bits = np.concatenate([first[None].view(np.uint32), changed])
    return np.bitwise_xor.accumulate(bits)[1:].view(np.float32)


class Golden:
    """The file of an algorithm."""

    def __init__(self, algorithm):
        with np.load(FOLDER / f"engine_{algorithm}.npz") as file:
            self.arrays = dict(file)
        self.about = json.loads(self.arrays.pop("about").tobytes())
        self.cells = {}
        names = [f.name for f in dataclasses.fields(Cell)]
        for one in self.about["cells"]:
            cell = Cell(**{name: one[name] for name in names})
            self.cells[cell.name] = cell, one
            planes = self.arrays[f"{cell.name}/parameters"]
            self.arrays[f"{cell.name}/parameters"] = unpacked(planes, self.arrays[one["first"]])

    def __getitem__(self, name):
        return self.arrays[name]

    def batches(self, cell, members=slice(None)):
        """What the learner is handed, update by update; then from the start again."""
        head = f"data/{cell.situation}/"
        fields = {k.removeprefix(head): x for k, x in self.arrays.items() if k.startswith(head)}
        head = f"{cell.name}/extra/"
        extra = {k.removeprefix(head): x for k, x in self.arrays.items() if k.startswith(head)}
        count = len(fields["obs"])
        return [batch_of(cell, fields, extra, k, members) for k in range(count)]

    def parameters(self, cell, members=slice(None)):
        """Those of the first engine by stage, `first` among them, (P, columns) each."""
        _, about = self.cells[cell.name]
        stages = zip(STAGES[cell.algorithm], self[f"{cell.name}/parameters"], strict=True)
        found = {"first": self[about["first"]]} | dict(stages)
        return {stage: torch.from_numpy(x[members].copy()) for stage, x in found.items()}

    def metrics(self, cell, which, members=slice(None)):
        """What the first (0) or last (-1) update reported, (P, columns) each."""
        _, about = self.cells[cell.name]
        names, widths = zip(*about["metrics"], strict=True)
        kept = torch.from_numpy(self[f"{cell.name}/metrics"][which][members].copy())
        return dict(zip(names, kept.split(widths, dim=-1), strict=True))


@cache
def golden(algorithm):
    return Golden(algorithm)


def batch_of(cell, fields, extra, k, members=slice(None)):
    def of(arrays):
        return {n: torch.from_numpy(x[k][members].copy()) for n, x in arrays.items()}

    mine = {"legal": None, "next_legal": None} | of(fields)
    if cell.algorithm != "ppo":
        return ReplayBatch(**mine)
    layout = Layout(SPECS[cell.spec], joint=factorizations.get(cell.factorization).is_joint)
    extra = of(extra)
    action = extra.pop("action")
    extra["raw"] = layout.to_learner(extra["raw"])
    if layout.joint is None:
        extra["log_prob"] = layout.to_learner(extra["log_prob"])
    return RolloutBatch(**mine, action=action, extra=extra)
