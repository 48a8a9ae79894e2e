"""`headwise train`: train an agent, or go on with one."""

from __future__ import annotations

import ast
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import Any, Literal

import tyro

from headwise.agent import Agent
from headwise.algorithms import algorithms
from headwise.cli.runs import CHECKPOINT, checkpoint_of
from headwise.envs.make import plain_name
from headwise.errors import ConfigError
from headwise.factorizations import factorizations
from headwise.training.callbacks import StopOnScore
from headwise.training.device import AUTO
from headwise.training.products import Products, not_as_asked, products_as
from headwise.training.sinks import (
    CSVSink,
    JSONLSink,
    ParquetSink,
    Sink,
    TensorBoardSink,
)


@dataclass(frozen=True, kw_only=True)
class Run:
    """What to train, where, and how long."""

    env: str = "headwise/HybridShoot-v0"
    """The environment's id: one of `headwise envs`, or any that Gymnasium knows."""
    algo: str = "ppo"
    """The algorithm: ppo, dqn or sac. Its settings are below."""
    factorization: str = "shared"
    """How the joint action is built: independent, shared, vdn, qplex, joint or ar."""
    view: Literal["discrete", "hybrid", "continuous"] | None = None
    """How the action is seen; as it is if not given."""
    seeds: tuple[int, ...] = (5,)
    """How many seeds to train at once, or the seeds themselves if there are several numbers."""
    steps: int = 200_000
    """Environment steps of each seed."""
    num_envs: int | None = None
    """Environment slots of each seed; 16 if not given."""
    env_settings: tuple[str, ...] = ()
    """Settings of the environment as name=value, for example num_targets=4."""
    normalise_obs: bool = False
    """Bring observations to mean 0 and deviation 1."""
    normalise_reward: bool = False
    """Scale rewards by the deviation of the return."""
    device: str = AUTO
    """Where learners live: cpu, cuda, or auto, which measures what is faster here."""
    products: Products | None = None
    """What is multiplied is rounded to float32, tf32 (GPU) or bf16 (some CPUs); as torch is set if
    not given."""
    out: Path | None = None
    """The folder of the run; runs/ENV-ALGO-FACTORIZATION if not given."""
    resume: Path | None = None
    """The folder of a run to go on with; everything else is then known already."""
    log: tuple[Literal["csv", "jsonl", "parquet", "tensorboard"], ...] = ("csv",)
    """How numbers are written into the folder."""
    every: int | None = None
    """Environment steps between checkpoints; about a minute if not given."""
    stop_at: float | None = None
    """End the run when every seed has this mean return over 100 episodes."""
    progress: bool = True
    """Show speed, time left and returns."""


def main(argv: Sequence[str]) -> int:
    """Trains as the words of the command line say."""
    run, settings = parse(argv)
    with products_as(run.products):
        return _train(run, settings)


def _train(run: Run, settings: dict[str, Any]) -> int:
    if run.resume is not None:
        folder = checkpoint_of(run.resume).parent
        with _device_told():
            agent = Agent.load(folder / CHECKPOINT, device=run.device)
        steps = None
    else:
        folder = run.out or _folder(run)
        if (folder / CHECKPOINT).exists():
            raise ConfigError(
                "there is a run in this folder already",
                got=str(folder),
                fix=f"Go on with it: headwise train --resume {folder}. Or choose another --out.",
            )
        with _device_told():
            agent = _agent(run, settings)
        steps = run.steps
    sys.stderr.write(f"{agent!r}\n")
    if missing := not_as_asked(run.products, agent.loop.keys.device):
        sys.stderr.write(f"warning: {missing}\n")
    callbacks = [] if run.stop_at is None else [StopOnScore(run.stop_at)]
    try:
        agent.learn(
            steps,
            progress=run.progress,
            callbacks=callbacks,
            sinks=[_sink(name, folder) for name in run.log],
            checkpoint=folder / CHECKPOINT,
            checkpoint_every=run.every,
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped at {agent.steps:,} steps and saved; "
            f"go on with: headwise train --resume {folder}"
        ) from None
    sys.stdout.write(f"{agent.steps:,} steps of {len(agent.seeds)} seeds are in {folder}\n")
    return 0


def parse(argv: Sequence[str]) -> tuple[Run, dict[str, Any]]:
    """The run and the settings of its algorithm and factorization.

    Which flags there are depends on two of them, so those are looked up first.
    """
    kinds: dict[str, Any] = {
        "algorithm": algorithms.get(_given(argv, "algo") or Run.algo),
        "factorization": factorizations.get(_given(argv, "factorization") or Run.factorization),
    }
    parts: list[Any] = [("run", Run, field(default_factory=Run))]
    for name, kind in kinds.items():
        if fields(kind):
            parts.append((f"{name}_settings", kind, field(default_factory=kind)))
    words = " and ".join(f"{kind.name!r}" for kind in kinds.values())
    arguments: Any = tyro.cli(
        make_dataclass("Train", parts),
        prog="headwise train",
        description="Train an agent, or go on with one. The settings below are those of "
        f"{words}; with another --algo or --factorization there are others.",
        args=list(argv),
        config=(tyro.conf.OmitArgPrefixes,),
    )
    settings = {
        name: getattr(arguments, f"{name}_settings", None) or kind() for name, kind in kinds.items()
    }
    return arguments.run, settings


@contextmanager
def _device_told() -> Iterator[None]:
    """Lets an agent say on stderr which device it chose, and why."""
    logger, handler = logging.getLogger("headwise.device"), logging.StreamHandler()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _agent(run: Run, settings: dict[str, Any]) -> Agent:
    return Agent(
        settings["algorithm"],
        run.env,
        factorization=settings["factorization"],
        seeds=run.seeds[0] if len(run.seeds) == 1 else list(run.seeds),
        num_envs=run.num_envs,
        view=run.view,
        env_settings=env_settings(run.env_settings),
        normalise_obs=run.normalise_obs,
        normalise_reward=run.normalise_reward,
        device=run.device,
    )


def env_settings(words: Sequence[str]) -> dict[str, Any]:
    """Settings from words like `num_targets=4`; a value that is no number or list is a word."""
    settings: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.isidentifier():
            raise ConfigError("this is no setting", got=word, allowed="name=value")
        try:
            settings[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            settings[name] = text
    return settings


def _given(argv: Sequence[str], flag: str) -> str | None:
    """The value of a flag, before the flags are known."""
    words = list(argv)
    for index, word in enumerate(words):
        if word == f"--{flag}" and index + 1 < len(words):
            return words[index + 1]
        if word.startswith(f"--{flag}="):
            return word.partition("=")[2]
    return None


def _folder(run: Run) -> Path:
    words = [plain_name(run.env), *([run.view] if run.view else []), run.algo, run.factorization]
    return Path("runs") / re.sub(r"[^\w.-]+", "-", "-".join(words))


def _sink(name: str, folder: Path) -> Sink:
    if name == "csv":
        return CSVSink(folder / "metrics.csv")
    if name == "jsonl":
        return JSONLSink(folder / "metrics.jsonl")
    if name == "parquet":
        return ParquetSink(folder / "metrics")
    return TensorBoardSink(folder / "tensorboard")
