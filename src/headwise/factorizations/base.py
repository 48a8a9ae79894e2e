"""What a factorization offers, and the registry that lists all of them.

A factorization is a deterministic map: chance comes in as uniform numbers. It offers what it can
(a policy, a critic for policy gradients, a value, a soft value), and an algorithm that asks for
something it lacks is refused when the learner is built.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeAlias,
    overload,
    runtime_checkable,
)

from torch import Tensor

from headwise.checks import check_settings
from headwise.errors import ConfigError
from headwise.factorizations.parts.heads import Heads
from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.parts.ranges import RangeKind
from headwise.nets import Activation
from headwise.population import Initializer, Trainable
from headwise.registry import Registry
from headwise.spaces import ActionSpec

if TYPE_CHECKING:
    from headwise.factorizations.soft.base import Soft

ActorGradient: TypeAlias = Literal["straight_through", "counterfactual"]
"""How an actor of SAC learns which options are good."""

Importance: TypeAlias = Literal["uniform", "range", "range_slope", "grad", "state"]
"""How a branching critic of PPO tells how much each head matters."""

factorizations: Registry[type[Factorization]] = Registry("factorization")


@dataclass(frozen=True, kw_only=True)
class Factorization:
    """How the joint policy and value are built from heads.

    Of `policy`, `critic`, `value` and `soft` a factorization defines those that it has.
    """

    name: ClassVar[str]
    exact_greedy: ClassVar[bool] = True
    """Whether the heads' own best options are the best joint action of its value (IGM)."""
    joint_ratio: ClassVar[bool] = False
    """Whether PPO clips one ratio of the joint action, unless told otherwise, and not each head's:
    for policies in which a head's probability depends on other heads."""
    default_importance: ClassVar[Importance] = "range"
    """How PPO shares out credit by its critic, if that branches, unless told otherwise."""
    sums_head_losses: ClassVar[bool] = False
    """Whether DQN adds up the losses of heads that have predictions of their own, because each has
    its own network, or takes their mean."""
    has_soft_heads: ClassVar[bool] = False
    """Whether its value has `soft_heads`, which DQN needs at a temperature."""
    has_plain_value: ClassVar[bool] = False
    """Whether its value can be a plain number for each option, which is DQN with `dueling=False`,
    or is always made of a state's value and advantages."""

    def __post_init__(self) -> None:
        check_settings(self)

    def check(self, spec: ActionSpec) -> None:
        """Refuses a spec that this factorization cannot handle."""

    def least_numbers(self, spec: ActionSpec) -> int:
        """Numbers that a member's networks have at least: told before anything is built."""
        return sum(spec.cardinalities)

    def policy(self, blueprint: Blueprint) -> Policy:
        """A distribution over actions, for PPO."""
        raise NotImplementedError

    def critic(self, blueprint: Blueprint) -> Critic:
        """The value of states for that policy to learn by, for PPO; it may be a `Branching` one."""
        raise NotImplementedError

    def value(self, blueprint: Blueprint) -> Value:
        """The value of actions, for DQN: a `SoftValue` if `has_soft_heads`."""
        raise NotImplementedError

    def soft(self, blueprint: Blueprint) -> Soft:
        """An actor and twin critics, for SAC."""
        raise NotImplementedError


@dataclass(frozen=True)
class Blueprint:
    """What networks are built from: sizes, and where their first values come from."""

    layout: Layout
    obs_size: int
    init: Initializer
    hidden: Sequence[int]
    activation: Activation = "relu"
    branch_width: int = 128
    """Width of each half of the layer before a dueling network's outputs."""
    dueling: bool = True
    """Whether values of DQN are a state's value and advantages, or a number for each option."""
    orthogonal: bool = True
    """Whether value networks begin orthogonal."""
    range_kind: RangeKind = "squashed"
    log_std_bounds: tuple[float, float] = (-3.0, 1.0)
    state_std: bool = False
    """Whether the spread of a Range is a function of the state or a free parameter."""
    policy_gain: float = 2.0**0.5
    """The gain of a policy's output layer."""
    actor_gradient: ActorGradient = "counterfactual"
    """How an actor of SAC learns which options are good."""

    @property
    def spec(self) -> ActionSpec:
        """The action spec."""
        return self.layout.spec


@dataclass(frozen=True)
class Judged:
    """What a policy says of actions given to it. G is H, or 1 for a policy over joint actions."""

    log_prob: Tensor
    """(..., G)"""
    distributions: Heads | Callable[[], Heads]
    """Those that the actions were drawn from, or what makes them if somebody asks for them."""
    given: Tensor | None = None
    """The raw actions, where later heads depend on what earlier ones were."""

    @functools.cached_property
    def heads(self) -> Heads:
        """The distributions that the actions were drawn from."""
        made = self.distributions
        return made if isinstance(made, Heads) else made()

    @functools.cached_property
    def entropy(self) -> Tensor:
        """The entropy of each column, (..., G)."""
        return self.heads.entropy(self.given)


