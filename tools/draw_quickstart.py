"""Draws what docs/quickstart.md shows: the display of the run, and its learning curves.

    python tools/draw_quickstart.py

It runs the code of the page. Pictures are renewed by hand, because speed differs between machines.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console, Group
from rich.terminal_theme import SVG_EXPORT_THEME

import headwise as hw
from headwise.training.progress import Progress, seeds_table

ROOT = Path(__file__).parents[1]
ASSETS = ROOT / "docs" / "assets"
STEPS = 50_000
INK = {"light": "#1f2328", "dark": "#e6e6e6"}
LINES = ("#4c78a8", "#e4853b", "#3f9b6e")
RANDOM, MOST = -3.3, 10.0
"""The returns of random actions and of the best policy, as the page says."""


def main() -> None:
    """Trains the page's agent and writes the pictures."""
    page = (ROOT / "docs" / "quickstart.md").read_text()
    robot = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "robot.py").write_text(robot)
        sys.path.insert(0, folder)
        from robot import Robot

        agent = hw.Agent("ppo", Robot, seeds=3)
        console = Console(record=True, force_terminal=True, width=92, file=io.StringIO())
        display, reports = Progress(agent.config.title, console), []
        display.open(STEPS, 0)

        def watch(report: hw.Report) -> None:
            reports.append(report)
            display.show(report)

        agent.learn(STEPS, callbacks=[watch], log_every=1000, progress=False)
    display.close()
    console.export_text(clear=True)
    console.print(Group(display._bar, seeds_table(reports[-1])))
    _write_display(console)
    for scheme, ink in INK.items():
        _write_curves(reports, ASSETS / f"quickstart-{scheme}.svg", ink)


def _write_display(console: Console) -> None:
    plain = re.sub(r"@font-face {{.*?}}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    text = console.export_svg(
        title="python train.py", theme=SVG_EXPORT_THEME, code_format=plain, unique_id="quickstart"
    )
    (ASSETS / "quickstart-display.svg").write_text(text)


def _write_curves(reports: list[hw.Report], path: Path, ink: str) -> None:
    mpl.use("svg")
    import matplotlib.pyplot as plt

    settings = {
        "svg.hashsalt": "quickstart",
        "svg.fonttype": "none",
        "font.size": 10,
    } | dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), ink
    )
    with plt.rc_context(settings):
        figure, axes = plt.subplots(figsize=(6.4, 3.0), layout="constrained")
        steps = [report.step for report in reports]
        for member, color in enumerate(LINES):
            returns = [report.returns[member] for report in reports]
            axes.plot(steps, returns, color=color, label=f"seed {member}")
        for level, label in ((MOST, "maximum"), (RANDOM, "random actions")):
            axes.axhline(level, color=ink, linewidth=0.8, linestyle=":")
            axes.annotate(label, (steps[-1], level), xytext=(0, 3), textcoords="offset points",
                          ha="right", fontsize=8)  # fmt: skip
        axes.set(xlabel="environment steps of each seed", ylabel="return", xlim=(0, STEPS))
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.0, 0.95))
        figure.savefig(path, transparent=True, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
