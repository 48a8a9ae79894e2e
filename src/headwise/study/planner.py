"""The planner: which runs train together in one population, and which are asked for at all."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from headwise.added import canonical_json
from headwise.algorithms import algorithms
from headwise.algorithms.base import per_member_fields
from headwise.errors import ConfigError
from headwise.study.run import Run
from headwise.training.config import RunConfig

MAX_MEMBERS = 16


@dataclass(frozen=True)
class Pack:
    """Runs that train in one population: they differ in seeds and per-member settings alone."""

    runs: tuple[Run, ...]

    @property
    def id(self) -> str:
        """A name for this pack within a study."""
        return f"{self.runs[0].id}+{len(self.runs) - 1}"

    @property
    def kind(self) -> tuple[str, str]:
        """Environment and algorithm."""
        first = self.runs[0]
        return first.labels.get("environment", first.env), first.algorithm

    @property
    def steps(self) -> int:
        """Environment steps of each member."""
        return self.runs[0].total_timesteps

    def config(self) -> RunConfig:
        """What all of them are trained by, with one value for each member where they differ."""
        return RunConfig.merged([run.config for run in self.runs])

    def alone(self) -> list[Pack]:
        """Every run by itself."""
        return [Pack((run,)) for run in self.runs]


def pack_key(run: Run) -> str:
    """Equal for runs that can train together."""
    varying = per_member_fields(algorithms.get(run.algorithm))
    data = run.to_json()
    del data["seed"], data["labels"]
    data["settings"] = {
        name: value
        for name, value in data["settings"].items()
        if name not in varying or not isinstance(value, int | float)
    }
    return canonical_json(data)


def pack_runs(runs: Sequence[Run], max_members: int = MAX_MEMBERS, workers: int = 1) -> list[Pack]:
    """Packs in the order in which their first runs appear.

    Members of a population share the cost of every operation, so packs are as large as allowed;
    but no worker should idle while another has a large one, so there are at least as many packs as
    workers where there are as many runs.
    """
    if max_members < 1:
        raise ConfigError("max_members must be a count", got=max_members, allowed="1 or more")
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(pack_key(run), []).append(run)
    largest = min(max_members, max(1, math.ceil(len(runs) / max(workers, 1))))
    packs = []
    for group in groups.values():
        parts = math.ceil(len(group) / largest)
        size = math.ceil(len(group) / parts)  # 20 runs of at most 16 are 10 and 10, not 16 and 4
        packs += [Pack(tuple(group[at : at + size])) for at in range(0, len(group), size)]
    return packs


def by_turns(packs: Sequence[Pack]) -> list[Pack]:
    """The same packs with one of each kind after the other, the longest of a kind first.

    What trains at the same time then waits for different things: an environment, the interpreter,
    the device. And what takes long is not left to the end, where it would be alone.
    """
    kinds: dict[tuple[str, str], list[Pack]] = {}
    for pack in packs:
        kinds.setdefault(pack.kind, []).append(pack)
    columns = (sorted(kind, key=lambda pack: -pack.steps) for kind in kinds.values())
    return [pack for turn in zip_longest(*columns) for pack in turn if pack is not None]


def choose(runs: Sequence[Run], only: str | None = None, shard: str | None = None) -> list[Run]:
    """The runs that are asked for.

    Args:
        runs: All of them.
        only: A pattern with `*` and `?` that a run's name must contain, or how its id begins;
            several are separated by commas.
        shard: "2/4" is the second of four parts, which together are all runs. Cells are dealt out
            whole, so that they can be packed, unless there are fewer of them than shards.
    """
    chosen = list(runs)
    if shard is not None:
        index, number = _shard(shard)
        keys = [pack_key(run) for run in chosen]
        order = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        by_cell = len(order) >= number
        chosen = [
            run
            for i, (run, key) in enumerate(zip(chosen, keys, strict=True))
            if (order[key] if by_cell else i) % number == index - 1
        ]
    if only is not None:
        patterns = [pattern.strip() for pattern in only.split(",") if pattern.strip()]
        if not patterns:
            raise ConfigError("there is no pattern to choose runs by", got=repr(only))
        wanted: set[str] = set()
        for pattern in patterns:
            found = {run.id for run in chosen if _fits(run, pattern)}
            wanted |= found
            if not found:
                raise ConfigError(
                    "no run has a name like that",
                    got=repr(pattern),
                    allowed=", ".join(run.name for run in runs[:4]) + ", ...",
                )
        chosen = [run for run in chosen if run.id in wanted]
    return chosen


def _fits(run: Run, pattern: str) -> bool:
    return fnmatch.fnmatchcase(run.name, f"*{pattern}*") or run.id.startswith(pattern)


def _shard(text: str) -> tuple[int, int]:
    parts = text.split("/")
    if len(parts) == 2 and all(part.isdecimal() for part in parts):
        index, number = map(int, parts)
        if 1 <= index <= number:
            return index, number
    raise ConfigError(
        "a shard is a part and how many there are", got=repr(text), allowed="1/4 to 4/4, say"
    )
