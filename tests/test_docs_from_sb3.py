"""For those who come from Stable-Baselines3: the code runs, and the table is the messages' own."""

import re
from pathlib import Path

import headwise as hw
from headwise.foreign_names import SB3

PAGE = (Path(__file__).parents[1] / "docs" / "from-sb3.md").read_text()


def test_the_code_runs(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) == 3
    names = {}
    exec("\n".join(blocks), names)
    assert names["action"] in (0, 1)
    assert hw.Agent.load("pole.zip").loop.updates > 0
    assert "Nothing was learned" not in caplog.text
    assert names["agent"].config.algorithm.batch_size == 64


def test_what_the_page_says_of_an_agent_is_there():
    agent = hw.Agent("ppo", "CartPole-v1", num_envs=1, net_arch=(8,), n_steps=8)
    found = agent.evaluate(1)
    for name in ("returns", "lengths", "scores", "iqm", "interval"):
        assert f"`{name}`" in PAGE
        assert hasattr(found, name)


def test_the_table_of_settings_is_that_of_the_messages():
    rows = [f"| `{theirs}` | `{ours}` | {note} |" for theirs, ours, note in SB3]
    assert "\n".join(rows).replace("|  |", "| |") in PAGE
