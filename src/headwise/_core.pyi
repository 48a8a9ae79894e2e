"""
The compiled heart of Headwise: environments and counter-based randomness.
"""

from collections.abc import Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray


def best_isa() -> str:
    """
    The instruction set in use: the best that this machine has, or what HEADWISE_ISA asks for.
    """

def philox(counter: Sequence[int], key: int) -> list[int]:
    """
    Four random words: Philox4x32-10 of four counter words and a 64-bit key.
    """

def normal_pair(radius_word: int, angle_word: int) -> tuple[float, float]:
    """Two random words as two standard normal numbers."""

def fill_uniforms(out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], seeds: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], stream: int, step: int) -> None:
    """
    Fills each row with numbers in [0, 1): a function of (seed, stream, step, index).
    """

def replay_draw(store: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], next: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], count: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], uniform: Annotated[NDArray[numpy.float32], dict(shape=(None, None, 2), order='C', device='cpu', writable=False)], gamma: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], terminated: int, drawn: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')], discount: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    Transitions drawn from each member's rings, and the discount of what follows.
    """

def environments() -> dict[str, list[tuple[str, object, str, str]]]:
    """
    The environments and the settings of each: (name, default, allowed, help).
    """

class VecEnv:
    """Many slots of one environment, stepped together."""

    def __init__(self, name: str, num_envs: int, settings: dict[str, object], time_limit: int | None, autoreset: int, num_threads: int) -> None: ...

    def attach(self, choices: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], ranges: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], obs: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], next_obs: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], reward: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], terminated: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu')], truncated: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu')], episode_return: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], episode_length: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """The caller's arrays, written in place at every step."""

    def seed(self, seeds: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], lanes: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], mask: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
        """
        A seed and a lane for each slot, or for those of the mask: the address of its randomness.
        """

    def reset(self, mask: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
        """Starts an episode in every slot, or in those of the mask."""

    def step(self) -> None:
        """One step of every slot, with the actions in the arrays."""

    def step_units(self, heads: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)]) -> None:
        """
        One step with actions as learners give them: options, and ranges from -1 to 1.
        """

    def port(self) -> object:
        """What compiled learners step it by; keeps it alive."""

    def snapshot(self) -> bytes:
        """The whole state of every slot, as bytes."""

    def restore(self, bytes: bytes) -> None:
        """Goes back to a snapshot."""

    def state(self, slot: int) -> dict[str, tuple[list[float], int, int]]:
        """The state of a slot: for each part its numbers, rows and columns."""

    def set_state(self, slot: int, values: dict[str, NDArray[numpy.float64]]) -> None:
        """Sets parts of the state of a slot, each a flat float64 array."""

    @property
    def num_envs(self) -> int: ...

    @property
    def time_limit(self) -> int: ...

    @property
    def obs_size(self) -> int: ...

    @property
    def obs_low(self) -> list[float]: ...

    @property
    def obs_high(self) -> list[float]: ...

    @property
    def heads(self) -> list[tuple[str, int, float, float, int]]:
        """
        The heads, choices first: (name, options or 0, low, high, different values or 0).
        """
