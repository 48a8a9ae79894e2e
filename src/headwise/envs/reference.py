"""Reference scores: what random actions and a good player score, for normalizing results.

`python -m headwise.envs.reference` measures them again and prints the rows that the file of each
environment keeps.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headwise.envs.lander_task import LANDER
from headwise.envs.make import make_vec, plain_name
from headwise.envs.native import NATIVE_NAMES
from headwise.envs.native.info import Reference, info_of
from headwise.envs.scripted import Policy
from headwise.envs.types import VecEnv
from headwise.envs.zoomed import ZOOM
from headwise.errors import ConfigError
from headwise.registry import unknown
from headwise.spaces import ActionSpec


class Score(NamedTuple):
    """A mean return, its standard error, and over how many episodes."""

    mean: float
    error: float
    episodes: int


@dataclass(frozen=True)
class ReferenceScore:
    """What random actions and a good player score in an environment, seen in one view."""

    random: Score
    """Of uniform random actions."""
    best: Score
    """Of the best policy that is known."""
    how: str
    """Which policy that is."""


class Task(NamedTuple):
    """Where scores can be compared: an environment, one of its modes, and a view."""

    name: str
    mode: str
    view: str

    @property
    def settings(self) -> dict[str, Any]:
        """What to give to `make_vec`."""
        mode = {reference_of(self.name).mode: self.mode} if self.mode else {}
        return {**mode, "view": self.view}


_NEUTRAL = ("view", "num_threads", "allocate", "backend")
"""Settings beside the mode that do not make it another task."""
NAMES = (*NATIVE_NAMES, "Lander")
"""The environments with reference scores."""


def reference_of(name: str) -> Reference:
    """What was measured in an environment, and how."""
    if name not in NAMES:
        raise unknown("environment with reference scores", name, NAMES)
    return info_of(name).reference if name in NATIVE_NAMES else LANDER


def default_view(name_or_id: str) -> str | None:
    """The view of an environment where none is asked for; None if it is not one of ours."""
    name = plain_name(name_or_id)
    return reference_of(name).default_view if name in NAMES else None


def tasks() -> list[Task]:
    """Every task with reference scores."""
    return [Task(name, mode, view) for name in NAMES for mode, view in reference_of(name).measured]


def reference_score(name_or_id: str, **settings: Any) -> ReferenceScore:
    """The reference scores of an environment with these settings.

    Settings that change the task (another number of targets, say) have none and are refused. The
    zoom view is measured by those of the view that it refines.
    """
    name = plain_name(name_or_id)
    known = reference_of(name)
    mode = settings.get(known.mode, known.modes[0])
    view = settings.get("view", known.default_view)
    task = mode, known.default_view if view == "zoom" else view
    neutral = (*_NEUTRAL, *ZOOM) if view == "zoom" else _NEUTRAL
    others = [key for key in settings if key not in (*neutral, known.mode)]
    if others or task not in list(known.measured):  # a user's layout cannot be hashed
        raise ConfigError(
            f"{name} has no reference scores with these settings",
            got=settings,
            allowed=f"view{known.mode and ', '}{known.mode}",
            fix="Measure them: headwise.envs.reference.measure.",
        )
    numbers = known.measured[task]
    return ReferenceScore(Score(*numbers[:3]), Score(*numbers[3:]), known.how)


def normalize(score: ArrayLike, name_or_id: str, **settings: Any) -> NDArray[np.float64]:
    """Scores on a scale where random actions are at 0 and the best known policy is at 1."""
    reference = reference_score(name_or_id, **settings)
    low, high = reference.random.mean, reference.best.mean
    return (np.asarray(score, dtype=np.float64) - low) / (high - low)


def measure(env: VecEnv, policy: Policy, episodes: int) -> Score:
    """The mean return of a policy over at least so many episodes, equally many of each slot.

    Of every slot the first episodes are taken, however long they are: to take whatever ends first
    would count short episodes twice.
    """
    num_slots = env.num_members * env.num_slots
    wanted = -(-episodes // num_slots)
    returns = np.full((num_slots, wanted), np.nan)
    counts = np.zeros(num_slots, dtype=int)
    obs = env.reset()
    while (counts < wanted).any():
        action = policy(obs.reshape(num_slots, -1))
        step = env.step(action.reshape(env.num_members, env.num_slots, -1))
        obs = step.obs
        (slots,) = np.nonzero((step.terminated | step.truncated).ravel() & (counts < wanted))
        returns[slots, counts[slots]] = step.episode_return.ravel()[slots]
        counts[slots] += 1
    error = returns.std(ddof=1) / np.sqrt(returns.size)
    return Score(float(returns.mean()), float(error), returns.size)


def random_policy(spec: ActionSpec, rng: np.random.Generator) -> Policy:
    """Uniform random actions."""

    def act(obs: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        unit = rng.random((len(obs), spec.num_heads))
        options = np.floor(unit * np.maximum(spec.cardinalities, 1))
        return np.where(spec.is_choice, options, 2.0 * unit - 1.0).astype(np.float32)

    return act


def scripted_policy(name: str, spec: ActionSpec, **settings: Any) -> Policy:
    """The policy written by hand for an environment, in the view of an action spec."""
    return reference_of(name).policy(spec, settings)


def measure_task(task: Task, episodes: int, num_slots: int = 512) -> tuple[Score, Score]:
    """What random actions and the scripted policy score."""
    env = make_vec(task.name, [0], min(num_slots, episodes), **task.settings)
    at_random = measure(env, random_policy(env.spec, np.random.default_rng(0)), episodes)
    best = measure(env, scripted_policy(task.name, env.spec, **task.settings), episodes)
    env.close()
    return at_random, best


def main(episodes: int = 16384) -> None:
    """Measures every task and prints the row of each, under the name of its environment."""
    for task in tasks():
        scores = measure_task(task, episodes if task.name != "Lander" else episodes // 4)
        text = ", ".join(f"{s.mean:.5g}, {s.error:.2g}, {s.episodes}" for s in scores)
        sys.stdout.write(f'{task.name}: ("{task.mode}", "{task.view}"): ({text}),\n')
        sys.stdout.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
