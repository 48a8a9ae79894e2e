"""The quickstart: its code runs as it is written, only for fewer steps."""

import re
import sys
from pathlib import Path

import pytest

from headwise.study import conduct
from headwise.study.load import load_study

PAGE = (Path(__file__).parents[1] / "docs" / "quickstart.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the reader's files in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.py").write_text(BLOCKS[0])
    yield tmp_path
    sys.modules.pop("robot", None)


def test_the_agent(folder, capsys, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    code = "\n".join(BLOCKS[1:-1]).replace("50_000", "4_096").replace("episodes=20", "episodes=2")
    names = {}
    exec(code, names)
    assert "(3 seeds: too few to say" in capsys.readouterr().out
    assert names["Robot"].action_space.contains(names["agent"].predict(names["obs"]))
    for file in ("robot.zip", "robot.onnx"):
        assert (folder / file).is_file()


def test_the_study(folder):
    (folder / "robots.py").write_text(BLOCKS[-1].replace("50_000", "64"))
    study = load_study("robots.py").with_seeds(1)
    assert conduct(study, folder / "runs").finished == 3
