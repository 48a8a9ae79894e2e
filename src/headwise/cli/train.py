"""`headwise train`: train an agent, or go on with one."""

from __future__ import annotations

import logging
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from headwise.agent import Agent
from headwise.agent.storage import held_steps
from headwise.cli.runs import CHECKPOINT, RUNS, checkpoint_of, import_module_of, load_run
from headwise.cli.train_flags import Asked, kept_words, parse, seeds_of
from headwise.envs.make import plain_name
from headwise.errors import ConfigError
from headwise.training.callbacks import StopOnReturn
from headwise.training.loggers import (
    CSVLogger,
    JSONLLogger,
    Logger,
    MLflowLogger,
    ParquetLogger,
    TensorBoardLogger,
    WandbLogger,
)
from headwise.training.matmul_precision import matmul_precision_as, not_as_asked


def main(argv: Sequence[str]) -> int:
    """Trains as the words of the command line say."""
    asked = parse(argv)
    with matmul_precision_as(asked.machine.matmul_precision):
        return _train(asked, argv)


def _train(asked: Asked, argv: Sequence[str]) -> int:
    with _device_told():
        agent, checkpoint, steps = _resumed(asked, argv) if asked.run.resume else _begun(asked)
    sys.stderr.write(f"{agent!r}\n")
    if agent.config.network.learns:
        sys.stderr.write(f"network: {agent.config.network}\n")
    if missing := not_as_asked(asked.machine.matmul_precision, agent.loop.keys.device):
        sys.stderr.write(f"warning: {missing}\n")
    if "device" not in asked.given and torch.cuda.is_available():
        sys.stderr.write("There is a GPU: --device auto measures whether it is faster.\n")
    run = str(asked.run.resume or checkpoint.parent)
    go_on = ["headwise", "train", "--resume", run, *kept_words(asked, argv)]
    before, stop_at = agent.steps, asked.run.stop_at
    try:
        agent.learn(
            steps,
            progress=asked.output.progress,
            callbacks=[] if stop_at is None else [StopOnReturn(stop_at, on=asked.run.stop_on)],
            loggers=[_logger(name, checkpoint.parent, agent) for name in asked.output.log],
            checkpoint=checkpoint,
            checkpoint_every=asked.output.checkpoint_every,
            eval_every=asked.run.eval_every,
            eval_episodes=asked.run.eval_episodes,
        )
    except KeyboardInterrupt:
        told = _stopped(checkpoint, agent.steps, shlex.join(go_on))
        raise KeyboardInterrupt(told) from None
    number, env = len(agent.seeds), asked.environment.env
    named = ["--env", env] if ":" in env else []
    told = f"{agent.steps:,} steps of {number} seed{'s' * (number > 1)} are in {run}\n"
    if agent.steps == before:
        longer = shlex.join([*go_on, "--total-timesteps", str(2 * before)])
        told += f"The run is complete. To train longer: {longer}\n"
    else:
        told += f"To evaluate them: {shlex.join(['headwise', 'eval', run, *named])}\n"
    sys.stdout.write(told)
    return 0


def _begun(asked: Asked) -> tuple[Agent, Path, int]:
    """A new agent, where to save it, and the steps to train it."""
    run, place = asked.run, asked.environment
    checkpoint = (asked.output.out or _folder(asked)) / CHECKPOINT
    if checkpoint.exists():
        folder = str(checkpoint.parent)
        raise ConfigError(
            "there is a run in this folder already",
            got=folder,
            fix=f"Go on with it: headwise train --resume {shlex.quote(folder)}. Or choose another "
            "--out.",
        )
    import_module_of(place.env)
    agent = Agent(
        asked.algorithm,
        factorization=asked.factorization,
        seeds=seeds_of(run),
        device=asked.machine.device,
        **place.settings(),
        **asked.network.settings(),
    )
    return agent, checkpoint, run.total_timesteps


def _resumed(asked: Asked, argv: Sequence[str]) -> tuple[Agent, Path, int | None]:
    """The agent of a run, where it is saved, and the steps that are left; None is as planned."""
    run, given = asked.run, asked.given
    assert run.resume is not None
    env = asked.environment.env if "env" in given else None
    agent = load_run(run.resume, env, asked.machine.device, ["headwise", "train", *argv])
    checkpoint = checkpoint_of(run.resume)
    if "total_timesteps" in given:
        if run.total_timesteps <= agent.steps:
            raise ConfigError(
                "this run is already longer",
                got=f"--total-timesteps {run.total_timesteps}",
                allowed=f"more than {agent.steps}: --total-timesteps says how many there are to be "
                "in all",
            )
        return agent, checkpoint, run.total_timesteps - agent.steps
    if agent.target_steps is None:
        raise ConfigError(
            "the length of this run is unknown", fix="Give it: --total-timesteps 100000."
        )
    return agent, checkpoint, None


def _stopped(checkpoint: Path, steps: int, go_on: str) -> str:
    """What Ctrl-C has left: what the checkpoint holds, and how to go on from there."""
    if not checkpoint.is_file():
        return f"stopped at {steps:,} steps; nothing is saved"
    held = held_steps(checkpoint)
    if held == steps:
        return f"stopped at {steps:,} steps and saved; go on with: {go_on}"
    return (
        f"stopped at {steps:,} steps, without time to save: the checkpoint has {held:,}; "
        f"go on from there with: {go_on}"
    )


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


def _folder(asked: Asked) -> Path:
    view = asked.environment.view
    words: list[Any] = [plain_name(asked.environment.env), *([view] if view else [])]
    words += [asked.algorithm.name, asked.factorization.name]
    return RUNS / re.sub(r"[^\w.-]+", "-", "-".join(words))


def _logger(name: str, folder: Path, agent: Agent) -> Logger:
    if name in ("wandb", "mlflow"):
        kind = WandbLogger if name == "wandb" else MLflowLogger
        return kind("headwise", folder.resolve().name, config=agent.config.to_json())
    if name == "csv":
        return CSVLogger(folder / "metrics.csv")
    if name == "jsonl":
        return JSONLLogger(folder / "metrics.jsonl")
    if name == "parquet":
        return ParquetLogger(folder / "metrics")
    return TensorBoardLogger(folder / "tensorboard")
