"""Pictures of an agent at play: bars for its heads, and a video of it all."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.envs.native.drawing import require
from headwise.errors import ConfigError

Frame = NDArray[np.uint8]

_ROW, _LABEL, _MARGIN = 16, 110, 8
_INK, _PAPER, _BAR = (30, 30, 30), (250, 250, 250), (66, 118, 180)
KINDS = (".gif", ".mp4")


def with_bars(frame: Frame, names: Sequence[str], shares: NDArray[np.float64]) -> Frame:
    """A frame with a strip below it: a bar for each head, as long as its share of the credit."""
    require("PIL", "pillow", "pictures need Pillow")
    from PIL import Image, ImageDraw

    width = frame.shape[1]
    strip = Image.new("RGB", (width, _ROW * len(names) + 2 * _MARGIN), _PAPER)
    draw = ImageDraw.Draw(strip)
    longest = width - _LABEL - 50 - 2 * _MARGIN
    for row, (name, share) in enumerate(zip(names, shares, strict=True)):
        top = _MARGIN + row * _ROW
        draw.text((_MARGIN, top + 2), name[:18], fill=_INK)
        left = _MARGIN + _LABEL
        right = left + max(int(longest * float(share)), 1)
        draw.rectangle((left, top + 3, right, top + _ROW - 4), fill=_BAR)
        draw.text((right + 4, top + 2), f"{share:.0%}", fill=_INK)
    return np.concatenate([frame, np.asarray(strip)])


def check_video(path: Path) -> None:
    """Refuses a file that could not be written, before an hour of play."""
    if path.suffix.lower() not in KINDS:
        raise ConfigError("unknown kind of video", got=str(path), allowed=" or ".join(KINDS))
    require("PIL", "pillow", "pictures need Pillow")
    if path.suffix.lower() == ".mp4":
        _moviepy()
    new = not path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab"):
            pass
        if new:
            path.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


def write_video(path: Path, frames: Sequence[Frame], frames_per_second: int) -> None:
    """Writes frames as a GIF (Pillow), or as MP4 (moviepy)."""
    try:
        if path.suffix.lower() == ".gif":
            from PIL import Image

            first, *others = [Image.fromarray(frame) for frame in frames]
            pause = max(int(1000 / frames_per_second), 20)
            first.save(path, save_all=True, append_images=others, duration=pause, loop=0)
            return
        even = [frame[: len(frame) // 2 * 2, : frame.shape[1] // 2 * 2] for frame in frames]
        clip = _moviepy().ImageSequenceClip(even, fps=frames_per_second)
        clip.write_videofile(str(path), logger=None)
        clip.close()
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"cannot write the video {str(path)!r}",
        got=error.strerror or str(error),
        allowed="a file in a folder that can be written to",
    )


def _moviepy() -> Any:
    try:
        return importlib.import_module("moviepy")
    except ImportError as error:
        raise ConfigError(
            "MP4 needs moviepy, which is not installed",
            fix="Install it: pip install 'headwise[video]'. Or record a .gif.",
        ) from error
