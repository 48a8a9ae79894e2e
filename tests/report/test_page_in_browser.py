"""The page opened and clicked in headless Chromium."""

import json
import os
import re
import shutil
import subprocess
from html import unescape

import pytest
import synthetic

from headwise.report import write_report

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium here: `apt-get install chromium` to open the page"
)

BEFORE = """<script>
window.failures = [];
addEventListener("error", (event) => failures.push(event.message));
</script>"""

# Presses what a reader would press and notes what changes.
PROBE = """<script>
const found = {};
const count = (selector) => document.querySelectorAll(selector).length;
const shown = (selector) => [...document.querySelectorAll(selector)]
  .filter((node) => !node.hidden).length;
const chip = (group, value) => document.querySelector(
  `[aria-label="${group}"] button[data-value="${value}"]`);
const families = document.querySelector('[data-figure="curves-by-type-and-family-paper"]');
const paths = () => families.querySelectorAll("path[data-series]").length;
const panels = () => families.querySelectorAll(".panel").length;

found.ready = document.documentElement.dataset.ready;
found.figures = count("figure[data-figure]");
found.drawn = count("figure svg[role=img], figure table.heat");
found.panels = panels();
found.lines = paths();

chip("Factorization", "joint").click();
found.linesWithoutJoint = paths();
found.heatColumnsWithoutJoint = document.querySelectorAll(
  '[data-figure="score-heatmap-paper"] thead th').length - 1;
chip("Algorithm", "sac").click();
found.panelsWithoutSac = panels();
found.rowsWithoutSac = [...document.querySelectorAll("#table-scores-paper tbody tr")]
  .filter((row) => !row.hidden && row.textContent.includes("SAC")).length;
chip("Actions", "hybrid").click();
found.panelsWithoutHybrid = panels();
chip("Factorization", "joint").click();
chip("Algorithm", "sac").click();
chip("Actions", "hybrid").click();
found.linesBack = paths();

const legend = families.querySelector(".legend button");
legend.click();
found.linesWithoutFirst = paths();
found.pressed = legend.getAttribute("aria-pressed");
legend.click();

const chart = families.querySelector("svg[role=img]");
const box = chart.getBoundingClientRect();
const at = { clientX: box.left + box.width / 2, clientY: box.top + 50, bubbles: true };
chart.dispatchEvent(new PointerEvent("pointermove", at));
found.tip = document.getElementById("tip").innerText;
found.tipShown = !document.getElementById("tip").hidden;
chart.dispatchEvent(new PointerEvent("pointerleave"));
found.tipGone = document.getElementById("tip").hidden;

found.claims = shown(".claims tr[data-claim]");
chip("Verdict", "not yet measured").click();
found.claimsMeasured = shown(".claims tr[data-claim]");
found.count = document.querySelector(".claims .count").textContent;

const head = [...document.querySelectorAll("#table-scores-paper th")]
  .find((th) => th.textContent === "mean");
const column = [...head.parentNode.children].indexOf(head);
const means = () => [...document.querySelectorAll("#table-scores-paper tbody tr")]
  .map((row) => +row.children[column].dataset.value);
head.click();
found.up = means();
head.click();
found.down = means();

const paper = () => getComputedStyle(document.body).backgroundColor;
const before = paper();
document.getElementById("theme").click();
found.themes = [before, paper()];
const labels = (low, high) => logTicks(Math.log10(low), Math.log10(high))
  .map((at) => short(10 ** at));
found.ticks = [labels(0.8, 60), labels(1.2, 1.8), labels(23000, 27000)];
found.wide = document.documentElement.scrollWidth <= innerWidth;
found.failures = failures;
document.body.append(Object.assign(document.createElement("pre"),
  { id: "probe", textContent: JSON.stringify(found) }));
</script>"""


