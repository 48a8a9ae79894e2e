"""The flags of `headwise train`: those of the run, and those of what is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import tyro

from headwise.agent.scheduled import EPISODES
from headwise.algorithms import AlgorithmConfig, algorithms
from headwise.checks import MAX_MEMBERS, checked_count, checked_seed, checked_steps
from headwise.cli.flags import asked_in_groups, value_of, words_by_flag
from headwise.cli.values import parse_pairs
from headwise.errors import ConfigError
from headwise.factorizations import Factorization, factorizations
from headwise.foreign_names import suggestion
from headwise.training.config import Normalization
from headwise.training.matmul_precision import MatmulPrecision


@dataclass(frozen=True, kw_only=True)
class RunFlags:
    """What to train, and how long."""

    algo: str = "ppo"
    """The algorithm: ppo, dqn or sac; its settings are listed below."""
    factorization: str = "shared"
    """How the policy or value of the joint action is built from heads: independent, shared, vdn,
    qplex, joint or ar."""
    total_timesteps: int = 200_000
    """Environment steps of each seed; with --resume the total, those done included."""
    seeds: tuple[int, ...] = (1,)
    """Number of seeds to train at once; several numbers are the seeds themselves. One is for trying
    out: to compare methods use five or more."""
    first_seed: int = 0
    """The lowest seed: `--seeds 3 --first-seed 7` trains the seeds 7, 8 and 9."""
    stop_at: float | None = None
    """Stop when every seed reaches this mean return over 100 episodes."""
    stop_on: Literal["rollout", "eval"] = "rollout"
    """Whether --stop-at is for returns in training, or in the evaluations of --eval-every."""
    eval_every: int | None = None
    """Environment steps of each seed between two deterministic evaluations in a separate
    environment; the best agent is saved as checkpoint-best.zip. No evaluations if not given."""
    eval_episodes: int = EPISODES
    """Episodes of each seed in an evaluation."""
    resume: Path | None = None
    """Folder of a run to continue, with the settings it was started with."""


@dataclass(frozen=True, kw_only=True)
class _Place:
    """An environment, and how many of it."""

    env: str = "headwise/HybridShoot-v0"
    """The environment's id: of Gymnasium, of `headwise envs`, or module:id, where the module, in
    the current folder or installed, registers your own."""
    env_settings: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE ...")] = ()
    """Settings of the environment, for example num_targets=4."""
    view: Literal["discrete", "hybrid", "continuous", "zoom"] | None = None
    """Make all heads of the action discrete, leave them hybrid, make them continuous, or make
    continuous ones several levels of bins (zoom); the action as it is if not given."""
    num_envs: int | None = None
    """Environment copies of each seed; 16 if not given."""


@dataclass(frozen=True, kw_only=True)
class EnvironmentFlags(Normalization, _Place):
    """The environment to train in."""

    def settings(self) -> dict[str, Any]:
        """What they say of a configuration, by name."""
        return vars(self) | {"env_settings": parse_pairs(self.env_settings, "setting")}


@dataclass(frozen=True, kw_only=True)
class NetworkFlags:
    """How observations are encoded before the networks of policies and critics."""

    encoder: str | None = None
    """The encoder: vector, cnn, nature, impala, entities or simba; if not given, a cnn for images,
    and none for vectors."""
    entities: Annotated[tuple[str, ...], tyro.conf.arg(metavar="LEAF=MASK ...")] = ()
    """Parts of a Dict observation that are sets of entities, each with the part that masks those
    present."""

    def settings(self) -> dict[str, Any]:
        """What they say of a configuration, by name."""
        return {"encoder": self.encoder, "entities": parse_pairs(self.entities, "pair of leaves")}


@dataclass(frozen=True, kw_only=True)
class OutputFlags:
    """What to write and what to show."""

    out: Path | None = None
    """Folder of the run; runs/ENV-ALGO-FACTORIZATION if not given."""
    log: tuple[Literal["csv", "jsonl", "parquet", "tensorboard", "wandb", "mlflow"], ...] = ("csv",)
    """Loggers of metrics: files in the folder, or W&B or MLflow, in the project headwise with runs
    of the folder's name."""
    checkpoint_every: int | None = None
    """Environment steps between checkpoints; about a minute if not given."""
    progress: bool = True
    """Show speed, remaining time and returns."""


@dataclass(frozen=True, kw_only=True)
class MachineFlags:
    """The hardware to train on."""

    device: str = "cpu"
    """Device: cpu, cuda, or auto, which measures which is faster. On a CPU the same command gives
    the same result every time."""
    matmul_precision: MatmulPrecision | None = None
    """Precision of matrix multiplication: float32, tf32 (GPUs) or bf16 (CPUs with AVX512-BF16);
    PyTorch's setting if not given."""


