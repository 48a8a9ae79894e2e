"""Learners that are the same on the CPU and on a GPU: how one is built, and what it is handed.

A cell is an algorithm, a factorization and an action, with settings where they matter to what runs
on a GPU. Data are made up; no environment has a part in them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from headwise import ActionSpec, Choice, ConfigError, Range
from headwise.algorithms import algorithms
from headwise.algorithms.base import ReplayBatch, RolloutBatch, Task
from headwise.factorizations import factorizations
from headwise.population import Keys
from headwise.spaces import Condition, ObsSpec

GPU = "cuda"
SEEDS = (3, 2**63 + 5, 11)
OBS, SLOTS, STEPS, ROWS, UPDATES = 5, 4, 12, 20, 8

SPECS = {
    "discrete": ActionSpec.of(a=Choice(2), b=Choice(3), c=Choice(2)),
    "hybrid": ActionSpec.of(x=Range(-1, 1), a=Choice(3), y=Range(0, 5), b=Choice(2)),
    "continuous": ActionSpec.of(x=Range(-1, 1), y=Range(0, 5)),
    "one_of": ActionSpec(
        ("kind", "run", "jump", "spin"),
        (Choice(3), Choice(4), Choice(2), Choice(2)),
        (None, Condition(0, 0, 1), Condition(0, 1, 2), Condition(2, 1, 2)),
    ),
    "one_of_numbers": ActionSpec(
        ("kind", "power", "gear", "angle"),
        (Choice(3), Range(-1, 1), Choice(2), Range(0, 5)),
        (None, Condition(0, 0, 1), Condition(0, 1, 2), Condition(0, 1, 3)),
    ),
    "by_a_number": ActionSpec(
        ("power", "gear"), (Range(-1, 1), Choice(3)), (None, Condition(0, -0.5, 0.25))
    ),
}
"""Actions as learners see them; in the last a number decides whether a head is in use."""

SMALL: dict[str, dict[str, Any]] = {
    "ppo": {
        "n_steps": STEPS, "batch_size": 28, "n_epochs": 2, "branch_width": 4,
        "policy_gain": 0.5,
    },
    "dqn": {"buffer_size": 200, "batch_size": ROWS, "learning_starts": 20, "branch_width": 4},
    "sac": {"buffer_size": 200, "batch_size": ROWS, "learning_starts": 20, "branch_width": 4},
}  # fmt: skip

OFF_THE_PATH: list[tuple[str, str, str, dict[str, Any]]] = [
    ("ppo", "shared", "discrete", {"ratio": "joint", "kl_coef": 0.2}),
    ("ppo", "ar", "hybrid", {"ratio": "per_head"}),
    ("ppo", "vdn", "hybrid", {"ratio": "ranges_joint"}),
    ("ppo", "shared", "hybrid", {"clip_range_vf": 0.05}),
    ("ppo", "vdn", "hybrid", {"normalize_advantage": "batch"}),
    *(
        ("ppo", name, "hybrid", {"importance": kind, "anneal_share": 0.0})
        for name in ("vdn", "qplex")
        for kind in ("uniform", "range", "range_slope", "grad", "signed", "state")
    ),
    ("ppo", "qplex", "one_of", {"weight_place": "outside"}),
    ("ppo", "vdn", "hybrid", {"critic_target": "one_step"}),
    ("ppo", "qplex", "hybrid", {"critic_target": "one_step_q"}),
    ("ppo", "qplex", "hybrid", {"center_advantage": "batch"}),
    ("ppo", "qplex", "discrete", {"correct_mixture": True}),
    ("ppo", "ar", "hybrid", {"mean_penalty": 0.1, "policy_gain": 6.0}),
    *(
        ("ppo", name, spec, {"range_kind": kind})
        for kind in ("beta", "clipped")
        for name in ("independent", "shared", "vdn", "qplex", "ar")
        for spec in ("hybrid", "one_of_numbers", "by_a_number")
    ),
    ("ppo", "shared", "hybrid", {"range_kind": "beta", "kl_coef": 0.2}),
    ("ppo", "vdn", "hybrid", {"offline_rows": 100}),
    ("ppo", "vdn", "discrete", {"net_arch": (9, 7, 6), "activation": "relu"}),
    *(("dqn", name, "discrete", {"double_q": True}) for name in factorizations.names()),
    ("dqn", "shared", "discrete", {"loss": "huber"}),
    *(("dqn", name, "discrete", {"center": "mean"}) for name in ("shared", "vdn", "qplex")),
    ("dqn", "qplex", "discrete", {"center": "none", "mixer_bend": "relu"}),
    ("ppo", "qplex", "hybrid", {"mixer_bend": "relu", "mixer_weights": "softplus"}),
    *(
        ("dqn", name, spec, {"temperature": 0.1, "munchausen": 0.9})
        for name in ("independent", "shared", "vdn", "joint")
        for spec in ("discrete", "one_of")
    ),
    *(
        ("dqn", name, "one_of", {"dueling": False})
        for name in ("independent", "shared", "vdn", "joint")
    ),
    ("dqn", "shared", "discrete", {"max_grad_norm": 0.01, "tau": 1.0}),
    ("sac", "shared", "hybrid", {"entropy_bonus": "whole"}),
    ("sac", "qplex", "hybrid", {"entropy_bonus": "whole"}),
    *(("sac", name, "hybrid", {"per_head_temperature": True}) for name in ("shared", "vdn", "ar")),
    *(
        ("sac", "shared", spec, {"actor_gradient": "straight_through"})
        for spec in ("discrete", "hybrid", "one_of")
    ),
    ("sac", "vdn", "discrete", {"target_entropy_end": 0.1, "target_entropy_share": 0.5}),
    ("sac", "shared", "continuous", {"actor_lr_scale": 2.0, "max_grad_norm": 0.01}),
]
OF_FACTORIZATIONS = ("center", "mixer_bend", "mixer_weights")


@dataclass(frozen=True)
class Cell:
    """A learner, the action it learns, and its settings where they are not those of `SMALL`."""

    algorithm: str
    factorization: str
    spec: str
    masked: bool = False
    settings: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        said = [f"{name}={value}" for name, value in self.settings.items()]
        words = [self.algorithm, self.factorization, self.spec, *["masked"] * self.masked, *said]
        return "-".join(words).replace(" ", "")

    @property
    def records(self) -> bool:
        """Whether all of its updates are captured; past rows of PPO grow in number."""
        return "offline_rows" not in self.settings


def build(cell: Cell, device: str, seeds: Sequence[int] = SEEDS) -> Any:
    """The learner of a cell; `ConfigError` where there is none."""
    own = {"mixer_width": 6} if cell.factorization == "qplex" else {}
    own |= {name: x for name, x in cell.settings.items() if name in OF_FACTORIZATIONS}
    said = {name: x for name, x in cell.settings.items() if name not in OF_FACTORIZATIONS}
    settings = {"net_arch": (10, 6), "learning_rate": 2e-3} | SMALL[cell.algorithm] | said
    steps = 10 * SLOTS * STEPS if cell.algorithm == "ppo" else 2 * UPDATES * SLOTS
    task = Task(
        spec=SPECS[cell.spec],
        obs_spec=ObsSpec.flat(OBS),
        num_slots=SLOTS,
        total_steps=steps,
        factorization=factorizations.get(cell.factorization)(**own),
        keys=Keys(seeds, device),
    )
    return algorithms.get(cell.algorithm)(**settings).build(task)


def cells() -> Iterator[Cell]:
    """Every algorithm, factorization and action that go together, and what is off the path."""
    for algorithm in algorithms.names():
        for name in factorizations.names():
            for spec, action in SPECS.items():
                for masked in (False, True)[: 1 + bool(action.num_choices)]:
                    cell = Cell(algorithm, name, spec, masked)
                    try:
                        build(cell, "cpu", (0,))
                    except ConfigError:
                        continue
                    yield cell
    for algorithm, name, spec, settings in OFF_THE_PATH:
        yield Cell(algorithm, name, spec, settings=settings)


# --- data -----------------------------------------------------------------------------------------


def batches(cell: Cell) -> list[RolloutBatch] | list[ReplayBatch]:
    """What an update is handed, one after another, for all members of `SEEDS`."""
    chance = np.random.default_rng(zlib.crc32(str(cell).encode()))
    if cell.algorithm != "ppo":
        return [_transitions(cell, chance) for _ in range(UPDATES)]
    learner = build(cell, "cpu")
    return [_rollout(cell, chance, learner) for _ in range(2)]


def _rollout(cell: Cell, chance: np.random.Generator, learner: Any) -> RolloutBatch:
    """A rollout of actions that a learner took when it was new, but for a little."""
    grid = (len(SEEDS), STEPS, SLOTS)
    obs, next_obs = (_tensor(chance.normal(size=(*grid, OBS))) for _ in range(2))
    legal, next_legal = (_legal(cell, chance, grid) for _ in range(2))
    ended, taken = chance.random(grid), []
    for t in range(STEPS):
        acted = learner.act(obs[:, t], None if legal is None else legal[:, t])
        kept = {"action": acted.action} | acted.extra
        taken.append({name: x.clone() for name, x in kept.items()})
    extra = {name: torch.stack([one[name] for one in taken], 1) for name in taken[0]}
    action, log_prob = extra.pop("action"), extra["log_prob"]
    moved = _tensor(chance.uniform(-0.3, 0.3, log_prob.shape))
    extra["log_prob"] = log_prob + moved * (log_prob != 0.0)
    return RolloutBatch(
        obs=obs,
        action=action,
        reward=_tensor(np.sin(2.0 * obs[..., 1].numpy()) + 0.5 * chance.normal(size=grid)),
        next_obs=next_obs,
        terminated=torch.from_numpy(ended < 0.1),
        truncated=torch.from_numpy(ended > 0.92),
        valid=torch.from_numpy(chance.random(grid) < 0.93),
        legal=legal,
        extra=extra,
        next_legal=next_legal,
    )


def _transitions(cell: Cell, chance: np.random.Generator) -> ReplayBatch:
    grid, spec = (len(SEEDS), ROWS), SPECS[cell.spec]
    obs, next_obs = (_tensor(chance.normal(size=(*grid, OBS))) for _ in range(2))
    legal, next_legal = (_legal(cell, chance, grid) for _ in range(2))
    action, choice = np.zeros((*grid, spec.num_heads)), 0
    for head, n in enumerate(spec.cardinalities):
        if not n:
            action[..., head] = np.tanh(chance.normal(size=grid))
            continue
        order = chance.random((*grid, n))
        if legal is not None:
            order = np.where(legal[..., choice, :n].numpy(), order, -1.0)
        action[..., head] = order.argmax(-1)
        choice += 1
    ended, reward = chance.random(grid), np.sin(2.0 * obs[..., 1].numpy()) + 0.3 * action.sum(-1)
    discount = np.where(ended < 0.15, 0.0, np.where(ended < 0.3, 0.97, 0.99))
    numbers = map(_tensor, (action, reward + 0.5 * chance.normal(size=grid)))
    return ReplayBatch(obs, *numbers, next_obs, _tensor(discount), legal, next_legal)


def _legal(cell: Cell, chance: np.random.Generator, grid: tuple[int, ...]) -> Tensor | None:
    """Masks over the Choices (..., D, K): one option at least, all where a head has a condition."""
    if not cell.masked:
        return None
    spec = SPECS[cell.spec]
    found = np.zeros((*grid, spec.num_heads, spec.max_options), dtype=bool)
    for head, (n, condition) in enumerate(zip(spec.cardinalities, spec.conditions, strict=True)):
        options = (chance.random((*grid, n)) < 0.6) | (condition is not None)
        sure = chance.integers(n, size=grid) if n else np.zeros(grid)
        found[..., head, :n] = options | (np.arange(n) == sure[..., None])
    return torch.from_numpy(found[..., spec.is_choice, :])


def _tensor(x: Any) -> Tensor:
    return torch.from_numpy(np.asarray(x, dtype=np.float32))


# --- playing --------------------------------------------------------------------------------------


def moved(x: Any, device: str, members: Sequence[int] | None = None) -> Any:
    """A batch, or a state, of some members on a device."""
    if isinstance(x, Tensor):
        return (x if members is None else x[list(members)]).to(device, copy=True)
    if isinstance(x, dict):
        return {name: moved(y, device, members) for name, y in x.items()}
    if isinstance(x, tuple):
        return type(x)(*(moved(y, device, members) for y in x))
    return x


class Played:
    """What a learner made of batches: parameters at first, after one update and after eight.

    Args:
        cell: The learner.
        device: Where it is.
        data: The batches, taken in turns.
        members: The members that play.
        first: The state that they begin with; None: their own.
    """

    def __init__(
        self,
        cell: Cell,
        device: str,
        data: Sequence[Any],
        members: Sequence[int] = (0, 1, 2),
        first: dict[str, Tensor] | None = None,
    ) -> None:
        self.learner = build(cell, device, [SEEDS[m] for m in members])
        if first is not None:
            self.learner.load_state_dict(moved(first, device, members))
        self.states, self.acted, self.metrics = [self.state()], [], []
        for k in range(UPDATES):
            batch = moved(data[k % len(data)], device, members)
            metrics = self.learner.update(batch)()
            obs, legal = (x if x is None else _seen(x, cell) for x in (batch.obs, batch.legal))
            self.acted.append(self.learner.act(obs, legal).action.cpu().clone())
            if k in (0, UPDATES - 1):
                self.metrics.append({name: x.cpu().clone() for name, x in metrics.items()})
                self.states.append(self.state())
        self.alive = self.learner.alive.tolist()

    def state(self) -> dict[str, Tensor]:
        return moved(self.learner.state_dict(), "cpu")


def _seen(x: Tensor, cell: Cell) -> Tensor:
    return x[:, 0] if cell.algorithm == "ppo" else x[:, :SLOTS]


def parameters(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """What is learned, (P, columns) each."""
    names = [n for n in state if n in ("target", "kl_coef") or n.split(".")[-1] == "values"]
    return {name: state[name].view(len(state[name]), -1) for name in names}


def assert_near(
    found: dict[str, Tensor], wanted: dict[str, Tensor], first: dict[str, Tensor], share: float
) -> None:
    """Each member has come to the same place, but for a small share of the way it went.

    Adam goes as far along a gradient that is nothing but rounding as along any other, so numbers
    are left out whose gradient is within rounding of zero, as far as the wanted state knows.
    """
    before, known = parameters(first), parameters(wanted)
    for name, x in parameters(found).items():
        seen = _has_gradient(wanted, name)
        off = ((x - known[name]) * seen).double().norm(dim=-1)
        way = (known[name] - before[name]).double().norm(dim=-1)
        rounding = 1e-7 * known[name].double().norm(dim=-1)
        said = f"{name} is off by {(off / way).tolist()} of its way"
        assert (off <= share * way + rounding).all(), said  # NaN is not less


def _has_gradient(state: dict[str, Tensor], name: str) -> Tensor | float:
    if name == "kl_coef":
        return 1.0
    learned = name
    if name == "target":
        learned = next(n for n in ("values", "critic.values") if n in state)
    size = state[learned.replace("values", "square")].sqrt()
    return size > 1e-4 * size.amax(-1, keepdim=True)


def need_gpu() -> None:
    """Skips a module where there is no GPU; in one line for all of them."""
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device", allow_module_level=True)
