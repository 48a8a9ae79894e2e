"""The probe environments: tasks so small that the right answer is known, to test learners with.

Each isolates one thing that a learner must get right, and they build on each other: when a probe
fails and those before it pass, the fault is in what it adds.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headwise.envs.probe import Episodes, Floats, Known, Probe, probes
from headwise.spaces import ActionSpec, Choice, Range

__all__ = ["Known", "Probe", "probes"]


def _one_if(right: NDArray[np.bool_]) -> Floats:
    return right.astype(np.float32)


def _one_less_square(miss: Floats) -> Floats:
    earned: Floats = np.float32(1.0) - miss * miss
    return earned


def _columns(obs: Floats, *columns: ArrayLike) -> Floats:
    """Head values (..., H) for observations (...), a column for each head."""
    return np.stack([np.broadcast_to(c, obs.shape) for c in columns], axis=-1).astype(np.float32)


@probes.register("constant")
class Constant(Probe):
    """Every action earns 1 and ends the episode, so the value is 1. Tests the value's loss."""

    known = Known(best_return=1.0, random_return=1.0)

    @staticmethod
    def reward(obs: Floats, heads: Floats) -> Floats:
        """Always 1."""
        return np.ones_like(obs)

    @staticmethod
    def best_action(obs: Floats) -> Floats:
        """Any."""
        return _columns(obs, 0)


@probes.register("observation")
class Observation(Constant):
    """What is observed, 1 or -1, is what is earned. Tests that values depend on observations."""

    episodes: ClassVar[Episodes] = ((1.0,), (-1.0,))
    known = Known(best_return=0.0, random_return=0.0)

    @staticmethod
    def reward(obs: Floats, heads: Floats) -> Floats:
        """The observation."""
        return obs.copy()


@probes.register("delay")
class Delay(Observation):
    """Nothing is earned at 0, and 1 at the 1 that follows: the value of 0 is gamma."""

    episodes: ClassVar[Episodes] = ((0.0, 1.0),)
    known = Known(best_return=1.0, random_return=1.0)


@probes.register("endless")
class Endless(Constant):
    """Every step earns 1, and only a time limit of 5 steps ends it: the value is 1 / (1 - gamma).

    Tests that truncation is bootstrapped and termination is not: who takes the time limit for the
    task's own end finds a value below 5.
    """

    episodes: ClassVar[Episodes] = ((0.0,) * 5,)
    ends_by = "truncation"
    known = Known(best_return=5.0, random_return=5.0)


@probes.register("action")
class Action(Probe):
    """One option earns 1, the other -1. Tests that a policy prefers what pays."""

    known = Known(best_return=1.0, random_return=0.0)

    @staticmethod
    def reward(obs: Floats, heads: Floats) -> Floats:
        """1 for option 1."""
        return 2.0 * heads[..., 0] - 1.0

    @staticmethod
    def best_action(obs: Floats) -> Floats:
        """Option 1."""
        return _columns(obs, 1)


@probes.register("context")
class Context(Probe):
    """The option that is observed earns 1, the other -1. Tests that a policy looks."""

    episodes: ClassVar[Episodes] = ((0.0,), (1.0,))
    known = Known(best_return=1.0, random_return=0.0)

    @staticmethod
    def reward(obs: Floats, heads: Floats) -> Floats:
        """1 for the option observed."""
        return 2.0 * _one_if(heads[..., 0] == obs) - 1.0

    @staticmethod
    def best_action(obs: Floats) -> Floats:
        """The option observed."""
        return _columns(obs, obs)


@probes.register("agree")
class Agree(Probe):
    """Two heads of three options earn 1 if they choose the same, whichever it is.

    No head can be right alone: a sum of one value for each head cannot say what pays, and a policy
    of independent heads must break the tie.
    """

    spec = ActionSpec.of([Choice(3), Choice(3)])
    known = Known(best_return=1.0, random_return=1 / 3)

    @staticmethod
    def reward(obs: Floats, heads: Floats) -> Floats:
        """1 if the heads agree."""
        return _one_if(heads[..., 0] == heads[..., 1])

    @staticmethod
    def best_action(obs: Floats) -> Floats:
        """Both the first option, for example."""
        return _columns(obs, 0, 0)


@probes.register("agree-context")
class AgreeContext(Agree):
    """Two heads of three options earn 1 if both choose the one that is observed."""

    episodes: ClassVar[Episodes] = ((0.0,), (1.0,), (2.0,))
    known = Known(best_return=1.0, random_return=1 / 9)

    @staticmethod
    def reward(obs: Floats, heads: Floats) -> Floats:
        """1 if both heads choose what is observed."""
        return _one_if((heads[..., 0] == obs) & (heads[..., 1] == obs))

    @staticmethod
    def best_action(obs: Floats) -> Floats:
        """Both what is observed."""
        return _columns(obs, obs, obs)


@probes.register("spare-head")
class SpareHead(Agree):
    """The first head earns 1 with the option observed; what the second does never matters."""

    episodes: ClassVar[Episodes] = AgreeContext.episodes
    known = Known(best_return=1.0, random_return=1 / 3)

    @staticmethod
    def reward(obs: Floats, heads: Floats) -> Floats:
        """1 if the first head chooses what is observed."""
        return _one_if(heads[..., 0] == obs)

    @staticmethod
    def best_action(obs: Floats) -> Floats:
        """What is observed, and anything."""
        return _columns(obs, obs, 0)


@probes.register("aim")
class Aim(Probe):
    """A number x from -2 to 2 earns 1 - (x - observed)^2. Tests ranges, their units included."""

    spec = ActionSpec.of([Range(-2.0, 2.0)])
    episodes: ClassVar[Episodes] = ((-1.0,), (1.0,))
    # E (x - 1)^2 = Var x + 1 = 4/3 + 1 for x uniform on [-2, 2].
    known = Known(best_return=1.0, random_return=-4 / 3)

    @staticmethod
    def reward(obs: Floats, heads: Floats) -> Floats:
        """1, less the square of the miss."""
        return _one_less_square(heads[..., 0] - obs)

    @staticmethod
    def best_action(obs: Floats) -> Floats:
        """What is observed: half of it in units of the range."""
        return _columns(obs, 0.5 * obs)


@probes.register("choose-and-aim")
class ChooseAndAim(Probe):
    """Option 0 must aim at -0.5, option 1 at 0.5: 1 - (x - target)^2. Both options are as good.

    The right number depends on the option just chosen and on nothing that is observed.
    """

    spec = ActionSpec.of([Choice(2), Range(-1.0, 1.0)])
    # E (x - 0.5)^2 = 1/3 + 1/4 for x uniform on [-1, 1].
    known = Known(best_return=1.0, random_return=5 / 12)

    @staticmethod
    def reward(obs: Floats, heads: Floats) -> Floats:
        """1, less the square of the miss."""
        target = heads[..., 0] - 0.5
        return _one_less_square(heads[..., 1] - target)

    @staticmethod
    def best_action(obs: Floats) -> Floats:
        """The second option and its target, for example."""
        return _columns(obs, 1, 0.5)
