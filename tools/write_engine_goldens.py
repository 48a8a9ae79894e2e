"""Writes `tests/goldens/engine_*.npz`: what every learner makes of fixed data, to the bit.

    python tools/write_engine_goldens.py [ppo] [dqn] [sac]

They are what the engine did when they were written. Write them anew only if it is meant to do
something else, and say why; what is in them is told in `tests/contracts/engine_cells.py`.
"""

from __future__ import annotations

import dataclasses
import io
import json
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import headwise  # noqa: F401  (before anyone multiplies matrices: see its __init__)
from headwise import ActionSpec, ConfigError
from headwise.factorizations import factorizations
from headwise.population import Keys

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "contracts"))
import engine_cells as cells
from engine_cells import OBS, ROWS, SEEDS, SLOTS, SPECS, STAGES, STEPS, UPDATES, Cell

Arrays = dict[str, NDArray[Any]]

OFF_THE_PATH: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
    "ppo": [
        ("shared", "discrete", {"ratio": "joint"}),
        ("vdn", "hybrid", {"ratio": "joint"}),
        ("ar", "hybrid", {"ratio": "per_head"}),
        ("shared", "continuous", {"ratio": "ranges_joint"}),
        ("shared", "hybrid", {"ratio": "ranges_joint"}),
        ("vdn", "hybrid", {"ratio": "ranges_joint"}),
        ("shared", "discrete", {"kl_coef": 0.2}),
        ("shared", "one_of-masked", {"kl_coef": 0.2}),
        ("independent", "continuous", {"kl_coef": 0.2, "kl_target": 0.01}),
        ("ar", "hybrid-masked", {"kl_coef": 0.2}),
        ("joint", "discrete-masked", {"kl_coef": 0.2}),
        ("shared", "hybrid", {"value_clip": 0.05}),
        ("independent", "discrete", {"value_clip": 0.05}),
        ("shared", "discrete", {"normalise": "minibatch"}),
        ("vdn", "hybrid", {"normalise": "minibatch"}),
        ("joint", "discrete", {"normalise": "minibatch"}),
        ("qplex", "one_of", {"normalise": "off"}),
        *(
            (name, "hybrid", {"importance": kind, "anneal_share": 0.0})
            for name in ("vdn", "qplex")
            for kind in ("uniform", "range", "range_slope", "grad", "state")
        ),
        ("vdn", "one_of-masked", {"importance": "state"}),
        ("vdn", "discrete", {"importance_floor": 0.1, "anneal_share": 0.0}),
        ("vdn", "hybrid", {"weight_place": "outside"}),
        ("qplex", "one_of", {"weight_place": "outside"}),
        ("vdn", "hybrid", {"critic_target": "one_step"}),
        ("qplex", "discrete-masked", {"critic_target": "one_step"}),
        ("vdn", "hybrid", {"centre": "minibatch"}),
        ("qplex", "discrete-masked", {"centre": "minibatch"}),
        ("qplex", "hybrid", {"correct_mixture": True}),
        ("qplex", "discrete-masked", {"correct_mixture": True}),
        ("shared", "continuous", {"mean_penalty": 0.1, "policy_gain": 6.0}),
        ("ar", "hybrid", {"mean_penalty": 0.1, "policy_gain": 6.0}),
        ("shared", "continuous", {"range_entropy": "mean"}),
        ("vdn", "one_of_numbers", {"range_entropy": "mean"}),
        *(
            (name, spec, {"range_kind": kind, "kl_coef": 0.2})
            for kind in ("clipped", "beta")
            for name, spec in (("shared", "hybrid"), ("ar", "hybrid"), ("vdn", "one_of_numbers"))
        ),
        ("vdn", "hybrid", {"offline_rows": 100}),
        ("qplex", "discrete-masked", {"offline_rows": 100, "correct_mixture": True}),
        ("shared", "hybrid", {"branch_width": 0}),
        ("independent", "discrete", {"branch_width": 0}),
        ("vdn", "pair", {"inspect": "decoupler"}),
        ("shared", "hybrid", {"activation": "tanh", "critic_activation": "relu"}),
        ("shared", "discrete", {"critic_hidden": [10], "critic_orthogonal": False}),
        ("vdn", "discrete", {"hidden": [9, 7, 6]}),
        ("shared", "discrete", {"hidden": [10], "gae_lambda": 0.0, "gamma": 0.9}),
        ("shared", "discrete", {"clip": 0.02, "entropy_coef": 0.0, "max_grad_norm": 1e3}),
    ],
    "dqn": [
        *((name, "discrete", {"double_q": True}) for name in ("independent", "joint", "ar")),
        *((name, "one_of-masked", {"double_q": True}) for name in ("shared", "vdn", "qplex")),
        ("shared", "hybrid_bins", {"loss": "huber"}),
        ("qplex", "discrete", {"loss": "huber"}),
        *(
            (name, spec, {"temperature": 0.1, "munchausen": 0.9})
            for name in ("independent", "shared", "vdn", "joint")
            for spec in ("discrete", "one_of-masked")
        ),
        ("vdn", "hybrid_bins-masked", {"temperature": 0.03}),
        *(
            (name, spec, {"dueling": False})
            for name in ("independent", "shared", "vdn", "joint")
            for spec in ("discrete", "one_of-masked")
        ),
        ("shared", "discrete", {"epsilon_start": 1.0, "epsilon": 0.0, "epsilon_share": 0.4}),
        ("shared", "discrete", {"tau": 1.0, "activation": "tanh"}),
        ("vdn", "discrete", {"hidden": [9, 7, 6]}),
        ("shared", "discrete", {"hidden": [10], "max_grad_norm": 0.01}),
    ],
    "sac": [
        *(
            (name, "discrete", {"entropy_bonus": "whole"})
            for name in ("independent", "shared", "vdn", "joint")
        ),
        *((name, "hybrid", {"entropy_bonus": "whole"}) for name in ("shared", "ar", "qplex")),
        ("shared", "one_of_numbers-masked", {"entropy_bonus": "whole"}),
        *((name, "hybrid", {"per_head_temperature": True}) for name in ("shared", "vdn", "ar")),
        ("independent", "one_of-masked", {"per_head_temperature": True}),
        *(
            ("shared", spec, {"actor_gradient": "straight_through"})
            for spec in ("discrete", "hybrid", "one_of-masked")
        ),
        ("shared", "hybrid", {"target_entropy_end": 0.1, "target_entropy_share": 0.5}),
        ("vdn", "discrete-masked", {"target_entropy_end": 0.1, "target_entropy_share": 0.5}),
        ("shared", "hybrid", {"activation": "tanh", "first_temperature": 0.05, "tau": 1.0}),
        ("shared", "continuous", {"actor_lr_scale": 2.0, "max_grad_norm": 0.01}),
        ("vdn", "discrete", {"hidden": [9, 7, 6]}),
        ("shared", "discrete", {"hidden": [10]}),
    ],
}
OF_FACTORIZATIONS = [
    ("dqn", "qplex", "discrete", {"mixer": "qplex"}),
    ("dqn", "qplex", "one_of-masked", {"mixer": "qplex"}),
    ("dqn", "ar", "discrete", {"order": ["c", "a", "b"]}),
    ("ppo", "ar", "hybrid", {"order": ["b", "x", "y", "a"]}),
    ("sac", "ar", "hybrid", {"order": ["b", "x", "y", "a"]}),
    ("ppo", "vdn", "hybrid", {"critic_bins": 3}),
]  # fmt: skip


