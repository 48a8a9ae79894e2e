"""The claims ledger: verdicts follow from the store and from nothing else."""

import math
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import synthetic

from headwise.report.claims import Claim, Evidence, Measurement, Verdict, all_claims, judge, ledger
from headwise.report.claims.measurement import of_difference, of_estimates, of_sample
from headwise.report.runs import read_store
from headwise.report.statistics import Contrast, sample
from headwise.report.sweep import NotMeasuredError
from headwise.report.sweeps import sweeps_of
from headwise.report.tables.claims import claims_table
from headwise.report.write import gather
from headwise.studies.paper.claims_decoupler import decoupler_claims
from headwise.studies.paper.decoupler_runs import decouplers_of, last_third, steps_to
from headwise.studies.paper.figures import decoupler_figures
from headwise.studies.paper.tables import decoupler_tables

NOTHING = Evidence((), ())


def verdict(value, low, high, seeds=5, share=1.0, unequal=False, allowed=(0.0, math.inf)):
    found = Measurement(value, low, high, seeds, share, unequal)
    claim = Claim("k", "g", "", "It is so.", "1", "it", *allowed, lambda _: found)
    return judge(claim, NOTHING)


def of_error(value, error, allowed=(0.0, math.inf), alike=0.0, key="k", df=1e9):
    """The claim that a number lies in a range, of which a standard error is known."""
    found = Contrast(np.array(value), np.array(error), np.array(df))
    return Claim(key, "g", "", "It is so.", "1", "it", *allowed,
                 lambda _: of_estimates(found.estimate, 5), alike)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "error", "allowed", "expected"),
    [
        # the 90 % interval is 1.645 errors to either side, the 95 % interval 1.960
        (0.01, 0.02, (0.0, math.inf), Verdict.ALIKE),
        (0.01, 0.025, (0.0, math.inf), Verdict.UNDECIDED),  # up to 0.051
        (-0.01, 0.02, (0.0, math.inf), Verdict.ALIKE),
        (-0.01, 0.02, (-math.inf, 0.02), Verdict.ALIKE),
        (0.1, 0.01, (0.0, math.inf), Verdict.HOLDS),
        (0.03, 0.01, (0.0, math.inf), Verdict.HOLDS),  # a difference, if a small one
        (-0.03, 0.01, (0.0, math.inf), Verdict.FAILS),
        (0.0, 0.029, (-0.05, 0.05), Verdict.HOLDS),  # 0.048, where 95 % have 0.057
        (0.0, 0.031, (-0.05, 0.05), Verdict.UNDECIDED),
        (0.1, 0.02, (-0.05, 0.05), Verdict.FAILS),
    ],
)
def test_no_meaningful_difference_is_shown_by_two_one_sided_tests(value, error, allowed, expected):
    entry = judge(of_error(value, error, allowed, alike=0.05), NOTHING)
    assert entry.verdict == expected
    assert judge(of_error(value, error, allowed), NOTHING).verdict != Verdict.ALIKE
    small = expected in (Verdict.HOLDS, Verdict.FAILS) and 0.0 in allowed and abs(value) < 0.05
    assert ("less than 0.05 apart" in entry.note) == small


def test_p_values_are_of_the_test_that_gave_the_verdict():
    # 1.96 errors off the border, and 2.5 within the smallest effect
    assert judge(of_error(1.96, 1.0), NOTHING).p == pytest.approx(0.05, rel=1e-3)
    assert judge(of_error(-1.96, 1.0), NOTHING).p == pytest.approx(0.05, rel=1e-3)
    assert judge(of_error(1.0, 1.0), NOTHING).p == pytest.approx(0.3173, rel=1e-3)
    assert judge(of_error(3.0, 1.0, (0.0, 4.96)), NOTHING).p == pytest.approx(0.05, rel=1e-3)
    assert judge(of_error(99.0, 1.0), NOTHING).p == 1e-12
    alike = judge(of_error(0.5, 1.0, alike=3.0), NOTHING)
    assert alike.verdict == Verdict.ALIKE
    assert alike.p == pytest.approx(0.00621, rel=1e-2)  # of being below 3
    assert alike.others == pytest.approx((0.6171,), rel=1e-3)  # of being above 0
    assert math.isnan(verdict(2, 1, 3).p)  # a range over tasks is no test


