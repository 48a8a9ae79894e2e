"""What a study may be called, as a folder and in files."""

from __future__ import annotations

import re

STUDY_NAMES = "letters, digits, dots, hyphens and underscores, at most 100, a letter or digit first"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")


def is_study_name(name: object) -> bool:
    """Whether a study can have this name, wherever it comes from: no path leads out of a folder."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None
