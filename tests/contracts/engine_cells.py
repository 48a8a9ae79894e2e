"""Cells of the engine's goldens: how one is built and played, and what is kept of it.

`tests/goldens/engine_{ppo,dqn,sac}.npz`, written by `tools/write_engine_goldens.py`, say what every
learner made of fixed data: one cell for each algorithm, factorization and action that there is,
plain and masked, and some with settings off the usual path. Members are three, with their own seeds
and data; what one of them does alone must equal its row here. A file has

- `about`: JSON as bytes. `machine`: what the numbers depend on beside the code; `seeds`; `cells`,
  in order, each as `Cell` has it and
    - `first`: the array that its first parameters are in, which cells share;
    - `sections`: what its columns of parameters are, in order: `name`, the key of `state_dict()`
      (`values` of each optimizer: PPO's is actor and critic; `target`: the target network;
      `alpha.values`: logarithms of temperatures; `kl_coef`), `columns`, how many, and `modules`:
      the path and the shape (without members) of each parameter, in the order of its columns, which
      is that of registration. A parameter is laid out as it is in memory (last axis fastest);
    - `metrics`: the name and the columns of each number that an update reports;
    - `digests`: for each stage, and each member, SHA-256 of its whole `state_dict()` (`digest`).
- `data/SITUATION/FIELD`: what learners are handed, (batches, P, ...). PPO: two `RolloutBatch`es
  (T 12, E 4), taken in turns. DQN and SAC: a `ReplayBatch` for each update, whose rewards and
  discounts are as memory hands them out (so `n_step` is no setting of the learner). They are made
  up; no environment had a part in them.
- `CELL/extra/NAME`: of PPO, what the learner itself did with that data when it was new: `action`,
  `raw` and `log_prob` (moved a little, so that ratios are not 1).
- `CELL/parameters`: (stages, P, columns) after the stages of `STAGES`. `step` is a single gradient
  step (of DQN and SAC it is an update, and is left out). They are float32 to the bit, in a form
  that compresses (`packed`).
- `CELL/acted`: actions drawn after each update, (updates, P, E, H), for the first rows of its data.
- `CELL/metrics`: what the first and the last update reported, (2, P, columns).

Update k (from 0) is handed `Keys(seeds).at(k)`, and so is the action after it. Chance is a function
of (seed, stream, step, index), so all of it can be repeated.
"""

import dataclasses
import hashlib
import json
import os
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
from headwise.population import Keys
from headwise.spaces import Condition

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
        "rollout": SLOTS * STEPS, "minibatch": 28, "epochs": 2, "branch_width": 4,
        "policy_gain": 0.5,
    },
    "dqn": {"replay": 200, "batch_size": ROWS, "warmup": 20, "branch_width": 4},
    "sac": {"replay": 200, "batch_size": ROWS, "warmup": 20, "branch_width": 4},
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


def build(cell, seeds=SEEDS):
    """The learner of a cell; `ConfigError` where there is none."""
    small = {"hidden": (10, 6), "lr": 2e-3} | SMALL[cell.algorithm]
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in cell.settings.items()}
    config = algorithms.get(cell.algorithm)(**small | settings)
    own = SMALL_FACTORIZATION.get(cell.factorization, {}) | cell.factorization_settings
    own = {k: tuple(v) if isinstance(v, list) else v for k, v in own.items()}
    return config.build(
        Task(
            spec=SPECS[cell.spec],
            obs_size=OBS,
            num_slots=SLOTS,
            total_steps=10 * SLOTS * STEPS if cell.algorithm == "ppo" else 2 * UPDATES * SLOTS,
            factorization=factorizations.get(cell.factorization)(**own),
            keys=Keys(seeds),
        )
    )


def first_step(cell, learner, batches, seeds=SEEDS):
    """The first gradient step of PPO's first update, of a learner that is of no use afterwards."""
    learner.begin(batches[0], Keys(seeds).at(0))
    learner._step(next(learner._minibatches()), report=False)


def play(cell, batches, seeds=SEEDS):
    """What is kept of a cell: states by stage, actions, and metrics of the ends."""
    keys, states, acted, metrics = Keys(seeds), {}, [], []
    if "step" in STAGES[cell.algorithm]:
        learner = build(cell, seeds)
        first_step(cell, learner, batches, seeds)
        states["step"] = learner.state_dict()
    learner = build(cell, seeds)
    states["first"] = learner.state_dict()
    for k in range(UPDATES):
        batch = batches[k % len(batches)]
        reported = learner.update(batch, keys.at(k))()
        obs, legal = (x if x is None else _first_rows(x, cell) for x in (batch.obs, batch.legal))
        acted.append(learner.act(obs, keys.at(k), legal).action.clone())
        if k in (0, UPDATES - 1):
            states["one" if k == 0 else "eight"] = learner.state_dict()
            metrics.append({name: x.clone() for name, x in sorted(reported.items())})
    assert learner.alive.all()
    return states, torch.stack(acted), metrics


def _first_rows(x, cell):
    return x[:, 0] if cell.algorithm == "ppo" else x[:, :SLOTS]


def sections(state):
    """What a state has of parameters, by name: (P, columns) each."""
    names = [n for n in state if n == "target" or n == "kl_coef" or n.split(".")[-1] == "values"]
    return {name: state[name].float().view(len(state[name]), -1) for name in names}


def parameters(state):
    """All of them, (P, columns)."""
    return torch.cat(list(sections(state).values()), 1).numpy()


def digest(state, member):
    """SHA-256 of everything in a member's state."""
    found = hashlib.sha256()
    for name, x in sorted(state.items()):
        found.update(f"{name} {x.dtype} {tuple(x.shape[1:])} ".encode())
        found.update(x[member].contiguous().numpy().tobytes())
    return found.hexdigest()


def table(metrics):
    """Metrics of some updates as one array, (updates, P, columns)."""
    flat = [torch.cat([x.float().view(len(x), -1) for x in m.values()], 1) for m in metrics]
    return torch.stack(flat).numpy()


def packed(x, first):
    """Parameters (stages, P, columns) as bytes, most of which are zero: what of the bits changed.

    Of each number, bytes of the same rank lie together, (4, stages, P, columns).
    """
    bits = np.concatenate([first[None], x]).view(np.uint32)
    changed = np.ascontiguousarray(bits[1:] ^ bits[:-1])
    return np.moveaxis(changed[..., None].view(np.uint8), -1, 0)


def unpacked(planes, first):
    """The way back."""
    changed = np.ascontiguousarray(np.moveaxis(planes, 0, -1)).view(np.uint32)[..., 0]
    bits = np.concatenate([first[None].view(np.uint32), changed])
    return np.bitwise_xor.accumulate(bits)[1:].view(np.float32)


def machine():
    """What rounding depends on."""
    return {
        "torch": torch.__version__,
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "isa": os.environ.get("HEADWISE_ISA", "the best there is"),
    }


# --- the files --------------------------------------------------------------------------------


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


@cache
def golden(algorithm):
    return Golden(algorithm)


def batch_of(cell, fields, extra, k, members=slice(None)):
    def of(arrays):
        return {n: torch.from_numpy(x[k][members].copy()) for n, x in arrays.items()}

    mine = {"legal": None, "next_legal": None} | of(fields)
    if cell.algorithm != "ppo":
        return ReplayBatch(**mine)
    extra = of(extra)
    action = extra.pop("action", None)
    return RolloutBatch(**mine, action=action, extra=extra)
