"""A peer's package, measured in its own Python, which is never ours: some of them are GPL."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

SCRIPTS = Path(__file__).parent / "peers"


class Peer:
    """A process that measures one peer whenever it is asked to.

    Args:
        python: The interpreter of a virtual environment in which the peers are installed.
        script: Which script of `benchmarks/peers` to run.
        arguments: What to give to it.
    """

    def __init__(self, python: str, script: str, arguments: Sequence[object]) -> None:
        self.arguments = tuple(arguments)
        self._process = subprocess.Popen(
            [python, f"{script}.py", *map(str, arguments)],
            cwd=SCRIPTS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        while (line := self._read()) != "ready":
            if not line and self._process.poll() is not None:
                raise RuntimeError(f"{script} {arguments} did not start; run it to see why")

    def __call__(self, seconds: float) -> float:
        """Works for so many seconds and says how many steps per second it did."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        return float(self._read())

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def best_peer(python: str, script: str, candidates: Sequence[Sequence[object]]) -> Peer:
    """The peer at the settings that suit it best on this machine."""
    rates = []
    for arguments in candidates:
        peer = Peer(python, script, arguments)
        peer(0.3)
        rates.append(peer(1.0))
        peer.close()
    return Peer(python, script, candidates[rates.index(max(rates))])