class Asked(NamedTuple):
    """What the words of the command line say."""

    run: RunFlags
    environment: EnvironmentFlags
    network: NetworkFlags
    output: OutputFlags
    machine: MachineFlags
    algorithm: AlgorithmConfig
    factorization: Factorization
    given: frozenset[str]
    """Names of the flags that were given."""


_GROUPS = {
    "environment": EnvironmentFlags,
    "run": RunFlags,
    "network": NetworkFlags,
    "output": OutputFlags,
    "machine": MachineFlags,
}
_WITH_RESUME = (
    "total_timesteps", "stop_at", "stop_on", "eval_every", "eval_episodes", "env", "log",
    "checkpoint_every", "progress", "device", "matmul_precision",
)  # fmt: skip
"""What may be said of a run that was begun already, since it changes none of its settings."""


def parse(argv: Sequence[str]) -> Asked:
    """The run and the settings of its algorithm and factorization.

    Which flags there are depends on two of them, so those are looked up first.
    """
    algorithm = algorithms.get(value_of(argv, "algo") or RunFlags.algo)
    factorization = factorizations.get(value_of(argv, "factorization") or RunFlags.factorization)
    given = frozenset(words_by_flag(argv))
    if "" in given:
        raise ConfigError(
            "a word without a flag",
            got=argv[0],
            fix=f"An environment is --env {argv[0]}, the folder of a run --resume {argv[0]}.",
        )
    kinds: dict[str, Any] = {
        **_GROUPS, algorithm.name: algorithm, factorization.name: factorization
    }  # fmt: skip
    _check_names(given, [f.name for kind in kinds.values() for f in fields(kind)])
    found = asked_in_groups(
        kinds,
        argv,
        "train",
        "Train an agent, or resume training:\n\n"
        "headwise train --env CartPole-v1 --total-timesteps 50000 --out runs/pole\n\n"
        "headwise train --resume runs/pole\n\n"
        f"Settings of {algorithm.name} and {factorization.name} are listed below; for others:\n\n"
        "headwise train --algo sac --factorization ar --help",
    )
    if "resume" in given:
        _check_resume(given)
    checked_steps("total_timesteps", found["run"].total_timesteps)
    return Asked(
        **{name: found[name] for name in _GROUPS},
        algorithm=found[algorithm.name],
        factorization=found[factorization.name],
        given=given,
    )


def seeds_of(run: RunFlags) -> list[int]:
    """The seeds to train: so many from the first one, or those given."""
    if len(run.seeds) > 1:
        if run.first_seed != RunFlags.first_seed:
            raise ConfigError(
                "these are the seeds already, so none of them is the first",
                got=f"--seeds {' '.join(map(str, run.seeds))} --first-seed {run.first_seed}",
                allowed="--seeds 3 --first-seed 7 for 7, 8 and 9, or --seeds 7 8 9",
            )
        return list(run.seeds)
    first = checked_seed(run.first_seed, "first_seed")
    number = checked_count("seeds", run.seeds[0] if run.seeds else 0, most=MAX_MEMBERS)
    return list(range(first, first + number))


def kept_words(asked: Asked, argv: Sequence[str]) -> list[str]:
    """The words that a command to go on with the run must repeat: the checkpoint has the rest."""
    words = words_by_flag(argv)
    if asked.run.resume is None:
        words.pop("total_timesteps", None)
    if ":" not in asked.environment.env:
        words.pop("env", None)
    return [word for name in _WITH_RESUME for word in words.get(name, ())]


def _check_names(given: frozenset[str], known: Sequence[str]) -> None:
    """Says what is meant by flags of other libraries, and by settings of what is not trained."""
    for name in sorted(given - {"help", *known}):
        owners = [
            f"--{flag} {one}"
            for flag, registry in (("algo", algorithms), ("factorization", factorizations))
            for one, kind in registry.items()
            if name in (f.name for f in fields(kind))
        ]
        fix = suggestion(name, known)
        if owners and fix is None:
            fix = f"It is a setting of {' and of '.join(owners)}."
        if fix is not None:
            raise ConfigError("unknown flag", got=_flag(name), fix=fix)


def _check_resume(given: frozenset[str]) -> None:
    """A run goes on as it was begun: other settings are refused, not ignored."""
    others = given - {"resume", "help", *_WITH_RESUME}
    if others:
        raise ConfigError(
            "a run that is resumed keeps its settings and its folder",
            got=", ".join(map(_flag, sorted(others))),
            allowed=f"{', '.join(map(_flag, _WITH_RESUME))} beside --resume",
            fix="Leave those out, or begin another run without --resume.",
        )


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
