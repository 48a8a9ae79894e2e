"""Errors that users can act on: what is wrong, what was given, what is allowed, what to do.

Our own invariants are `assert`ed; these classes are for mistakes that come from outside.
"""

from __future__ import annotations

import os

import numpy as np

_NOTHING = object()


class HeadwiseError(Exception):
    """The base of every error that Headwise raises on purpose.

    Args:
        what: What is wrong, and where, as a clause without a full stop.
        got: The offending value.
        hint: What was probably meant, as a sentence; it comes before what is allowed.
        allowed: What would have been accepted.
        fix: What to do about it, as a sentence.
    """

    def __init__(
        self,
        what: str,
        *,
        got: object = _NOTHING,
        hint: str | None = None,
        allowed: str | None = None,
        fix: str | None = None,
    ) -> None:
        # An error from another process is made anew of its whole message, or of itself.
        parts = [str(what).removesuffix(".")]
        if got is not _NOTHING:
            parts.append(f"got {_brief(got)}")
        if allowed is not None and hint is None:
            parts.append(f"allowed: {allowed}")
        sentences = ["; ".join(parts).removesuffix(".") + "."]
        if hint is not None:
            sentences += [hint] if allowed is None else [hint, f"Allowed: {allowed}."]
        super().__init__(" ".join(sentences if fix is None else [*sentences, fix]))


class SpaceError(HeadwiseError, ValueError):
    """An action or observation, or the space it should belong to, cannot be used."""


class ConfigError(HeadwiseError, ValueError):
    """A setting is unknown, impossible, or does not go with another one."""


class EnvError(HeadwiseError, ValueError):
    """An environment was built or called in a way it does not allow."""


class CheckpointError(HeadwiseError, OSError):
    """A checkpoint cannot be written, or a file that should be one cannot be trusted."""


class ExportError(HeadwiseError, OSError):
    """The file of an exported policy cannot be written."""


class StoreError(HeadwiseError, OSError):
    """The folder of a study cannot be written to, or holds something else."""


def _brief(value: object, limit: int = 200) -> str:
    """The repr of a value, cut in the middle when it would drown the message."""
    if isinstance(value, np.generic):
        value = value.item()  # 2, not np.int64(2)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)  # x.zip, not PosixPath('x.zip')
    text = value if isinstance(value, str) else repr(value)
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} ... {text[-half:]}"
