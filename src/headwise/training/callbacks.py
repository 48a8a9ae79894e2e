"""Who looks at a run while it goes: sinks, callbacks, the progress display and the checkpoints."""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from headwise.checks import checked_count, plain
from headwise.errors import ConfigError
from headwise.training.checkpoint_saver import Saver
from headwise.training.episodes import RECENT_EPISODES
from headwise.training.loop import Loop
from headwise.training.progress import Progress
from headwise.training.report import Report, make_report
from headwise.training.sinks.base import Sink

Callback: TypeAlias = Callable[[Report], object]
"""Called with every report; the run stops when it returns True."""

DISPLAY_SECONDS = 0.5
logger = logging.getLogger("headwise")


@dataclass(frozen=True)
class StopOnScore:
    """A callback that stops a run when its mean return over the last episodes is good enough.

    A member that has not played so many episodes yet has not reached it. Members that have diverged
    are not waited for.
    """

    score: float
    members: Literal["all", "any"] = "all"
    """Whether every member must reach the score, or one of them."""
    episodes: int = 100
    """Episodes that the score is the mean of, up to 1000."""

    def __post_init__(self) -> None:
        score = plain(self.score)
        if not isinstance(score, int | float) or not math.isfinite(score):
            raise ConfigError("the score to stop at must be a number", got=score)
        if self.members not in ("all", "any"):
            raise ConfigError(
                "members must say who has to reach the score",
                got=self.members,
                allowed="'all' or 'any'",
            )
        episodes = checked_count("episodes", self.episodes, most=RECENT_EPISODES)
        for name, value in (("score", score), ("episodes", episodes)):
            object.__setattr__(self, name, value)

    def __call__(self, report: Report) -> bool:
        """Whether to stop."""
        last = [returns[-self.episodes :] for returns in report.last_returns]
        good = [len(mine) == self.episodes and mine.mean() >= self.score for mine in last]
        reached = np.array(good, dtype=np.bool_)[report.alive]
        if not len(reached):
            return True  # nobody is left to reach anything
        return bool(reached.all() if self.members == "all" else reached.any())


class Watch:
    """Looks at a loop and does what is due; `with` opens and closes everything.

    Args:
        loop: The run.
        total: Environment steps that each member is to have taken in the end.
        sinks: Who writes numbers down.
        callbacks: Who is told, and may stop the run.
        progress: The display, if there is one.
        saver: Who writes checkpoints, if any are wanted.
        log_every: Environment steps of a member between two reports.
    """

    def __init__(
        self,
        loop: Loop,
        total: int,
        *,
        sinks: Sequence[Sink] = (),
        callbacks: Sequence[Callback] = (),
        progress: Progress | None = None,
        saver: Saver | None = None,
        log_every: int = 1000,
    ) -> None:
        _check_watchers(sinks, callbacks)
        self._loop, self._total = loop, total
        self._sinks, self._callbacks = sinks, callbacks
        self._progress, self._saver = progress, saver
        self._log_every = log_every
        self._next_log = (loop.env_steps // log_every + 1) * log_every
        self._told = loop.env_steps
        self._next_display = 0.0
        self._started, self._first_step = time.monotonic(), loop.env_steps
        self._diverged = ~loop.algorithm.alive.cpu().numpy()
        self._warned_of_temperature = False
        self._stack = ExitStack()
        self.interrupted = False
        """Whether Ctrl-C was pressed."""

    def __enter__(self) -> Watch:
        """Opens sinks and display, and listens for Ctrl-C."""
        with ExitStack() as opened:
            for sink in self._sinks:
                sink.open(self._loop.keys.seeds, self._loop.env_steps)
                opened.callback(sink.close)
            if self._progress is not None:
                self._progress.open(self._total, self._loop.env_steps)
                opened.callback(self._progress.close)
            opened.enter_context(_listening(self._interrupt))
            self._stack = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Closes everything, also after an error."""
        self._stack.close()

    def due(self) -> float:
        """The steps by which something is due, at the latest."""
        if self.interrupted:
            return 0.0
        return min(self._next_log, math.inf if self._saver is None else self._saver.next_step)

    def __call__(self, loop: Loop) -> bool:
        """Does what is due; True stops the run."""
        step, stop = loop.env_steps, self.interrupted
        if step >= self._next_log:
            self._next_log = (step // self._log_every + 1) * self._log_every
            stop = self._tell() or stop
        if self._progress is not None and time.monotonic() >= self._next_display:
            self._progress.show(self._report())
            self._next_display = time.monotonic() + DISPLAY_SECONDS
        if self._saver is not None and self._saver.due(step):
            for sink in self._sinks:
                sink.flush()  # so that what is written down is never older than the checkpoint
            self._saver.save(step)
        return stop

    def finish(self) -> None:
        """Shows and writes the end of the run, if that was not done just now."""
        if self._progress is not None:
            self._progress.show(self._report())
        if self._told != self._loop.env_steps:
            self._tell()

    def _tell(self) -> bool:
        report = self._report()
        self._told = report.step
        for seed, alive, known in zip(report.seeds, report.alive, self._diverged, strict=True):
            if not alive and not known:
                logger.warning(
                    "Seed %d has diverged by step %d: its gradient is not finite. It is frozen as "
                    "it was; the other seeds go on. A smaller lr may help.",
                    seed,
                    report.step,
                )
        self._diverged = ~report.alive
        self._warn_of_temperature(report)
        for sink in self._sinks:
            sink.write(report)
        answers = [callback(report) for callback in self._callbacks]
        return any(answer is True or answer is np.True_ for answer in answers)

    def _warn_of_temperature(self, report: Report) -> None:
        """A temperature without bound drowns the reward; its target entropy is out of reach."""
        hot = self._loop.metrics.get("warn/temperature")
        if self._warned_of_temperature or hot is None or not bool(hot.any()):
            return
        self._warned_of_temperature = True
        logger.warning(
            "A temperature has run away by step %d: the heads cannot be as random as "
            "target_entropy asks and still earn anything. Lower it: target_entropy=0.1, or let it "
            "fall, target_entropy_end=0.05.",
            report.step,
        )

    def _report(self) -> Report:
        seconds = max(time.monotonic() - self._started, 1e-9)
        steps = (self._loop.env_steps - self._first_step) * self._loop.keys.num_members
        return make_report(self._loop, self._total, steps / seconds)

    def _interrupt(self) -> None:
        if self.interrupted:  # pressed twice: at once
            raise KeyboardInterrupt
        self.interrupted = True


def _check_watchers(sinks: object, callbacks: object) -> None:
    for name, given in (("sinks", sinks), ("callbacks", callbacks)):
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise ConfigError(f"{name} must be a list", got=repr(given), allowed=f"{name}=[...]")
        for one in given:
            if name == "callbacks" and not callable(one):
                raise ConfigError(
                    "a callback must be callable", got=repr(one), allowed="a function of a Report"
                )
            calls = ("open", "write", "flush", "close")
            if name == "sinks" and not all(callable(getattr(one, c, None)) for c in calls):
                raise ConfigError(
                    "not a sink", got=repr(one), allowed=f"something with {', '.join(calls)}"
                )


@contextmanager
def _listening(interrupt: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C waits for the end of a tick, so that the state is whole when it is saved."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: interrupt())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
