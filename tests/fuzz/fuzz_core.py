"""A million random calls of the compiled modules: right ones, wrong ones, and in any order.

Whatever is called, they must answer or refuse: no crash, no error of another kind than those
listed, nothing changed by what was refused. Under a sanitizer (`make sanitize`) no bad memory
access or undefined behavior either, and no memory kept.

    python tests/fuzz/fuzz_core.py --calls 1000000 --modules build/sanitize/address
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib.machinery
import importlib.util
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from fuzz_ops import OpMoves

ALLOWED = (ValueError, TypeError, OverflowError, IndexError, MemoryError)
"""What a wrong call may raise; our own errors are ValueErrors."""

NUMBERS = (-1, 0, 1, 2, 3, 5, 7, 10, 16, 17, 100, 1000, 10_000, 10**6, 2**31 - 1, 2**31, -(2**31),
           2**40, 2**63, -1e30, 1e-30, 0.1, 0.2, 0.5, 1.5, 1e4, 1e9, 1e38, 1e300, float("nan"),
           float("inf"), True, None, "2", b"2", [], [1], {})  # fmt: skip


CHUNK = 50_000
"""Calls after which all environments are let go and the memory in use is counted."""

MOST_GROWTH = 1_000_000
"""Bytes by which it may grow, for what Python, numpy and nanobind keep in tables of their own."""

MOST_NUMBERS = 20_000
"""Of observations in one environment."""


def compiled(name: str, folder: str | None):
    """A compiled module of ours; that in a folder if one is given, as when a sanitizer is in it."""
    if folder is None:
        return importlib.import_module(f"headwise.{name}")
    (file,) = Path(folder).glob(f"{name}.*so")
    loader = importlib.machinery.ExtensionFileLoader(f"headwise.{name}", str(file.resolve()))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Fuzzer(OpMoves):
    """Calls made up from a random stream; the same seed makes the same calls."""

    def __init__(self, seed: int, most_envs: int = 6, modules: str | None = None) -> None:
        self.core = _core = compiled("_core", modules)
        self.ops = compiled(f"_ops_{_core.best_isa()}", modules)
        self.kept: list = []
        self.rng = np.random.default_rng(seed)
        self.environments = _core.environments()
        self.most_envs = most_envs
        self.envs: list[Held] = []
        self.snapshots: list[bytes] = [b"", b"headwise/CoopPush/1/1/1\n"]
        self.outcomes: Counter[str] = Counter()
        self.moves = [
            (self.make, 6), (self.forget, 2), (self.attach, 3), (self.seed_slots, 5),
            (self.reset, 10), (self.step, 40), (self.step_units, 20), (self.snapshot, 4),
            (self.restore, 6), (self.state, 5), (self.set_state, 12), (self.ask, 3),
            (self.replay_draw, 2), (self.functions, 2), (self.buffers, 3), (self.policies, 6),
            (self.head_values, 6), (self.values, 6), (self.policy_losses, 4), (self.rollouts, 3),
            (self.mixtures, 2), (self.row_moves, 4), (self.adam, 2), (self.networks, 5),
            (self.programs, 1),
        ]  # fmt: skip
        weights = np.array([weight for _, weight in self.moves], dtype=float)
        self.odds = np.cumsum(weights / weights.sum())

    def run(self, calls: int) -> None:
        """Makes so many calls."""
        for _ in range(calls):
            move, _ = self.moves[int(np.searchsorted(self.odds, self.rng.random()))]
            try:
                move()
                self.outcomes[f"{move.__name__}: fine"] += 1
            except ALLOWED as error:
                self.outcomes[f"{move.__name__}: {type(error).__name__}"] += 1
        self.envs.clear()
        self.kept.clear()

    # --- choices ---

    def held(self) -> Held:
        if not self.envs:
            self.make()
        return self.pick(self.envs)

    def points(self):
        if self.chance(0.05):
            return self.pick([[[1, 2, 3]], [[1]], "ab", [["a", "b"]], [[float("nan"), 0]], 3])
        spread = self.pick([0.0, 1.0, 10.0, 30.0, 1e4, 1e6])
        count = self.pick([0, 1, 1, 2, 3, 4, 8, 9, 16, 17])
        return self.rng.uniform(-spread, spread, (count, 2)).tolist()

    def setting(self, default: object, allowed: str):
        if self.chance(0.04):
            return self.pick(NUMBERS)
        if isinstance(default, bool):
            return self.chance(0.5)
        if isinstance(default, str):
            return self.pick([word.strip(" '") for word in allowed.split(",")])
        if isinstance(default, list):
            return self.points()
        if isinstance(default, int):
            return int(self.rng.integers(0, 12)) if self.chance(0.8) else self.pick(NUMBERS)
        return default * float(self.rng.uniform(0, 3)) if self.chance(0.8) else self.pick(NUMBERS)

    # --- calls ---

    def make(self) -> None:
        name = self.pick(list(self.environments)) if not self.chance(0.02) else "Nothing"
        rows = self.environments.get(name, [])
        settings = {
            key: self.setting(default, allowed)
            for key, default, allowed, _ in rows
            if self.chance(0.15)
        }
        if self.chance(0.02):
            settings["color"] = 1
        if self.chance(0.02):
            settings[3] = 1
        num_envs = self.pick([1, 2, 3, 15, 16, 17, 33, 100])
        limit = self.pick([None, None, 0, 1, 2, 5, 100])
        mode, threads = self.pick([0, 1, 2]), self.pick([1, 1, 2, 3])
        if self.chance(0.05):
            num_envs = self.pick(NUMBERS)
        if self.chance(0.03):
            limit, mode, threads = self.pick(NUMBERS), self.pick(NUMBERS), self.pick(NUMBERS)
        env = self.core.VecEnv(name, num_envs, settings, limit, mode, threads)
        if env.num_envs * env.obs_size > MOST_NUMBERS:
            return  # nothing against it, but a million calls should end some day
        if len(self.envs) >= self.most_envs:
            self.envs.pop(int(self.rng.integers(len(self.envs))))
        self.envs.append(Held(name, env, mode))
        if self.chance(0.95):
            self.envs[-1].attach()
        if self.chance(0.9) and self.envs[-1].arrays:
            env.reset()

    def forget(self) -> None:
        if self.envs and self.chance(0.3):
            self.envs.pop(int(self.rng.integers(len(self.envs))))

    def attach(self) -> None:
        held = self.held()
        arrays = held.fresh_arrays()
        if self.chance(0.7):
            key = self.pick(list(arrays))
            array = arrays[key]
            wrong = [array[:-1], array[:, None], np.zeros((0,) * array.ndim, array.dtype), None,
                     array.astype(np.float64), array.tolist(), np.asfortranarray(array),
                     np.repeat(array, 2, axis=0)[::2], np.concatenate([array, array])]  # fmt: skip
            arrays[key] = self.pick(wrong)
            if self.chance(0.1):
                array.flags.writeable = False
                arrays[key] = array
        held.env.attach(*arrays.values())
        held.arrays = arrays

    def seed_slots(self) -> None:
        held = self.held()
        n = held.env.num_envs if self.chance(0.95) else self.pick([0, 1, 5, 1000])
        seeds = self.rng.integers(0, 2**63, n).astype(np.uint64)
        lanes = self.rng.integers(0, 2**32, n).astype(np.uint32)
        if self.chance(0.05):
            seeds = self.pick([seeds.astype(np.int64), seeds[::-1], seeds.tolist(), None])
        mask = self.mask(held) if self.chance(0.3) else None
        held.env.seed(seeds, lanes, mask)

    def mask(self, held: Held):
        mask = self.rng.random(held.env.num_envs) < 0.5
        if self.chance(0.1):
            return self.pick([mask[:-1], mask.astype(int), mask.tolist(), mask[:, None], 3])
        return mask

    def reset(self) -> None:
        held = self.held()
        if held.mode == 2 and held.arrays and self.chance(0.7):
            ended = held.arrays["terminated"] | held.arrays["truncated"]
            held.env.reset(np.ascontiguousarray(ended))
        else:
            held.env.reset(self.mask(held) if self.chance(0.6) else None)

    def fill(self, held: Held, bad: float) -> None:
        """Random actions into the arrays; some of them impossible."""
        choices, ranges = held.arrays["choices"], held.arrays["ranges"]
        heads = held.env.heads
        for column, (_, options, *_) in enumerate(heads[: choices.shape[1]]):
            choices[:, column] = self.rng.integers(0, options, len(choices))
        for column, (_, _, low, high, _) in enumerate(heads[choices.shape[1] :]):
            units = self.rng.uniform(0, 1, len(ranges)).round(int(self.rng.integers(0, 3)))
            ranges[:, column] = np.clip(low + units * (high - low), low, high)
        if self.chance(bad):
            array = self.pick([array for array in (choices, ranges) if array.size])
            where = tuple(int(self.rng.integers(size)) for size in array.shape)
            floats = [np.nan, np.inf, -np.inf, 1e30, -5.0, 1e9]
            whole = [-1, 2**31 - 1, -(2**31), 10**6]
            array[where] = self.pick(whole if array.dtype == np.int32 else floats)

    def step(self) -> None:
        held = self.held()
        if not held.arrays:
            held.env.step()  # refused
        self.fill(held, 0.1)
        self.stepped(held, held.env.step)

    def step_units(self) -> None:
        held = self.held()
        n, heads = held.env.num_envs, held.env.heads
        units = self.rng.uniform(-1, 1, (n, len(heads))).astype(np.float32)
        for column, (_, options, *_) in enumerate(heads):
            if options:
                units[:, column] = self.rng.integers(0, options, n)
        if self.chance(0.1):
            where = (int(self.rng.integers(n)), int(self.rng.integers(len(heads))))
            units[where] = self.pick([np.nan, np.inf, -1.01, 0.5, 1e10, -1e30, 1e9])
        if self.chance(0.03):
            units = self.pick([units[:-1], units[:, :-1], units.astype(float), units.T, None])
        self.stepped(held, lambda: held.env.step_units(units))

    def stepped(self, held: Held, step) -> None:
        """A step that is done is a good one; one that is refused has changed nothing."""
        before = held.env.snapshot() if self.chance(0.1) else None
        try:
            step()
        except ALLOWED:
            assert before is None or held.env.snapshot() == before
            raise
        arrays = held.arrays
        assert not (arrays["terminated"] & arrays["truncated"]).any()
        assert np.isfinite(arrays["reward"]).all(), held
        assert np.isfinite(arrays["next_obs"]).all(), held
        assert (arrays["episode_length"] >= 0).all(), held

    def snapshot(self) -> None:
        self.snapshots.append(self.held().env.snapshot())
        if len(self.snapshots) > 20:
            self.snapshots.pop(int(self.rng.integers(len(self.snapshots))))

    def restore(self) -> None:
        held = self.held()
        own = held.env.snapshot()
        kind = self.rng.random()
        if kind < 0.3 and held.arrays:
            try:
                held.env.restore(own)
            except ALLOWED as error:
                raise AssertionError(f"{held} refuses what it has come to") from error
            assert held.env.snapshot() == own
            return
        snapshot = self.pick(self.snapshots) if kind < 0.5 else own
        if kind > 0.7:  # damaged, but of the right length
            damaged = bytearray(snapshot)
            for _ in range(int(self.rng.integers(1, 40))):
                if damaged:
                    damaged[int(self.rng.integers(len(damaged)))] = int(self.rng.integers(256))
            snapshot = bytes(damaged)
        if 0.6 < kind < 0.8:
            snapshot = self.forged(own)
        if kind > 0.95:
            snapshot = self.pick([snapshot[:-1], snapshot + b"x", "text", None, b"\xff" * 100])
        try:
            held.env.restore(snapshot)
        except ALLOWED:
            assert held.env.snapshot() == own
            raise

    def forged(self, snapshot: bytes) -> bytes:
        """Other numbers in a few places, and the checksum that goes with them."""
        start = snapshot.index(b"\n") + 1
        words = np.frombuffer(snapshot[start:-8], np.uint32).copy()
        numbers = [0, 1, 2, 3, 5, 100, 2**20, 2**31 - 1, 2**31, 2**32 - 1, 0x7FC00000, 0x3F000000]
        for _ in range(int(self.rng.integers(1, 4))):
            words[int(self.rng.integers(words.size))] = self.pick(numbers)
        body = words.tobytes()
        return snapshot[:start] + body + checksum(body).to_bytes(8, "little")

    def state(self) -> None:
        held = self.held()
        slots = [0, held.env.num_envs - 1, held.env.num_envs, -1, 2**31, 2**40, 1.5, None]
        slot = self.pick(slots) if self.chance(0.2) else 0
        for numbers, rows, columns in held.env.state(slot).values():
            assert len(numbers) == max(rows, 1) * max(columns, 1)

    def set_state(self) -> None:
        held = self.held()
        n = held.env.num_envs
        slot = int(self.rng.integers(n)) if self.chance(0.95) else self.pick([n, -1, 2**31, None])
        state = {key: np.array(part[0]) for key, part in held.env.state(0).items()}
        if not self.chance(0.3):
            keys = [key for key in state if self.chance(0.3)]
            state = {key: state[key] for key in keys}
        for key, part in state.items():
            if self.chance(0.5):
                scale = self.pick([0.0, 1.0, 1.0, 5.0, 100.0, 1e7, 1e300])
                state[key] = part + self.rng.uniform(-scale, scale, part.shape)
            if self.chance(0.2):
                state[key] = np.round(state[key])
            if self.chance(0.1):
                bad = [np.nan, np.inf, -np.inf, 2**31, -(2**31) - 1, 1e300, 2**31 - 1]
                state[key] = np.full(part.shape, float(self.pick(bad)))
            if self.chance(0.05):
                wrong = [part[:-1], part[None], part.astype(np.float32), 3, None, "x"]
                state[key] = self.pick(wrong)
        if self.chance(0.03):
            state[self.pick(["color", 3])] = np.zeros(1)
        before = held.env.snapshot() if self.chance(0.3) else None
        try:
            held.env.set_state(slot, state)
        except ALLOWED:
            assert before is None or held.env.snapshot() == before
            raise

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
            self.numbers(members, batch + (not self.rng.integers(50))),
        )  # fmt: skip

    def ask(self) -> None:
        env = self.held().env
        low, high = np.array(env.obs_low), np.array(env.obs_high)
        assert len(low) == len(high) == env.obs_size
        assert (low <= high).all()  # and so none is NaN; CartPole's speeds have no bounds
        assert env.time_limit >= 0
        assert self.core.environments().keys() == self.environments.keys()


def checksum(data: bytes) -> int:
    """That of snapshots (cpp/core/checksum.h)."""
    total = 0xCBF29CE484222325
    for at in range(0, len(data), 8):
        word = int.from_bytes(data[at : at + 8], "little")
        total = (total ^ word) * 0x100000001B3 % 2**64
        total ^= total >> 29
    return total


class Held:
    """An environment, the arrays it writes to, and its autoreset mode."""

    def __init__(self, name: str, env, mode) -> None:
        self.name, self.env, self.mode = name, env, mode
        self.arrays: dict[str, np.ndarray] = {}

    def fresh_arrays(self) -> dict[str, np.ndarray]:
        n, size = self.env.num_envs, self.env.obs_size
        options = sum(1 for head in self.env.heads if head[1])
        return {
            "choices": np.zeros((n, options), np.int32),
            "ranges": np.zeros((n, len(self.env.heads) - options), np.float32),
            "obs": np.zeros((n, size), np.float32),
            "next_obs": np.zeros((n, size), np.float32),
            "reward": np.zeros(n, np.float32),
            "terminated": np.zeros(n, np.bool_),
            "truncated": np.zeros(n, np.bool_),
            "episode_return": np.zeros(n, np.float32),
            "episode_length": np.zeros(n, np.int32),
        }

    def attach(self) -> None:
        arrays = self.fresh_arrays()
        self.env.attach(*arrays.values())
        self.arrays = arrays

    def __repr__(self) -> str:
        return f"{self.name} of {self.env.num_envs}: {self.env.heads}"


def main() -> None:
    """Runs the fuzzer and says what it did."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--modules", help="the folder of the compiled modules, if not the package")
    options = parser.parse_args()
    start, done = time.perf_counter(), 0
    total: Counter[str] = Counter()
    in_use: list[int] = []
    while done < options.calls:
        calls = min(CHUNK, options.calls - done)
        fuzzer = Fuzzer(options.seed + done, modules=options.modules)
        fuzzer.run(calls)
        total += fuzzer.outcomes
        done += calls
        del fuzzer
        gc.collect()
        in_use.append(allocated_bytes())
        sys.stdout.write(f"{done} calls, {time.perf_counter() - start:.0f} s, {in_use[-1]} bytes\n")
        sys.stdout.flush()
    for outcome, count in sorted(total.items()):
        sys.stdout.write(f"{count:9d}  {outcome}\n")
    if len(in_use) > 2 and in_use[-1] > in_use[1] + MOST_GROWTH:
        sys.exit(f"memory in use has grown from {in_use[1]} to {in_use[-1]} bytes")


def allocated_bytes() -> int:
    """The memory in use, as the sanitizer's allocator counts it; 0 without one."""
    count = getattr(ctypes.CDLL(None), "__sanitizer_get_current_allocated_bytes", None)
    if count is None:
        return 0
    count.restype = ctypes.c_size_t
    return int(count())


if __name__ == "__main__":
    main()
