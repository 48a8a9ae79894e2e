"""Finding a study: a Python file, by its path or by its name in ./studies."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

from headwise.errors import ConfigError
from headwise.registry import unknown
from headwise.study.study import Study

FOLDER = Path("studies")


def find_study(path_or_name: str | Path) -> Path:
    """The file of a study."""
    path = Path(path_or_name)
    for candidate in (path, FOLDER / f"{path_or_name}.py"):
        if candidate.is_file() and candidate.suffix == ".py":
            return candidate
    names = sorted(file.stem for file in FOLDER.glob("*.py")) if FOLDER.is_dir() else []
    if path.suffix == ".py" or not names:
        raise ConfigError(
            "there is no such study",
            got=str(path_or_name),
            allowed="the path of a Python file, or the name of one in ./studies",
        )
    raise unknown("study", str(path_or_name), names)


def load_study(path_or_name: str | Path, **arguments: Any) -> Study:
    """The study that a file defines: what its function `make` returns, or its `study`.

    Args:
        path_or_name: "studies/paper.py", or "paper" for that file in ./studies.
        **arguments: For `make`: `smoke=True`, and whatever else the study offers.
    """
    path = find_study(path_or_name)
    module = _load_module(path)
    make = getattr(module, "make", None)
    if callable(make):
        known = list(inspect.signature(make).parameters)
        for name in arguments:
            if name not in known:
                raise unknown(f"argument of the study {path.stem}", name, known)
        study = make(**arguments)
    elif arguments:
        raise ConfigError(
            f"{path} takes no arguments: it has no function `make`", got=", ".join(arguments)
        )
    else:
        study = getattr(module, "study", None)
    if not isinstance(study, Study):
        raise ConfigError(
            f"{path} defines no study",
            got=type(study).__name__,
            allowed="`study = Study(...)`, or a function `make` that returns a Study",
        )
    return study


def _load_module(path: Path) -> Any:
    name = f"headwise_study_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)  # studies may share files beside them
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module
