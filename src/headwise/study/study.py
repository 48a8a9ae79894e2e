"""A study: cells times seeds, built step by step and never changed in place."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from headwise.errors import ConfigError
from headwise.nets.encoders import NetworkConfig
from headwise.registry import unknown
from headwise.study.cells import Cell
from headwise.study.environment import Environment, as_environment
from headwise.study.evaluation import Evaluate
from headwise.study.grid import cells_of_grid
from headwise.study.html import html_table
from headwise.study.names import STUDY_NAMES, is_study_name
from headwise.study.run import Run
from headwise.training.config import Normalization, RunConfig
from headwise.upgrade import LAYOUT

EVALUATED = Evaluate()
"""How the runs of a grid are evaluated unless told otherwise."""
_CONDITIONS = ("environment", "view", "algorithm", "factorization")


@dataclass(frozen=True, init=False)
class Study:
    """A plan of runs, and what is asked of them.

    Example:
        >>> import headwise as hw
        >>> base = hw.RunConfig.of("ppo", "HybridShoot", total_timesteps=10_000)
        >>> study = hw.Study("mine", base=base, grid={"factorization": ["shared", "vdn"]}, seeds=3)
        >>> len(study.runs())
        6

    `without` takes cells out, `change` gives some of them other settings, `adding` puts single ones
    in. Each returns a new study.

    Args:
        name: Names its folder.
        cells: Ready cells, beside those of the grid.
        seeds: So many from 0 on, or these.
        thresholds: Returns of interest.
        about: What is asked.
        file: The file it was loaded from.
        base: What all cells of the grid have in common.
        grid: For each of "env", "view", "algorithm", "factorization", or a setting of any part, the
            values to try: all combinations are cells.
        evaluate: How the runs of the grid are evaluated; None ranks them by training returns.
    """

    name: str
    """Names its folder; letters, digits, dots, hyphens and underscores, at most 100."""
    cells: tuple[Cell, ...] = ()
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    thresholds: tuple[float, ...] = ()
    """Returns of interest: how many steps until the smoothed return first reaches each."""
    about: str = ""
    """What is asked, in a sentence or two; the report prints it."""
    file: Path | None = field(default=None, compare=False)
    """The file it was loaded from. Worker processes run it too, if it registers what they need."""

    def __init__(
        self,
        name: str,
        cells: Sequence[Cell] = (),
        seeds: int | Sequence[int] = 5,
        thresholds: Sequence[float] = (),
        about: str = "",
        file: Path | None = None,
        *,
        base: RunConfig | None = None,
        grid: Mapping[str, Sequence[Any]] | None = None,
        evaluate: Evaluate | None = EVALUATED,
    ) -> None:
        if not is_study_name(name):
            raise ConfigError(
                "a study needs a name that can be a folder's", got=repr(name), allowed=STUDY_NAMES
            )
        if base is not None:
            cells = (*cells, *cells_of_grid(base, grid or {}, evaluate))
        elif grid is not None:
            raise ConfigError(
                "a grid needs a base, which says what its cells have in common",
                got="grid without base",
                fix='Give one: base=RunConfig.of("ppo", "CartPole-v1", total_timesteps=50_000).',
            )
        values = (name, tuple(cells), as_seeds(seeds), tuple(thresholds), about, file)
        for one, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, one.name, value)

    def __repr__(self) -> str:
        runs = len(self.cells) * len(self.seeds)
        return (
            f"Study({self.name!r}, {len(self.cells)} cells, {len(self.seeds)} seeds, {runs} runs)"
        )

    @classmethod
    def grid(
        cls,
        name: str,
        *,
        environments: Sequence[Environment | str],
        algorithms: Sequence[str],
        factorizations: Sequence[str],
        total_timesteps: int,
        views: Sequence[str | None] = (None,),
        seeds: int | Sequence[int] = 5,
        num_envs: int = 16,
        settings: dict[str, Any] | None = None,
        about: str = "",
        evaluate: Evaluate | None = EVALUATED,
        **normalization: Any,
    ) -> Study:
        """The product of everything; `settings` hold for all algorithms, so all must know them.

        What is normalized (`normalize_obs=True`) is said as to an `Agent`. With `evaluate=None`
        runs are ranked by what they earned in training, and have the ids of runs before there was
        evaluation.
        """
        cells = tuple(
            Cell(
                as_environment(env),
                view,
                algorithm,
                kind,
                total_timesteps,
                num_envs,
                dict(settings or {}),
                normalization=normalization,
                evaluate=evaluate,
            )
            for env, view, algorithm, kind in itertools.product(
                environments, views, algorithms, factorizations
            )
        )
        return cls(name, cells, as_seeds(seeds), about=about)

    def without(self, **where: str | Iterable[str] | None) -> Study:
        """The study without the cells that meet all conditions.

        Conditions are on `environment` (its label), `view`, `algorithm` and `factorization`, each
        one value or several; a label is a condition too.
        """
        matches = self._matcher(where)
        return replace(self, cells=tuple(cell for cell in self.cells if not matches(cell)))

    def change(
        self,
        *,
        settings: dict[str, Any] | None = None,
        factorization_settings: dict[str, Any] | None = None,
        env_settings: dict[str, Any] | None = None,
        total_timesteps: int | None = None,
        num_envs: int | None = None,
        labels: dict[str, str] | None = None,
        evaluate: Evaluate | Literal["as it is"] | None = "as it is",
        **where: Any,
    ) -> Study:
        """The study with the cells that meet all conditions (see `without`) changed.

        Settings of normalization and `encoder` are given beside the conditions:
        `normalize_obs=True`.

        Later changes win. A change that touches no cell is a mistake, and refused.
        """
        known = (*fields(Normalization), *fields(NetworkConfig))
        names = [one.name for one in known if one.name in where]
        normalization = {name: where.pop(name) for name in names}
        matches = self._matcher(where)
        single = {"total_timesteps": total_timesteps, "num_envs": num_envs}
        said: dict[str, Any] = {name: value for name, value in single.items() if value is not None}
        if evaluate != "as it is":
            said["evaluate"] = evaluate

        def changed(cell: Cell) -> Cell:
            env = cell.environment
            return replace(
                cell,
                **said,
                environment=replace(env, settings={**env.settings, **(env_settings or {})}),
                settings={**cell.settings, **(settings or {})},
                factorization_settings={
                    **cell.factorization_settings,
                    **(factorization_settings or {}),
                },
                labels={**cell.labels, **(labels or {})},
                normalization={**cell.normalization, **normalization},
            )

        return replace(
            self, cells=tuple(changed(cell) if matches(cell) else cell for cell in self.cells)
        )

    def adding(self, *cells: Cell) -> Study:
        """The study with further cells."""
        return replace(self, cells=(*self.cells, *cells))

    def with_seeds(self, seeds: int | Sequence[int]) -> Study:
        """The study with other seeds: so many from 0 on, or these."""
        return replace(self, seeds=as_seeds(seeds))

    def runs(self) -> tuple[Run, ...]:
        """Every run, cell by cell and seed by seed; refuses what cannot be built from settings."""
        if not self.cells:
            raise ConfigError(f"the study {self.name!r} has no cells")
        if not self.seeds:
            raise ConfigError(f"the study {self.name!r} has no seeds")
        runs = tuple(cell.run(seed) for cell in self.cells for seed in self.seeds)
        seen: dict[str, Run] = {}
        for run in runs:
            other = seen.setdefault(run.id, run)
            if other is not run:
                raise ConfigError(
                    f"the study {self.name!r} has the same run twice",
                    got=f"{other.name} and {run.name}",
                    fix="Labels alone do not make another run; change a setting, or drop one.",
                )
        return runs

    def _repr_html_(self) -> str:
        """Its cells as a table, in a notebook."""
        columns = ("environment", "view", "algorithm", "factorization", "labels", "steps")
        rows = [
            (
                cell.environment.label,
                cell.view or "as it is",
                cell.algorithm,
                cell.factorization,
                ", ".join(f"{name}={value}" for name, value in cell.labels.items()),
                f"{cell.total_timesteps:,}",
            )
            for cell in self.cells
        ]
        title = f"{self.name}: {len(self.cells)} cells of {len(self.seeds)} seeds"
        return html_table(title, columns, rows, self.about)

    def to_json(self) -> dict[str, Any]:
        """What `study.json` holds."""
        return {
            "name": self.name,
            "version": LAYOUT,
            "about": self.about,
            "thresholds": list(self.thresholds),
            "plan": [{"id": run.id, **run.to_json()} for run in self.runs()],
        }

    def _matcher(self, where: dict[str, Any]) -> Callable[[Cell], bool]:
        label_names = {name for cell in self.cells for name in cell.labels}
        wanted = {}
        for name, value in where.items():
            if name not in (*_CONDITIONS, *label_names):
                raise unknown("condition on cells", name, (*_CONDITIONS, *label_names))
            several = isinstance(value, Iterable) and not isinstance(value, str)
            values = set(value) if several else {value}
            wanted[name] = {str(v) for v in values} if name in label_names else values

        def matches(cell: Cell) -> bool:
            has = {
                **cell.labels,
                "environment": cell.environment.label,
                "view": cell.view,
                "algorithm": cell.algorithm,
                "factorization": cell.factorization,
            }
            return all(has.get(name) in values for name, values in wanted.items())

        if not any(matches(cell) for cell in self.cells):
            raise ConfigError(
                f"no cell of the study {self.name!r} meets the conditions",
                got=where,
                allowed=", ".join(cell.title for cell in self.cells[:6]) + ", ...",
            )
        return matches


def as_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """So many seeds from 0 on, or those given."""
    return tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
