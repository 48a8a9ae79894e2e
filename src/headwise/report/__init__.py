"""From a study's store to figures, tables, a claims ledger and one page to look at. Without torch.

Importing the room is cheap; matplotlib and pyarrow come when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwise.report.own import dots, lines
    from headwise.report.registry import claim, figure, section
    from headwise.report.results import Results
    from headwise.report.runs import StudyRuns, read_store
    from headwise.report.write import write_report
    from headwise.study.records import Record

_HOMES = {
    "Record": "study.records",
    "Results": "report.results",
    "StudyRuns": "report.runs",
    "claim": "report.registry",
    "dots": "report.own",
    "figure": "report.registry",
    "lines": "report.own",
    "read_store": "report.runs",
    "section": "report.registry",
    "write_report": "report.write",
}

__all__ = [
    "Record", "Results", "StudyRuns", "claim", "dots", "figure", "lines", "read_store", "section",
    "write_report",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"headwise.{_HOMES[name]}"), name)
