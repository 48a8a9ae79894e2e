"""The benchmarks' own parts: they are run by hand, so what can go wrong quietly is tested here."""

import re
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import envs, results, timing, training  # noqa: E402


def test_a_meter_counts_things_per_second():
    rate = timing.meter(lambda: time.sleep(0.002), things=10)(0.1)
    assert 10 / 0.004 < rate <= 10 / 0.002


def test_ratios_are_taken_within_a_round():
    """A machine that slows down tenfold hits both sides, and the ratio does not notice."""
    pace = iter([1, 1, 1, 1, 0.1, 0.1, 5, 5])  # two warm-ups, three rounds of two
    result = timing.race(
        [lambda seconds: 300 * next(pace), lambda seconds: 100 * next(pace)], rounds=3, seconds=1
    )
    assert result.ratios == pytest.approx([3, 1])
    assert result.spread[0] == pytest.approx((3, 3))
    assert result.rates == pytest.approx([300, 100])


def test_a_section_is_renewed_and_the_rest_is_left(tmp_path):
    path = tmp_path / "RESULTS.md"
    results.renew("envs", "first", path)
    results.renew("training", "other", path)
    path.write_text(path.read_text() + "\nA note by hand.\n")
    results.renew("envs", "second", path)
    text = path.read_text()
    assert "first" not in text
    assert text.index("second") < text.index("other") < text.index("A note by hand.")
    assert text.startswith("# Results\n")
    assert results.table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


GENERATED = ("| ", "The factorial of 7 cells", "Projected: ", "The cells that take longest")
"""How what a benchmark writes below its first table begins."""


def test_nothing_that_a_run_renews_was_written_by_hand():
    """A run replaces all that is between its markers: prose belongs after them."""
    text = results.RESULTS.read_text()
    sections = re.findall(r"<!-- (\w+): begin -->\n(.*?)\n<!-- \1: end -->", text, re.S)
    assert {"scores", "training", "gpu", "paper"} <= {name for name, _ in sections}
    for name, body in sections:
        parts = body.split("\n\n")
        first = next(i for i, part in enumerate(parts) if part.startswith("| "))
        assert [p[:40] for p in parts[first:] if not p.startswith(GENERATED)] == [], name


def test_ours_can_be_measured():
    for env, view in (("HybridShoot", "hybrid"), ("Lander", "continuous")):
        assert envs.our_meter(env, 16, view)(0.02) > 100
    contests = list(envs.contests())
    assert {contest.target for contest in contests} == {5, 10, 1000, None}
    for contest in contests:
        assert (ROOT / "benchmarks" / "peers" / f"{contest.script}.py").exists()


def test_results_are_there_and_name_their_origin():
    text = (ROOT / "benchmarks" / "RESULTS.md").read_text()
    for word in ("commit", "python -m benchmarks", "cooppush", "hybrid-shoot", "hybrid-platform",
                 "envpool"):  # fmt: skip
        assert word in text


def test_no_peer_is_ever_imported_by_the_project():
    names = ("cooppush", "hybrid_shoot", "gym_platform", "flexibuddiesrl")
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]:
        for line in path.read_text().splitlines():
            if line.lstrip().startswith(("import ", "from ")):
                assert not any(f" {name}" in line for name in names), f"{path.name}: {line}"


def test_the_last_run_to_end_decides_how_fast_all_were():
    """Three runs at 300 steps/s and two at 100: the two take twice as long, 0.02 s a step."""
    meter = training.together([lambda seconds: 300.0, lambda seconds: 100.0], (3, 2))
    assert meter(1.0) == pytest.approx(250.0)
    assert training.shoot_cells()[0].shares == (3, 2)