def candidates(algorithm: str) -> Iterator[Cell]:
    """Every cell there might be."""
    for name in factorizations.names():
        for spec, action in SPECS.items():
            if spec == "pair" or (spec.endswith("_bins") and not _as_bins(algorithm, name)):
                continue
            yield Cell(algorithm, name, spec)
            if action.num_choices:
                yield Cell(algorithm, name, spec, masked=True)
    for name, situation, settings in OFF_THE_PATH[algorithm]:
        spec, _, masked = situation.partition("-")
        yield Cell(algorithm, name, spec, bool(masked), settings)
    for other, name, situation, settings in OF_FACTORIZATIONS:
        spec, _, masked = situation.partition("-")
        if other == algorithm:
            yield Cell(algorithm, name, spec, bool(masked), {}, settings)


def _as_bins(algorithm: str, factorization: str) -> bool:
    return algorithm == "dqn" or factorization == "joint"


def accepted(algorithm: str) -> Iterator[Cell]:
    """Every cell there is. One with settings off the path must be."""
    for cell in candidates(algorithm):
        try:
            cells.build(cell)
        except ConfigError:
            if cell.settings or cell.factorization_settings:
                raise
            continue
        yield cell


# --- data -----------------------------------------------------------------------------------------


def data_of(cell: Cell) -> Arrays:
    """Plausible transitions. Numbers have few digits, so that files are small."""
    chance = np.random.default_rng(zlib.crc32(f"{cell.algorithm} {cell.situation}".encode()))
    rollout = cell.algorithm == "ppo"
    grid = (2, len(SEEDS), STEPS, SLOTS) if rollout else (UPDATES, len(SEEDS), ROWS)

    def observations() -> NDArray[np.float32]:
        x = chance.normal(size=(*grid, OBS))
        x[..., 0] = chance.random(grid) < 0.5  # a flag, as for the inspector of the decoupler
        return _coarse(x)

    ended = chance.random(grid)
    fields: Arrays = {"obs": observations(), "next_obs": observations()}
    spec = SPECS[cell.spec]
    if cell.masked:
        fields["legal"], fields["next_legal"] = (_legal(spec, chance, grid) for _ in range(2))
    reward = np.sin(2.0 * fields["obs"][..., 1]) + 0.5 * chance.normal(size=grid)
    if rollout:
        return fields | {
            "reward": _coarse(reward),
            "terminated": ended < 0.1,
            "truncated": ended > 0.92,
            "valid": chance.random(grid) < 0.93,
        }
    action = _actions(spec, chance, grid, fields.get("legal"))
    paid = np.where(spec.is_choice, action / 3.0, action).sum(-1)
    discount = np.where(ended < 0.15, 0.0, np.where(ended < 0.3, 0.97, 0.99))
    found = {"action": action, "reward": _coarse(reward + paid), "discount": discount}
    return fields | {name: x.astype(np.float32) for name, x in found.items()}


