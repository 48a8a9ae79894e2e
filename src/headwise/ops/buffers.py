"""Buffers: the numbers that operations read and write, with room for their gradients."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

if TYPE_CHECKING:
    from headwise.ops.core import CoreBuffer

Window: TypeAlias = tuple[tuple[int, int, int], ...]
"""Cuts of (dimension, start, count), one after another."""


_LARGEST = 2**31 - 1
"""The most rows, columns or whatever that compiled operations count."""


def check_sizes(*sizes: int) -> None:
    """Refuses sizes that no memory has."""
    if max(sizes) > _LARGEST:
        raise MemoryError(f"a buffer too large for any memory: {max(sizes):,} of something")


class _OfThread(type):
    """Lets every thread have a `now` of its own: others may train meanwhile."""

    _threads = threading.local()

    @property
    def now(cls) -> Trace | None:
        """The trace that this thread has entered, if any."""
        result: Trace | None = getattr(cls._threads, "now", None)
        return result

    @now.setter
    def now(cls, trace: Trace | None) -> None:
        cls._threads.now = trace


class Trace(metaclass=_OfThread):
    """While it is entered, buffers are tensors of a graph, for as many rows as its inputs have.

    Operations then run their definitions, and what they write takes the place of what was there
    instead of being copied over it: so the text of a learner is exported as it is. Buffers of one
    row are settings and parameters, which are constants of the graph; others have a batch's rows.
    """

    def __init__(self) -> None:
        self._tensors: dict[int, Tensor] = {}
        self._rows: Any = None

    def __enter__(self) -> Trace:
        Trace.now = self
        return self

    def __exit__(self, *_: object) -> None:
        Trace.now = None

    @staticmethod
    @contextmanager
    def paused() -> Iterator[None]:
        """While it is entered, buffers are what they are: for code that allocates more."""
        now, Trace.now = Trace.now, None
        try:
            yield
        finally:
            Trace.now = now

    def read(self, memory: _Memory) -> Tensor:
        """What a memory has in the graph."""
        if id(memory) not in self._tensors:
            tensor = memory.tensor
            if tensor.shape[2] > 1:
                shape = (*tensor.shape[:2], self._rows, tensor.shape[3])
                tensor = torch.zeros(shape, device=tensor.device)
            self._tensors[id(memory)] = tensor
        return self._tensors[id(memory)]

    def write(self, memory: _Memory, window: Window, x: Tensor) -> None:
        """Puts numbers into a window of a memory."""
        if self._rows is None:
            self._rows = x.shape[2]
        cuts = [cut for cut in window if cut[0] != 2]
        self._tensors[id(memory)] = self._put(memory, cuts, x) if cuts else x

    def _put(self, memory: _Memory, cuts: Sequence[tuple[int, int, int]], x: Tensor) -> Tensor:
        around = [self.read(memory)]
        for cut in cuts:
            around.append(around[-1].narrow(*cut))
        for (dimension, start, count), whole in zip(
            reversed(cuts), reversed(around[:-1]), strict=True
        ):
            end = start + count
            rest = whole.shape[dimension] - end
            parts = [whole.narrow(dimension, 0, start), x, whole.narrow(dimension, end, rest)]
            x = torch.cat([part for part in parts if part.shape[dimension]], dim=dimension)
        return x


class _Memory:
    """What a buffer and all views of it share: tensors (P, N, R, W)."""

    __slots__ = ("gradient", "tensor")

    def __init__(self, tensor: Tensor, gradient: Tensor | None) -> None:
        self.tensor = tensor
        self.gradient = gradient


class Buffer:
    """Float32 numbers of every member, (P, N, R, W): copies, rows and columns.

    Copies are networks that a member has several of, such as heads or twins; what has one copy
    serves all copies of its reader. On the CPU compiled operations, torch and NumPy see the
    same memory. Views (`columns`, `rows`, `copies`) share it. Whole numbers, where an operation
    takes some, lie in the bits.

    Args:
        copies: Copies (N).
        gradient: Whether there is room for a gradient: `backward` of an operation writes it where
            there is.
        padded: Whether rows begin at whole groups of sixteen, as those of a network's layers do.
    """

    __slots__ = ("_memory", "_seen", "_views", "_window", "core", "graph")

    def __init__(
        self,
        members: int,
        rows: int = 1,
        columns: int = 1,
        *,
        copies: int = 1,
        gradient: bool = False,
        padded: bool = False,
        device: torch.device | str = "cpu",
    ) -> None:
        check_sizes(members, rows, columns, copies)
        pitch = -(-columns // 16) * 16 if padded else columns
        if torch.device(device).type == "cpu":
            from headwise.ops.core import core

            self.core = core.Buffer(members, copies, rows, columns, pitch, gradient)
            self._set(*_tensors_of(self.core))
            return
        shape = (2 if gradient else 1, members, copies, rows, pitch)
        both = torch.zeros(shape, device=device)[..., :columns]
        self.core = None
        self._set(both[0], both[1] if gradient else None)

    @classmethod
    def over(cls, core: CoreBuffer) -> Buffer:
        """The buffer that a compiled one is."""
        made = cls.__new__(cls)
        made.core = core
        made._set(*_tensors_of(core))
        return made

    def _set(self, tensor: Tensor, gradient: Tensor | None) -> None:
        self._memory = _Memory(tensor, gradient)
        self._window: Window = ()
        self._seen: tuple[Tensor, Tensor | None] | None = tensor, gradient
        self._views: dict[tuple[int, int, int], Buffer] = {}
        self.graph: Any = None

    # --- what it is -----------------------------------------------------------------------------

    @property
    def tensor(self) -> Tensor:
        """The numbers, (P, N, R, W)."""
        if Trace.now is None:
            return self._tensors()[0]
        tensor = Trace.now.read(self._memory)
        for dimension, start, count in self._window:
            if dimension != 2:
                tensor = tensor.narrow(dimension, start, count)
        return tensor

    def write(self, x: Tensor) -> None:
        """Takes other numbers."""
        if Trace.now is None:
            self.tensor.copy_(x)
        else:
            Trace.now.write(self._memory, self._window, x)

    @property
    def gradient(self) -> Tensor:
        """Their gradient, (P, N, R, W)."""
        gradient = self._tensors()[1]
        assert gradient is not None, "a buffer without room for a gradient"
        return gradient

    @property
    def has_gradient(self) -> bool:
        """Whether there is room for one."""
        return self._memory.gradient is not None

    @property
    def is_compiled(self) -> bool:
        """Whether compiled operations can work on it."""
        return self.core is not None and Trace.now is None

    @property
    def members(self) -> int:
        """Members (P)."""
        return self._tensors()[0].shape[0]

    @property
    def num_copies(self) -> int:
        """Copies (N)."""
        return self._tensors()[0].shape[1]

    @property
    def num_rows(self) -> int:
        """Rows (R)."""
        return self._tensors()[0].shape[2]

    @property
    def width(self) -> int:
        """Columns (W)."""
        return self._tensors()[0].shape[3]

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self._memory.tensor.device

    @property
    def ints(self) -> Tensor:
        """The bits as whole numbers, int32 (P, N, R, W)."""
        return self.tensor.view(torch.int32)

    @property
    def longs(self) -> Tensor:
        """The bits of each two columns as a whole number, int64 (P, N, R, W / 2)."""
        return self.tensor.view(torch.int64)

    def _tensors(self) -> tuple[Tensor, Tensor | None]:
        if self._seen is None:
            tensor, gradient = self._memory.tensor, self._memory.gradient
            for dimension, start, count in self._window:
                tensor = tensor.narrow(dimension, start, count)
                gradient = None if gradient is None else gradient.narrow(dimension, start, count)
            self._seen = tensor, gradient
        return self._seen

    # --- views ----------------------------------------------------------------------------------

    def columns(self, start: int, count: int = 1) -> Buffer:
        """Some of the columns; the same view every time."""
        return self._view(3, start, count)

    def rows(self, start: int, count: int) -> Buffer:
        """Some of the rows; the same view every time."""
        return self._view(2, start, count)

    def copies(self, start: int, count: int = 1) -> Buffer:
        """Some of the copies; the same view every time."""
        return self._view(1, start, count)

    @property
    def gradient_buffer(self) -> Buffer:
        """The gradient as a buffer of its own, for operations that write it like numbers."""
        view = Buffer.__new__(Buffer)
        view.core = None if self.core is None else self.core.gradient_view()
        view._memory = _Memory(self.gradient, None)
        view._window, view._seen = (), (self.gradient, None)
        view._views, view.graph = {}, None
        return view

    def split(self, widths: Sequence[int]) -> list[Buffer]:
        """Neighboring columns, so many each."""
        starts = [sum(widths[:i]) for i in range(len(widths))]
        return [self.columns(start, width) for start, width in zip(starts, widths, strict=True)]

    def _view(self, dimension: int, start: int, count: int) -> Buffer:
        if (start, count) == (0, self._tensors()[0].shape[dimension]):
            return self
        key = dimension, start, count
        if key not in self._views:
            view = Buffer.__new__(Buffer)
            view.core = None
            if self.core is not None:
                cut = (None, "copies_from", "rows_from", "columns_from")[dimension]
                view.core = getattr(self.core, str(cut))(start, count)
            view._memory, view._window = self._memory, (*self._window, key)
            view._seen, view._views, view.graph = None, {}, None
            self._views[key] = view
        return self._views[key]

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.tensor.shape))
        return f"Buffer({shape}{', with gradient' if self.has_gradient else ''}, {self.device})"


def _tensors_of(core: CoreBuffer) -> tuple[Tensor, Tensor | None]:
    gradient = core.gradient_array()
    return torch.from_numpy(core.array()), None if gradient is None else torch.from_numpy(gradient)


class Scratch:
    """Buffers that stay where they are, by name and shape: what lies between two operations."""

    def __init__(self, members: int, device: torch.device | str) -> None:
        self._members, self._device = members, device
        self._buffers: dict[tuple[str, int, int, int, bool], Buffer] = {}

    def __call__(
        self, name: str, rows: int, columns: int = 1, *, copies: int = 1, gradient: bool = True
    ) -> Buffer:
        """The buffer of that name and shape, (P, copies, rows, columns)."""
        key = name, rows, columns, copies, gradient
        if key not in self._buffers:
            self._buffers[key] = Buffer(
                self._members, rows, columns, copies=copies, gradient=gradient, device=self._device
            )
        return self._buffers[key]
