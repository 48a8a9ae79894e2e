"""From a study's store to figures, tables, a claims ledger and one page to look at. Without torch.

Importing the room is cheap; matplotlib and pyarrow come when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwise.report.runs import StudyRuns, read_store
    from headwise.report.write import write_report
    from headwise.study.records import Record

_HOMES = {
    "Record": "study.records",
    "StudyRuns": "report.runs",
    "read_store": "report.runs",
    "write_report": "report.write",
}

__all__ = ["Record", "StudyRuns", "read_store", "write_report"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"headwise.{_HOMES[name]}"), name)