def _coarse(x: NDArray[Any]) -> NDArray[np.float32]:
    return (np.round(x * 32.0) / 32.0).astype(np.float32)


def _legal(spec: ActionSpec, chance: np.random.Generator, grid: tuple[int, ...]) -> NDArray[Any]:
    """Masks over the Choices, (..., D, K), with one legal option of each at least.

    Heads under an alternative that is illegal are given everything, as the environments do it.
    """
    found = np.zeros((*grid, spec.num_heads, spec.max_options), dtype=bool)
    for head, (n, condition) in enumerate(zip(spec.cardinalities, spec.conditions, strict=True)):
        if not n:
            continue
        options = chance.random((*grid, n)) < 0.6
        sure = chance.integers(n, size=grid)
        options |= np.arange(n) == sure[..., None]
        if condition is not None:
            parent = found[..., condition.head, int(condition.low) : int(condition.high)]
            options |= ~parent.any(-1, keepdims=True)
        found[..., head, :n] = options
    return found[..., spec.is_choice, :]


def _actions(
    spec: ActionSpec,
    chance: np.random.Generator,
    grid: tuple[int, ...],
    legal: NDArray[Any] | None,
) -> NDArray[np.float32]:
    """Random legal actions in the learner's form."""
    found = np.zeros((*grid, spec.num_heads), dtype=np.float32)
    choice = 0
    for head, n in enumerate(spec.cardinalities):
        if not n:
            found[..., head] = _coarse(np.tanh(chance.normal(size=grid)))
            continue
        order = chance.random((*grid, n))
        if legal is not None:
            order = np.where(legal[..., choice, :n], order, -1.0)
        found[..., head] = order.argmax(-1)
        choice += 1
    return found


