"""Conducting a study: take what is to be done, have it trained, put it into the store."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from headwise import ENGINE, checks
from headwise.errors import ConfigError, StoreError
from headwise.study.environment import check_environments
from headwise.study.executors.base import (
    Crashed,
    Event,
    Executor,
    ExecutorSettings,
    Finished,
    Lost,
    Stepped,
    executors,
)
from headwise.study.extras import Extras, LoggerName, Loggers, Saves, loggers_by_name
from headwise.study.fingerprint import fingerprint
from headwise.study.html import html_table
from headwise.study.imports import imports_of
from headwise.study.live import Live
from headwise.study.locks import Locks
from headwise.study.place import choose_place
from headwise.study.planner import MAX_MEMBERS, Pack, by_turns, choose, pack_runs
from headwise.study.progress import StudyProgress
from headwise.study.result import RunFailure
from headwise.study.run import Run
from headwise.study.saved import saved_packs, sweep_saves
from headwise.study.store import HOW_TO_KEEP, WORKER_LOST, Store
from headwise.study.study import Study
from headwise.study.tables import parquet_module
from headwise.training.device import AUTO
from headwise.training.matmul_precision import (
    MatmulPrecision,
    matmul_precision_as,
    matmul_precision_now,
    not_as_asked,
)

MAX_LOSSES = 3
"""How often a run may lose its worker before it counts as failed, until the study is next run."""
SAVED = ".saved"
"""Where packs that are under way are saved, in the study's folder."""
_POLL = 1.0
"""Seconds between two looks at what other runners are doing."""
_NO_LOCKS = (
    "the file system of {} has no locks: several runners on this folder would do the same work. "
    "Give each a part of its own with --shard."
)

for _name in ("local", "inline", "streams", "ray"):  # each registers itself
    import_module(f"headwise.study.executors.{_name}")


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to run a study. These options change no result, except for floating-point rounding."""

    executor: str | None = None
    """Where to train: `local` processes, this process (`inline`), the `streams` of one GPU, or a
    `ray` cluster; if not given, `streams` for a GPU and `local` for the CPU."""
    workers: int | None = None
    """Populations trained in parallel; one for each core if not given."""
    address: str | None = None
    """Address of a Ray cluster; a local one is started if not given."""
    device: str = AUTO
    """Device: cpu, cuda, or auto, which measures which is faster."""
    matmul_precision: MatmulPrecision | None = None
    """Precision of matrix multiplication: float32, tf32 (GPUs) or bf16 (CPUs with AVX512-BF16);
    PyTorch's setting if not given."""
    max_members: int = MAX_MEMBERS
    """Maximum number of runs that are trained as one population."""
    only: str | None = None
    """A pattern (`*`, `?`) that a run's name or id must contain; several, separated by commas."""
    shard: str | None = None
    """Run a part of the study only: 2/4 is the second of four."""
    retry_failed: bool = False
    """Retry runs that ended in an error."""
    mix_engines: bool = False
    """Continue in a folder whose finished runs are of another engine version; reports do not mix
    them."""
    wait: bool = True
    """Wait for runs that other processes on this folder are training, and take over if they die."""
    ignore_locks: bool = False
    """Train runs that another process has locked, for example on a machine that hangs. If that
    process is alive, they are trained twice, and the first result counts."""
    keep_checkpoints: bool = False
    """Keep the trained agent of each run, for `headwise eval`, `headwise play` and `Agent.load`."""
    checkpoint_every: int | None = None
    """Environment steps of each run between checkpoints to resume unfinished runs from; without
    them an unfinished run starts again."""
    log: tuple[LoggerName, ...] = ()
    """Loggers of each run's metrics: files in `logs` of the study's folder, or wandb or mlflow, in
    a project of the study's name."""


@dataclass(frozen=True)
class Summary:
    """How a study stands after it was conducted."""

    asked: int
    """Runs that were asked for."""
    finished: int
    failed: int
    elsewhere: int
    """Runs that another runner is still working on."""
    checkpoints: int
    """Finished runs that have a checkpoint."""

    def _repr_html_(self) -> str:
        """Its numbers as a table, in a notebook."""
        names = ("finished", "failed", "elsewhere", "checkpoints")
        title = f"{self.finished} of {self.asked} runs are finished"
        return html_table(title, names, [[getattr(self, name) for name in names]])