def test_the_ledger_corrects_for_all_tests_that_were_made():
    claims = [of_error(1.96, 1.0, key="a"), of_error(5.0, 1.0, key="b"),
              of_error(0.0, 1.0, alike=1.0, key="c")]  # fmt: skip
    first, second, third = ledger(claims, NOTHING)
    assert first.adjusted == pytest.approx(3 * 0.05, rel=1e-3)  # four tests, one is smaller
    assert second.adjusted == pytest.approx(4 * second.p)
    assert third.adjusted == 1.0
    table = claims_table([first, second, third])
    row = dict(zip(table.columns, table.rows[2], strict=True))
    assert (row["alike within"], row["p (Holm)"]) == (1.0, 1.0)
    assert "for all 4 tests of this table" in table.caption
    assert "by it 1 of the 2 verdicts of tests stay" in table.caption


def test_every_difference_has_its_smallest_effect_and_nothing_else_has(everything):
    for claim in all_claims(everything):
        if claim.group == "Theory":
            assert claim.alike == 0.0
            continue
        words = claim.quantity.split(";")[0]
        is_one = (" minus " in words or words.startswith("lead")) and "correlation" not in words
        of_points = claim.group.startswith("Decoupler")
        is_one &= not words.startswith(("Steps", "best minus")) and claim.key != "critic-gain"
        assert claim.alike == (is_one and (2.0 if of_points else 0.05)), claim.key


def test_a_verdict_follows_from_the_interval():
    assert verdict(2, 1, 3).verdict == Verdict.HOLDS
    assert verdict(-2, -3, -1).verdict == Verdict.FAILS
    assert verdict(1, -1, 3).verdict == Verdict.UNDECIDED
    assert verdict(75, 70, 80, allowed=(67, 83)).verdict == Verdict.HOLDS
    assert verdict(90, 85, 95, allowed=(67, 83)).verdict == Verdict.FAILS


def test_an_undecided_claim_says_how_many_seeds_would_settle_it():
    # the interval reaches 2 to either side, zero is 1 away: four times as many seeds
    assert verdict(1, -1, 3, seeds=5).note == "about 20 seeds would settle it"
    assert verdict(0.001, -1, 1).note == "too close to call"


def test_of_an_interval_that_is_not_symmetric_the_end_across_the_border_counts():
    # zero is 1 below, and the interval reaches 2 down to it: its 9 upwards are of no matter
    assert verdict(1, -1, 10, seeds=5).note == "about 20 seeds would settle it"
    assert verdict(-1, -10, 1, seeds=5).note == "about 20 seeds would settle it"
    # both borders are crossed, and the upper one by more: 5 * (6 / 2) ** 2
    both = verdict(2, -1, 8, seeds=5, allowed=(0, 4))
    assert both.note == "about 45 seeds would settle it"


def test_a_comparison_at_unequal_steps_is_marked():
    assert verdict(2, 1, 3, unequal=True).note == "at unequal steps"
    note = verdict(1, -1, 3, unequal=True).note
    assert note == "at unequal steps; about 20 seeds would settle it"


def test_a_comparison_across_devices_is_marked():
    found = Measurement(2, 1, 3, 5, unlike=True)
    claim = Claim("k", "g", "", "It is so.", "1", "it", 0.0, math.inf, lambda _: found)
    assert judge(claim, NOTHING).note == "on unlike devices"


