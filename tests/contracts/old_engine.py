"""Parameters that the first engine left in goldens, as the networks of operations have them.

Both engines have the same layers. What differs is their order: learners have discrete heads first
where goldens have the order of the spec, a mixer's two layers lie side by side, an action that
is an input has its heads in the order in which they are chosen, and copies (heads, twins) are one
axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from engine_cells import OBS, SMALL_FACTORIZATION, SPECS, Cell, golden
from torch import Tensor

from headwise.population.store import Free, Store
from headwise.spaces import ActionSpec, Choice

Layer: TypeAlias = tuple[Tensor, Tensor]
"""Weights (P, copies ..., inputs, outputs) and biases (P, copies ..., 1, outputs)."""

Block: TypeAlias = list[Layer] | Tensor
"""The layers of a network, or free numbers (P, ...)."""


class Old:
    """Parameters of the first engine by path, from some module on."""

    def __init__(self, found: dict[str, Tensor], top: str = "") -> None:
        self._found, self._top = found, top

    def __contains__(self, path: str) -> bool:
        return f"{self._top}{path}" in self._found

    def __getitem__(self, path: str) -> Tensor:
        return self._found[f"{self._top}{path}"]

    def below(self, module: str) -> Old:
        """The parameters of a module."""
        return Old(self._found, f"{self._top}{module}.")

    def layer(self, path: str) -> Layer:
        """Weights and biases."""
        return self[f"{path}.weight"], self[f"{path}.bias"]

    def layers(self, *last: str) -> list[Layer]:
        """The encoder's layers, and those that follow."""
        first = "encoder.layers" if "encoder.layers.0.weight" in self else "layers"
        encoder = [f"{first}.{k}" for k in range(10)]
        return [self.layer(name) for name in (*encoder, *last) if f"{name}.weight" in self]


# --- orders ---------------------------------------------------------------------------------------


def in_rows(layer: Layer, order: Sequence[int]) -> Layer:
    """A layer whose inputs come in another order."""
    weight, bias = layer
    return weight[..., list(order), :], bias


def in_columns(layer: Layer, order: Sequence[int]) -> Layer:
    """A layer whose outputs come in another order."""
    weight, bias = layer
    return weight[..., list(order)], bias[..., list(order)]


def in_copies(block: list[Layer], order: Sequence[int]) -> list[Layer]:
    """Networks, one for each head, in another order."""
    return [(weight[:, list(order)], bias[:, list(order)]) for weight, bias in block]


def side_by_side(*layers: Layer) -> Layer:
    """Layers of the same inputs as one."""
    weights, biases = zip(*layers, strict=True)
    return torch.cat(weights, dim=-1), torch.cat(biases, dim=-1)


def blocks_of(sizes: Sequence[int], order: Sequence[int]) -> list[int]:
    """Where columns come from if blocks of these sizes come in another order."""
    starts = [sum(sizes[:h]) for h in range(len(sizes))]
    return [starts[h] + k for h in order for k in range(sizes[h])]


def as_inputs(spec: ActionSpec, names: Sequence[str]) -> list[int]:
    """Where the columns of an action that is an input come from, if heads come in this order.

    Before, options came first, and then one column for each head that is an interval or its bins.
    """
    kinds = {name: head for name, head in zip(spec.names, spec.heads, strict=True) if name in names}
    wide = {n: h.n for n, h in kinds.items() if isinstance(h, Choice) and not h.ordered}
    columns, at = {}, 0
    for name in sorted(kinds, key=lambda name: name not in wide):
        columns[name] = range(at, at + wide.get(name, 1))
        at += wide.get(name, 1)
    return [column for name in names for column in columns[name]]


# --- networks -------------------------------------------------------------------------------------


