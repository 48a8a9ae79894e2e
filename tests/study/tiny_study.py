"""Studies that take a moment, and a way to compare what they leave behind."""

import pyarrow.parquet as parquet

from headwise.study import Cell, Environment, Store, Study
from headwise.study.result import TIMINGS
from headwise.training.checkpoint import read_checkpoint

SMALL = {
    "ppo": {"n_steps": 8, "batch_size": 16, "n_epochs": 1},
    "dqn": {"buffer_size": 64, "batch_size": 8, "learning_starts": 16},
    "sac": {"buffer_size": 64, "batch_size": 8, "learning_starts": 16},
}


def tiny_cell(algorithm="dqn", factorization="vdn", total_timesteps=64, view="hybrid", **settings):
    return Cell(
        Environment("HybridShoot", "shoot"),
        view,
        algorithm,
        factorization,
        total_timesteps=total_timesteps,
        num_envs=4,
        settings={"net_arch": (8, 8), "branch_width": 8, **SMALL[algorithm], **settings},
    )


def tiny_study(name="tiny", seeds=2, cells=None, **more):
    cells = cells or (tiny_cell(), tiny_cell("ppo", "shared"))
    return Study(name, tuple(cells), tuple(range(seeds)), thresholds=(0.0,), **more)


def contents(folder):
    """What does not depend on who made a store, where, and how fast: by run, with a checkpoint."""
    store, found = Store(folder), {}
    for path in sorted(store.runs.iterdir()):
        result = store.result(path.name)
        assert set(TIMINGS) <= set(result)
        tables = {
            name: parquet.read_table(path / f"{name}.parquet").to_pydict()
            for name in ("episodes", "metrics")
        }
        # As text, so that NaN equals itself.
        rest = repr(
            (
                (path / "config.json").read_text(),
                sorted((k, v) for k, v in result.items() if k not in TIMINGS),
                tables,
            )
        )
        kept = store.has_checkpoint(path.name)
        found[path.name] = rest, checkpoint_contents(path / "checkpoint.zip") if kept else None
        assert {p.name for p in path.iterdir()} == {
            "config.json",
            "fingerprint.json",
            "episodes.parquet",
            "metrics.parquet",
            *(["checkpoint.zip"] if kept else []),
            "result.json",
        }
    return found


def checkpoint_contents(path):
    """Every number and every word; the zip itself also says when it was written."""
    info, tensors = read_checkpoint(path)
    named = {
        f"{part}/{name}": (str(x.dtype), tuple(x.shape), x.numpy().tobytes())
        for part, parts in tensors.items()
        for name, x in parts.items()
    }
    return repr(info), named


def leftovers(folder):
    """Files of work in progress that nobody should find after a study."""
    return [
        path for name in (".scratch", ".locks") for path in (Store(folder).folder / name).iterdir()
    ]