def conduct(
    study: Study,
    folder: str | Path,
    options: Options | None = None,
    progress: StudyProgress | None = None,
    *,
    loggers: Loggers | None = None,
) -> Summary:
    """Runs what is not finished yet of a study, and keeps it in a folder.

    Killed at any moment, it goes on from there when called again. Several may run at the same time
    on one folder. A run that fails is a row in the store; it does not stop the others.

    Args:
        study: What is to be done.
        folder: Where it is kept.
        options: How.
        progress: Is told how it goes.
        loggers: Makes the loggers of each run, instead of `options.log`: a function that worker
            processes can import, which is handed a `LoggedRun`.
    """
    options = options or Options()
    checks.optional_steps("checkpoint_every", options.checkpoint_every)
    if options.workers is not None and options.workers < 1:
        raise ConfigError("workers must be at least 1", got=options.workers)
    with matmul_precision_as(options.matmul_precision):
        return _conduct(study, folder, options, progress, loggers)


def _conduct(
    study: Study,
    folder: str | Path,
    options: Options,
    progress: StudyProgress | None,
    loggers: Loggers | None,
) -> Summary:
    store = Store(folder)
    home, every = Path(folder).resolve(), options.checkpoint_every
    extras = Extras(
        study.name,
        home,
        loggers or (loggers_by_name(options.log) if options.log else None),
        None if every is None else Saves(home / SAVED, every),
    )
    asked = planned_runs(study, store, options)
    parquet_module()  # if it is not there, that is known before a folder is made
    with Locks(store.folder, ignore=options.ignore_locks) as locks:
        store.begin(study.to_json(), locks)
        return _under_way(study, store, asked, locks, options, progress, extras)


def _under_way(
    study: Study,
    store: Store,
    asked: Sequence[Run],
    locks: Locks,
    options: Options,
    progress: StudyProgress | None,
    extras: Extras,
) -> Summary:
    place = choose_place(options.executor, options.device, asked, store, options.max_members)
    settings = ExecutorSettings(
        options.workers,
        options.address,
        place.device,
        tuple(study.thresholds),
        options.keep_checkpoints,
        matmul_precision_now(),
        imports_of(study, asked),
        extras,
    )
    executor = executors.get(place.executor)(settings)
    with executor, progress or StudyProgress() as shown:
        if place.why:
            shown.say(place.why)
        if options.mix_engines and (other := of_other_engine(store, study.runs())):
            shown.say(f"warning: {other}")
        if missing := not_as_asked(options.matmul_precision, place.device):
            shown.say(f"warning: {missing}")
        if locks.missing:
            shown.say(f"warning: {_NO_LOCKS.format(store.folder)}")
        else:
            store.sweep(locks.held_elsewhere)
            Live(store.folder).sweep(locks.held_elsewhere)
        again = options.retry_failed
        sweep_saves(store.folder / SAVED, lambda i: store.is_open(i, retry_failed=again))
        return _Conductor(store, locks, executor, options, shown, extras.saves).conduct(asked)


def planned_runs(study: Study, store: Store, options: Options) -> list[Run]:
    """The runs that are asked for; refuses mistakes that would make some of them fail for sure."""
    asked = choose(study.runs(), options.only, options.shard)
    again = options.retry_failed
    still_open = [run for run in asked if store.is_open(run.id, retry_failed=again)]
    check_environments(still_open)
    if still_open and not options.mix_engines and (other := of_other_engine(store, study.runs())):
        raise ConfigError(
            other,
            fix="Go on with --mix-engines: a report keeps the runs of two engines apart, in cells "
            "of their own. Or begin anew in another folder with --out.",
        )
    return asked


def of_other_engine(store: Store, runs: Sequence[Run]) -> str:
    """What to tell one who goes on with a study that another engine has begun; or nothing."""
    engines = []
    for run in runs:
        with suppress(StoreError):  # of a damaged run, which a report tells of
            engines += [store.engine(run.id)] if store.is_finished(run.id) else []
    others = sorted({engine for engine in engines if engine != ENGINE})
    if not others:
        return ""
    names = " and ".join(f"engine {engine}" for engine in others)
    count = sum(engine != ENGINE for engine in engines)
    return (
        f"{count} of {len(engines)} finished runs in {store.folder} are of {names}, and this is "
        f"engine {ENGINE}, which comes to other numbers from the same seed"
    )


def without_checkpoint(store: Store, runs: Sequence[Run]) -> str:
    """What to tell one who wants checkpoints about runs that are finished without; or nothing."""
    finished = [run.id for run in runs if store.is_finished(run.id)]
    missed = sum(not store.has_checkpoint(run_id) for run_id in finished)
    if not missed:
        return ""
    return f"{missed} of {len(finished)} finished runs have no checkpoint. {HOW_TO_KEEP}"