class Blocks:
    """What the parts of a learner's stores are, in their order, by the paths of the first engine.

    Args:
        cell: The cell.
        learner: Its learner.
    """

    def __init__(self, cell: Cell, learner: Any) -> None:
        self.cell, self.spec, self.learner = cell, SPECS[cell.spec], learner
        joint = learner.layout.joint is not None
        self.order = [0] if joint else [self.spec.names.index(n) for n in learner.layout.names]
        """The heads of the spec in the learner's order."""
        self.chosen = cell.factorization_settings.get("order", self.spec.names)
        """Their names in the order in which they are chosen."""
        discrete = [
            n for n, size in zip(self.spec.names, self.spec.cardinalities, strict=True) if size
        ]
        self.options = [name for name in self.chosen if name in discrete]
        self.numbers = learner.layout.num_continuous

    def of(self, section: str, old: dict[str, Tensor]) -> list[Block]:
        """The blocks of a section of parameters."""
        found = Old(old)
        if section == "alpha.values":
            logs = found["temperatures.log_alpha"]
            return [logs[:, self.order] if self.cell.settings.get("per_head_temperature") else logs]
        if section == "actor.values":
            return self._policy(old, self.learner.actor)
        if self.cell.algorithm == "ppo":
            critic = self._critic(found.below("critic"), self.learner.critic)
            return self._policy(old, self.learner.actor) + critic
        top = "target" if section == "target" else next(iter(old)).split(".")[0]
        value = self.learner.critic if self.cell.algorithm == "sac" else self.learner.q_net
        inner = next(iter(old)).startswith(f"{top}.inner.")
        return self._value(found.below(f"{top}.inner" if inner else top), value)

    def _policy(self, old: dict[str, Tensor], actor: Any) -> list[Block]:
        last = next(path for path in old if "actor." in path and path.endswith("output.weight"))
        found = Old(old, last.removesuffix("output.weight"))
        layers = found.layers("output")
        if type(actor).__name__ == "ChainPolicy":
            layers[0] = in_rows(layers[0], self._after(OBS, as_inputs(self.spec, self.chosen)))
        if self.cell.algorithm == "ppo" and ".stack." in last:
            layers = in_copies(layers, self.order)
        return [found["spread.free"], layers] if "spread.free" in found else [layers]

    def _critic(self, old: Old, critic: Any) -> list[Block]:
        """Critics of PPO."""
        if type(critic).__name__ == "ValueCritic":
            layers = old.layers("embedding", "output")
            return [layers if critic.num_values == 1 else in_copies(layers, self.order)]
        trunk, value, advantage = self._dueling(old.below("net"))
        sizes = [n or critic.num_bins for n in self.spec.cardinalities]
        found = [trunk, value, [in_columns(advantage[0], blocks_of(sizes, self.order))]]
        if type(critic).__name__ == "MixingCritic":
            width = SMALL_FACTORIZATION["qplex"]["mixer_width"]
            first, second = (old.below("mixer").layer(name) for name in ("first", "second"))
            first = in_columns(first, blocks_of([width] * len(sizes), self.order))
            found.append([side_by_side(first, second)])
        return found

    def _value(self, old: Old, value: Any) -> list[Block]:
        """Values of DQN, and critics of SAC."""
        kind, mixer = type(value).__name__, old.below("mixer")
        if kind == "PlainValue":
            return [old.layers("output")]
        if kind == "ActionCritic":
            first, *rest = old.layers("output")
            names = [self.spec.names[h] for h in self.order]
            return [[in_rows(first, self._after(OBS, as_inputs(self.spec, names))), *rest]]
        if kind == "ChainValue":
            state = old.below("state").layers("embedding", "output")
            state += [old.layer(n) for n in ("state_embedding", "value") if f"{n}.weight" in old]
            first, *rest = old.layers("embedding", "output", "advantage")
            seen = self._after(OBS + self.numbers, as_inputs(self.spec, self.options))
            return [state, [in_rows(first, seen), *rest]]
        if kind == "IndependentCritics":
            found = self._dueling(old.below("options")) if self.options else []
            return [*found, self._own_number(old.layers("output"))] if self.numbers else found
        found = self._dueling(old.below("net"))
        if kind == "MixedValue":
            found.append([side_by_side(mixer.layer("first"), mixer.layer("second"))])
        if kind == "WeighedValue":
            sizes = self.learner.layout.sizes
            padded = [d * max(sizes) + k for d, n in enumerate(sizes) for k in range(n)]
            state = mixer["first.weight"].shape[-2] - len(sizes) * max(sizes)
            first = in_rows(mixer.layer("first"), self._after(state, padded))
            found.append([first, mixer.layer("second")])
        return found

    def _dueling(self, old: Old) -> list[Any]:
        trunk = old.layers("embedding")
        return [trunk, [old.layer("value")], [old.layer("advantage")]]

    def _own_number(self, layers: list[Layer]) -> list[Layer]:
        """Networks that saw one number have rows for all of them now, and see the same one."""
        (weight, bias), *rest = layers
        members, *_, width = weight.shape
        narrow = weight.reshape(members, -1, self.numbers, OBS + 1, width)
        shape = (*narrow.shape[:-2], OBS + self.numbers, width)
        wide = torch.full(shape, torch.nan)
        wide[..., :OBS, :] = narrow[..., :OBS, :]
        for head in range(self.numbers):
            wide[:, :, head, OBS + head] = narrow[:, :, head, OBS]
        return [(wide, bias), *rest]

    @staticmethod
    def _after(first: int, order: Sequence[int]) -> list[int]:
        """Inputs of which the first stay where they are."""
        return [*range(first), *(first + k for k in order)]


