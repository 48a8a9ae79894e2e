"""The files of studies: where they are found, and how they are run, here and in workers."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import gymnasium as gym

from headwise.errors import ConfigError
from headwise.registry import unknown

FOLDER = Path("studies")
"""Where a user's studies are found by name."""
SHIPPED = Path(__file__).parents[1] / "studies" / "paper" / "plans"
"""Where those are that come with the library."""
EXPERIMENTS = Path("results") / "studies"
"""Where those are, in a checkout, that were done once and are kept with what came of them."""
KNOWN_IDS = frozenset(gym.registry)
"""What Gymnasium knew before any study was loaded, and so knows in every process."""
MODULES = "headwise_study_"
"""How the modules that study files become are called, before the file's own name."""


def study_files() -> dict[str, Path]:
    """The files of studies that can be run by name; one in ./studies hides another."""
    found: dict[str, Path] = {}
    for folder in (SHIPPED, EXPERIMENTS, FOLDER):
        files = sorted(folder.glob("*.py")) if folder.is_dir() else []
        found |= {file.stem: file for file in files if not file.stem.startswith("_")}
    return found


def find_study(path_or_name: str | Path) -> Path:
    """The file of a study: a path, the name of one in ./studies, or of one of the library."""
    path = Path(path_or_name)
    if path.suffix == ".py":
        if path.is_file():
            return path
        raise ConfigError(
            "there is no such study",
            got=str(path_or_name),
            allowed="the path of a Python file, or a name of `headwise study list`",
        )
    files = study_files()
    if str(path_or_name) not in files:
        raise unknown("study", str(path_or_name), files)
    return files[str(path_or_name)]


def question_of(path: Path) -> str:
    """What a study asks, in the first line of its file; the file is not run."""
    try:
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
    except (OSError, ValueError, SyntaxError):
        return ""
    return text.partition("\n")[0]


def run_file(path: Path) -> ModuleType:
    """Runs a study's file as a module, here or in a worker, and returns the module.

    What lies beside it can be imported: first of all while it runs, and after everything else from
    then on, for whatever an environment imports when it is made.
    """
    path = path.resolve()
    if path.parent == SHIPPED.resolve():
        return importlib.import_module(f"headwise.studies.paper.plans.{path.stem}")
    for name in ("__main__", "__mp_main__"):  # a script that runs its own study has run already
        main = sys.modules.get(name)
        if main is not None and Path(getattr(main, "__file__", None) or ".").resolve() == path:
            return main
    name = MODULES + path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for their module there
    folder = str(path.parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)
    return module