def chromium(folder, *flags):
    command = [
        BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-first-run", f"--user-data-dir={folder / 'profile'}", "--window-size=1366,900",
        "--virtual-time-budget=5000", *flags, (folder / "probed.html").as_uri(),
    ]  # fmt: skip
    environment = {**os.environ, "HOME": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("page")
    some = {name: synthetic.ENVIRONMENTS[name] for name in ("platform", "lander")}
    stores = [
        synthetic.sweep(root / "paper", 3, 60, some),
        synthetic.factorial(root / "demo", seeds=3),
    ]
    page = write_report(stores, root / "report", formats=()).read_text()
    assert page.count("<body>") == 1
    page = page.replace("<body>", "<body>" + BEFORE).replace("</body>", PROBE + "</body>")
    (root / "probed.html").write_text(page)
    return root


def test_the_page_opens_and_can_be_clicked(folder):
    dom = chromium(folder, "--dump-dom")
    match = re.search(r'<pre id="probe">(.*?)</pre>', dom, re.S)
    assert match, "the script did not come to its end"
    found = json.loads(unescape(match[1]))
    assert found["failures"] == []
    assert found["ticks"] == [
        ["1", "2", "5", "10", "20", "50"],
        ["1.2", "1.4", "1.6", "1.8"],  # no 1, 2 or 5 times a power of ten is in between
        ["23k", "24k", "25k", "26k", "27k"],
    ]
    assert found["ready"] == "true"
    assert found["drawn"] >= found["figures"] > 10
    # three families, three action types; joint in the three discrete ones, SAC without QPLEX
    assert found["panels"] == 9
    assert found["lines"] == 6 + 5 + 5 + 5 + 4 + 3 + 6 + 5 + 5
    assert found["linesWithoutJoint"] == found["lines"] - 3
    assert found["heatColumnsWithoutJoint"] == 5 + 4 + 5
    assert found["panelsWithoutSac"] == 6
    assert found["rowsWithoutSac"] == 0
    assert found["panelsWithoutHybrid"] == 4
    assert found["linesBack"] == found["lines"]
    assert found["linesWithoutFirst"] == found["lines"] - 9
    assert found["pressed"] == "false"
    assert found["tipShown"]
    assert found["tipGone"]
    # half of the panel is 190 of 380, and the axis goes from 46 to 372: (190 - 46) / 326 = 0.44
    assert "share of the steps 0.44" in found["tip"]
    assert "Auto-regressive" in found["tip"]
    assert 0 < found["claimsMeasured"] < found["claims"]
    assert found["count"] == f"{found['claimsMeasured']} of {found['claims']} shown"
    assert found["up"] == sorted(found["up"])
    assert found["down"] == sorted(found["up"], reverse=True)
    assert found["themes"][0] != found["themes"][1]
    assert found["wide"], "the page is wider than a laptop's window"


def test_the_page_can_be_printed(folder):
    target = folder / "page.pdf"
    chromium(folder, f"--print-to-pdf={target}", "--no-pdf-header-footer")
    paper = target.read_bytes()
    assert paper.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) >= 3


WIDTHS = """<script>setTimeout(() => document.body.append(Object.assign(
  document.createElement("pre"), { id: "probe", textContent: JSON.stringify(
    [...document.querySelectorAll(".scroll")].map((box) =>
      [box.querySelector("table").id, box.scrollWidth - box.clientWidth])) })), 500);</script>"""


def test_every_column_is_seen_in_a_window_of_1200(folder):
    """The last ones say what follows: a claim's note, and how a comparison ends in a word."""
    page = (folder / "report" / "index.html").read_text()
    whole = (folder / "probed.html").read_text()
    try:
        (folder / "probed.html").write_text(page.replace("</body>", WIDTHS + "</body>"))
        dom = chromium(folder, "--dump-dom", "--window-size=1200,900")
    finally:
        (folder / "probed.html").write_text(whole)
    hidden = dict(json.loads(unescape(re.search(r'<pre id="probe">(.*?)</pre>', dom, re.S)[1])))
    assert {"table-claims", "table-comparisons-paper"} <= hidden.keys()
    assert {name: more for name, more in hidden.items() if more} == {}
