"""Claims about costs set like against like, and those about theory are what docs/theory.md says."""

from pathlib import Path

import numpy as np
import pytest

from headwise.report.claims import Evidence, Verdict, all_claims, ledger
from headwise.report.runs import read_store
from headwise.report.sweeps import sweeps_of
from headwise.studies.paper.claims_theory import theory_claims

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sweep():
    runs = (read_store(ROOT / "results" / f"{name}.parquet").runs for name in ("paper", "costs"))
    (found,) = sweeps_of("paper", *runs)
    return found


@pytest.fixture(scope="module")
def entries(sweep):
    evidence = Evidence((), (sweep,))
    return {entry.claim.key: entry for entry in ledger(all_claims(evidence), evidence)}


def number(sweep, name, *where):
    names = ("task", "algorithm", "factorization", "view")
    (cell,) = sweep.every(**dict(zip(names, where, strict=True)))
    return cell.number(name)


def test_a_joint_critic_of_sac_is_set_against_one_without_an_actor(sweep, entries):
    ratios = []
    for task in sweep.tasks:
        for algorithm, theirs in (("ppo", "shared"), ("sac", "vdn"), ("dqn", "shared")):
            one, other = (
                number(sweep, "num_parameters", task, algorithm, f, "discrete")
                for f in ("joint", theirs)
            )
            ratios.append(one / other)
    found = entries["cost-joint-size"].measurement
    assert (found.low, found.high) == (min(ratios), max(ratios))
    assert found.value == pytest.approx(np.exp(np.mean(np.log(ratios))))
    assert min(ratios) > 1.0  # against SAC-Concat, which has an actor, it was 0.67


@pytest.mark.parametrize(("key", "theirs"), [("joint", "vdn"), ("joint-ar", "ar")])
def test_frequently_counts_tasks_and_the_machine_is_named(sweep, entries, key, theirs):
    faster = [
        number(sweep, "act_ms", task, a, "joint", "discrete")
        < number(sweep, "act_ms", task, a, theirs, "discrete")
        for task in sweep.tasks
        for a in ("ppo", "sac", "dqn")
    ]
    entry = entries[f"cost-{key}-latency"]
    assert entry.measurement.value == pytest.approx(np.mean(faster))
    assert "on a CPU (AMD EPYC)" in entry.claim.quantity
    gpu = entries[f"cost-{key}-latency-gpu"]
    assert (gpu.verdict, gpu.note) == (Verdict.MISSING, "acting is timed on a CPU alone")


def test_examples_of_theory_are_those_of_its_page(entries):
    text = (ROOT / "docs" / "theory.md").read_text()
    found = {key: entry for key, entry in entries.items() if key.startswith("theory-")}
    assert len(found) == len(list(theory_claims())) == 9
    told = {
        "joint-gradient": (0.781, "a cosine of 0.781"),
        "uphill": (-0.1775, "(0.05 - 0.405) / 2 = -0.1775"),
        "variance": (9 * 0.381**2, "the first weight is\n0.381 > 1/3"),
        "bias": (17.2 / 1.02, "it is -1.02\nagainst -17.2"),
        "signed": (1000.0, "get weights of 1000 and -999"),
        "mixer-mean": (0.568, "With $A$ = 2 and -2 it is 0.568"),
        "mixer-sum": (1.0, "so its weights sum to 1"),
        "sum": (0.0, "The weights sum to one in every state"),
        "max-centering": (0.0, "max-centering makes $Q$ of the best joint action $V$ | holds"),
    }
    for key, (value, words) in told.items():
        entry = found[f"theory-{key}"]
        assert entry.measurement.value == pytest.approx(value, rel=5e-3, abs=1e-9), key
        assert words in text, key
        assert entry.verdict == (Verdict.HOLDS if value == 0.0 else Verdict.FAILS), key


def test_the_share_of_time_in_collection_is_that_of_the_runs():
    """What of a run's time is not in its updates, of runs on a CPU that were timed."""

    def shares(name):
        found = {}
        for run in read_store(ROOT / "results" / f"{name}.parquet").runs:
            if run.device == "cpu" and run.algorithm == "ppo" and "updates" in run.result:
                took = run.result["updates"] * run.number("update_ms") / 1000
                key = (run.task, run.view, run.factorization)
                found.setdefault(key, []).append(1 - took / run.number("wall_s"))
        return {key: np.mean(values) for key, values in found.items()}

    text = (ROOT / "docs" / "paper.md").read_text()
    for name, tasks, words in (
        ("paper_engine2", {"platform", "shoot-dep", "shoot-indep"}, "is not in its updates on"),
        ("paper", {"lander"}, "on Lander (engine 1, two cores)"),
    ):
        found = shares(name)
        assert {task for task, *_ in found} == tasks
        said = f"{min(found.values()):.2f} to {max(found.values()):.2f}"
        (row,) = (row for row in text.splitlines() if row.startswith("| collection"))
        assert said in row
        assert words in row