def acted_on(cell: Cell, fields: Arrays) -> Arrays:
    """What a learner of PPO does with the observations, and keeps for its updates."""
    learner, found = cells.build(cell), []
    chance = np.random.default_rng(zlib.crc32(cell.name.encode()))
    for k, batch in enumerate(cells.batch_of(cell, fields, {}, k) for k in range(2)):
        steps = []
        for t in range(STEPS):
            legal = None if batch.legal is None else batch.legal[:, t]
            acted = learner.act(batch.obs[:, t], Keys(SEEDS).at(1000 + STEPS * k + t), legal)
            steps.append({"action": acted.action} | acted.extra)
        found.append({n: torch.stack([step[n] for step in steps], 1).numpy() for n in steps[0]})
    extra = {name: np.stack([one[name] for one in found]) for name in found[0]}
    moved = _coarse(chance.uniform(-0.3, 0.3, extra["log_prob"].shape))
    extra["log_prob"] = extra["log_prob"] + moved * (extra["log_prob"] != 0.0)
    return extra


# --- files ----------------------------------------------------------------------------------------


def modules_of(learner: Any, section: str) -> list[tuple[str, list[int]]]:
    """The path and shape of each parameter in a section."""
    if section == "kl_coef":
        return [("kl_coef", [])]
    parts = {
        "values": ("actor", "critic") if hasattr(learner, "actor") else ("online",),
        "target": ("target",),
        "critic.values": ("critic",),
        "actor.values": ("soft.actor",),
        "alpha.values": ("temperatures",),
    }[section]
    found = []
    for part in parts:
        module = learner
        for word in part.split("."):
            module = getattr(module, word)
        named = module.named_parameters()
        found += [(f"{part}.{name}", list(x.shape[1:])) for name, x in named]
    return found


def write(algorithm: str) -> None:
    """The file of an algorithm."""
    arrays: Arrays = {}
    kept: list[dict[str, Any]] = []
    firsts: dict[bytes, str] = {}
    for cell in accepted(algorithm):
        head = f"data/{cell.situation}/"
        if f"{head}obs" not in arrays:
            arrays |= {head + name: x for name, x in data_of(cell).items()}
        fields = {n.removeprefix(head): x for n, x in arrays.items() if n.startswith(head)}
        extra = acted_on(cell, fields) if algorithm == "ppo" else {}
        count = len(fields["obs"])
        batches = [cells.batch_of(cell, fields, extra, k) for k in range(count)]
        states, acted, metrics = cells.play(cell, batches)
        first = cells.parameters(states["first"])
        name = firsts.setdefault(first.tobytes(), f"first/{len(firsts)}")
        arrays[name] = first
        arrays |= {f"{cell.name}/extra/{n}": x for n, x in extra.items()}
        reached = np.stack([cells.parameters(states[stage]) for stage in STAGES[algorithm]])
        planes, reported = cells.packed(reached, first), cells.table(metrics)
        assert np.array_equal(cells.unpacked(planes, first), reached)
        assert np.isfinite(reached).all(), cell.name
        assert np.isfinite(reported).all(), cell.name
        arrays[f"{cell.name}/parameters"] = planes
        arrays[f"{cell.name}/acted"] = acted.numpy()
        arrays[f"{cell.name}/metrics"] = reported
        learner = cells.build(cell)
        sections = []
        for section, x in cells.sections(states["first"]).items():
            modules = modules_of(learner, section)
            assert sum(int(np.prod(shape)) for _, shape in modules) == x.shape[1], section
            sections.append({"name": section, "columns": x.shape[1], "modules": modules})
        kept.append(
            dataclasses.asdict(cell)
            | {
                "first": name,
                "sections": sections,
                "metrics": [(n, x[0].numel()) for n, x in metrics[0].items()],
                "digests": {
                    stage: [cells.digest(states[stage], m) for m in range(len(SEEDS))]
                    for stage in STAGES[algorithm]
                },
            }
        )
    about = {"machine": cells.machine(), "seeds": SEEDS, "cells": kept}
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    path = cells.FOLDER / f"engine_{algorithm}.npz"
    save(path, arrays)
    print(f"{path.name}: {len(kept)} cells, {path.stat().st_size / 2**20:.2f} MiB")


def save(path: Path, arrays: Arrays) -> None:
    """As `numpy.savez_compressed`, but the same bytes whenever it is done."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, x in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(x), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            file.writestr(entry, content.getvalue(), zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for chosen in sys.argv[1:] or list(STAGES):
        write(chosen)
