"""The callbacks of a run as one: what each of them is, and who asks them in turn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack

from headwise.training.loop import Loop
from headwise.training.report import FloatArray, Report, make_report

LATER = 2**62
"""More steps than any run takes: for callbacks that go by the clock, at every pause of a run."""


class RunCallback:
    """Looks at a run now and then, and may stop it. What it does not override does nothing.

    A plain function of a `Report` is a callback too: it is called whenever numbers are written, and
    stops the run by returning True.
    """

    def open(self, run: Watch) -> None:
        """Begins, before the first step."""

    def next_due(self, env_steps: int) -> int:
        """The environment steps of a member at which it must look next, at the latest.

        It may be called earlier, whenever the run pauses, and says `LATER` if that is enough.

        Args:
            env_steps: Those taken so far.
        """
        return LATER

    def __call__(self, run: Watch) -> bool:
        """Looks, and does what is due; True stops the run."""
        return False

    def finish(self, run: Watch) -> None:
        """Looks a last time at a run that went well."""

    def close(self) -> None:
        """Lets go of what it opened, also after an error."""


class Watch:
    """All callbacks of a run, in their order; `with` opens and closes them.

    Args:
        loop: The run.
        total: Environment steps that each member is to have taken in the end.
        callbacks: Who looks at it.
    """

    def __init__(self, loop: Loop, total: int, callbacks: Sequence[RunCallback]) -> None:
        self.loop, self.total = loop, total
        self._callbacks = callbacks
        self._started, self._first_step = time.monotonic(), loop.env_steps
        self._evaluated: dict[str, FloatArray] = {}
        self.evaluated_at = -1
        """The step of the last evaluation."""
        self._stack = ExitStack()

    def __enter__(self) -> Watch:
        """Opens all, or none."""
        with ExitStack() as opened:
            for callback in self._callbacks:
                callback.open(self)
                opened.callback(callback.close)
            self._stack = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Closes everything, also after an error."""
        self._stack.close()

    def next_due(self, env_steps: int) -> int:
        """The steps at which a callback must look next, at the latest."""
        return min((one.next_due(env_steps) for one in self._callbacks), default=LATER)

    def due(self) -> int:
        """The same from the steps taken so far."""
        return self.next_due(self.loop.env_steps)

    def __call__(self, loop: Loop) -> bool:
        """Lets everyone look; True stops the run."""
        answers = [bool(callback(self)) for callback in self._callbacks]
        return any(answers)

    def finish(self) -> None:
        """Lets everyone look a last time."""
        for callback in self._callbacks:
            callback.finish(self)

    def evaluated(self, values: dict[str, FloatArray]) -> None:
        """Takes note of what was measured now, (P,) by name."""
        self._evaluated, self.evaluated_at = values, self.loop.env_steps

    def report(self, *, latest: bool = False) -> Report:
        """The numbers of now; with what was measured now, or if `latest` with what was last."""
        seconds = max(time.monotonic() - self._started, 1e-9)
        steps = (self.loop.env_steps - self._first_step) * self.loop.keys.num_members
        more = self._evaluated if latest or self.evaluated_at == self.loop.env_steps else {}
        return make_report(self.loop, self.total, steps / seconds, more)
