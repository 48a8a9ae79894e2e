"""Random calls of the compiled operations of learners; `fuzz_core.py` makes them."""

from __future__ import annotations

import numpy as np

WILD = (-1, 0, 10**6, 2**31 - 1, -(2**31))


class OpMoves:
    """Buffers, heads, networks and programs, and operations on them: right ones and wrong ones.

    `core` and `ops` are the compiled modules and `rng` the stream that calls are made up from.
    """

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def numbers(self, *shape: int) -> np.ndarray:
        """Normal numbers of a size that may be absurd."""
        scale = self.pick([1, 1, 1, 1, 1e10, 1e30, np.inf, np.nan])
        with np.errstate(invalid="ignore"):
            return (self.rng.normal(size=shape) * scale).astype(np.float32)

    # --- what operations take ---

    def buffer(self, members=1, copies=1, rows=1, columns=1, *, learns=None):
        """Numbers of these sizes, often columns of something wider, now and then of other sizes."""
        sizes = [members, copies, rows, columns]
        if self.chance(0.01):
            sizes[int(self.rng.integers(4))] += self.pick([-1, 1])
        learns = self.chance(0.7) if learns is None else learns
        beside = self.pick([0, 0, 3])
        wide = sizes[3] + 2 * beside
        made = self.ops.Buffer(*sizes[:3], wide, wide + self.pick([0, 0, 5]), learns)
        x = made.columns_from(beside, sizes[3]) if beside else made
        x.array()[...] = self.numbers(*sizes)
        if learns:
            x.gradient_array()[...] = self.numbers(*sizes)
        return x

    def maybe(self, *sizes, **rest):
        return None if self.chance(0.5) else self.buffer(*sizes, **rest)

    def shared(self, *sizes):
        """One of which rows, copies or columns may serve all."""
        kept = [n if self.chance(0.8) else 1 for n in sizes[1:]]
        return self.buffer(sizes[0], *kept)

    def whole(self, members, columns, below, *, rows=1):
        """Whole numbers in the bits, some of which are of nothing there is."""
        x = self.ops.Buffer(members, 1, rows, columns, columns, False)
        found = self.rng.integers(0, max(below, 1), (members, 1, rows, columns)).astype(np.int32)
        if self.chance(0.1):
            found.flat[0] = self.pick(WILD)
        x.array()[...] = found.view(np.float32)
        return x

    def long(self, members):
        """An int64 for each member, in the bits."""
        x = self.ops.Buffer(members, 1, 1, 2, 2, False)
        numbers = self.rng.integers(-(2**63), 2**63 - 1, (members, 1, 1, 1))
        x.array()[...] = numbers.astype(np.int64).view(np.float32)
        return x.columns_from(0, 2) if self.chance(0.95) else x.columns_from(1, 1)

    def sizes(self):
        return self.pick([1, 1, 2, 3]), self.pick([1, 2]), self.pick([1, 5, 16, 17, 33])

    def heads(self, *, discrete=False):
        """A table of heads, how many copies belong together, and how wide outputs are."""
        count, numbers = self.pick([0, 1, 1, 2, 3]), 0 if discrete else self.pick([0, 0, 1, 2])
        options = [self.pick([1, 2, 3, 17]) for _ in range(count)] + [0] * numbers
        total, state_std = len(options), self.chance(0.5)
        parents = [-1 if self.chance(0.7) else self.pick(range(h)) if h else -1
                   for h in range(total)]  # fmt: skip
        lows = [float(self.rng.integers(-1, 3)) for _ in options]
        highs = [low + self.pick([0.0, 1.0, 2.0, np.inf]) for low in lows]
        stack = self.pick([1, 1, 1, max(total, 1)])
        widths = [n or (2 if state_std else 1) for n in options]
        starts = np.cumsum([0, *widths]).tolist()
        copies = [h % stack for h in range(total)]
        places = starts[:-1] if stack == 1 else [0] * total
        width = starts[-1] if stack == 1 else max(widths, default=1)
        order = list(range(total))
        if self.chance(0.03) and total:
            wrong = self.pick([options, order, parents, copies, places])
            wrong[int(self.rng.integers(total))] = self.pick([*WILD, 1, 5])
        if self.chance(0.02) and total:
            self.pick([lows, highs])[0] = np.nan
        if self.chance(0.01):
            stack = self.pick(WILD)
        table = self.ops.HeadTable(
            options, order, parents, lows, highs, copies, places, stack, self.chance(0.3),
            state_std, -5.0, self.pick([2.0, np.nan]),
        )  # fmt: skip
        return Heads(table, options, state_std, min(max(stack, 1), 5), max(width, 1))

    def outputs(self, heads, members, networks, rows):
        return self.buffer(members, networks * heads.stack, rows, heads.width)

    def options(self, heads, *sizes):
        """Options of the discrete heads, some of which there are not."""
        x = self.buffer(*sizes, len(heads.sizes))
        if self.chance(0.9):
            x.array()[...] = self.rng.integers(0, 3, x.array().shape)
        return x

    # --- calls ---

    def call(self, name, inputs, outputs, **settings) -> None:
        """An operation, and its way back if there is one; now and then something is wrong."""
        buffers = [*inputs, *outputs]
        if self.chance(0.05):
            buffers[int(self.rng.integers(len(buffers)))] = self.pick(
                [None, self.buffer(2, 1, 3, 4), self.pick(self.kept) if self.kept else None]
            )
        self.kept = [x for x in [*self.kept, *buffers] if x is not None][-30:]
        back = getattr(self.ops, f"{name}_backward", None)
        add = {"add": self.chance(0.5)}

        def play():
            getattr(self.ops, name)(*buffers, **settings)
            if back is not None:
                back(*buffers, **add, **settings)

        if self.chance(0.8):
            play()
            return
        program = self.ops.Program()
        with program:
            play()
            if self.chance(0.05):
                program.run(1, 1)  # refused: it is still recording
        program.run(self.pick([0, 1, 3, -1]), self.pick([1, 2, 3, 0, -1]))

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

    def buffers(self) -> None:
        sizes = [self.pick([1, 2, 5]) for _ in range(4)]
        if self.chance(0.2):
            sizes[int(self.rng.integers(4))] = self.pick([-1, 0, 2**31 - 1, -(2**31)])
            sizes[int(self.rng.integers(4))] = self.pick([-1, 0, 2**31 - 1, 2**31, None])
        pitch = sizes[3] if self.chance(0.8) else self.pick([*WILD[:2], 64, 2**31])
        huge = all(isinstance(n, int) and n > 0 for n in (*sizes[:3], pitch))
        if huge and 10**6 < np.prod([float(n) for n in (*sizes[:3], pitch)]) < 2.0**38:
            return  # nothing against it but the time
        x = self.ops.Buffer(*sizes, pitch, self.chance(0.5))
        cut = self.pick([x.columns_from, x.rows_from, x.copies_from])
        start, count = (0, 1) if self.chance(0.5) else (1, self.pick([1, 2]))
        if self.chance(0.2):
            start, count = (self.pick([0, 1, 2, *WILD, 2**31]) for _ in range(2))
        view = cut(start, count)
        view.array()[...] = 1.0
        if self.chance(0.3):
            view.gradient_view().array()[...] = 2.0

    def policies(self) -> None:
        (members, networks, rows), heads = self.sizes(), self.heads()
        y = self.outputs(heads, members, networks, rows)
        total, numbers = sum(heads.sizes), len(heads.options) - len(heads.sizes)
        free = None
        if numbers and not heads.state_std:
            free = self.buffer(members, 1, 1, numbers)
        mask = self.maybe(members, networks, rows, total) if total else None
        each = (members, networks, rows, len(heads.options))
        table = {"table": heads.table}
        kind = self.rng.random()
        if kind < 0.3:
            uniform, out = self.shared(*each), [self.buffer(*each) for _ in range(3)]
            if self.chance(0.8):
                uniform.array()[...] = self.rng.random(uniform.array().shape)
            self.call("sample", [y, free, uniform, mask], out, **table)
        elif kind < 0.5:
            self.call("mode", [y, free, mask], [self.buffer(*each) for _ in range(2)], **table)
        else:
            old = self.maybe(members, networks, rows, total + 2 * numbers)
            out = [self.buffer(*each) for _ in range(2)]
            out.append(None if old is None else self.buffer(*each))
            raw = self.shared(*each)
            given = {"given": self.chance(0.5)}
            self.call("evaluate", [y, free, raw, mask, old], out, **table, **given)

    def head_values(self) -> None:
        (members, networks, rows), heads = self.sizes(), self.heads(discrete=True)
        y, count = self.outputs(heads, members, networks, rows), len(heads.sizes)
        each, total = (members, networks, rows), sum(heads.sizes)
        action, best = self.options(heads, *each), self.options(heads, *each)
        best = None if self.chance(0.3) else best
        use = self.maybe(*each, count)
        out, table = self.buffer(*each, count), {"table": heads.table}
        kind = self.rng.random()
        if kind < 0.2:
            self.call("greedy", [y, self.maybe(*each, total)], [out], **table)
        elif kind < 0.5:
            probs = self.maybe(*each, total)
            self.call("advantages", [y, action, best, probs, use], [out], **table)
        elif kind < 0.7:
            self.call("option_values", [y, action, best, use], [out], **table)
        elif kind < 0.8:
            self.call("in_use", [action], [out], **table)
        else:
            adds_up = self.chance(0.5)
            value = self.pick([1, max(count, 1)])
            given = None if self.chance(0.2) else self.buffer(members, networks * value, rows, 1)
            q = self.buffer(*each, 1 if adds_up else count)
            self.call("total", [given, out], [q], adds_up=adds_up)

    def values(self) -> None:
        members, networks, rows = self.sizes()
        columns = self.pick([1, 1, 3])
        each, one = (members, networks, rows, columns), (members, 1, rows, columns)
        x, loss = self.buffer(*each), self.buffer(members, networks, 1, 3)
        coef = self.pick([1.0, 0.5, np.nan])
        name = self.pick([
            "value_error", "clipped_value_error", "heads_last", "shares_in_use", "td_target",
            "discount_of", "actor_loss", "row_mean", "multiply", "add",
        ])  # fmt: skip
        if name == "value_error":
            given = [x, self.shared(*each), self.shared(*each)]
            self.call(name, given, [loss], coef=coef, huber=self.chance(0.5))
        elif name == "clipped_value_error":
            given = [x, self.shared(*each), self.shared(*each), self.shared(*each)]
            self.call(name, given, [loss], coef=coef, clip=self.pick([0.2, np.inf, np.nan]))
        elif name == "heads_last":
            given = self.buffer(members, networks, rows, 1)
            self.call(name, [given], [self.buffer(members, 1, rows, networks)])
        elif name == "shares_in_use":
            self.call(name, [x], [self.buffer(*each)], scale=coef, by_head=self.chance(0.5))
        elif name == "td_target":
            extra = [self.maybe(*one), self.maybe(*one)]
            given = [self.shared(*one), self.shared(*one), x, *extra]
            self.call(name, given, [self.buffer(*one)])
        elif name == "actor_loss":
            self.call(name, [x, self.maybe(*one), self.maybe(*one)], [self.buffer(members)])
        elif name == "row_mean":
            self.call(name, [x], [self.buffer(members, networks, 1, columns)])
        else:  # discount_of, multiply, add
            self.call(name, [self.shared(*each), self.shared(*each)], [x])

    def policy_losses(self) -> None:
        members, _, rows = self.sizes()
        heads = self.pick([1, 2, 4])
        groups = [int(g) for g in self.rng.integers(0, heads, heads)]
        if self.chance(0.05):
            groups[0] = self.pick(WILD)
        weights = [1.0] * (heads if self.chance(0.97) else heads - 1)
        ratios = {"ratios": (groups, weights)}
        each, setting = (members, 1, rows, heads), (members,)
        log_prob, entropy, old = (self.buffer(*each) for _ in range(3))
        share, clip = self.shared(members, 1, rows, 1), self.buffer(*setting)
        if self.chance(0.7):
            ratio = max(groups) + 1
            given = [log_prob, entropy, self.maybe(*each), old,
                     self.buffer(members, 1, rows, ratio if 0 < ratio <= heads else 1),
                     share, clip, self.buffer(*setting), self.buffer(*setting)]  # fmt: skip
            out = self.buffer(members, 1, 1, 4, learns=self.chance(0.95))
            self.call("policy_loss", given, [out], **ratios)
        elif self.chance(0.7):
            so_far, out = (self.buffer(members, 1, 1, 3 + 3 * heads) for _ in range(2))
            self.call("movement", [log_prob, entropy, old, share, clip, so_far], [out], **ratios)
        else:
            given = [self.buffer(*setting), self.buffer(*setting)]
            target = self.pick([0.1, np.nan])
            self.call("adapt_coefficient", given, [self.buffer(*setting)], target=target)

    def rollouts(self) -> None:
        members, _, _ = self.sizes()
        envs, columns = self.pick([1, 2, 17]), self.pick([1, 1, 3])
        rows = envs * self.pick([1, 3])
        each, out = (members, 1, rows, columns), self.buffer(members, 1, rows, columns)
        kind = self.rng.random()
        if kind < 0.6:
            given = [self.shared(*each) for _ in range(5)]
            weight = None if self.chance(0.5) else self.shared(*each)
            rest = self.buffer(members), self.buffer(members)
            envs = envs if self.chance(0.95) else self.pick(WILD)
            self.call("gae", [*given, weight, *rest], [out], num_envs=envs)
        elif kind < 0.8:
            self.call("row_shares", [self.buffer(*each)], [out])
        else:
            self.call("standardize", [self.buffer(*each), self.shared(*each[:3], 1)], [out])

    def mixtures(self) -> None:
        members, networks, rows = self.sizes()
        heads, units = self.pick([1, 3]), self.pick([1, 16, 37])
        each = (members, networks, rows)
        advantage = self.buffer(*each, heads)
        weights = self.buffer(*each, (heads + 1) * units + (self.chance(0.03)))
        bends = {"relu": bool(self.chance(0.5)), "soft": bool(self.chance(0.5))}
        if self.chance(0.7):
            inputs = [self.maybe(*each, 1), advantage, weights]
            self.call("mix", inputs, [self.buffer(*each, 1)], **bends)
        else:
            self.call("mix_gradient", [advantage, weights], [self.buffer(*each, heads)], **bends)

    def row_moves(self) -> None:
        members, copies, rows = self.sizes()
        kind, count = self.rng.random(), self.pick([1, rows, rows + 3])
        widths = [self.pick([1, 4, 17]) for _ in range(self.pick([1, 2]))]
        if kind < 0.3:
            sources = [self.buffer(members, 1, count, width) for width in widths]
            batch = [self.buffer(members, 1, rows, width) for width in widths]
            order = self.whole(members, self.pick([rows, 2 * rows]), count)
            cursor = self.whole(members, 1, rows)
            for _ in range(3):
                self.ops.gather(sources[: self.pick([9, 9, 9, 1])], order, cursor, batch)
        elif kind < 0.45:
            x = self.shared(members, copies, count, widths[0])
            index = self.whole(1, rows, count)
            self.ops.take(x, index, self.buffer(members, copies, rows, widths[0]))
        elif kind < 0.6:
            self.ops.copy(self.shared(members, copies, rows, widths[0]),
                          self.buffer(members, copies, rows, widths[0]))  # fmt: skip
            self.ops.fill(self.buffer(members, copies, rows), self.pick([0.0, np.nan]))
        elif kind < 0.8:
            out = self.ops.Buffer(members, 1, rows, widths[0], widths[0], False)
            clock = self.long(members)
            self.ops.uniform(out, self.long(members), clock, self.pick([0, 5, 2**32 - 1, -1]))
            assert ((out.array() >= 0) & (out.array() < 1)).all()
            self.ops.advance(clock, self.pick([0, 1, -1, 2**63 - 1, 2**63]))
        else:
            numbers = self.buffer(members, 1, self.pick([1, 3]), rows)
            epochs = numbers.array().shape[2]
            order, cursor = self.whole(members, epochs * rows, 1), self.whole(members, 1, 1)
            self.ops.shuffle(numbers, order, cursor)
            found = order.array().view(np.int32).reshape(members, epochs, -1)
            assert (np.sort(found) == np.arange(numbers.array().shape[3])).all()

    def adam(self) -> None:
        members, _, _ = self.sizes()
        size, setting = self.pick([1, 16, 48, 100]), (members,)
        parameters = self.buffer(members, 1, 1, size, learns=self.chance(0.98))
        given = [self.buffer(members, 1, 1, size) for _ in range(2)]
        rest = [self.buffer(*setting) for _ in range(3)]
        follower = self.maybe(members, 1, 1, size)
        self.ops.adam_step(
            parameters, *given, self.long(members), *rest, 0.9, self.pick([0.999, 1.0]), 1e-8,
            self.pick([0.0, 0.5, np.inf, np.nan]), follower, self.pick([0.0, 0.5, np.nan]),
        )  # fmt: skip

    def networks(self) -> None:
        members, copies, rows = self.sizes()
        leaves = [self.pick([1, 3, 16, 20]) for _ in range(self.pick([1, 1, 2]))]
        widths = [self.pick([1, 5, 16, 40]) for _ in range(self.pick([1, 2, 3]))]
        kinds = [self.pick([0, 1, 2, 3]) for _ in widths]
        sees = []
        if self.chance(0.4):
            sees = [[[(0, n), (n - 1, 1)][: self.pick([1, 1, 2])] for _ in range(copies)]
                    for n in leaves]  # fmt: skip
        if self.chance(0.05):
            wrong = self.pick([leaves, widths, kinds])
            wrong[0] = self.pick([-1, 0, 2**31 - 1, -(2**31)])
        if self.chance(0.03) and sees:
            sees[0][0] = [(self.pick(WILD), self.pick(WILD))]
        made = self.ops.Network.make(leaves, widths, kinds, members, rows, copies, sees)
        inputs, size = sum(leaves), 0
        for width in widths:
            size += (inputs + 1) * (-(-width // 16) * 16)
            inputs = width
        made.place(self.buffer(members, 1, 1, size * copies, learns=self.chance(0.95)))
        given = self.pick([1, rows])
        x = [self.buffer(members, self.pick([1, copies]), given, n) for n in leaves]
        some = self.pick([[], [], [0], [copies - 1]])
        if self.chance(0.05):
            some = [self.pick(WILD)]
        made.forward(x, some, self.pick([0, 0, 1, widths[-1], *WILD]), self.chance(0.1))
        assert made.layer(len(widths) - 1).array().shape == (members, copies, rows, widths[-1])
        if self.chance(0.05):
            x = x[:-1] or [self.buffer(members, 1, given, leaves[0])]
        made.layer(self.pick([-1, len(widths)]) if self.chance(0.03) else 0)
        made.backward(x, some, self.chance(0.8), self.chance(0.3), self.chance(0.1))

    def programs(self) -> None:
        program, x, runs = self.ops.Program(), self.buffer(2), []
        with program:
            self.ops.fill(x, 1.0)
            if self.chance(0.5):
                self.ops.emit_python(lambda: runs.append(1))
            if self.chance(0.2):
                with self.ops.Program():  # refused: another one is recording
                    pass
        before = len(runs)
        program.run(3, self.pick([1, 2]))
        assert len(runs) - before in (0, 3)
        assert (x.array() == 1.0).all()
        forgotten = self.ops.Program()
        forgotten.__enter__()
        del forgotten
        self.ops.fill(x, 2.0)  # nothing records it


class Heads:
    """A table of heads, and what it was made of."""

    def __init__(self, table, options, state_std, stack, width) -> None:
        self.table, self.options, self.state_std = table, options, state_std
        self.stack, self.width = stack, width
        self.sizes = [n for n in options if 0 < n < 100]
