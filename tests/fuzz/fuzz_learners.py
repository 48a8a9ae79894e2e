"""Random calls of what learners call in the compiled module; `fuzz_core.py` makes them."""

from __future__ import annotations

import numpy as np


class LearnerMoves:
    """Random numbers, tanh, Adam, mixtures, layers, replay and PPO's loss.

    `core` is the module and `rng` the stream that calls are made up from.
    """

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def functions(self) -> None:
        words = [int(word) for word in self.rng.integers(0, 2**32, 4)]
        key = int(self.rng.integers(0, 2**63))
        if self.chance(0.2):
            words = self.pick([words[:3], [*words, 1], [-1] * 4, [2**32] * 4, None, [0.5] * 4])
        assert self.core.philox(words, key) == self.core.philox(words, key)
        first, second = self.core.normal_pair(*words[:2])
        assert max(abs(first), abs(second)) < 7
        rows, columns = self.pick([0, 1, 3]), self.pick([0, 1, 7, 8, 33, 100])
        out = np.full((rows, columns), np.nan, dtype=np.float32)
        seeds = self.rng.integers(0, 2**63, rows).astype(np.uint64)
        if self.chance(0.1):
            seeds = self.pick([seeds[:-1], seeds.astype(float), None])
        self.core.fill_uniforms(out, seeds, int(words[0]), key)
        assert ((out >= 0) & (out < 1)).all()
        x = (self.rng.normal(size=columns) * self.pick([1, 1e10, np.inf])).astype(np.float32)
        tanh = np.empty(self.pick([columns, columns, columns + 1]), dtype=np.float32)
        self.core.tanh(x, tanh)
        assert (np.isnan(x) | (np.abs(tanh) <= 1)).all()

    def adam_step(self) -> None:
        members, total = self.pick([0, 1, 2, 5]), self.pick([0, 1, 40, 200])
        tensors = [self.rng.normal(size=total).astype(np.float32) for _ in range(4)]
        tensors[3] = np.abs(tensors[3])
        sizes = self.rng.integers(0, 9, self.pick([0, 1, 3]))
        offsets = np.cumsum(sizes * members) - sizes * members
        if self.chance(0.2) and len(sizes):
            wild = [-1, 10**6, 2**62, -(2**63), 2**63 - 1]
            self.pick([sizes, offsets])[0] = self.pick(wild)
        if self.chance(0.1):
            tensors[0][:1] = self.pick([np.nan, np.inf])
        rates, alive = np.full(members, 1e-3, np.float32), np.ones(members, np.bool_)
        if self.chance(0.1):
            rates = self.pick([rates[:-1], rates.astype(float), None])
        count = self.pick([0, 1, 1000, -1, 2**62])
        self.core.adam_step(
            *tensors, offsets, sizes, rates, alive, np.zeros(members, np.float32), count,
            0.9, 0.999, 1e-8, self.pick([0.0, 0.5, np.inf, np.nan]),
            self.pick([None, self.numbers(total)]), self.pick([0.0, 0.005, 0.5, 1.0, np.nan]),
        )  # fmt: skip

    def numbers(self, *shape: int) -> np.ndarray:
        """Normal numbers of a size that may be absurd, and now and then of another shape."""
        scale = self.pick([1, 1, 1, 1e10, 1e30, np.inf, np.nan])
        if self.chance(0.02):
            shape = tuple(max(n + self.pick([-1, 0, 1]), 0) for n in shape)
        return (self.rng.normal(size=shape) * scale).astype(np.float32)

    def mixtures(self) -> None:
        rows, heads, width = self.pick([0, 1, 5]), self.pick([0, 1, 3]), self.pick([0, 1, 16, 37])
        given = [self.numbers(rows, n) for n in (heads, heads * width, width)]
        hidden, mixed = self.numbers(rows, width), self.numbers(rows)
        self.core.mix(*given, hidden, mixed)
        grads = [self.numbers(rows, n) for n in (heads, heads * width, width)]
        self.core.mix_backward(*given, hidden, mixed, *grads)
        self.core.mix_slope(*given, hidden, self.numbers(rows, heads))

    def layers(self) -> None:
        """Networks of sizes that fit their arrays: the call is told addresses, and trusts them."""
        copies, rows = self.pick([0, 1, 3]), self.pick([0, 1, 7, 8, 33])
        features, threads = self.pick([0, 1, 9, 33, 64]), self.pick([-1, 0, 1, 2])
        spare = self.pick([0, 3])  # inputs and weights may be some columns of longer rows
        back = self.chance(0.5)
        held = []

        def place(size: int, unwanted: float = 0.0) -> int:
            if self.chance(unwanted):
                return 0
            room = np.resize(self.numbers(max(size, 1)), size + 16)
            skip = -room.ctypes.data % 64 // 4  # what is in bfloat16 begins at a line of the cache
            held.append(room)
            return room.ctypes.data + 4 * skip

        def layer(size: int, width: int, reads: int, then: int, *, trunk: bool) -> tuple[int, ...]:
            pitch, whole = width + spare, -(-width // 32) * 32
            out = (place(copies * rows * width), width, 32, rows * width, 0, 0)
            if trunk:
                half = (rows + 1) // 2 * whole
                out = (
                    place(copies * rows * whole, unwanted=0.0 if back else 0.5), 32, rows * 32,
                    rows * whole, place(copies * half, unwanted=0.0 if back else 0.5), half,
                )  # fmt: skip
            return (
                place(copies * size * pitch), place(copies * pitch), size * pitch, pitch,
                size, width, reads, pitch, then, *out, place(copies * rows * width),
                place(copies * size * pitch, unwanted=0.3), place(copies * pitch, unwanted=0.3),
            )  # fmt: skip

        trunk, size = [], features
        for width in self.pick([(), (), (16,), (64,), (33, 48), (64, 17, 32)]):
            trunk.append(layer(size, width, 0, self.pick([1, 2]), trunk=True))
            size = width
        halves = [size // 2, size // 2] if trunk and size % 64 == 0 else [size]
        thens = [0, 1, 2, 3] if back else [0, 1, 2]
        leaves = [
            layer(
                part, self.pick([0, 1, 6, 15, 16, 17, 40]), i * part, self.pick(thens), trunk=False
            )
            for i, part in enumerate(halves)
        ]
        pitch = features + spare
        x = (place(copies * rows * pitch), rows, features, pitch, 1, rows * pitch, 0)
        if back:
            to_x = place(copies * rows * features, unwanted=0.5)
            self.core.bf16_backward(copies, x, trunk, leaves, to_x, threads)
        else:
            self.core.bf16_forward(copies, x, trunk, leaves, threads)

    def replay_draw(self) -> None:
        members, rows, slots, width = (self.pick([1, 1, 2, 5, 0]) for _ in range(4))
        batch, most = self.pick([0, 1, 20]), max(rows, 1)
        cursors = [self.rng.integers(0, most, (members, slots)) for _ in range(2)]
        if self.chance(0.1) and cursors[0].size:
            self.pick(cursors).flat[0] = self.pick([-1, rows, rows + 1, 2**62, -(2**63)])
        uniform = self.rng.random((members, batch, 2)).astype(np.float32)
        if self.chance(0.1):
            uniform = self.numbers(members, batch, 2)
        self.core.replay_draw(
            self.numbers(members, rows, slots, width), *cursors, uniform, self.numbers(members),
            self.pick([0, width - 1, width, 2**40]), self.numbers(members, batch, width),
            self.numbers(members, batch),
        )  # fmt: skip

    def options_loss(self) -> None:
        members, rows, heads = (self.pick([0, 1, 2, 5]) for _ in range(3))
        options = self.pick([0, 1, 2, 5, 64, 65])
        columns = self.pick([1, heads])
        given = [
            self.numbers(members, rows, heads, options),
            self.numbers(members, rows, heads),
            self.numbers(members, rows, heads),
            self.numbers(members, rows, columns),
            self.numbers(members, rows),
            self.pick([None, self.numbers(members, rows, heads, options)]),
            self.numbers(3, members),
        ]
        found = [
            self.numbers(members, rows, heads, options),
            self.numbers(2, members, rows, heads),
            self.numbers(4, members),
            self.numbers(members, rows, heads, options),
        ]
        self.core.options_loss(*given, *found)
