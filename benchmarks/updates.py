"""Updates of learners on one core, beside the time that their products take at its peak.

The products of an update are counted by calls of its networks, and the peak is that of our own tile
of registers, looked at next to every turn.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium as gym
import torch

from benchmarks.machine import ROOT, description
from benchmarks.peer import Peer
from benchmarks.results import renew, table
from benchmarks.timing import race
from headwise.algorithms import algorithms
from headwise.envs.foreign import wrap
from headwise.envs.make import make_vec
from headwise.ops import Buffer, Layer, Network, Recorded
from headwise.ops.core import has_bf16
from headwise.population.store import Adam
from headwise.training.build import make_loop
from headwise.training.config import RunConfig
from headwise.training.matmul_precision import MatmulPrecision, matmul_precision_as

CHART = ROOT / "docs" / "assets" / "updates.svg"
BIG: dict[str, Any] = {"net_arch": (256, 256)}
PAST: dict[str, Any] = {**BIG, "batch_size": 256, "learning_starts": 2048, "buffer_size": 4096}


@dataclass(frozen=True)
class Cell:
    """An update: whose, of what, and how long it may take."""

    name: str
    algorithm: str
    factorization: str
    view: str | None
    """Of HybridShoot; None: CartPole-v1."""
    settings: dict[str, Any] = field(default_factory=dict)
    members: int = 1
    most: float | None = 1.3
    """The aim, in times of its products at the peak."""
    most_us: float | None = None
    """The aim in microseconds."""
    matmul_precision: MatmulPrecision = "float32"


SMALL_PPO: dict[str, Any] = {"net_arch": (64, 64), "batch_size": 64, "activation": "tanh"}
BIG_PPO: dict[str, Any] = {**BIG, "batch_size": 128}
CELLS = (
    Cell("PPO shared, [64, 64]", "ppo", "shared", None, SMALL_PPO, most=None, most_us=80),
    Cell("PPO shared, [64, 64], five", "ppo", "shared", None, SMALL_PPO, 5, None, 330),
    Cell("PPO shared", "ppo", "shared", "discrete", BIG_PPO),
    Cell("PPO vdn", "ppo", "vdn", "discrete", BIG_PPO),
    Cell("PPO qplex", "ppo", "qplex", "discrete", BIG_PPO, most=1.6),
    Cell("PPO ar", "ppo", "ar", "discrete", BIG_PPO, most=1.6),
    Cell("PPO ar, hybrid", "ppo", "ar", "hybrid", BIG_PPO, most=1.6),
    Cell("DQN shared", "dqn", "shared", "discrete", PAST),
    Cell("DQN vdn", "dqn", "vdn", "discrete", PAST),
    Cell("DQN qplex", "dqn", "qplex", "discrete", PAST, most=1.6),
    Cell("DQN ar", "dqn", "ar", "discrete", PAST, most=1.6),
    Cell("SAC shared (Concat)", "sac", "shared", "continuous", PAST),
    Cell("SAC vdn (BDQ)", "sac", "vdn", "hybrid", PAST),
    Cell("PPO vdn, bfloat16", "ppo", "vdn", "discrete", BIG_PPO, most=None,
         matmul_precision="bf16"),
    Cell("DQN vdn, bfloat16", "dqn", "vdn", "discrete", PAST, most=None, matmul_precision="bf16"),
    Cell("SAC shared (Concat), bfloat16", "sac", "shared", "continuous", PAST, most=None,
         matmul_precision="bf16"),
)  # fmt: skip


LIBRARIES = {"sb3": "Stable-Baselines3", "sbx": "SBX"}
PEERS: tuple[tuple[Cell, Sequence[object]], ...] = (
    (CELLS[0], ("ppo", 64, 64, 4, 2)),
    (CELLS[2], ("ppo", 256, 128, 9, 23)),
    (CELLS[11], ("sac", 256, 256, 9, 3)),
)
"""The same updates by peers: algorithm, hidden units, rows, numbers seen, actions or options."""


@dataclass
class Work:
    """What updates do: arithmetic of products, and bytes if nothing stays in a cache."""

    flops: float = 0.0
    bytes: float = 0.0

    def add(self, rows: int, inputs: float, outputs: int, times: int = 1) -> None:
        """Counts products (rows, inputs) (inputs, outputs), and what is read and written."""
        self.flops += times * 2.0 * rows * inputs * outputs
        self.bytes += times * 4.0 * (rows * inputs + inputs * outputs + rows * outputs)


def _count_network(
    work: Work, call: Callable[..., Any], net: Network, x: Sequence[Buffer],
    copies: Sequence[int] = (), **settings: Any,
) -> Any:  # fmt: skip
    """Counts what a network does in a call of `forward` or `backward`, and calls it."""
    rows, is_forward = x[0].num_rows, call.__name__ == "forward"
    for copy in copies or range(net.copies):
        seen = [float(width) for width in net.leaves]
        if net.sees is not None:
            seen = [float(sum(n for _, n in leaf[copy])) for leaf in net.sees]
        for k, layer in enumerate(net.layers):
            inputs = sum(seen) if k == 0 else net.layers[k - 1].width
            is_last = k + 1 == len(net.layers)
            if is_forward:
                columns = settings.get("columns", 0) if is_last else 0
                work.add(rows, inputs, columns or layer.width, net.members)
                continue
            if settings.get("weights", True):
                work.add(rows, inputs, layer.width, net.members)
            if k == 0:
                pairs = zip(seen, x, strict=True)
                inputs = sum(width for width, leaf in pairs if leaf.has_gradient)
            if inputs:
                work.add(rows, inputs, layer.width, net.members)
    return call(net, x, copies, **settings)


@contextmanager
def counted() -> Iterator[Work]:
    """Counts what networks and optimizers do meanwhile."""
    work = Work()
    step = Adam.step

    def stepped(optimizer: Adam, *given: Any, **settings: Any) -> None:
        numbers = optimizer.store.num_parameters * optimizer.store.parameters.tensor.shape[0]
        work.bytes += 4.0 * (7 + 2 * bool(given)) * numbers  # two moments, values and gradients
        step(optimizer, *given, **settings)

    with ExitStack() as stack:
        for name in ("forward", "backward"):
            call = partial(_count_network, work, getattr(Network, name))
            method = lambda net, *a, _call=call, **k: _call(net, *a, **k)  # noqa: E731
            stack.enter_context(mock.patch.object(Network, name, method))
        stack.enter_context(mock.patch.object(Adam, "step", stepped))
        yield work


class Update:
    """A learner that does one update after the other on the same data."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        with matmul_precision_as(cell.matmul_precision):
            self._make(cell)

    def _make(self, cell: Cell) -> None:
        seeds = range(cell.members)
        if cell.view is None:
            env: Any = wrap(partial(gym.make, "CartPole-v1"), seeds, 8)
        else:
            env = make_vec("HybridShoot", seeds, 16, view=cell.view)
        config = algorithms.get(cell.algorithm)(**cell.settings)
        plan = RunConfig.of(config, factorization=cell.factorization, total_timesteps=10**7)
        loop = make_loop(env, plan, seeds)
        learner: Any = loop.algorithm
        self.learner = learner
        loop.run(2048 * (1 if cell.algorithm == "ppo" else 2))
        with counted() as work:
            if cell.algorithm == "ppo":
                self._rewind()
                learner.run_epoch()
            else:
                learner.gradient_step()
        parts = self._each
        self.work = Work(work.flops / parts, work.bytes / parts)

    @property
    def _each(self) -> int:
        """Updates that are recorded as one."""
        if self.cell.algorithm != "ppo":
            return 1
        return int(-(-self.learner.num_rows // self.learner.batch_size))

    def _rewind(self) -> None:
        self.learner._cursor.tensor.zero_()

    def _run(self, times: int) -> int:
        if self.cell.algorithm == "ppo":
            self._rewind()
            times = min(times, self.learner.config.n_epochs)
            self.learner._epoch(times, 1)
        else:
            self.learner._update(times, 1)
        return times * self._each

    def time(self, seconds: float) -> float:
        """Seconds of one update."""
        with matmul_precision_as(self.cell.matmul_precision):
            return _time(self._run, seconds)

    def rate(self, seconds: float) -> float:
        """Updates per second."""
        return 1.0 / self.time(seconds)


class Peak:
    """The rate of our own tile of registers where everything lies in the nearest cache."""

    ROWS, INPUTS, OUTPUTS = 32, 128, 32

    def __init__(self) -> None:
        net = Network([self.INPUTS], [Layer(self.OUTPUTS)], 1, self.ROWS)
        net.place(Buffer(1, 1, net.size))
        x = Buffer(1, self.ROWS, self.INPUTS)
        for buffer in (x, net.parameters):
            buffer.tensor.fill_(0.01)  # type: ignore[union-attr]

        def product() -> None:
            net.forward([x])

        self._recorded = Recorded(product, "cpu")
        self._run(2)

    def _run(self, times: int) -> int:
        self._recorded(1000 * times)
        return 1000 * times

    def __call__(self, seconds: float = 0.02) -> float:
        """Operations per second: the best of many turns, as nothing runs faster by chance."""
        end, best = time.perf_counter() + seconds, 0.0
        while time.perf_counter() < end:
            best = max(best, 1.0 / _time(self._run, 0.001))
        return 2.0 * self.ROWS * self.INPUTS * self.OUTPUTS * best


def bandwidth(megabytes: float = 64.0) -> float:
    """Bytes per second of a copy that no cache holds."""
    x = torch.ones(int(megabytes * 250_000))
    y = torch.empty_like(x)

    def copies(times: int) -> int:
        for _ in range(times):
            y.copy_(x)
        return times

    return 8.0 * len(x) / min(_time(copies, 0.02) for _ in range(5))


def _time(run: Callable[[int], int], seconds: float) -> float:
    """Seconds of one of the things of which `run` says how many it has done.

    They are the processor's, of this thread: whoever else wants the core is not counted.
    """
    done, start = 0, time.thread_time()
    batch = 1
    while (now := time.thread_time() - start) < seconds:
        done += run(batch)
        batch = min(2 * batch, max(1, int(batch * 0.2 * seconds / max(now, 1e-6))), 1024)
    return now / done


@dataclass(frozen=True)
class Found:
    """What was measured of a cell: a number for each round."""

    cell: Cell
    work: Work
    seconds: Sequence[float]
    peaks: Sequence[float]

    @property
    def ratios(self) -> list[float]:
        """The update's time in times of its products at the peak of the same moment."""
        return [s * p / self.work.flops for s, p in zip(self.seconds, self.peaks, strict=True)]

    def row(self) -> list[str]:
        """The row of the table."""
        us = [1e6 * s for s in self.seconds]
        at_peak = statistics.median(1e6 * self.work.flops / p for p in self.peaks)
        ratio, cell = statistics.median(self.ratios), self.cell
        aim = "" if cell.most is None else f"<= {cell.most:g} x"
        aim = aim if cell.most_us is None else f"<= {cell.most_us:g} us"
        return [
            cell.name,
            f"**{statistics.median(us):,.0f}** ({min(us):,.0f} to {max(us):,.0f})",
            f"{at_peak:,.0f}",
            f"**{ratio:.2f}** ({min(self.ratios):.2f} to {max(self.ratios):.2f})",
            aim,
        ]


def measure(cells: Sequence[Cell], rounds: int, seconds: float) -> list[Found]:
    """Lets all cells take turns, each next to a look at the peak."""
    peak, updates = Peak(), [Update(cell) for cell in cells]
    for update in updates:
        update.time(0.1 * seconds)  # warm up
    turns: list[list[tuple[float, float]]] = [[] for _ in cells]
    for _ in range(rounds):
        for turn, update in zip(turns, updates, strict=True):
            turn.append((update.time(seconds), peak()))
    return [
        Found(u.cell, u.work, [s for s, _ in turn], [p for _, p in turn])
        for u, turn in zip(updates, turns, strict=True)
    ]


def against(python: str, rounds: int, seconds: float) -> list[list[str]]:
    """Rows of a table: updates of peers, in turns with ours."""
    rows = []
    for cell, sizes in PEERS:
        ours = Update(cell)
        peers = [Peer(python, "update", (library, *sizes)) for library in LIBRARIES]
        found = race([*peers, ours.rate], rounds=rounds, seconds=seconds)
        for k, name in enumerate(LIBRARIES.values()):
            low, high = found.spread[k]
            us = [f"{1e6 / rate:,.0f}" for rate in (found.rates[-1], found.rates[k])]
            ratio = f"**{1.0 / found.ratios[k]:.1f}** ({1.0 / high:.1f} to {1.0 / low:.1f})"
            rows.append([cell.name, us[0], name, us[1], ratio])
        for peer in peers:
            peer.close()
    return rows


def chart(found: Sequence[Found], path: Path) -> None:
    """The roofline: what updates reach, by how much they compute for each byte."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FixedLocator, NullLocator

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    peak = statistics.median(p for x in found for p in x.peaks) / 1e9
    slope = bandwidth() / 1e9
    places = [x.work.flops / x.work.bytes for x in found]
    span = [0.5 * min(places), 2.0 * max(places)]
    edge = sorted({span[0], min(max(peak / slope, span[0]), span[1]), span[1]})
    axes.plot(edge, [min(peak, slope * x) for x in edge], color="black")
    axes.annotate(f"peak {peak:.0f} GF/s, memory {slope:.0f} GB/s", (span[0], peak),
                  textcoords="offset points", xytext=(0, 4), fontsize=8)  # fmt: skip
    for number, (one, place) in enumerate(zip(found, places, strict=True), 1):
        reached = one.work.flops / statistics.median(one.seconds) / 1e9
        axes.plot(place, reached, "o", markersize=5, label=f"{number} {one.cell.name}")
        axes.annotate(f"{number}", (place, reached), textcoords="offset points",
                      xytext=(4, 3), fontsize=7)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="arithmetic of products for each byte, flop/byte",
             ylabel="arithmetic of products, GF/s")  # fmt: skip
    for axis, ticks in ((axes.xaxis, (2, 5, 10, 20, 50)), (axes.yaxis, (100, 200, 300, 400, 600))):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter("{x:g}")
    axes.legend(fontsize=6, loc="center left", bbox_to_anchor=(1.0, 0.5))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def run(peers: str | None, *, rounds: int, seconds: float, command: str) -> str:
    """Measures every cell, renews RESULTS.md and draws the chart; with peers if there are any."""
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    head = description(command)
    cells = [cell for cell in CELLS if cell.matmul_precision == "float32" or has_bf16()]
    found = measure(cells, rounds, seconds)
    peaks = [p / 1e9 for x in found for p in x.peaks]
    text = [
        "## Updates on one core",
        f"Medians of {rounds} rounds in which all rows take turns of {seconds:g} s (smallest to "
        "largest in brackets): recorded updates of one thread that is pinned to a core, without "
        "environments, in processor time of that thread. Of PPO an update is a minibatch of 128 "
        "rows (64 at [64, 64], CartPole), of the others a batch of 256; [256, 256] and HybridShoot "
        "where nothing else is said. At the peak: what all products of the update, without "
        "padding, would take at the rate of our "
        "own tile of registers with everything in the nearest cache, "
        f"{statistics.median(peaks):.0f} GF/s ({min(peaks):.0f} to {max(peaks):.0f}), measured "
        "next to every turn; in float32, also for rows in bfloat16.",
        head + ".",
        table(["update", "us", "products at the peak, us", "ratio", "aim"],
              [x.row() for x in found]),
    ]  # fmt: skip
    if peers is not None:
        names = ["update", "ours, us", "peer", "peer's, us", "times as long"]
        text.append(table(names, against(peers, rounds, seconds)))
    chart(found, CHART)
    section = "\n\n".join(text)
    renew("updates", section)
    sys.stderr.write(f"The roofline is in {CHART}.\n")
    return section
