"""Random calls of what is done with options in the compiled module; `fuzz_core.py` makes them."""

from __future__ import annotations

import numpy as np
from fuzz_learners import LearnerMoves


class OptionMoves(LearnerMoves):
    """Drawing, judging, relaxing and centring options."""

    def heads(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Bounds of options, places of Choices and of Ranges, and the most options of a head."""
        count, ranges = self.pick([1, 1, 2, 4, 0]), self.pick([0, 1, 3])
        sizes = [self.pick([1, 2, 5, 17, 64]) for _ in range(count)]
        bounds = np.cumsum([0, *sizes]).astype(np.int32)
        places = self.rng.permutation(count + ranges)
        if self.chance(0.1):
            wrong = self.pick([bounds, places])
            if wrong.size:
                wrong[self.pick([0, -1])] = self.pick([-1, 0, 1, 65, 10**6, -(2**31)])
        most = max(sizes, default=0) + self.pick([0, 0, 0, 0, 1, 3, -1])
        return bounds, places[:count], places[count:], max(most, 0)

    def draw_heads(self) -> None:
        bounds, choices, ranges, most = self.heads()
        rows, all_heads = self.pick([0, 1, 7, 16, 33]), len(choices) + len(ranges)
        width = 2 * len(ranges) + max(int(bounds[-1]), 0) % 1000
        outputs = self.numbers(rows, width + 3)[:, self.pick([0, 2]) :][:, :width]
        uniform = self.rng.random((rows, all_heads)).astype(np.float32)
        if self.chance(0.1):
            uniform = self.numbers(rows, all_heads)
        found = [
            self.numbers(rows, all_heads),
            self.numbers(rows, all_heads),
            self.numbers(rows, len(choices), most),
            self.numbers(rows, len(ranges)),
        ]
        self.core.draw_heads(
            outputs, uniform, bounds, choices, ranges, self.pick([-5.0, np.nan]), 3.0, *found
        )
        if len({*choices, *ranges}) == all_heads:  # nothing was written over it
            drawn = found[0][:, choices]
            assert ((drawn >= 0) & (drawn <= np.diff(bounds))).all()
        slopes = [self.pick([None, np.copy(x)]) for x in found[:3]]
        self.core.draw_heads_back(
            outputs, *found, *slopes, bounds, choices, ranges, 3.0, self.numbers(rows, width)
        )

    def embeddings(self) -> None:
        bounds, choices, ranges, most = self.heads()
        members, each, obs = self.pick([0, 1, 3]), self.pick([0, 1, 17]), self.pick([0, 1, 6])
        rows, sizes = members * each, np.ones(len(choices) + len(ranges), np.int64)
        hot = self.chance(0.5)
        if hot and choices.size and choices.min() >= 0 and choices.max() < len(sizes):
            sizes[choices] = np.diff(bounds)
        size = int(np.clip(sizes.sum(), 0, 1000))
        owner = np.repeat(np.arange(len(sizes)), np.clip(sizes, 0, 1000))[:size]
        columns = np.cumsum(sizes) - sizes
        if self.chance(0.1) and columns.size:
            self.pick([columns, owner])[:1] = self.pick([-1, size - 1, size, 2**62])
        table = self.numbers(3, size)
        table[0] = 0.0 if hot else -1.0
        seen, action = self.numbers(rows, obs + 2)[:, 1 : obs + 1], self.numbers(rows, len(sizes))
        self.core.embed_actions(seen, action, owner, table, self.numbers(rows, obs + size))
        padded = (rows, len(choices), most)
        soft, softness = self.numbers(*padded), self.pick([1.0, 0.01, 0.0, np.nan])
        self.core.relax_options(
            self.numbers(*padded), bounds, self.numbers(rows, len(choices) * most), softness, seen,
            action, columns, choices, ranges, table, soft, self.numbers(rows, obs + size),
        )  # fmt: skip
        self.core.relax_options_back(
            self.numbers(members, 2, each, obs + size), soft, bounds, softness, columns, choices,
            ranges, table, self.numbers(*padded),
            self.pick([None, self.numbers(rows, len(sizes))]),
        )  # fmt: skip

    def branches(self) -> None:
        bounds, choices, ranges, _ = self.heads()
        members, rows = self.pick([0, 1, 3]), self.pick([0, 1, 17])
        all_heads, width = len(choices) + len(ranges), max(int(bounds[-1]), 0) % 1000
        flat, value = self.numbers(members, 2, rows, width), self.numbers(members, 2, rows)
        t, total = self.numbers(members, all_heads), self.numbers(members, rows)
        which = np.zeros((members, rows), np.int32)
        entropy = self.numbers(members, rows, len(choices))
        self.core.soft_branches(flat, value, bounds, choices, t, total, entropy, which)
        self.core.soft_branches_back(total, which, flat, bounds, choices, t, value, flat.copy())
        out, taken = self.pick([1, len(choices)]), self.rng.integers(0, 2, (rows, len(choices)))
        flat, taken = self.numbers(rows, width), taken.astype(np.float32)
        if self.chance(0.1):
            taken = self.numbers(rows, len(choices))
        best, found = np.zeros(taken.shape, np.int32), self.numbers(rows, out)
        base = self.pick([None, self.numbers(rows)])
        self.core.centre_options(base, flat, taken, bounds, found, best)
        if self.chance(0.1) and best.size:
            best.flat[0] = self.pick([-1, 64, 2**31 - 1])
        self.core.centre_options_back(found, taken, best, bounds, flat.copy())

    def lesser_worth(self) -> None:
        members, rows, heads = self.pick([0, 1, 3]), self.pick([0, 1, 17]), self.pick([0, 1, 4])
        values, t = self.numbers(members, 2, rows), self.numbers(members, heads)
        entropy = self.numbers(members, rows, heads)
        out, which = self.numbers(members, rows), self.numbers(members, rows)
        self.core.lesser_worth(values, self.pick([None, entropy]), t, out, which)
        self.core.lesser_worth_back(out, t, which, values, self.pick([None, entropy]))
