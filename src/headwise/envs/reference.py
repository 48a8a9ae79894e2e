"""Reference scores: what random actions and a good player score, for normalising results.

`python -m headwise.envs.reference` measures them again and prints the table `MEASURED`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headwise.envs.make import make_vec, plain_name
from headwise.envs.scripted import Policy, scripted
from headwise.envs.types import VecEnv
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
    """Of options and numbers drawn uniformly."""
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
        mode = {_MODES[self.name][0]: self.mode} if self.mode else {}
        return {**mode, "view": self.view}


_MODES = {
    "HybridShoot": ("mode", ("dependent", "independent")),
    "CoopPush": ("layout", ("default", "independent")),
}
"""The setting that makes an environment another task, and its values, the default first."""
_VIEWS = {"ContextualDecoupler": ("discrete",)}
"""Of those that do not have all three."""
_NEUTRAL = ("view", "num_threads", "allocate", "backend")
"""Settings beside the mode that do not make it another task."""

HOW = {
    "ContextualDecoupler": "scripted, obeys the context; 100 is the most there is",
    "Platform": "scripted, hops over enemies and gaps; 1 is the most there is",
    "HybridShoot": "scripted, shoots the first target alive; the most there is is 34.7 in "
    "dependent and 33.2 in independent mode",
    "CoopPush": "scripted, every particle pushes the nearest unfinished boulder",
    "Lander": "scripted, a proportional controller; 200 counts as solved",
}

# fmt: off
MEASURED: dict[tuple[str, str, str], tuple[float, float, int, float, float, int]] = {
    # task: mean, error and episodes of random actions, then of the best policy known
    ("ContextualDecoupler", "", "discrete"): (-67.964, 0.063, 16384, 100, 0, 16384),
    ("Platform", "", "discrete"): (0.14723, 0.00082, 16384, 0.99983, 9.6e-05, 16384),
    ("Platform", "", "hybrid"): (0.15264, 0.00082, 16384, 0.99978, 0.00011, 16384),
    ("Platform", "", "continuous"): (0.15264, 0.00082, 16384, 0.99978, 0.00011, 16384),
    ("HybridShoot", "dependent", "discrete"): (-0.19844, 0.027, 16384, 34.7, 0, 16384),
    ("HybridShoot", "dependent", "hybrid"): (-0.04195, 0.029, 16384, 34.7, 0, 16384),
    ("HybridShoot", "dependent", "continuous"): (-0.04195, 0.029, 16384, 34.7, 0, 16384),
    ("HybridShoot", "independent", "discrete"): (-1.5441, 0.047, 16384, 33.108, 0.013, 16384),
    ("HybridShoot", "independent", "hybrid"): (-1.5333, 0.047, 16384, 33.2, 0, 16384),
    ("HybridShoot", "independent", "continuous"): (-1.5333, 0.047, 16384, 33.2, 0, 16384),
    ("CoopPush", "default", "discrete"): (1.2797, 0.0098, 16384, 37.171, 0, 16384),
    ("CoopPush", "default", "hybrid"): (1.215, 0.0092, 16384, 37.258, 0.00041, 16384),
    ("CoopPush", "default", "continuous"): (1.1665, 0.0088, 16384, 37.469, 1.1e-08, 16384),
    ("CoopPush", "independent", "discrete"): (0.92062, 0.0071, 16384, 30.08, 0, 16384),
    ("CoopPush", "independent", "hybrid"): (0.88134, 0.0067, 16384, 30.08, 0, 16384),
    ("CoopPush", "independent", "continuous"): (0.83758, 0.0064, 16384, 30.08, 0, 16384),
    ("Lander", "", "discrete"): (-222.65, 2.1, 4096, 280.73, 0.54, 4096),
    ("Lander", "", "hybrid"): (-194.01, 1.9, 4096, 283.06, 0.46, 4096),
    ("Lander", "", "continuous"): (-213.16, 2, 4096, 283.72, 0.42, 4096),
}
# fmt: on


def tasks() -> list[Task]:
    """Every task with reference scores."""
    return [
        Task(name, mode, view)
        for name in HOW
        for mode in _MODES.get(name, ("", ("",)))[1]
        for view in _VIEWS.get(name, ("discrete", "hybrid", "continuous"))
    ]


def reference_score(name_or_id: str, **settings: Any) -> ReferenceScore:
    """The reference scores of an environment with these settings.

    Settings that change the task (another number of targets, say) have none and are refused.
    """
    name = plain_name(name_or_id)
    if name not in HOW:
        raise unknown("environment with reference scores", name, HOW)
    setting, (mode, *_) = _MODES.get(name, ("", ("",)))
    view = "discrete" if name in _VIEWS else "hybrid"
    task = Task(name, settings.get(setting, mode), settings.get("view", view))
    others = [key for key in settings if key not in (*_NEUTRAL, setting)]
    if others or task not in MEASURED:
        raise ConfigError(
            f"{name} has no reference scores with these settings",
            got=settings,
            allowed=f"view{setting and ', '}{setting}",
            fix="Measure them: headwise.envs.reference.measure.",
        )
    numbers = MEASURED[task]
    return ReferenceScore(Score(*numbers[:3]), Score(*numbers[3:]), HOW[name])


def normalise(score: ArrayLike, name_or_id: str, **settings: Any) -> NDArray[np.float64]:
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
    """Options and numbers drawn uniformly."""

    def act(obs: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        unit = rng.random((len(obs), spec.num_heads))
        options = np.floor(unit * np.maximum(spec.cardinalities, 1))
        return np.where(spec.is_choice, options, 2.0 * unit - 1.0).astype(np.float32)

    return act


def measure_task(task: Task, episodes: int, num_slots: int = 512) -> tuple[Score, Score]:
    """What random actions and the scripted policy score."""
    env = make_vec(task.name, [0], min(num_slots, episodes), **task.settings)
    at_random = measure(env, random_policy(env.spec, np.random.default_rng(0)), episodes)
    boulders = {"num_boulders": 2} if task.name == "CoopPush" and task.mode != "default" else {}
    best = measure(env, scripted.get(task.name)(env.spec, **boulders), episodes)
    env.close()
    return at_random, best


def main(episodes: int = 16384) -> None:
    """Measures every task and prints the rows of `MEASURED`."""
    for task in tasks():
        scores = measure_task(task, episodes if task.name != "Lander" else episodes // 4)
        text = ", ".join(f"{s.mean:.5g}, {s.error:.2g}, {s.episodes}" for s in scores)
        key = ", ".join(f'"{word}"' for word in task)
        sys.stdout.write(f"    ({key}): ({text}),\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
