"""Stores with made-up runs in the documented layout, to report on without training."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ENVIRONMENTS = {
    "push": ("CoopPush", {"layout": "default"}, 1.2, 37.0),
    "shoot-dep": ("HybridShoot", {"mode": "dependent"}, -0.2, 34.7),
    "shoot-indep": ("HybridShoot", {"mode": "independent"}, -1.5, 33.0),
    "lander": ("Lander", {}, -220.0, 280.0),
    "platform": ("Platform", {}, 0.15, 1.0),
}
VIEWS = ("discrete", "hybrid", "continuous")
BUDGETS = {"push": 2_000_000, "lander": 1_000_000, "platform": 500_000}
SKILL = {"independent": 0.6, "shared": 0.5, "vdn": 0.7, "qplex": 0.65, "ar": 0.8, "joint": 0.3}
COST = {"independent": 3.0, "shared": 1.0, "vdn": 1.1, "qplex": 1.4, "ar": 3.2, "joint": 6.0}


def cells():
    """The 44 cells of an environment: view, algorithm, factorization."""
    for view in VIEWS:
        for algorithm in ("dqn", "ppo", "sac"):
            for factorization in SKILL:
                joint = factorization == "joint" and view != "discrete"
                mixer = algorithm == "sac" and factorization == "qplex"
                concat = algorithm == "sac" and factorization == "vdn" and view == "continuous"
                if not (joint or mixer or concat):
                    yield view, algorithm, factorization


def config(env, algorithm, factorization, seed, steps, view="discrete", **rest):
    return {
        "env": env,
        "env_settings": rest.get("env_settings", {}),
        "view": view,
        "algorithm": algorithm,
        "factorization": factorization,
        "settings": rest.get("settings", {}),
        "factorization_settings": {},
        "seed": seed,
        "total_timesteps": steps,
        "num_envs": 16,
        "labels": {"environment": env, **rest.get("labels", {})},
    }


def write_store(folder, name, runs, about="", unfinished=(), failed=()):
    """A store of (config, episodes (step, return), metrics, result) tuples."""
    folder = Path(folder)
    plan = [{"id": run_id(c), **c} for c, *_ in runs]
    plan += [{"id": run_id(c), **c} for c in (*unfinished, *failed)]
    study = {"name": name, "version": 2, "about": about, "thresholds": [50.0], "plan": plan}
    (folder / "runs").mkdir(parents=True)
    (folder / "study.json").write_text(json.dumps(study))
    for run_config, (step, returns), metrics, result in runs:
        home = folder / "runs" / run_id(run_config)
        home.mkdir()
        (home / "config.json").write_text(json.dumps(run_config))
        made = {"headwise": "0.1.0", "commit": "abc", "packages": {"torch": "2.13.0"}}
        made |= {"machine": {"processor": "a chip"}, "device": "cpu"}
        (home / "fingerprint.json").write_text(json.dumps(made))
        columns = {
            "step": np.asarray(step, np.int64),
            "return": np.asarray(returns, np.float32),
            "length": np.ones(len(step), np.int32),
        }
        pq.write_table(pa.table(columns), home / "episodes.parquet")
        names = [word for word, (at, _) in metrics.items() for _ in at]
        steps = [value for at, _ in metrics.values() for value in at]
        values = [value for _, found in metrics.values() for value in found]
        table = {"step": np.asarray(steps, np.int64), "name": pa.array(names, pa.string())}
        pq.write_table(
            pa.table({**table, "value": np.asarray(values, np.float32)}), home / "metrics.parquet"
        )
        (home / "result.json").write_text(json.dumps(result))
    for run_config in failed:
        home = folder / "runs" / run_id(run_config)
        home.mkdir()
        (home / "config.json").write_text(json.dumps(run_config))
        error = {"type": "EnvError", "message": "it <broke> & fell", "traceback": "..."}
        (home / "error.json").write_text(json.dumps(error))
    return folder


def run_id(run_config):
    """As `Run.id` is made."""
    return _hash(run_config, (",", ":"))


def chance(run_config, shift=0):
    """What is drawn for a run, by its configuration as it was in layout 1."""
    old = {"total_timesteps": "steps", "learning_rate": "learning_rate"}
    before = {old.get(name, name): value for name, value in run_config.items()}
    settings = {old.get(name, name): value for name, value in run_config["settings"].items()}
    before["settings"] = settings
    return np.random.default_rng(int(_hash(before), 16) + shift)


def _hash(run_config, separators=None):
    determining = {k: v for k, v in run_config.items() if k != "labels"}
    text = json.dumps(determining, sort_keys=True, separators=separators)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def rising(rng, low, high, steps, episodes):
    """Steps and returns of a run that learns."""
    step = np.linspace(steps / episodes, steps, episodes).astype(np.int64)
    curve = low + (high - low) * (1 - np.exp(-4 * step / steps))
    return step, curve + rng.normal(0, abs(high - low) * 0.05 + 1e-6, episodes)


def smoothed(returns, keep=0.95):
    curve, state = [], returns[0]
    for value in returns:
        state = keep * state + (1 - keep) * value
        curve.append(state)
    return np.array(curve)


def summary(step, returns, steps, cost=1.0, heads=3):
    curve = smoothed(returns)
    reached = np.nonzero(curve >= 50)[0]
    return {
        "final_return": float(np.mean(returns[-100:])),
        "final_smoothed": float(curve[-50:].mean()),
        "auc": float(curve.mean()),
        "steps_to_50": int(step[reached[0]]) if reached.size else None,
        "num_parameters": int(70_000 * cost),
        "update_ms": 2.0 * cost,
        "act_ms": 0.2 * cost,
        "wall_s": steps / 10_000,
        "diverged": False,
    }


def sweep(folder, seeds=5, episodes=300, environments=ENVIRONMENTS, share=1.0):
    """The paper's sweep: 44 cells on each environment."""
    runs = []
    for label, (env, settings, low, high) in environments.items():
        for view, algorithm, factorization in cells():
            steps = int(BUDGETS.get(label, 1_500_000) * share)
            steps = int(steps * 1.5) if view == "hybrid" and label == "push" else steps
            skill = SKILL[factorization] + 0.1 * (algorithm == "sac" and view == "continuous")
            for seed in range(seeds):
                c = config(
                    env, algorithm, factorization, seed, steps, view,
                    env_settings=settings, labels={"environment": label},
                )  # fmt: skip
                rng = chance(c)
                top = low + (high - low) * (skill + rng.normal(0, 0.05))
                step, returns = rising(rng, low, top, steps, episodes)
                runs.append((c, (step, returns), {}, summary(step, returns, steps,
                                                             COST[factorization])))  # fmt: skip
    return write_store(folder, "paper", runs, "Six factorizations, three families, three views.")


