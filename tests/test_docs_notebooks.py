"""The notebooks run from the first cell to the last, on fewer steps, and show what they promise."""

from pathlib import Path

import nbclient
import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
SHORTER = {
    "quickstart": {"STEPS = 50_000": "STEPS = 4_096"},
    "compare_factorizations": {"STEPS = 30_000": "STEPS = 2_048", "SEEDS = 5": "SEEDS = 2"},
}


def ran(name, folder):
    """The notebook after a run, in a folder of its own."""
    book = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    for long, short in SHORTER[name].items():
        assert any(long in cell.source for cell in book.cells)
        for cell in book.cells:
            cell.source = cell.source.replace(long, short)
    client = nbclient.NotebookClient(
        book, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    return client.execute()


def shown(book):
    """All text and kinds of pictures that cells show."""
    texts, kinds = [], set()
    for cell in book.cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error", output
            texts.append(output.get("text", ""))
            texts.append(output.get("data", {}).get("text/plain", ""))
            kinds |= set(output.get("data", {}))
    return "\n".join(texts), kinds


@pytest.mark.parametrize("name", sorted(SHORTER))
def test_a_notebook_runs_as_it_is_written(name, tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "matplotlib"))
    monkeypatch.delenv("MPLBACKEND", raising=False)  # a kernel chooses the one that shows
    text, kinds = shown(ran(name, tmp_path))
    assert "image/png" in kinds
    assert ("IQM" in text) if name == "quickstart" else ("against" in text)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    assert path.stem in SHORTER
    for cell in book.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
