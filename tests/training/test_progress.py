import io

import numpy as np
from rich.console import Console

from headwise.training.progress import Progress, seeds_table
from headwise.training.report import Report


def report(step=500, seeds=(0, 7), alive=(True, False), **values):
    shown = {
        "rollout/ep_rew_mean": np.linspace(12.34, 56.78, len(seeds)),
        "rollout/ep_len_mean": np.full(len(seeds), np.nan),
        "time/fps": np.full(len(seeds), 4321.0),
        **{name: np.array(row) for name, row in values.items()},
    }
    return Report(step, 1000, tuple(seeds), shown, np.array(alive))


def text_of(table):
    console = Console(file=io.StringIO(), width=100)
    console.print(table)
    return console.file.getvalue()


def test_a_row_for_each_seed_with_return_and_exploration():
    text = text_of(seeds_table(report(**{"train/ent_coef": [0.125, 0.5]})))
    assert "alpha" in text
    assert "epsilon" not in text
    assert "12.34" in text
    assert "0.125" in text
    assert text.count("diverged") == 1
    text = text_of(seeds_table(report(**{"rollout/exploration_rate": [0.05, 0.1]})))
    assert "epsilon" in text
    assert "0.05" in text


def test_many_seeds_are_summed_up():
    many = report(seeds=range(64), alive=[True] * 64)
    text = text_of(seeds_table(many))
    assert [word in text for word in ("lowest", "middle", "highest")] == [True] * 3
    assert len(text.splitlines()) == 4


def test_in_a_terminal_there_is_a_bar_with_speed_and_time_left():
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    shown = Progress("ppo vdn", console)
    shown.open(1000, 0)
    shown.show(report())
    shown.close()
    text = console.file.getvalue()
    for part in ("ppo vdn", "500 of 1,000 steps", "4,321 steps/s", "50%", "12.34"):
        assert part in text


def test_in_a_file_there_are_plain_lines():
    console = Console(file=io.StringIO(), width=120)
    shown = Progress("sac ar", console)
    shown.open(1000, 0)
    shown.show(report())
    shown.close()
    text = console.file.getvalue()
    assert text == "sac ar: 500 of 1,000 steps, 4,321 steps/s, return 34.56\n"
