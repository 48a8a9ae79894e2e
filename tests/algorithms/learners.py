"""Learners of tests: small ones, with parameters far from where they begin."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from headwise import ActionSpec, Choice, Range
from headwise.algorithms import algorithms
from headwise.algorithms.base import ReplayBatch, RolloutBatch, Task
from headwise.factorizations import Factorization, factorizations
from headwise.ops import Buffer, Network
from headwise.population import Keys, Store
from headwise.spaces import Condition, ObsSpec

OBS = 4
DISCRETE = ActionSpec.of(a=Choice(2), b=Choice(3), c=Choice(2))
HYBRID = ActionSpec.of(x=Range(-1, 1), a=Choice(3), y=Range(0, 5), b=Choice(2))
IDLE = ActionSpec(("kind", "a"), (Choice(2), Choice(5)), (None, Condition(0, 0, 1)))
"""`a` is in use under the first kind alone."""


def make_learner(
    algorithm: str,
    factorization: str | Factorization = "shared",
    spec: ActionSpec = DISCRETE,
    *,
    members: int = 2,
    envs: int = 2,
    obs: int = OBS,
    steps: int = 100,
    **settings: Any,
) -> Any:
    """A learner of so many members for a run of so many steps."""
    kind = factorization
    if isinstance(kind, str):
        kind = factorizations.get(kind)()
    task = Task(
        spec=spec, obs_spec=ObsSpec.flat(obs), num_slots=envs, total_steps=steps,
        factorization=kind, keys=Keys(range(members)),
    )  # fmt: skip
    config = algorithms.get(algorithm)(**{"net_arch": (8, 8)} | settings)
    return config.build(task)


def networks(store: Store) -> Iterable[tuple[Network, list[tuple[Tensor, Tensor]]]]:
    """The networks of a store with their weights and biases, which may be written to."""
    for part in store.parts:
        if isinstance(part, Network):
            assert part.parameters is not None
            yield part, part.weights(part.parameters.tensor)


def move(*stores: Store, by: float = 0.5, seed: int = 0) -> None:
    """Moves all weights and biases at random."""
    random = torch.Generator().manual_seed(seed)
    for store in stores:
        for _, layers in networks(store):
            for tensor in itertools.chain.from_iterable(layers):
                tensor += by * torch.randn(tensor.shape, generator=random)


def as_buffer(x: Tensor) -> Buffer:
    """Rows (P, B, W) in a buffer."""
    made = Buffer(x.shape[0], x.shape[1], x.shape[2])
    made.tensor[:, 0] = x
    return made


def all_actions(spec: ActionSpec) -> Tensor:
    """Every joint action of discrete heads, (J, H)."""
    options = (range(n) for n in spec.cardinalities)
    return torch.tensor(list(itertools.product(*options)), dtype=torch.float32)


def values_of(learner: Any, value: Any, obs: Tensor, actions: Sequence[Tensor]) -> Tensor:
    """What a value says of actions (H,) in all states (P, B, F), (P, B, J, G)."""
    found = []
    for action in actions:
        rows = learner.layout.to_learner(action.expand(*obs.shape[:2], -1))
        found.append(value.predict(as_buffer(obs), as_buffer(rows), None).tensor[:, 0].clone())
    return torch.stack(found, dim=-2)


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def replay_batch(spec: ActionSpec, members: int, rows: int, seed: int = 0) -> ReplayBatch:
    """Transitions with any actions; the task has ended in some of them."""
    random = torch.Generator().manual_seed(seed)
    obs, following = torch.randn(2, members, rows, OBS, generator=random)
    heads = [
        torch.randint(n, (members, rows), generator=random).float()
        if n
        else 2.0 * torch.rand(members, rows, generator=random) - 1.0
        for n in spec.cardinalities
    ]
    discount = torch.full((members, rows), 0.9)
    discount[:, ::3] = 0.0
    reward = torch.randn(members, rows, generator=random)
    return ReplayBatch(obs, torch.stack(heads, -1), reward, following, discount, None, None)


def rollout_batch(
    learner: Any, steps: int = 0, *, seed: int = 0, **parts: Tensor | None
) -> RolloutBatch:
    """A rollout (P, T, E) of a PPO learner with actions of its own; some parts may be given."""
    members, envs, steps = learner.keys.num_members, learner.num_envs, steps or learner.length
    obs = normal(members, steps + 1, envs, learner.features, seed=seed)
    legal = parts.get("legal")
    acted: dict[str, list[Tensor]] = {"action": [], **{name: [] for name in learner.extra}}
    for t in range(steps):
        found = learner.act(obs[:, t], None if legal is None else legal[:, t])
        for name, x in {"action": found.action, **found.extra}.items():
            acted[name].append(x.clone())
    action, *extra = (torch.stack(x, 1) for x in acted.values())
    never = torch.zeros(members, steps, envs, dtype=torch.bool)
    whole = {
        "obs": obs[:, :-1],
        "action": action,
        "reward": normal(members, steps, envs, seed=seed + 1),
        "next_obs": obs[:, 1:],
        "terminated": never,
        "truncated": never,
        "valid": ~never,
        "legal": None,
        "extra": dict(zip(learner.extra, extra, strict=True)),
    }
    return RolloutBatch(**whole | parts)
