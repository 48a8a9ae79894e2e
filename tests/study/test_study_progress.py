"""Progress: what is counted, and what people see."""

import io

from rich.console import Console
from tiny_study import tiny_study

from headwise.study import Options, conduct
from headwise.study.planner import Pack, pack_runs
from headwise.study.progress import ConsoleProgress, StudyProgress, duration


def test_steps_are_counted_over_all_runs():
    runs = tiny_study(seeds=2).runs()
    first, second = pack_runs(runs)
    progress = StudyProgress()
    progress.begin(runs, total=6)
    assert (progress.done, progress.total, progress.steps_total) == (2, 6, 4 * 64)
    progress.started(first)
    progress.stepped(first, 30)
    assert progress.steps == 60
    progress.started(second)
    progress.stepped(second, 10)
    progress.finished(first)
    assert (progress.done, progress.steps) == (4, 128 + 20)
    progress.dropped(second)
    progress.failed(runs[2], "no")
    assert (progress.steps, progress.failures) == (128, 1)


def test_a_terminal_gets_a_bar_and_a_file_gets_lines(tmp_path):
    for terminal in (True, False):
        text = io.StringIO()
        console = Console(file=text, force_terminal=terminal, width=140)
        folder = tmp_path / str(terminal)
        conduct(
            tiny_study(seeds=1), folder, Options(executor="inline"), ConsoleProgress("it", console)
        )
        assert "2/2 runs" in text.getvalue()
        assert "steps/s" in text.getvalue()
        assert ("ETA" in text.getvalue()) is terminal


def test_where_nothing_is_left_to_do_one_line_will_do():
    text = io.StringIO()
    with ConsoleProgress("it", Console(file=text, width=200)) as progress:
        progress.begin([], total=4)
    assert text.getvalue() == "it: 4/4 runs\n"


def test_failures_are_named_when_they_happen():
    text = io.StringIO()
    run = tiny_study().runs()[0]
    with ConsoleProgress("it", Console(file=text, width=200)) as progress:
        progress.begin([run], total=1)
        progress.started(Pack((run,)))
        progress.failed(run, "it [burst]")
        progress.waiting(3)
    assert f"failed: {run.name} ({run.id}): it [burst]" in text.getvalue()
    assert "0/1 runs, 1 failed, waiting for 3 of another runner" in text.getvalue()


def test_durations():
    assert [duration(s) for s in (5.4, 60, 3500, 8040)] == ["5 s", "1 min", "58 min", "2 h 14 min"]