PUBLISHED = {
    ("shared", "uniform"): 6.7,
    ("vdn", "uniform"): 82.3,
    ("vdn", "grad"): 85.3,
    ("vdn", "range"): 85.9,
    ("qplex", "uniform"): 85.3,
    ("qplex", "grad"): 89.2,
    ("qplex", "range"): 87.4,
}


def decoupler_run(algorithm, factorization, estimator, seed, final, steps=100_000, **rest):
    """A run on the decoupler that ends at a return, with credit metrics where it has weights."""
    settings = {"importance": estimator, "gae_lambda": 0.95, **rest.get("settings", {})}
    c = config(
        "ContextualDecoupler", algorithm, factorization, seed, steps,
        settings=settings if algorithm == "ppo" else rest.get("settings", {}),
        labels=rest.get("labels", {}),
    )  # fmt: skip
    rng = chance(c, rest.get("shift", 0))
    step, returns = rising(rng, -68, final + rng.normal(0, 1.5), steps, 1000)
    metrics = {}
    if algorithm == "ppo" and factorization != "shared":
        at = np.linspace(steps / 48, steps, 48).astype(int)
        weighted = estimator != "uniform"
        offline = bool(settings.get("offline_rows"))
        truth = {"range": 0.97, "grad": -0.4, "uniform": 0.0}[estimator] - 0.1 * (not offline)
        rise = truth * np.minimum(1, np.arange(48) / 20) + rng.normal(0, 0.02, 48)
        ratio = (0.85 if weighted else 1.0) + rng.normal(0, 0.01 * weighted, 48)
        squares = {"range": 0.17, "grad": 0.85, "uniform": 1.0}[estimator]
        metrics = {
            "credit/correlation": (at, rise),
            "credit/accuracy": (at, 0.5 + rise / 2),
            "credit/variance_ratio": (at, ratio),
            "credit/weight_ratio": (at, np.full(48, squares)),
            "train/loss": (at, np.zeros(48)),
        }
    return c, (step, returns), metrics, summary(step, returns, steps)


def factorial(folder, seeds=8, steps=100_000, presets=("as_published", "sound"), name="demo"):
    """The factorial study; in the sound one the baseline is nearly as good as the others."""
    runs = []
    for preset in presets:
        for (critic, estimator), final in PUBLISHED.items():
            level = 75.0 if preset == "sound" and critic == "shared" else final
            labels = {"preset": preset, "critic": critic, "estimator": estimator}
            for seed in range(seeds):
                settings = {"learning_rate": 1e-3 if preset == "sound" else 2e-3}  # another run
                runs.append(
                    decoupler_run("ppo", critic, estimator, seed, level, steps,
                                  labels=labels, settings=settings)
                )  # fmt: skip
    return write_store(folder, name, runs, "What do critics and weights each contribute?")


def cross_family(folder, seeds=5):
    ends = {
        ("ppo", "shared"): 15, ("ppo", "vdn"): 80, ("ppo", "qplex"): 80, ("dqn", "shared"): 75,
        ("dqn", "vdn"): 75, ("dqn", "qplex"): 75, ("sac", "shared"): 50, ("sac", "vdn"): 98,
    }  # fmt: skip
    runs = [
        decoupler_run(a, f, "range" if f == "vdn" else "grad", seed, final,
                      labels={"preset": "sound"} if a == "ppo" else {})
        for (a, f), final in ends.items() for seed in range(seeds)
    ]  # fmt: skip
    runs += [  # what the paper does not have
        decoupler_run("sac", "shared", "", seed, final, settings={"change": change},
                      labels={"change": change})
        for change, final in (("relu", 75), ("counterfactual", 96)) for seed in range(seeds)
    ]  # fmt: skip
    return write_store(folder, "families", runs)


def importance(folder, seeds=5):
    runs = [
        decoupler_run("ppo", f, estimator, seed, 80 - 20 * bool(rows),
                      labels={"preset": "sound"}, settings={"offline_rows": rows})
        for f in ("vdn", "qplex") for estimator in ("range", "grad")
        for rows in (0, 80_000) for seed in range(seeds)
    ]  # fmt: skip
    return write_store(folder, "importance", runs)


def lambdas(folder, seeds=4):
    runs = [
        decoupler_run("ppo", f, estimator, seed, 97 - 30 * value,
                      labels={"preset": "sound", "lambda": f"{value:g}"},
                      settings={"gae_lambda": value})
        for f, estimator in (("shared", "uniform"), ("vdn", "uniform"), ("vdn", "range"))
        for value in (0.0, 0.5, 0.95, 1.0) for seed in range(seeds)
    ]  # fmt: skip
    return write_store(folder, "lambdas", runs)
