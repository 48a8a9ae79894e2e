"""The site opened in headless Chromium, on a desktop and on a phone."""

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from html import unescape
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium here: `apt-get install chromium` to open the pages"
)

# Opens one page after the other in a frame and notes what a reader would find wrong.
PROBE = """<!doctype html><iframe id="frame" height="800" style="border:0"></iframe><pre id="told">
</pre><script>
const frame = document.getElementById("frame"), told = {};
const open = (page) => new Promise((done) => { frame.onload = done; frame.src = page; });
const pause = () => new Promise((done) => setTimeout(done, 100));
(async () => {
  for (const width of [390, 1280]) for (const page of PAGES) {
    frame.width = width;
    await open(page);
    await pause();
    const doc = frame.contentDocument, root = doc.documentElement;
    const all = (selector) => [...doc.querySelectorAll(selector)];
    told[`${page} at ${width}`] = {
      tooWide: Math.max(0, root.scrollWidth - width),
      formulas: all(".arithmatex").filter((x) => !x.querySelector(".katex")).length,
      wrong: all(".katex-error").length,
      pictures: all("img").filter((x) => x.complete && !x.naturalWidth
        && getComputedStyle(x).display !== "none").map((x) => x.src),
      brokenWords: all("td code").filter((x) => /^[a-z]+$/.test(x.textContent)
        && x.getClientRects().length > 1).map((x) => x.textContent),
    };
  }
  document.getElementById("told").textContent = JSON.stringify(told);
})();
</script>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What was found on every page, by page and width."""
    site = tmp_path_factory.mktemp("site")
    build = [Path(sys.executable).parent / "mkdocs", "build", "--quiet", "--site-dir", site]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(build, cwd=ROOT, env=quiet, check=True)
    pages = sorted(f"{p.parent.relative_to(site)}/" for p in site.rglob("index.html"))
    assert len(pages) > 30
    (site / "probe.html").write_text(PROBE.replace("PAGES", json.dumps(pages)))
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=120000"]
        command = [BROWSER, *flags, f"--user-data-dir={site.parent / 'profile'}",
                   "--window-size=1300,900", "--dump-dom",
                   f"http://127.0.0.1:{server.server_port}/probe.html"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        server.shutdown()
    text = re.search(r'<pre id="told">\s*(\{.*?\})\s*</pre>', done.stdout, re.DOTALL)
    assert text, done.stdout[-2000:] + done.stderr[-2000:]
    found = json.loads(unescape(text[1]))
    assert len(found) == 2 * len(pages)
    return found


@pytest.mark.parametrize("what", ["tooWide", "formulas", "wrong", "pictures", "brokenWords"])
def test_no_page_has_something_wrong(told, what):
    """No page scrolls sideways; formulas are set, pictures are there, no word is broken."""
    assert {page: found[what] for page, found in told.items() if found[what]} == {}
