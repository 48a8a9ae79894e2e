"""Specs and models that the contract tests of factorizations share.

A model is what a factorization builds, with its parameters, for tensors with actions in the order
of the spec: (P, B, ...) in and out. Its rows are as many as a call has, up to `ROOM`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from headwise import ActionSpec, Choice, ConfigError, Range
from headwise.algorithms.sac.actor import ActionSampler
from headwise.factorizations import Factorization, factorizations
from headwise.factorizations.base import offers as defines
from headwise.heads.blueprint import Actions, Blueprint
from headwise.heads.layout import Layout
from headwise.ops import Buffer, Evaluation
from headwise.population import Keys
from headwise.population.store import Adam, Store
from headwise.spaces import Condition

OBS = 4
DISCRETE = ActionSpec.of(a=Choice(2), b=Choice(3), c=Choice(2))
HYBRID = ActionSpec.of(x=Range(-1, 1), a=Choice(3), y=Range(0, 5), b=Choice(2))
CONTINUOUS = ActionSpec.of(x=Range(-1, 1), y=Range(0, 5))
ONE_OF = ActionSpec(
    ("kind", "run", "jump", "spin"),
    (Choice(3), Choice(4), Choice(2), Choice(2)),
    (None, Condition(0, 0, 1), Condition(0, 1, 2), Condition(2, 1, 2)),
)
PARAMETERS = ActionSpec(  # options and numbers that are in use under an alternative only
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
SEEDS = (0, 1, 2)


def is_built(name: str, what: str, spec: str) -> bool:
    """Whether a factorization offers something for a spec; refusals are in test_refusals."""
    if not defines(factorizations.get(name), what):
        return False
    try:
        MODELS[what](name, spec, (0,), rows=1)
    except ConfigError:
        return False
    return True


def offers(what: str) -> list[tuple[str, str]]:
    """All (factorization, spec) pairs where a factorization offers something."""
    specs = [s for s in SPECS if not SPECS[s].num_ranges or not MODELS[what].over_options]
    return [(n, s) for n in factorizations.names() for s in specs if is_built(n, what, s)]


class Model:
    """What models share.

    Args:
        name: The factorization.
        spec: The action.
        seeds: Those of the members.
        rows: Rows of a call.
        kind: The factorization; None: a small one of that name.
        settings: Of the blueprint, where they are not the usual ones.
    """

    needs = ""
    over_options = False
    """Whether all heads must be discrete."""

    def __init__(
        self,
        name: str,
        spec: str,
        seeds: Sequence[int] = SEEDS,
        rows: int = 5,
        *,
        kind: Factorization | None = None,
        **settings: Any,
    ) -> None:
        self.kind = kind or factorizations.get(name).small()
        self.spec, self.keys, self.rows = SPECS[spec], Keys(seeds), rows
        self.kind.check(self.spec)
        self.layout = Layout(self.spec, joint=self.kind.is_joint)
        self.plan = Blueprint(
            layout=self.layout, members=len(seeds), features=OBS, rows=rows,
            device=self.layout.device, net_arch=(16, 16), branch_width=8, policy_gain=1.0,
        )  # fmt: skip
        self.plan = replace(self.plan, **settings)
        self.made = getattr(self.kind, self.needs)(self.plan)
        self.store = Store(self.keys, self.made.parts)
        self.obs = self.room(OBS)

    def room(self, width: int, *, gradient: bool = False) -> Buffer:
        """A buffer of as many rows."""
        return Buffer(self.keys.num_members, self.rows, width, gradient=gradient)

    def mask(self, legal: Tensor | None) -> Buffer | None:
        """Which options are allowed, (P, B, D, K)."""
        allowed = self.layout.mask(legal)
        return None if allowed is None else self.filled(allowed.expand(*self.obs_shape, -1))

    @property
    def obs_shape(self) -> tuple[int, int]:
        """Members and rows."""
        return self.keys.num_members, self.rows

    def filled(self, x: Tensor) -> Buffer:
        """A buffer with these numbers, (P, B, W)."""
        buffer = self.room(x.shape[-1])
        buffer.tensor[:, 0] = x
        return buffer

    def see(self, obs: Tensor) -> Buffer:
        """Takes in observations, (P, B, F)."""
        self.obs.tensor[:, 0] = obs
        return self.obs

    def action(self, action: Tensor) -> Buffer:
        """Actions in unit form (P, B, H) as the learner has them."""
        return self.filled(self.layout.to_learner(action))

    @property
    def gradient(self) -> Tensor:
        """That of the parameters, (P, S)."""
        return self.store.parameters.gradient.flatten(1)


class PolicyModel(Model):
    """A policy of PPO."""

    needs = "policy"

    @property
    def num_uniforms(self) -> int:
        """Uniform numbers of an action."""
        return self.made.table.num_uniforms

    def draw(
        self, obs: Tensor, uniform: Tensor, legal: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions in unit form (P, B, H), raw ones as the learner has them, log-probabilities."""
        raw, unit, log_prob = (self.room(self.layout.num_heads) for _ in range(3))
        self.made.sample(
            self.see(obs), self.filled(uniform), self.mask(legal), [raw, unit, log_prob]
        )
        found = self.layout.from_learner(unit.tensor[:, 0])
        return found, raw.tensor[:, 0], log_prob.tensor[:, 0]

    def mode(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """The greedy actions, (P, B, H)."""
        raw, unit = (self.room(self.layout.num_heads) for _ in range(2))
        self.made.mode(self.see(obs), self.mask(legal), [raw, unit])
        return self.layout.from_learner(unit.tensor[:, 0])

    def judge(
        self, obs: Tensor, raw: Tensor, legal: Tensor | None = None, unit: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies of the learner's raw actions, (P, B, heads) each."""
        self.said = Evaluation(*self.obs_shape, self.layout.num_heads)
        unit = raw if unit is None else unit
        self.taken = Actions(self.filled(raw), self.filled(unit), self.mask(legal))
        self.made.evaluate(self.see(obs), self.taken, self.said)
        return tuple(x.tensor[:, 0].clone() for x in self.said)

    def loss_backward(self, obs: Tensor, members: Sequence[int]) -> Tensor:
        """A loss (P, 1) that touches everything, and its gradient in some members."""
        raw = self.layout.to_learner(some_actions(self.spec, *self.obs_shape))
        log_prob, entropy = self.judge(obs, raw)
        for x, slope in zip(self.said, (1.0, 0.1), strict=True):
            x.gradient.zero_()
            x.gradient[list(members)] = slope
        self.made.backward(self.obs, self.taken, self.said)
        return (log_prob + 0.1 * entropy).sum((-1, -2)).unsqueeze(-1)


class ValueModel(Model):
    """A value of DQN."""

    needs = "value"
    over_options = True

    def predict(self, obs: Tensor, action: Tensor, legal: Tensor | None = None) -> Tensor:
        """What is predicted of actions, (P, B, G)."""
        self.given = self.see(obs), self.action(action), self.mask(legal)
        self.q = self.made.predict(*self.given)
        return self.q.tensor[:, 0].clone()

    def best(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """The greedy actions, (P, B, H)."""
        chosen = self.room(self.layout.num_heads)
        self.made.greedy(self.see(obs), chosen, self.mask(legal))
        return self.layout.from_learner(chosen.tensor[:, 0])

    def best_value(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """What is predicted of the greedy action, (P, B, G)."""
        found = self.made.greedy_value(self.see(obs), self.mask(legal)).tensor[:, 0]
        return found.expand(*self.obs_shape, self.made.num_values).clone()

    def loss_backward(self, obs: Tensor, members: Sequence[int]) -> Tensor:
        """A loss (P, 1) that touches everything, and its gradient in some members."""
        q = self.predict(obs, some_actions(self.spec, *self.obs_shape))
        self.q.gradient.zero_()
        self.q.gradient[list(members)] = 2.0 * self.q.tensor[list(members)]
        self.made.backward(*self.given)
        return q.square().sum((-1, -2)).unsqueeze(-1)

    def trained_a_little(self, obs: Tensor, steps: int = 30) -> ValueModel:
        """Moves a value away from its start, where everything is nearly equal."""
        adam, generator = Adam(self.store, 0.02), torch.Generator().manual_seed(1)
        shape = self.obs_shape
        for _ in range(steps):
            columns = [
                torch.randint(n, shape, generator=generator) for n in self.spec.cardinalities
            ]
            action = torch.stack(columns, -1).float()
            q = self.predict(obs, action)
            wanted = torch.sin(7.0 * action.sum(-1, keepdim=True) + obs.sum(-1, keepdim=True))
            self.q.gradient[:, 0] = 2.0 * (q - wanted) / q[0].numel()
            self.made.backward(*self.given)
            adam.step()
        return self


class PlainModel(ValueModel):
    """A value of DQN that is not dueling."""

    needs = "plain_value"


class CriticModel(Model):
    """A critic of PPO."""

    needs = "critic"

    def value(self, obs: Tensor) -> Tensor:
        """V, (P, B, G)."""
        return self.made.value(self.see(obs)).tensor[:, 0].clone()

    def taken(self) -> Actions:
        """Some actions with the chances of all options, of a branching critic."""
        action = self.action(some_actions(self.spec, *self.obs_shape))
        table = getattr(self.made, "table", None)
        if table is None:
            return Actions(action, action)
        sizes, generator = table.sizes, torch.Generator().manual_seed(4)
        options = [torch.randint(n, (self.rows, 1), generator=generator) for n in sizes]
        probs = [torch.rand(self.rows, n, generator=generator).softmax(-1) for n in sizes]
        option, chances = (
            self.filled(torch.cat(parts, -1).float().expand(self.keys.num_members, -1, -1))
            for parts in (options, probs)
        )
        return Actions(action, action, option=option, probs=chances)

    def loss_backward(self, obs: Tensor, members: Sequence[int]) -> Tensor:
        """A loss (P, 1) that touches everything, and its gradient in some members."""
        taken = self.taken()
        q = self.made.predict(self.see(obs), taken)
        found = q.tensor.square().sum((-1, -2, -3)).unsqueeze(-1)
        q.gradient.zero_()
        q.gradient[list(members)] = 2.0 * q.tensor[list(members)]
        self.made.backward(self.obs, taken)
        return found


class SoftModel(Model):
    """Twin critics of SAC, and the actor of those heads that they do not choose."""

    needs = "twins"

    def __init__(
        self, name: str, spec: str, seeds: Sequence[int] = SEEDS, rows: int = 5, **more: Any
    ) -> None:
        super().__init__(name, spec, seeds, rows, state_std=True, log_std=(-5.0, 1.0), **more)
        layout, kind = self.layout, self.kind
        first = 0 if kind.chooses == "none" else layout.num_discrete
        self.actor = None
        if first < layout.num_heads:
            self.actor = kind.actor(self.plan)
            self.actor_store = Store(self.keys, self.actor.parts, 1000)
        members = len(seeds)
        self.drawn = ActionSampler(
            layout, members, rows, self.actor, first, independent=self.made.independent
        )
        self.alpha = Buffer(members, 1, layout.num_heads)
        self.alpha.tensor[:] = torch.linspace(0.2, 0.5, layout.num_heads)

    @property
    def num_uniforms(self) -> int:
        """Uniform numbers of an action."""
        return self.drawn.noise.width

    def draw(self, obs: Tensor, uniform: Tensor, legal: Tensor | None = None) -> Tensor:
        """Actions in unit form, (P, B, H)."""
        self.drawn.noise.tensor[:, 0] = uniform
        x, mask, action = self.see(obs), self.mask(legal), self.drawn.action
        self.drawn.sample(x, mask)
        self.made.draw(x, action, self.alpha, self.drawn.uniform, mask)
        return self.layout.from_learner(action.tensor[:, 0])

    def mode(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """The greedy actions, (P, B, H)."""
        x, mask = self.see(obs), self.mask(legal)
        self.drawn.mode(x, mask)
        self.made.greedy(x, self.drawn.action, mask)
        return self.layout.from_learner(self.drawn.action.tensor[:, 0]).clone()

    def predict(self, obs: Tensor, action: Tensor, legal: Tensor | None = None) -> Tensor:
        """What the twins say of actions, (P, 2, B, G)."""
        self.given = self.see(obs), self.action(action), self.mask(legal)
        self.q = self.made.predict(*self.given)
        return self.q.tensor.clone()

    def soft_value(self, obs: Tensor, uniform: Tensor, legal: Tensor | None = None) -> Tensor:
        """What states are worth, the entropies of an actor's heads included, (P, B, G)."""
        self.drawn.noise.tensor[:, 0] = uniform
        x = self.see(obs)
        soft = self.drawn.soft(self.made, x, x, self.alpha, self.mask(legal))
        value = soft.value.tensor.amin(1)
        bonus = self.drawn.bonus
        return value.clone() if bonus is None else value + bonus.tensor[:, 0]

    def twins_made_equal(self) -> SoftModel:
        """So that the lesser of both critics is either, and an oracle needs to know one only."""
        for part in self.store.parts:
            for tensors in part.weights(part.parameters.tensor):
                for x in tensors:
                    half = x.shape[1] // 2
                    x[:, half:] = x[:, :half]
        return self

    def loss_backward(self, obs: Tensor, members: Sequence[int]) -> Tensor:
        """A loss (P, 1) of the critics that touches everything, and its gradient."""
        q = self.predict(obs, some_actions(self.spec, *self.obs_shape))
        self.q.gradient.zero_()
        self.q.gradient[list(members)] = 2.0 * self.q.tensor[list(members)]
        self.made.backward(*self.given)
        return q.square().sum((-1, -2, -3)).unsqueeze(-1)


MODELS: dict[str, type[Model]] = {
    kind.needs: kind for kind in (PolicyModel, ValueModel, PlainModel, CriticModel, SoftModel)
}


# --- numbers --------------------------------------------------------------------------------------


def all_actions(spec: ActionSpec) -> Tensor:
    """Every joint action of a spec of Choices, (J, H)."""
    return torch.tensor(
        list(itertools.product(*(range(n) for n in spec.cardinalities))), dtype=torch.float32
    )


def is_canonical(spec: ActionSpec, action: Tensor) -> bool:
    """Whether heads that an action does not use are at rest: the same twice is one action."""
    return bool((torch.as_tensor(spec.canonical(action.numpy())) == action).all())


def observations(members: int = 3, rows: int = 5, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(members, rows, OBS, generator=generator)


def uniforms(model: PolicyModel | SoftModel, step: int = 0) -> Tensor:
    """Uniform numbers for every row, (P, B, U)."""
    return model.keys.uniform(1, step, (model.rows, model.num_uniforms))


def some_actions(spec: ActionSpec, members: int, rows: int) -> Tensor:
    """The same actions for all members, (P, B, H)."""
    generator = torch.Generator().manual_seed(5)
    columns = [
        torch.randint(n, (rows,), generator=generator).float() if n else torch.full((rows,), 0.3)
        for n in spec.cardinalities
    ]
    return torch.stack(columns, -1).expand(members, rows, -1)


def some_masks(spec: ActionSpec, members: int, rows: int) -> Tensor:
    """Which options are legal, the first of each head among them, (P, B, D, K)."""
    sizes, generator = [n for n in spec.cardinalities if n], torch.Generator().manual_seed(3)
    legal = torch.rand(members, rows, len(sizes), max(sizes), generator=generator) < 0.5
    legal[..., 0] = True
    return legal


def assert_legal(spec: ActionSpec, action: Tensor, legal: Tensor) -> None:
    """Options are those that there are and that are legal, where heads are in use."""
    sizes = [n for n in spec.cardinalities if n]
    columns = [h for h, n in enumerate(spec.cardinalities) if n]
    options = action[..., columns].long()
    in_use = torch.as_tensor(spec.active(action.double().numpy()))[..., columns]
    assert (options < torch.tensor(sizes)).all()
    assert (legal.gather(-1, options.unsqueeze(-1)).squeeze(-1) | ~in_use).all()


def assert_in_form(spec: ActionSpec, action: Tensor) -> None:
    """Options are whole numbers that there are, and other heads in [-1, 1]."""
    for column, size in zip(action.unbind(-1), spec.cardinalities, strict=True):
        if size:
            assert ((column >= 0) & (column < size) & (column == column.floor())).all()
        else:
            assert (column.abs() <= 1).all()