# --- stores ---------------------------------------------------------------------------------------


def sections(about: dict[str, Any], flat: Tensor) -> dict[str, dict[str, Tensor]]:
    """Parameters (P, columns) of a golden by section and path."""
    found: dict[str, dict[str, Tensor]] = {}
    wide = [section["columns"] for section in about["sections"]]
    for section, columns in zip(about["sections"], flat.split(wide, dim=-1), strict=True):
        paths, shapes = zip(*section["modules"], strict=True)
        sizes = [torch.Size(shape).numel() for shape in shapes]
        parts = zip(paths, shapes, columns.split(sizes, dim=-1), strict=True)
        found[section["name"]] = {path: x.reshape(-1, *shape) for path, shape, x in parts}
    return found


def store_of(learner: Any, section: str) -> Store:
    """Where a section of parameters lives now."""
    if section == "target":
        return learner.target_store
    return learner.optimizers[section.removesuffix("values").removesuffix(".")].store


def rows_of(store: Store, blocks: Sequence[Block], unseen: Tensor) -> Tensor:
    """The rows (P, S) of a store whose parts these blocks are.

    Numbers that no network sees, and so nobody learned, are those of `unseen`, (P, S).
    """
    rows = []
    sizes = [part.size for part in store.parts]
    for part, own, block in zip(store.parts, unseen.split(sizes, dim=-1), blocks, strict=True):
        own = own.clone()
        rows.append(own)
        if isinstance(part, Free):
            own[:, : part.width] = block.flatten(1)
            continue
        for places, layer in zip(part.weights(own), block, strict=True):
            for place, x in zip(places, layer, strict=True):
                given = x.reshape(place.shape)
                place.copy_(torch.where(given.isnan(), place, given))
    return torch.cat(rows, dim=-1)


class Golden:
    """What the first engine made of a cell, as the rows (P, S) of a learner's stores.

    The learner begins with the golden's first parameters.

    Args:
        cell: The cell.
        learner: Its learner.
        members: Which of the golden's members the learner has.
    """

    def __init__(self, cell: Cell, learner: Any, members: Sequence[int]) -> None:
        file = golden(cell.algorithm)
        about = file.cells[cell.name][1]
        stages = file.parameters(cell, list(members))
        self._old = {stage: sections(about, flat) for stage, flat in stages.items()}
        self._blocks, self.learner = Blocks(cell, learner), learner
        self.sections = [name for name in self._old["first"] if name != "kl_coef"]
        self._first = {name: store_of(learner, name).rows() for name in self.sections}
        self._first = {name: self.rows("first", name) for name in self.sections}
        for name, rows in self._first.items():
            store_of(learner, name).load_rows(rows)

    def rows(self, stage: str, section: str) -> Tensor:
        """What a section was after a stage, or `first`, (P, S)."""
        blocks = self._blocks.of(section, self._old[stage][section])
        return rows_of(store_of(self.learner, section), blocks, self._first[section])

    def kl_coef(self, stage: str) -> Tensor | None:
        """The weight of the divergence after a stage, (P,), where there is one."""
        found = self._old[stage].get("kl_coef")
        return None if found is None else found["kl_coef"]
