"""The environments against the packages that they replace, and the cost of a call from Python."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.machine import description
from benchmarks.peer import best_peer
from benchmarks.results import renew, table
from benchmarks.timing import Meter, Race, meter, race
from headwise.envs.make import make_vec
from headwise.envs.reference import random_policy

THREADS = 2
SIZES = (16, 256, 4096)
ADD_PEERS = """
The peers are not dependencies and some are GPL, so they live in a virtual environment of their own:

    python3 -m venv peers
    peers/bin/pip install numba envpool "gymnasium[box2d]" \\
        cooppush==3.0.0 hybrid-shoot==0.3.0 hybrid-platform==0.1.0
    make bench PEERS=$PWD/peers/bin/python
"""


@dataclass(frozen=True)
class Contest:
    """One of our environments and the package to compare it with."""

    env: str
    num_envs: int
    view: str
    peer: str
    script: str
    candidates: Sequence[Sequence[object]]
    """Arguments of the script: the peer takes part with those that suit it best."""
    target: float | None


def contests() -> Iterable[Contest]:
    """Every comparison with a package of somebody else's."""
    for n in SIZES:
        jobs = {(n, 1, n), (n, THREADS, max(1, n // THREADS)), (n, THREADS, 64)}
        yield Contest(
            "CoopPush", n, "continuous", "cooppush 3.0.0", "measure_cooppush", sorted(jobs), 10
        )
    for kind, name, target in (
        ("step", "hybrid-shoot 0.3.0", 5),
        ("raw", "hybrid-shoot 0.3.0, its C++ step alone", None),
    ):
        for n in SIZES:
            settings = [(n, threads, kind) for threads in (1, THREADS)]
            yield Contest(
                "HybridShoot", n, "hybrid", name, "measure_hybrid_shoot", settings, target
            )
    name = "hybrid-platform 0.1.0, SyncVectorEnv"
    yield Contest("Platform", 16, "hybrid", name, "measure_hybrid_platform", [(16,)], 1000)


def our_meter(env: str, num_envs: int, view: str) -> Meter:
    """What the training loop calls: `step` with an array of actions, results in arrays."""
    vec = make_vec(env, [0], num_envs, view=view, num_threads=THREADS)
    policy = random_policy(vec.spec, np.random.default_rng(0))
    rows = np.zeros((num_envs, 1))
    actions = itertools.cycle([policy(rows)[None] for _ in range(64)])
    vec.reset()
    return meter(lambda: vec.step(next(actions)), num_envs)


def envpool_meter(num_envs: int) -> Meter:
    """EnvPool as it comes."""
    import envpool

    pool = envpool.make(
        "LunarLanderContinuous-v3",
        env_type="gymnasium",
        num_envs=num_envs,
        num_threads=THREADS,
        seed=0,
    )
    pool.reset()
    rng = np.random.default_rng(0)
    actions = itertools.cycle(
        [rng.uniform(-1, 1, (num_envs, 2)).astype(np.float32) for _ in range(64)]
    )
    return meter(lambda: pool.step(next(actions)), num_envs)


def against_peers(python: str, rounds: int, seconds: float) -> list[list[str]]:
    """The rows of the comparison with others' packages."""
    rows = []
    for contest in contests():
        peer = best_peer(python, contest.script, contest.candidates)
        ours = our_meter(contest.env, contest.num_envs, contest.view)
        result = race([ours, peer], rounds=rounds, seconds=seconds)
        peer.close()
        settings = ", ".join(map(str, peer.arguments[1:])) if len(contest.candidates) > 1 else ""
        label = f"{contest.peer} ({settings})" if settings else contest.peer
        rows.append(_row(contest.env, contest.num_envs, result, label, contest.target))
    return rows


def against_envpool(rounds: int, seconds: float) -> list[list[str]]:
    """The rows of Lander, whose physics is EnvPool's own: how much of its speed is left."""
    rows = []
    for n in SIZES:
        meters = [our_meter("Lander", n, "continuous"), envpool_meter(n)]
        result = race(meters, rounds=rounds, seconds=seconds)
        rows.append(_row("Lander", n, result, "envpool 1.2.5", 1))
    return rows


def step_costs(rounds: int, seconds: float) -> list[list[str]]:
    """Microseconds of one step() of 16 environments, and our speed when there are many."""
    rows = []
    for env, view, target in (
        ("ContextualDecoupler", "discrete", 5),
        ("HybridShoot", "hybrid", 5),
        ("CoopPush", "continuous", None),
        ("Platform", "hybrid", None),
    ):
        rates = [race([our_meter(env, n, view)], rounds=rounds, seconds=seconds).rates[0]
                 for n in SIZES]  # fmt: skip
        limit = f"< {target}" if target else ""
        rows.append([env, f"{16e6 / rates[0]:.2f}", limit, *(_short(rate) for rate in rates)])
    return rows


def run(peers: str | None, *, rounds: int, seconds: float, command: str) -> str:
    """Measures everything there is to measure here, renews RESULTS.md and returns the text."""
    head = description(command)
    text = [
        "## Environments",
        f"Medians of {rounds} rounds of {seconds:g} s in which both sides take turns, random "
        f"actions, {THREADS} threads; a ratio is taken within a round (smallest to largest in "
        "brackets). Ours is `VecEnv.step` as the training loop calls it, a peer what its users "
        "call, with the number of threads (and job size) that suits it best.",
        head + ".",
    ]
    columns = ["environment", "envs", "ours, steps/s", "peer", "peer, steps/s", "ratio", "target"]
    rows = against_peers(peers, rounds, seconds) if peers else []
    rows += against_envpool(rounds, seconds)
    text.append(table(columns, rows))
    columns = ["environment", "us per step() of 16", "target", *(f"steps/s at {n}" for n in SIZES)]
    text.append(table(columns, step_costs(rounds, seconds)))
    section = "\n\n".join(text)
    if peers:
        renew("envs", section)
    else:
        sys.stderr.write(f"RESULTS.md is left as it is: no peers were given.\n{ADD_PEERS}\n")
    return section


def _row(env: str, num_envs: int, result: Race, label: str, target: float | None) -> list[str]:
    low, high = result.spread[0]
    return [
        env,
        str(num_envs),
        _short(result.rates[0]),
        label,
        _short(result.rates[1]),
        f"**{_digits(result.ratios[0])}** ({_digits(low)} to {_digits(high)})",
        f">= {target:g}" if target else "",
    ]


def _digits(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}"


def _short(rate: float) -> str:
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if rate >= size:
            return f"{rate / size:.3g}{letter}"
    return f"{rate:.3g}"
