"""What a tick of eight CartPoles costs outside learning, and how fast PPO then trains."""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks.machine import description
from benchmarks.results import renew, table
from benchmarks.timing import Meter, Race, meter, race
from headwise.algorithms.ppo import PPO
from headwise.envs.foreign import foreign_env
from headwise.training.build import make_loop
from headwise.training.config import RunConfig
from headwise.training.loop import Loop

SLOTS = 8
ROLLOUT = 2048
NATIVE, GYMNASIUM = "headwise/CartPole-v1", "CartPole-v1"


def loop_of(env: str, members: int = 1, rollout: int = ROLLOUT) -> Loop:
    """PPO at [64, 64] with SB3's settings for its updates, after the first tick."""
    seeds = range(members)
    config = PPO(net_arch=(64, 64), n_steps=max(rollout // SLOTS, 1), batch_size=64, n_epochs=10)
    made = foreign_env(env, seeds, SLOTS)
    plan = RunConfig.of(config, factorization="shared", total_timesteps=10**8)
    loop = make_loop(made, plan, seeds)
    loop.run(1)
    return loop


def without_learning(loop: Loop) -> Loop:
    """A loop that throws away every rollout."""

    def drop() -> None:
        if loop.memory.full:  # type: ignore[union-attr]
            loop.memory.take()  # type: ignore[union-attr]

    loop._learn_what_is_due = drop  # type: ignore[method-assign]
    return loop


def ticks(loop: Loop, *, at_once: bool) -> Callable[[], object]:
    """As many ticks as a rollout has, from one call where that can be, or one after another."""
    length = loop.algorithm.plan.length  # type: ignore[union-attr]
    if at_once:
        return lambda: loop.run(loop.env_steps + length * SLOTS)
    return lambda: [loop.tick() for _ in range(length)]


def collecting(rollout: int = ROLLOUT) -> dict[str, Meter]:
    """Meters of ticks, by what they are of; the last is the environment's own step."""
    native, single = (without_learning(loop_of(NATIVE, rollout=rollout)) for _ in range(2))
    gymnasium = without_learning(loop_of(GYMNASIUM, rollout=rollout))
    env = loop_of(GYMNASIUM).env
    action = torch.zeros(1, SLOTS, 1).numpy()
    length = max(rollout // SLOTS, 1)
    return {
        "compiled environment, a rollout at once": meter(ticks(native, at_once=True), length),
        "compiled environment, tick by tick": meter(ticks(single, at_once=False), length),
        "Gymnasium's environment": meter(ticks(gymnasium, at_once=False), length),
        "Gymnasium's environment, its step alone": meter(lambda: env.step(action)),
    }


def training(rollout: int = ROLLOUT) -> dict[str, Meter]:
    """Meters of environment steps of all members, learning included."""
    found = {}
    for title, env in (("compiled environment", NATIVE), ("Gymnasium's environment", GYMNASIUM)):
        for members in (1, 5):
            loop = loop_of(env, members, rollout)
            name = f"{title}, {'one member' if members == 1 else f'{members} members'}"
            found[name] = meter(ticks(loop, at_once=True), rollout * members)
    return found


def _rows(meters: dict[str, Meter], found: Race, *, as_us: bool) -> list[list[str]]:
    return [
        [name, f"**{1e6 / rate:.1f}**" if as_us else f"**{rate:,.0f}**"]
        for name, rate in zip(meters, found.rates, strict=True)
    ]


def run(peers: str | None, *, rounds: int, seconds: float, command: str) -> str:
    """Measures, renews the section of RESULTS.md and returns it. No peer takes part."""
    head = description(command)
    torch.set_num_threads(1)
    parts = []
    for meters, column in ((collecting(), "us a tick"), (training(), "steps/s, all members")):
        found = race(list(meters.values()), rounds=rounds, seconds=seconds)
        parts.append(table(["", column], _rows(meters, found, as_us=column == "us a tick")))
    section = "\n\n".join(
        [
            "## Rollouts",
            f"PPO shared on CartPole-v1, {SLOTS} slots a member, [64, 64], rollouts of {ROLLOUT}, "
            f"one thread; medians of {rounds} rounds of {seconds:g} s in turns. Above: acting, "
            "stepping and remembering, without learning. Below: with ten epochs of minibatches of "
            "64.",
            head + ".",
            *parts,
        ]
    )
    renew("rollout", section)
    return section