def test_runs_of_the_decoupler_on_two_devices_are_not_one_sample(tmp_path):
    runs = [synthetic.decoupler_run("ppo", "shared", "uniform", seed, 5, labels={"preset": "sound"})
            for seed in range(4)]  # fmt: skip
    store = read_store(synthetic.write_store(tmp_path / "s", "s", runs))
    mixed = [replace(r, fingerprint={"device": "cuda" if r.seed else "cpu"}) for r in store]
    (study,) = decouplers_of("s", mixed)
    with pytest.raises(NotMeasuredError, match="not one sample: made on cpu and cuda: ppo shared"):
        study.find(algorithm="ppo", factorization="shared")


def test_too_few_seeds_and_too_few_steps_decide_nothing():
    assert verdict(2, 2, 2, seeds=1).verdict == Verdict.UNDECIDED
    assert "needs at least 3 seeds, has 1" in verdict(2, 2, 2, seeds=1).note
    short = verdict(2, 1, 3, share=0.01)
    assert (short.verdict, short.note) == (Verdict.MISSING, "so far at 1.0% of the paper's steps")
    assert verdict(2, 1, 3, share=0.5).verdict == Verdict.HOLDS
    assert "50%" in verdict(2, 1, 3, share=0.5).note


def test_without_runs_the_paper_is_not_asked():
    assert all_claims(NOTHING) == []
    entries = ledger(list(decoupler_claims()), NOTHING)
    assert len(entries) > 100
    assert {entry.verdict for entry in entries} == {Verdict.MISSING}
    assert all(entry.note and entry.measurement is None for entry in entries)


def test_every_claim_is_a_sentence_with_the_papers_number_and_its_own_name(everything):
    claims = all_claims(everything)
    assert len(claims) == 172
    assert max(Counter((claim.key, claim.settings) for claim in claims).values()) == 1
    for claim in claims:
        assert claim.text.endswith("."), claim.key
        assert claim.published
        assert claim.quantity
        assert claim.low < claim.high


def test_means_and_differences_have_students_interval():
    # mean 2, sd 1, three seeds: 2 +- 4.303 / sqrt(3)
    found = of_sample(sample([1.0, 2.0, 3.0], range(3)))
    assert (found.low, found.high) == pytest.approx((2 - 2.484, 2 + 2.484), abs=1e-3)
    assert of_sample(sample([1.0], [0])).high == math.inf
    assert of_difference(sample([1.0], [0]), sample([3.0], [0])).value == -2.0


def test_runs_of_one_seed_are_paired_and_others_are_not():
    """Differences 1, 2 and 3, mean 2, sd 1; the sides themselves spread ten times as widely."""
    ours = sample([11.0, 22.0, 33.0], [0, 1, 2])
    paired = of_difference(ours, sample([10.0, 20.0, 30.0], [0, 1, 2]))
    assert (paired.low, paired.high) == pytest.approx((2 - 2.484, 2 + 2.484), abs=1e-3)
    assert of_difference(ours, sample([30.0, 10.0, 20.0], [2, 0, 1])) == paired  # by seed
    apart = of_difference(ours, sample([10.0, 20.0, 30.0], [3, 4, 5]))
    assert apart.low < 2 - 20


def test_two_mixers_are_not_one_sample(tmp_path):
    """That one is ahead of the other by 40 is no noise of what they gain over no mixing."""
    runs = [
        synthetic.decoupler_run("ppo", f, "uniform", seed, final, labels={"preset": "sound"})
        for f, final in (("shared", 5), ("vdn", 60), ("qplex", 100)) for seed in range(4)
    ]  # fmt: skip
    evidence = gather([read_store(synthetic.write_store(tmp_path / "s", "s", runs))])
    entries = {e.claim.key: e for e in ledger(all_claims(evidence), evidence)}
    gain = entries["critic-gain"].measurement
    assert gain.value == pytest.approx(75, abs=3)
    assert gain.high - gain.low < 10  # as one sample 35
    assert gain.seeds == 4


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    root = tmp_path_factory.mktemp("studies")
    made = {
        "factorial": synthetic.factorial(root / "factorial"),
        "families": synthetic.cross_family(root / "families"),
        "importance": synthetic.importance(root / "importance"),
        "lambdas": synthetic.lambdas(root / "lambdas"),
    }
    return {name: read_store(path) for name, path in made.items()}


