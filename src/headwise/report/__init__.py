"""From a study's store to figures, tables, a claims ledger and one page to look at. Without torch.

Importing the room is cheap; matplotlib and pyarrow come when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwise.report.store import RunRecord, StudyRuns, read_store
    from headwise.report.write import write_report

_HOMES = {
    "RunRecord": "store",
    "StudyRuns": "store",
    "read_store": "store",
    "write_report": "write",
}

__all__ = ["RunRecord", "StudyRuns", "read_store", "write_report"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
