"""Values that are typed as NAME=VALUE."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from headwise.errors import ConfigError


def parse_pairs(words: Sequence[str], what: str) -> dict[str, Any]:
    """Values by name from words like `num_targets=4`; a later one of a name counts.

    Args:
        words: What was typed.
        what: What one of them is called in messages.
    """
    found = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.isidentifier():
            raise ConfigError(f"this is no {what}", got=word, allowed="name=value")
        found[name] = _value(text)
    return found


def _value(text: str) -> Any:
    """A Python literal, `true` or `false`, or else the text itself."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