@pytest.fixture(scope="module")
def everything(studies, tmp_path_factory):
    """The decoupler studies, and a sweep of the paper's 220 cells."""
    sweep = synthetic.sweep(tmp_path_factory.mktemp("sweep") / "s", seeds=3, episodes=120)
    return gather([*studies.values(), read_store(sweep)])


def test_studies_are_known_by_what_varies_in_them(studies):
    kinds = {
        name: {d.kind for d in decouplers_of(store.name, store.runs)}
        for name, store in studies.items()
    }
    assert kinds == {
        "factorial": {"factorial"},
        "families": {"cross_family"},
        "importance": {"importance"},
        "lambdas": {"lambda"},
    }


def test_the_ledger_of_a_reproduction(studies):
    evidence = gather(studies.values())
    found = {(e.claim.key, e.claim.settings): e for e in ledger(all_claims(evidence), evidence)}

    def verdict_of(key, settings="as_published"):
        return found[key, settings].verdict

    # what the made-up runs were made to show
    assert verdict_of("critic-gain") == Verdict.HOLDS
    assert verdict_of("critic-gain", "sound") == Verdict.FAILS  # the baseline is at 75 there
    assert verdict_of("nomix-never") == Verdict.HOLDS
    assert verdict_of("nomix-never", "sound") == Verdict.FAILS
    assert verdict_of("ratio-vdn-uniform") == Verdict.HOLDS
    assert verdict_of("ratio-qplex-range") == Verdict.HOLDS
    assert verdict_of("law-qplex-range") == Verdict.FAILS  # 0.85 where squares say 0.17
    assert verdict_of("law-qplex-grad") == Verdict.HOLDS  # they say 0.85
    assert verdict_of("recovery-vdn", "sound") == Verdict.FAILS  # 0.87, not 0.97
    assert verdict_of("grad-unreliable-vdn") == Verdict.HOLDS
    assert verdict_of("offline-correlation-vdn", "sound") == Verdict.HOLDS
    assert verdict_of("offline-return-qplex", "sound") == Verdict.HOLDS
    assert verdict_of("offline-return-qplex") == Verdict.MISSING  # that study has no such preset
    assert verdict_of("end-sac-vdn", "sound") == Verdict.HOLDS
    assert verdict_of("end-dqn-vdn", "sound") == Verdict.HOLDS
    assert verdict_of("helps-ppo", "sound") == Verdict.HOLDS
    assert verdict_of("helps-dqn", "sound") in (Verdict.UNDECIDED, Verdict.FAILS)
    gain = found["critic-gain", "as_published"].measurement
    assert gain.low < gain.value < gain.high
    assert gain.value == pytest.approx((82.3 + 85.3) / 2 - 6.7, abs=3)


def test_cells_that_depart_from_the_paper_are_not_taken_for_its_own(studies):
    store = studies["families"]
    evidence = gather([store])
    found = {e.claim.key: e for e in ledger(all_claims(evidence), evidence)}
    assert found["end-sac-shared"].verdict == Verdict.HOLDS
    assert found["end-sac-shared"].measurement.value == pytest.approx(50, abs=4)
    assert found["helps-sac"].measurement.value == pytest.approx(98 - 50, abs=6)
    (study,) = decouplers_of(store.name, store.runs)
    other = study.find(algorithm="sac", factorization="shared", change="counterfactual")
    assert [run.seed for run in other] == [0, 1, 2, 3, 4]
    assert np.mean([run.number("final_smoothed") for run in other]) == pytest.approx(96, abs=6)
    (figure,) = decoupler_figures(study)
    (panel,) = [panel for panel in figure.panels if panel.title == "SAC"]
    assert [(line.label, line.dash, line.num_runs) for line in panel.series] == [
        ("SAC-Concat", "solid", 5),
        ("SAC-Concat (counterfactual)", "dash", 5),
        ("SAC-Concat (relu)", "dot", 5),
        ("SAC-BDQ", "solid", 5),
    ]


