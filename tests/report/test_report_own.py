"""Claims, figures and sections of users, in the ledger and on the page."""

import pytest
import synthetic

import headwise as hw
from headwise.cli import main
from headwise.report import Results, claim, dots, figure, lines, section, write_report
from headwise.report.registry import own

MINE = """
from headwise.report import claim, dots, figure, lines, section


@claim("VDN-PPO beats joint <PPO>.", above=0.0, alike=0.05, group="Mine")
def vdn_beats_joint(results):
    ppo = results.where(algorithm="ppo", view="discrete")
    return ppo.where(factorization="vdn") - ppo.where(factorization="joint")


@claim("Nobody is better.", below=0.0)
def nobody(results):
    return results.where(algorithm="none") - results.where(algorithm="ppo")


@figure("Curves of & mine", caption="Means.", section="My part")
def curves(results):
    algorithms = results.values("algorithm")
    return [lines(results.where(algorithm=a), "factorization", a) for a in algorithms]


@figure("Dots")
def scores(results):
    return dots(results, "algorithm")


@figure("Nothing")
def nothing(results):
    return lines(results.where(algorithm="none"), "factorization")


@section("My part")
def told(results):
    return f"{len(results)} runs & more."
"""


@pytest.fixture(autouse=True)
def _clean():
    own.clear()
    yield
    own.clear()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    some = {"platform": synthetic.ENVIRONMENTS["platform"]}
    return synthetic.sweep(tmp_path_factory.mktemp("own"), 4, 60, some)


def test_they_are_on_the_page(folder, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    words = [
        str(folder),
        "--out",
        str(tmp_path / "r"),
        "--formats",
        "--with",
        str(tmp_path / "mine.py"),
    ]
    assert main(["report", *words]) == 0
    page = (tmp_path / "r" / "index.html").read_text()
    assert "VDN-PPO beats joint &lt;PPO&gt;." in page
    assert (
        '<section id="my-part"><h2>My part</h2><p class="caption">176 runs &amp; more.</p>' in page
    )
    assert "Curves of &amp; mine" in page
    assert '<section id="yours">' in page
    assert "own-nothing" not in page
    table = (tmp_path / "r" / "tables" / "claims.csv").read_text()
    rows = {line.split(",")[0]: line for line in table.splitlines()}
    ours = next(line for line in rows.values() if "VDN-PPO beats joint" in line)
    assert "holds" in ours
    nobody = next(line for line in rows.values() if "Nobody is better" in line)
    assert "not yet measured" in nobody
    first = page
    assert main(["report", *words]) == 0  # the file is run again, and nothing is there twice
    assert (tmp_path / "r" / "index.html").read_text() == first


def test_a_report_without_them_is_as_before(folder, tmp_path):
    before = write_report(folder, tmp_path / "a", formats=()).read_bytes()

    @claim("x", above=0.0)
    def asked(results):
        return results.where(view="hybrid") - results.where(view="discrete")

    assert write_report(folder, tmp_path / "b", formats=()).read_bytes() != before
    own.clear()
    assert write_report(folder, tmp_path / "c", formats=()).read_bytes() == before


def test_lines_and_dots(folder):
    results = Results.read(folder).where(algorithm="ppo", view="hybrid")
    panel = lines(results, "factorization", "PPO")
    assert [one.label for one in panel.series] == results.values("factorization")
    for one in panel.series:
        assert one.num_runs == 4
        assert (one.low <= one.y).all()
        assert (one.y <= one.high).all()
    rows = dots(results, "factorization").dots
    assert [one.value for one in rows] == [x.estimate.value for x in results.iqm("factorization")]


@pytest.mark.parametrize(
    ("settings", "words"),
    [({}, "for which differences"), ({"above": 1.0, "below": 0.0}, "nothing can meet"),
     ({"above": 0.0, "alike": -1.0}, "nothing can meet")],
)  # fmt: skip
def test_claims_that_say_nothing_are_refused(settings, words):
    with pytest.raises(hw.ConfigError, match=words):
        claim("x", **settings)


def test_what_returns_something_else_is_told(folder, tmp_path):
    @claim("x", above=0.0)
    def number(results):
        return 3.0

    with pytest.raises(hw.ConfigError, match="measured by a difference"):
        write_report(folder, tmp_path / "a", formats=())
    own.clear()

    @figure("x")
    @section("y")
    def drawn(results):
        return "text"

    with pytest.raises(hw.ConfigError, match="returns no panels"):
        write_report(folder, tmp_path / "b", formats=())
