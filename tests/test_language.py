"""The field's words, not a dialect of our own: the worst of it may not come back.

A word is here because a reader who knows the field would have to translate it. Identifiers count.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

BANNED = {
    r"\bwhoever\b|\bsomebody\b|\bnobody\b|\bsomeone\b": "say who: the loop, the caller, a process",
    r"\bstep sizes?\b": "learning rate",
    r"\b(?!standard\b)\w+\W+deviations?\b|_deviations?\b": "standard deviation, or std",
    r"\bslopes?\b": "gradient",
    r"\blongest gradient\b": "maximum gradient norm",
    r"\bno telling\b": "inconclusive",
    r"\bsteps are (dear|cheap)\b": "samples are expensive, or cheap",
    r"\b(surprise|hopeful)\b": "negative log-probability; optimistic",
    r"\bheed(s|ed|ing)?\b": "uses, applies",
    r"_bury_the_dead\b|\b_knock\b|\bgo_over\b": "name what the function does",
    r"\b(options (and|or) numbers|numbers (and|or) options)\b": "hybrid, or discrete and "
    "continuous",
    r"\bover (numbers|options)\b": "with continuous, or discrete, actions",
    r"\bof one's own\b": "your own",
    r"\bbehaviour|\bcolour|\blicence\b|\bcentre|\bnormalis|\boptimis(e|ation)\b|\binitialis": (
        "American spelling, as PyTorch, Gymnasium and Stable-Baselines3"
    ),
}
"""What is not said any more, and what is said instead."""

ALLOWED = {
    "src/headwise/envs/native/tasks/mountain_car.py": r"\bslope\b",  # that of a hill
    "src/headwise/foreign_names.py": r"normalis",  # old names of settings, which are answered
    "src/headwise/upgrade.py": r"normalis|centre",  # those of old files
}
"""Where such a word is right, and which."""

SOURCES = sorted((ROOT / "src").rglob("*.py"))
# Made by a script from inputs that are wrong on purpose, and a page of records.
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {
    ROOT / "CHANGELOG.md", ROOT / "docs" / "bad-inputs.md",
})  # fmt: skip


def found_in(text, allowed=None):
    """Every banned word in a text with its line and what to write instead."""
    hits = []
    for pattern, instead in BANNED.items():
        for match in re.finditer(pattern, text, flags=re.IGNORECASE):
            if allowed is None or not re.search(allowed, match[0], flags=re.IGNORECASE):
                line = text.count("\n", 0, match.start()) + 1
                hits.append(f"line {line}: {match[0]!r}, write: {instead}")
    return hits


@pytest.mark.parametrize("path", [*SOURCES, *PAGES], ids=lambda p: str(p.relative_to(ROOT)))
def test_no_dialect(path):
    assert found_in(path.read_text(), ALLOWED.get(path.relative_to(ROOT).as_posix())) == []


def test_the_check_itself_sees_a_word_and_its_line():
    text = "The standard deviation.\nA deviation of whoever\nhas a step size."
    assert [hit.split(",")[0] for hit in found_in(text)] == [
        "line 2: 'whoever'",
        "line 3: 'step size'",
        "line 2: 'A deviation'",
    ]
    assert len(found_in(text, "deviation|who")) == 1


def test_what_is_allowed_is_still_needed():
    for name, allowed in ALLOWED.items():
        hits = found_in((ROOT / name).read_text())
        assert any(re.search(allowed, hit) for hit in hits), f"{name} needs no exception"