def test_a_line_of_the_decoupler_ends_where_its_runs_end(tmp_path):
    runs = [
        synthetic.decoupler_run("ppo", f, "uniform", seed, 80, steps, labels={"preset": "sound"})
        for seed in range(2) for f, steps in (("shared", 100_000), ("vdn", 40_000))
    ]  # fmt: skip
    store = read_store(synthetic.write_store(tmp_path / "s", "s", runs))
    (study,) = decouplers_of(store.name, store.runs)
    panel = next(iter(decoupler_figures(study))).panels[0]
    shared, vdn = panel.series
    assert panel.x[-1] == 100_000
    assert np.isfinite(shared.y).all()
    assert (np.isfinite(vdn.y) == (panel.x <= 40_000)).all()


def test_a_smoke_study_decides_nothing(tmp_path):
    store = read_store(synthetic.factorial(tmp_path / "s", seeds=2, steps=4096))
    evidence = gather([store])
    entries = ledger(all_claims(evidence), evidence)
    of_runs = [entry for entry in entries if entry.claim.group != "Theory"]  # which needs none
    assert {entry.verdict for entry in of_runs} == {Verdict.MISSING}
    assert any("4.1% of the paper's steps" in entry.note for entry in entries)


def test_sweep_claims_of_a_made_up_sweep(everything):
    entries = {e.claim.key: e for e in ledger(all_claims(everything), everything)}
    found = {key: entry.verdict for key, entry in entries.items()}
    assert found["ar-best"] == Verdict.HOLDS  # made to be best
    assert found["ppo-vdn-best"] == Verdict.FAILS
    assert found["ppo-vdn-discrete"] == Verdict.HOLDS
    assert found["joint-lags-dqn"] == Verdict.HOLDS
    assert found["best-view-sac"] == Verdict.HOLDS
    assert found["sac-shoot-independent"] == Verdict.FAILS
    assert found["cost-joint-size"] == Verdict.HOLDS
    assert found["cost-joint-latency"] == Verdict.FAILS
    assert [found[f"vdn-competitive-{a}"] for a in ("ppo", "sac", "dqn")] == [Verdict.HOLDS] * 3
    # Continuous SAC was made 0.1 better than every factorization of the others. That discrete
    # actions have joint ones, which are at 0.3, and it has not, is no merit.
    assert entries["sac-continuous-best"].measurement.value == pytest.approx(0.1, abs=0.025)


def asked(sweep, **cell):
    """The verdicts and notes of claims if a cell of a sweep is replaced by others."""
    (old,) = sweep.where(**cell)

    def without(*new):
        cells = [c for c in sweep.cells if c is not old]
        (changed,) = sweeps_of("paper", [r for c in cells for r in c.runs] + list(new))
        evidence = Evidence((), (changed,))
        entries = ledger(all_claims(evidence), evidence)
        return {e.claim.key: (e.verdict, e.measurement and e.measurement.seeds, e.note)
                for e in entries}  # fmt: skip

    return old.runs, without


def test_a_thin_or_doubled_cell_is_a_matter_of_the_claims_that_it_enters(everything):
    (sweep,) = everything.sweeps
    cell = {"task": "platform", "view": "hybrid", "algorithm": "dqn", "factorization": "qplex"}
    runs, without = asked(sweep, **cell)
    whole, thin = without(*runs), without(*runs[:2])
    other = replace(runs[0], id="x", config={**runs[0].config, "settings": {"learning_rate": 0.1}})
    doubled = without(*runs, other)
    enters = {
        "dqn-qplex-no-gain", "dqn-ar-best", "dqn-independent-best", "ar-best",
        "best-view-dqn", "type-or-factorization-dqn",
    }  # fmt: skip
    keys = {key for key, (_, seeds, _) in whole.items() if seeds == 3}
    assert len(keys) == 38
    assert {key for key in keys if thin[key][1] == 2} == enters
    assert all("needs at least 3 seeds, has 2" in thin[key][2] for key in enters)
    refused = {k for k, (_, _, note) in doubled.items() if note.startswith("several config")}
    assert refused == enters | {"cost-trade-off"}
    assert {doubled[key][0] for key in refused} == {Verdict.MISSING}