class Policy(Trainable, Protocol):
    """A distribution over actions given observations. Actions are raw, (P, B, H)."""

    num_uniforms: int
    """Uniform numbers that one action takes."""
    num_columns: int
    """Log-probabilities for one action (G): H, or 1 where heads are not told apart."""

    def sample(
        self, obs: Tensor, uniform: Tensor, legal: Tensor | None = None
    ) -> tuple[Tensor, Judged]:
        """Draws raw actions (P, B, H) and judges them."""

    def judge(self, obs: Tensor, raw: Tensor, legal: Tensor | None = None) -> Judged:
        """Log-probabilities and entropies of given raw actions."""

    def mode(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """The raw actions to take when chance is not wanted."""

    def to_unit(self, raw: Tensor) -> Tensor:
        """Raw actions in the learner's form."""


@runtime_checkable
class PolicyOverOptions(Protocol):
    """A policy without Ranges that can be asked for its logits alone."""

    def flat_logits(self, obs: Tensor) -> Tensor:
        """Logits of all options, (P, B, total)."""

    def logits(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """The same padded and masked, (P, B, D, K)."""


class Critic(Trainable, Protocol):
    """The value of states, for policy gradients."""

    def value(self, obs: Tensor) -> Tensor:
        """(P, B, G): G is 1, or H where each head has its own."""


@runtime_checkable
class Branching(Critic, Protocol):
    """A critic that tells heads apart: V(s), and an advantage of every option of each head.

    Its options are those of the Choices, and the bins of Ranges.
    """

    def bins(self, unit: Tensor) -> Tensor:
        """Actions in the learner's form as options of the critic, indices (..., H)."""

    def masses(self, heads: Heads) -> Tensor:
        """How likely the policy is to choose each option of the critic, (..., H, K)."""

    def centred(self, obs: Tensor, masses: Tensor) -> tuple[Tensor, Tensor]:
        """V (..., B) and advantages (..., B, H, K) whose mean under the policy is zero."""

    def predict(self, obs: Tensor, bins: Tensor, masses: Tensor) -> Tensor:
        """Q of given actions, (P, B, 1): what is regressed on the return."""

    def importance(
        self,
        advantage: Tensor,
        obs: Tensor,
        bins: Tensor,
        kind: Importance,
        legal: Tensor | None = None,
    ) -> Tensor:
        """How much each head matters, (..., B, H), not negative: from centred advantages."""

    def expected_mixture(self, obs: Tensor, masses: Tensor) -> Tensor:
        """What V lacks of the true value of the policy, (..., B)."""


class Value(Trainable, Protocol):
    """The value of actions given observations, for DQN. Actions are options, (P, B, H)."""

    num_columns: int
    """Predictions for one action (G): 1, or H where each head has its own."""

    def predict(self, obs: Tensor, action: Tensor, legal: Tensor | None = None) -> Tensor:
        """What is regressed on the target, (P, B, G)."""

    def best(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """The best action, (P, B, H)."""

    def best_value(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """What `predict` says of the best action, (P, B, G)."""

    def joint(self, obs: Tensor, action: Tensor) -> Tensor:
        """The one value of the joint action, (P, B), that `best` maximises."""


@runtime_checkable
class SoftValue(Value, Protocol):
    """A value that is also that of a policy: a softmax of what options are worth."""

    def soft_heads(
        self, obs: Tensor, temperature: float, legal: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Log-policies of columns of options, (..., D, K), and soft values (..., B, G)."""

    def options(self, action: Tensor) -> Tensor:
        """The options of those columns that an action picks, (..., D)."""


def is_offered(kind: type[Factorization], what: str) -> bool:
    """Whether a factorization defines something that algorithms may need of it."""
    return getattr(kind, what, None) is not getattr(Factorization, what, None)


@overload
def offered(
    factorization: Factorization, what: Literal["policy"], algorithm: str
) -> Callable[[Blueprint], Policy]: ...
@overload
def offered(
    factorization: Factorization, what: Literal["critic"], algorithm: str
) -> Callable[[Blueprint], Critic]: ...
@overload
def offered(
    factorization: Factorization, what: Literal["value"], algorithm: str
) -> Callable[[Blueprint], Value]: ...
@overload
def offered(
    factorization: Factorization, what: Literal["soft"], algorithm: str
) -> Callable[[Blueprint], Soft]: ...
def offered(factorization: Factorization, what: str, algorithm: str) -> Callable[[Blueprint], Any]:
    """The maker of something an algorithm needs, or a refusal that names who has it."""
    if not is_offered(type(factorization), what):
        others = [name for name, kind in factorizations.items() if is_offered(kind, what)]
        raise ConfigError(
            f"{algorithm} needs a {what}, and the factorization {factorization.name!r} has none",
            allowed=", ".join(others),
            fix="Choose one of those.",
        )
    maker: Callable[[Blueprint], Any] = getattr(factorization, what)
    return maker
