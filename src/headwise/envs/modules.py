"""Importing the module of an environment like `module:id`."""

from __future__ import annotations

import importlib
from pathlib import PurePath

from headwise.errors import EnvError

_EXAMPLE = "MODULE:ID, for example my_robot:MyRobot-v0"


def import_module_of(env: str) -> None:
    """Imports the module of an environment, if its id names one; what goes wrong is told.

    To be called with what a user typed, never with what a file says.
    """
    module, colon, bare = env.rpartition(":")
    if not colon:
        return
    if module.endswith(".py") or "/" in module or "\\" in module:
        stem = PurePath(module.replace("\\", "/")).name.removesuffix(".py")
        raise EnvError(
            "the module of an environment is named, and this is the path of a file",
            got=env,
            allowed=_EXAMPLE,
            fix=f"Write {stem}:{bare or 'ID'}, in the folder of the file or with it on PYTHONPATH.",
        )
    if not module or module.startswith("."):
        raise EnvError("this names no module", got=repr(env), allowed=_EXAMPLE)
    try:
        importlib.import_module(module)
    except Exception as error:  # whatever the code of a user may do
        raise EnvError(
            f"cannot import the module of {env!r}",
            got=f"{type(error).__name__}: {error}",
            allowed="a module of the current folder, or one that is installed",
        ) from error