def test_a_part_of_a_sweep_judges_nothing_that_needs_the_rest(everything):
    """A whole DQN and a whole SAC do not make claims about PPO on one environment its own."""
    (sweep,) = everything.sweeps
    runs = [run for cell in sweep.cells for run in cell.runs]
    kept = [run for run in runs if run.algorithm != "ppo" or run.task == "platform"]

    def judged(some):
        evidence = Evidence((), tuple(sweeps_of("paper", some)))
        return {e.claim.key: e for e in ledger(all_claims(evidence), evidence)}

    whole, part = judged(runs), judged(kept)
    changed = {key for key in whole if part[key].verdict is Verdict.MISSING}
    about_ppo = {key for key in whole if "ppo" in key}
    compared = {"ar-best", "joint-alike", "sac-continuous-best", "cost-trade-off"}
    costs = {key for key in whole if key.startswith("cost-")}
    assert changed == about_ppo | compared | costs
    missing = {key for key, entry in whole.items() if entry.verdict is Verdict.MISSING}
    assert missing == {f"cost-{key}-latency-gpu" for key in ("joint", "joint-ar", "independent")}
    note = part["ppo-continuous-stable"].note
    assert note == "8 of 10 cells have no run, such as ppo independent of CoopPush, continuous"


def test_a_method_that_crashed_is_not_judged_by_the_seeds_that_did_not(everything):
    (sweep,) = everything.sweeps
    cell = {"task": "platform", "view": "hybrid", "algorithm": "dqn", "factorization": "qplex"}
    (old,) = sweep.where(**cell)
    lost = replace(old.runs[0], id="x", config={**old.runs[0].config, "seed": 9}, result={})
    runs = [run for c in sweep.cells for run in c.runs]
    evidence = Evidence((), tuple(sweeps_of("paper", runs, failed=[lost])))
    entries = {e.claim.key: e for e in ledger(all_claims(evidence), evidence)}
    entry = entries["dqn-qplex-no-gain"]
    said = "of 4 runs of platform/hybrid/dqn/qplex 1 failed"
    assert (entry.verdict, entry.note) == (Verdict.MISSING, said)
    assert entries["dqn-ar-best"].note == said
    assert entries["ppo-vdn-best"].verdict != Verdict.MISSING


def test_a_decoupler_run_that_failed_is_missed(tmp_path):
    runs = [synthetic.decoupler_run("ppo", f, "uniform", seed, 80, labels={"preset": "sound"})
            for f in ("shared", "vdn") for seed in range(4)]  # fmt: skip
    failed, *_ = synthetic.decoupler_run("ppo", "vdn", "uniform", 4, 80,
                                         labels={"preset": "sound"})  # fmt: skip
    store = read_store(synthetic.write_store(tmp_path / "s", "s", runs, failed=[failed]))
    evidence = gather([store])
    entries = {e.claim.key: e for e in ledger(all_claims(evidence), evidence)}
    assert entries["final-vdn-uniform"].verdict == Verdict.MISSING
    assert entries["final-vdn-uniform"].note.startswith("of 5 runs with ppo vdn uniform online")
    assert entries["nomix-final"].verdict != Verdict.MISSING
    (study,) = evidence.special
    main, tests = decoupler_tables(study)
    assert [row[1] for row in main.rows] == [4, 4]  # what is there is shown, and not compared
    assert tests.rows == ()


