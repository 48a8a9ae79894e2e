"""The projection of the paper study: its arithmetic by hand, its measurement on tiny cells."""

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import __main__ as command_line  # noqa: E402
from benchmarks import paper  # noqa: E402

from headwise.errors import EnvError  # noqa: E402
from headwise.study.load import load_study  # noqa: E402
from headwise.study.planner import pack_runs  # noqa: E402
from headwise.training.loop import Loop  # noqa: E402


@pytest.fixture(scope="module")
def packs():
    return pack_runs(load_study("paper").runs())


@pytest.fixture(scope="module")
def tiny():
    """Every cell with a tiny budget and two seeds."""
    return pack_runs(load_study("paper", smoke=True).with_seeds(2).runs())


@pytest.fixture
def written(monkeypatch):
    kept = {}
    monkeypatch.setattr(paper, "renew", lambda section, text: kept.update({section: text}))
    return kept


def of_kind(packs, *words):
    return next(p for p in packs if all(word in p.runs[0].cell.split("/") for word in words))


def test_seconds_by_hand(packs):
    """200,000 steps at 1 ms are 200 s; together at 8 ms and 16 at once, 100 s each."""
    pack = of_kind(packs, "platform", "discrete", "dqn", "vdn")
    assert (pack.steps, len(pack.runs)) == (200_000, 5)
    cell = paper.Measured(pack, 3.0, 4.0, alone=0.001, together=0.008, at_once=16)
    assert cell.steps == 1_000_000
    assert cell.seconds_alone == pytest.approx(204.0)
    assert cell.seconds_together == pytest.approx(100.25)
    text = paper.report([], [cell], 220, 16, 60.0, "here", "cpu")
    assert "| platform | dqn | 1 | 5 | 1,000,000 | 4,902 | 9,975 | 3 s | 3 min | 2 min |" in text
    assert "1 of 220 cells (5 runs)" in text
    assert "219 cells are not in it" in text
    assert "Projected: 3 min one population at a time; 2 min with 16 at once" in text


def test_a_rollout_counts_whole_or_not_at_all(monkeypatch):
    """Three of eight steps in 6 s, and half of another that is not counted."""
    loop = SimpleNamespace(updates=5, env_steps=100)
    monkeypatch.setattr(paper.time, "perf_counter", lambda: 10.0)
    since = paper.Since(loop)
    since.look(11.0)
    assert (since.seconds, since.steps) == (0.0, 0)
    for now, loop.updates, loop.env_steps in ((12.0, 6, 108), (16.0, 8, 124), (18.0, 8, 128)):
        since.look(now)
    assert (since.seconds, since.steps) == (6.0, 24)


def test_the_whole_study_is_asked_for(packs):
    assert len(packs) == 220
    assert sum(len(pack.runs) for pack in packs) == 1100
    assert any(pack.runs[0].cell == paper.END_TO_END for pack in packs)


def test_cells_are_measured_alone_and_together(tiny, monkeypatch):
    chosen = [
        of_kind(tiny, "shoot-dep", "dqn", "vdn"),
        of_kind(tiny, "platform", "ppo", "shared"),
        of_kind(tiny, "push", "sac", "shared"),
    ]
    made = paper.make_pack_loop

    def make(pack, device):
        if pack.runs[0].env == "CoopPush":
            raise EnvError("it is not installed")
        return made(pack, device)

    monkeypatch.setattr(paper, "make_pack_loop", make)
    first, second = paper.Bench("cpu", at_once=2, seconds=0.01).measure(chosen)
    assert [cell.pack for cell in (*first, *second)] == chosen
    for cell in first:
        assert min(cell.alone, cell.together, cell.reporting) > 0.0
        assert cell.building >= 0.0  # a difference of two measurements
        assert cell.at_once == 2
    assert "it is not installed" in second[0].trouble
    text = paper.report([], [*first, *second], 3, 2, 1.0, "here", "cpu")
    assert "2 of 3 cells" in text
    assert "1 cells are not in it. it is not installed" in text


def test_what_is_built_is_less_by_the_steps_that_it_takes(tiny, monkeypatch):
    chosen = [of_kind(tiny, "shoot-dep", "dqn", "vdn")]

    def building(pace):
        monkeypatch.setattr(paper, "seconds_per_step", lambda loop, seconds: pace)
        ((cell,),) = paper.Bench("cpu", at_once=1, seconds=0.01).measure(chosen)
        return cell.building

    assert building(pace=0.0) > 0.0
    assert building(pace=1000.0) == 0.0


def test_what_goes_wrong_in_a_turn_is_told(tiny, monkeypatch):
    def broken(loop, env_steps, aside):
        yield lambda: True
        raise RuntimeError("broken")

    monkeypatch.setattr(Loop, "turns", broken)
    with pytest.raises(RuntimeError, match="broken"):
        list(paper.Bench("cpu", 2, 0.01).measure(tiny[:2]))


def test_rollouts_are_as_long_as_the_studys_but_nobody_waits_for_a_warm_up(packs):
    on_policy = paper.at_once_learning(of_kind(packs, "platform", "discrete", "ppo", "shared"))
    assert {run.settings["n_steps"] for run in on_policy.runs} == {256}
    off_policy = paper.at_once_learning(of_kind(packs, "lander", "discrete", "dqn", "vdn"))
    assert {run.settings["learning_starts"] for run in off_policy.runs} == {32}
    assert "n_steps" not in off_policy.runs[0].settings


def test_copies_have_other_seeds(packs):
    seeds = [run.seed for pack in paper.copies(packs[0], 3) for run in pack.runs]
    assert seeds == list(range(15))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_keeps_what_it_has(how, written, monkeypatch):
    def measure(self, packs):
        cells = [paper.Measured(pack, 1.0, 0.0, 0.001, 0.002, 2) for pack in packs[:2]]
        yield cells
        os.kill(os.getpid(), how)
        yield pytest.fail("not interrupted")

    monkeypatch.setattr(paper.Bench, "measure", measure)
    monkeypatch.setattr(paper, "end_to_end", lambda bench, pack: ["a cell", "1,000", "2,000"])
    # A process in the background of a shell script was told to ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        text = paper.run(None, rounds=1, seconds=0.1, command="it", device="cpu", at_once=2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert "2 of 220 cells (10 runs)" in text
    assert "| a cell | 1,000 | 2,000 |" in text
    assert written["paper"].startswith("## The paper study, projected")


def test_some_cells_leave_the_results_alone(written, tiny, monkeypatch, capsys):
    monkeypatch.setattr(paper, "load_study", lambda path: load_study(path, smoke=True))
    words = "benchmarks paper --device cpu --cells shoot-dep/discrete/dqn/vdn* --at-once 2"
    monkeypatch.setattr(sys, "argv", [*words.split(), "--seconds-per-cell", "0.01"])
    command_line.main()
    text = capsys.readouterr().out
    assert "1 of 1 cells (1 runs)" in text
    assert "shoot-dep/discrete/dqn/vdn, 1 seeds of 4 slots" in text
    assert "python -m benchmarks paper --seconds 0.01 --device cpu --at-once 2" in text
    assert not written


def test_without_a_gpu_it_says_so(monkeypatch):
    monkeypatch.setattr(paper.torch.cuda, "is_available", lambda: False)
    assert "no CUDA device" in paper.run(None, rounds=1, seconds=1.0, command="it")
