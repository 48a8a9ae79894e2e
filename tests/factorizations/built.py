"""Policies, critics and values with parameters, asked with tensors; and the oracle beside them.

Actions are the learner's, discrete heads first. Oracles are written from the papers' formulas in
float64: they share a network's layers with what they test (`tests/ops/test_network.py` tests those)
and nothing else.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from headwise import ActionSpec, Choice, Range
from headwise.factorizations import factorizations
from headwise.heads.blueprint import Blueprint
from headwise.heads.layout import Layout
from headwise.ops import Buffer, Draw, Evaluation, Network
from headwise.ops.network import definition
from headwise.population import Adam, Keys, Store
from headwise.spaces import Condition

FEATURES = 4
MEMBERS = 3
DISCRETE = ActionSpec.of(a=Choice(2), b=Choice(3), c=Choice(2))
HYBRID = ActionSpec.of(x=Range(-1, 1), a=Choice(3), y=Range(0, 5), b=Choice(2))
CONTINUOUS = ActionSpec.of(x=Range(-1, 1), y=Range(0, 5))
ONE_OF = ActionSpec(
    ("kind", "run", "jump", "spin"),
    (Choice(3), Choice(4), Choice(2), Choice(2)),
    (None, Condition(0, 0, 1), Condition(0, 1, 2), Condition(2, 1, 2)),
)
PARAMETERS = ActionSpec(  # heads of both kinds that are in use under an alternative only
    ("kind", "power", "gear", "angle"),
    (Choice(3), Range(-1, 1), Choice(2), Range(0, 5)),
    (None, Condition(0, 0, 1), Condition(0, 1, 2), Condition(0, 1, 3)),
)
SPECS = {
    "discrete": DISCRETE,
    "hybrid": HYBRID,
    "continuous": CONTINUOUS,
    "one_of": ONE_OF,
    "parameters": PARAMETERS,
}


def buffer(x: Tensor | None, *, gradient: bool = False) -> Buffer | None:
    """Numbers (P, B, W) in a buffer."""
    if x is None:
        return None
    made = Buffer(x.shape[0], x.shape[1], x.shape[2], gradient=gradient)
    made.tensor[:, 0] = x
    return made


def room(rows: int, columns: int, members: int = MEMBERS) -> Buffer:
    return Buffer(members, rows, columns, gradient=True)


def observations(members: int = MEMBERS, rows: int = 5, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(members, rows, FEATURES, generator=generator)


def uniforms(columns: int, rows: int = 5, members: int = MEMBERS, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(members, rows, columns, generator=generator)


def all_actions(spec: ActionSpec) -> Tensor:
    """Every joint action of a spec of discrete heads, (J, H)."""
    options = itertools.product(*(range(n) for n in spec.cardinalities))
    return torch.tensor(list(options), dtype=torch.float32)


def some_actions(layout: Layout, rows: int = 5, members: int = MEMBERS, seed: int = 2) -> Tensor:
    """Actions (P, B, H) of the learner, with real numbers in [-1, 1]."""
    unit = uniforms(layout.num_heads, rows, members, seed)
    columns = [
        (unit[..., h] * n).floor() if n else unit[..., h] * 2.0 - 1.0
        for h, n in enumerate(layout.options)
    ]
    return torch.stack(columns, dim=-1)


def some_mask(layout: Layout, rows: int = 5, members: int = MEMBERS, seed: int = 3) -> Tensor:
    """Which options may be chosen, (P, B, total): the last of each head at least."""
    mask = (uniforms(layout.total, rows, members, seed) < 0.5).float()
    for n, start in zip(layout.sizes, starts(layout.sizes), strict=True):
        mask[..., start + n - 1] = 1.0
    return mask


def starts(sizes: Sequence[int]) -> list[int]:
    return [sum(sizes[:i]) for i in range(len(sizes))]


class Part:
    """What a factorization builds, with its parameters.

    Args:
        factorization: One, or its name.
        what: The method that builds it.
        spec: The action.
        seeds: Of the members.
        rows: The most rows.
        scale: What first parameters are multiplied with, so that they are far from zero.
        settings: Of the blueprint.
    """

    def __init__(
        self,
        factorization: Any,
        what: str,
        spec: ActionSpec,
        *,
        seeds: Sequence[int] = (0, 1, 2),
        rows: int = 5,
        scale: float = 1.0,
        **settings: Any,
    ) -> None:
        made = (
            factorizations.get(factorization)() if isinstance(factorization, str) else factorization
        )
        self.factorization = made
        self.layout = Layout(spec, joint=made.is_joint)
        self.members = len(seeds)
        self.plan = Blueprint(
            layout=self.layout, members=self.members, features=FEATURES, rows=rows,
            device=torch.device("cpu"),
            **({"net_arch": (16, 16), "branch_width": 8, "policy_gain": 1.0} | settings),
        )  # fmt: skip
        self.it = getattr(made, what)(self.plan)
        self.place(seeds, scale)

    def place(self, seeds: Sequence[int], scale: float) -> None:
        self.store = Store(Keys(seeds), self.it.parts)
        self.store.parameters.tensor.mul_(scale)

    def expect_writers(self) -> None:
        """Gradients that nobody writes will not be numbers, but those of inputs nobody sees."""
        flat = self.store.parameters.gradient
        flat.fill_(torch.nan)
        at = 0
        for part in self.it.parts:
            own = flat[..., at : at + part.size]
            if not isinstance(part, Network):
                own[..., part.width :] = 0.0
            elif part.sees is not None:
                weight = part.weights(own)[0][0]
                weight.masked_fill_(part.visible(weight).transpose(-1, -2) == 0.0, 0.0)
            at += part.size

    # --- policies -------------------------------------------------------------------------------

    def sample(self, x: Tensor, uniform: Tensor, mask: Tensor | None = None) -> tuple[Tensor, ...]:
        """Raw actions, unit actions and log-probabilities."""
        out = [room(x.shape[1], self.it.table.num_heads, x.shape[0]) for _ in range(3)]
        self.it.sample(buffer(x), buffer(uniform), buffer(mask), out)
        return tuple(b.tensor[:, 0].clone() for b in out)

    def mode(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, ...]:
        out = [room(x.shape[1], self.it.table.num_heads, x.shape[0]) for _ in range(2)]
        self.it.mode(buffer(x), buffer(mask), out)
        return tuple(b.tensor[:, 0].clone() for b in out)

    def evaluate(
        self, x: Tensor, raw: Tensor, mask: Tensor | None = None, old: Tensor | None = None
    ) -> Evaluated:
        return Evaluated(self, x, raw, mask, old)

    def rsample(self, x: Tensor, uniform: Tensor, mask: Tensor | None = None) -> Drawn:
        return Drawn(self, x, uniform, mask)

    # --- values ---------------------------------------------------------------------------------

    def predict(self, x: Tensor, action: Tensor, mask: Tensor | None = None) -> Tensor:
        """Q, (P, B, G), or (P, N, B, G) of several copies."""
        found = self.it.predict(buffer(x), buffer(action), buffer(mask)).tensor.clone()
        return found[:, 0] if found.shape[1] == 1 else found

    def gradients(
        self, x: Tensor, action: Tensor, slope: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Of parameters (P, S), and of the action (P, B, H), from that of what is predicted."""
        given = buffer(x), buffer(action, gradient=True), buffer(mask)
        q = self.it.predict(*given)
        q.gradient.copy_(slope)
        self.expect_writers()
        self.it.backward(*given)
        return self.store.parameters.gradient.flatten(1).clone(), given[1].gradient[:, 0].clone()

    def greedy(self, x: Tensor, mask: Tensor | None = None, action: Tensor | None = None) -> Tensor:
        """Actions with the best options; real numbers are those given."""
        shape = *x.shape[:2], self.layout.num_heads
        chosen = buffer(torch.zeros(shape) if action is None else action)
        self.it.greedy(buffer(x), chosen, buffer(mask))
        return chosen.tensor[:, 0].clone()

    def greedy_value(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.it.greedy_value(buffer(x), buffer(mask)).tensor[:, 0].clone()

    def fit(
        self, x: Tensor, action: Tensor, wanted: Tensor, steps: int, learning_rate: float
    ) -> float:
        """Regresses predictions on what is wanted; the last error."""
        adam = Adam(self.store, learning_rate)
        given = buffer(x), buffer(action), None
        for _ in range(steps):
            q = self.it.predict(*given)
            error = q.tensor - wanted.unsqueeze(1)
            q.gradient.copy_(2.0 * error / error[0].numel())
            self.it.backward(*given)
            adam.step()
        return float(error.square().mean())

    # --- the oracle -----------------------------------------------------------------------------

    def leaf(self) -> Tensor:
        """All parameters in float64, (P, 1, 1, S), for an oracle to learn."""
        return self.store.parameters.tensor.double().requires_grad_()

    def networks(self, leaf: Tensor) -> list[Callable[..., Tensor]]:
        """The parts in order, with those parameters: from inputs (P, 1 or C, B, F) to outputs."""
        found: list[Callable[..., Tensor]] = []
        at = 0
        for part in self.it.parts:
            own = leaf[..., at : at + part.size]
            found.append(_network(part, own) if isinstance(part, Network) else _free(part, own))
            at += part.size
        return found


def _network(part: Network, own: Tensor) -> Callable[..., Tensor]:
    return lambda *x: definition(part, own, x)[-1]


def _free(part: Any, own: Tensor) -> Callable[..., Tensor]:
    return lambda: own[..., : part.width]


class Evaluated:
    """What a policy says of actions, and its way back."""

    def __init__(
        self, part: Part, x: Tensor, raw: Tensor, mask: Tensor | None, old: Tensor | None
    ) -> None:
        from headwise.heads.blueprint import Actions
        from headwise.ops.distributions import to_unit

        self._part, self._x = part, buffer(x)
        table = part.it.table
        unit = to_unit(table, raw)
        self._taken = Actions(buffer(raw), buffer(unit), buffer(mask), buffer(old))
        heads = table.num_heads
        self.out = Evaluation(x.shape[0], x.shape[1], heads, kl=old is not None)
        part.it.evaluate(self._x, self._taken, self.out)
        numbers = [b.tensor[:, 0].clone() for b in self.out]
        self.log_prob, self.entropy = numbers[:2]
        self.kl = numbers[2] if old is not None else None

    def gradient(self, *slopes: Tensor) -> Tensor:
        """Of parameters (P, S), from those of log-probabilities, entropies and divergences."""
        for out, slope in zip(self.out, slopes, strict=True):
            out.gradient[:, 0] = slope
        self._part.expect_writers()
        self._part.it.backward(self._x, self._taken, self.out)
        return self._part.store.parameters.gradient.flatten(1).clone()


class Drawn:
    """What an actor draws, and its way back."""

    def __init__(self, part: Part, x: Tensor, uniform: Tensor, mask: Tensor | None) -> None:
        self._part, self._given = part, (buffer(x), buffer(uniform), buffer(mask))
        self.out = Draw(part.it.table, x.shape[0], x.shape[1])
        part.it.rsample(*self._given, self.out)
        self.unit, self.entropy = (
            b.tensor[:, 0].clone() for b in (self.out.unit, self.out.entropy)
        )

    def gradient(self, of_unit: Tensor, of_entropy: Tensor) -> Tensor:
        """Of parameters (P, S), from those of actions and entropies."""
        out = self.out
        if out.log_probs is not None:
            out.log_probs.gradient.zero_()
        out.unit.gradient[:, 0], out.entropy.gradient[:, 0] = of_unit, of_entropy
        self._part.expect_writers()
        self._part.it.rsample_backward(*self._given, out)
        return self._part.store.parameters.gradient.flatten(1).clone()


def assert_near(found: Tensor, wanted: Tensor, error: float = 2e-6) -> None:
    """The error as a share of the largest number of each member."""
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    found, wanted = found.double().flatten(1), wanted.detach().double().flatten(1)
    size = wanted.abs().amax(-1).clamp_min(1e-3)
    share = (found - wanted).abs().amax(-1) / size
    assert (share < error).all(), share.tolist()  # NaN is not less