def test_whether_a_run_reached_a_return_is_a_matter_of_its_own_steps(tmp_path):
    """One reaches 50 at its 60,000th step, the others never, and the first of them is short."""
    runs = [
        synthetic.decoupler_run(
            "ppo", "shared", "uniform", seed, 5, steps, labels={"preset": "sound"}
        )
        for seed, steps in enumerate((50_000, 100_000, 100_000))
    ]
    runs[1][3]["steps_to_50"] = 60_000
    evidence = gather([read_store(synthetic.write_store(tmp_path / "s", "s", runs))])
    entries = {e.claim.key: e for e in ledger(all_claims(evidence), evidence)}
    assert entries["nomix-never"].measurement.value == pytest.approx(1 / 3)


def test_costs_of_runs_cut_short_are_those_of_the_claims_that_they_enter(everything):
    (sweep,) = everything.sweeps
    cell = {"task": "platform", "view": "discrete", "algorithm": "ppo", "factorization": "joint"}
    runs, without = asked(sweep, **cell)
    short = without(*(replace(r, config={**r.config, "total_timesteps": 500}) for r in runs))
    cut = {k for k, (_, _, note) in short.items() if "of the paper's steps" in note}
    assert {k for k in cut if k.startswith("cost")} == {
        "cost-joint-size", "cost-joint-latency", "cost-joint-ar-latency", "cost-trade-off",
    }  # fmt: skip


def test_claims_are_true_for_what_they_say(everything):
    claims = {claim.key: claim for claim in all_claims(everything)}
    assert claims["type-or-factorization-sac"].text.startswith("SAC: the action type matters more")
    assert claims["type-or-factorization-sac"].range_text == "above 1"
    assert claims["type-or-factorization-dqn"].text.startswith("DQN: the action type matters less")
    assert claims["type-or-factorization-dqn"].range_text == "0 to 1"
    assert claims["end-sac-vdn"].range_text == "above 90"  # no interval can be above the best


def test_not_to_differ_is_not_to_be_alike(tmp_path):
    def verdict_of(name, spread):
        runs = [
            synthetic.decoupler_run("ppo", "vdn", estimator, seed, 85 + spread * (seed - 2),
                                    labels={"preset": "sound"})
            for estimator, spread in (("range", spread), ("grad", -spread)) for seed in range(5)
        ]  # fmt: skip
        evidence = gather([read_store(synthetic.write_store(tmp_path / name, name, runs))])
        (entry,) = (
            e for e in ledger(all_claims(evidence), evidence) if e.claim.key == "equivalent-vdn"
        )
        assert entry.claim.range_text == "-2 to 2"
        assert abs(entry.measurement.value) < 2
        return entry.verdict

    # means that differ by less than chance: of runs far apart that says nothing
    assert verdict_of("apart", 8.0) == Verdict.UNDECIDED


def test_a_sweep_of_some_environments_is_not_asked_about_the_paper(tmp_path):
    some = {name: synthetic.ENVIRONMENTS[name] for name in ("platform", "push")}
    evidence = gather([read_store(synthetic.sweep(tmp_path / "s", 3, 60, some))])
    assert len(evidence.sweeps) == 1
    assert all_claims(evidence) == []


def test_numbers_of_a_run_by_hand():
    run = SimpleNamespace(
        steps=90,
        result={},
        metric=lambda _: (np.array([30, 60, 61, 90]), np.array([9.0, 9.0, 1.0, 3.0])),
        episodes=lambda: (np.array([10, 20, 30]), np.array([0.0, 1000.0, 1000.0])),
    )
    assert last_third(run, "m") == 2.0
    # smoothed: 0, then 50, then 97.5
    assert steps_to(run, 50.0) == 20.0
    assert steps_to(run, 99.0) == 90.0  # never: all steps


def test_runs_with_one_seed_and_two_configurations_are_not_mixed(studies):
    store = studies["lambdas"]
    (study,) = decouplers_of(store.name, store.runs)
    with pytest.raises(NotMeasuredError, match="several configurations"):
        study.find(algorithm="ppo", factorization="vdn", estimator="range")
