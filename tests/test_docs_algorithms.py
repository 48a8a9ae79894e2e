"""The page of algorithms names the file and the function of each loss: they are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "algorithms.md").read_text()


def test_every_file_and_function_that_the_page_names_is_there():
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and "src/headwise/" in line]
    assert len(rows) >= 12
    for row in rows:
        texts = [(ROOT / path).read_text() for path in re.findall(r"`(src/[\w/]+\.py)`", row)]
        for name in re.findall(r"`(\w+)`", row):
            assert any(f"def {name}(" in text for text in texts), row