class _Conductor:
    """The state of one call."""

    def __init__(
        self,
        store: Store,
        locks: Locks,
        executor: Executor,
        options: Options,
        progress: StudyProgress,
        saves: Saves | None,
    ) -> None:
        self.store = store
        self.saves = saves
        self.live = Live(store.folder)
        self.locks = locks
        self.executor = executor
        self.options = options
        self.progress = progress
        self.queue: deque[Pack] = deque()
        self.losses: dict[str, int] = {}
        self.given_up: set[str] = set()
        """Runs that failed under this conductor: not to be tried again by it."""

    def conduct(self, asked: Sequence[Run]) -> Summary:
        """Goes on until nothing is left that could be done."""
        self.progress.begin([run for run in asked if self._is_open(run)], total=len(asked))
        if self.options.keep_checkpoints and (missed := without_checkpoint(self.store, asked)):
            self.progress.say(missed)
        while left := [run for run in asked if self._is_open(run)]:
            saved = [] if self.saves is None else saved_packs(self.saves.folder, left)
            begun = {run.id for pack in saved for run in pack.runs}
            rest = [run for run in left if run.id not in begun]
            packs = pack_runs(rest, self.options.max_members, self.executor.num_workers)
            self.queue.extend([*saved, *by_turns(packs)])
            worked = False
            for event in self.executor.run(self._next):
                worked = True
                self._take(event)
            if not worked:  # others have all that is left
                left = [run for run in asked if self._is_open(run)]
                if left and not self.options.wait:
                    break
                self.progress.waiting(len(left))
                time.sleep(_POLL)
        finished = sum(self.store.is_finished(run.id) for run in asked)
        failed = sum(self.store.is_failed(run.id) for run in asked)
        kept = sum(self.store.has_checkpoint(run.id) for run in asked)
        return Summary(len(asked), finished, failed, len(asked) - finished - failed, kept)

    def _is_open(self, run: Run) -> bool:
        """Whether a run is still to be done."""
        again = self.options.retry_failed
        return run.id not in self.given_up and self.store.is_open(run.id, retry_failed=again)

    def _next(self) -> Pack | None:
        """The next pack, without what others have or have done; with locks on it."""
        while self.queue:
            pack = self.queue.popleft()
            mine = []
            for run in pack.runs:
                if not self._is_open(run) or not self.locks.take(run.id):
                    continue
                if self._is_open(run):  # it may have been finished just before it was taken
                    mine.append(run)
                else:
                    self.locks.release(run.id)
            if mine:
                pack = replace(pack, runs=tuple(mine))
                self.progress.started(pack)
                return pack
        return None

    def _take(self, event: Event) -> None:
        if isinstance(event, Stepped):
            self.progress.stepped(event.pack, event.steps, event.returns)
            self.live.stepped(event.pack, event.steps, event.returns)
            return
        self.live.gone(event.pack)
        if isinstance(event, Finished):
            for result in event.results:
                self.store.put(result)
                self.locks.release(result.run.id)
            self.progress.finished(event.pack)
        elif isinstance(event, Crashed):
            self._crashed(event)
        else:
            self._lost(event)
            return
        if self.saves is not None:
            self.saves.forget(event.pack.runs)

    def _crashed(self, event: Crashed) -> None:
        self.progress.dropped(event.pack)
        if len(event.pack.runs) > 1:  # whose fault was it? Each by itself will tell.
            self.queue.extendleft(reversed(event.pack.alone()))
        else:
            self._give_up(event.pack.runs[0], event.kind, event.message, event.traceback)

    def _lost(self, event: Lost) -> None:
        self.progress.dropped(event.pack)
        runs = event.pack.runs
        for run in runs:
            self.losses[run.id] = self.losses.get(run.id, 0) + 1
        first = all(self.losses[run.id] == 1 for run in runs)
        if first and self.saves is not None and self.saves.path(runs).is_file():
            self.queue.appendleft(event.pack)  # from where it was saved
            return
        if len(runs) == 1 and self.losses[runs[0].id] >= MAX_LOSSES:
            self._give_up(runs[0], WORKER_LOST, event.reason, "")
            return
        # In halves, because a population too large for the memory would be lost again.
        half = (len(runs) + 1) // 2
        for part in (runs[half:], runs[:half]):
            if part:
                self.queue.appendleft(Pack(part))

    def _give_up(self, run: Run, kind: str, message: str, traceback: str) -> None:
        self.store.put_failure(RunFailure(run, kind, message, traceback, fingerprint()))
        self.given_up.add(run.id)
        self.locks.release(run.id)
        self.progress.failed(run, message)
