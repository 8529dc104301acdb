"""Things of a user's own by name: `module:name`, looked for beside the pipeline file and in the directory at hand."""

from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

from sash.errors import DeclarationError, UnknownNameError

FORM = re.compile(r"^([A-Za-z_][\w.]*):([A-Za-z_]\w*)$")


def find(name: str, beside: Path) -> Any:
    """Import `module:name`; modules in the directory `beside` come first."""
    said = FORM.match(name)
    if said is None:
        raise DeclarationError(f"{name!r} is not of the form module:name, as in rides:LongestRun")
    module = _module(said[1], beside)
    if not hasattr(module, said[2]):
        public = [each for each in vars(module) if not each.startswith("_")]
        raise DeclarationError(f"{said[1]}: {UnknownNameError.among('name', said[2], public)}")
    return getattr(module, said[2])


def _module(name: str, beside: Path) -> Any:
    place = str(beside.resolve())
    if place not in sys.path:
        sys.path.insert(0, place)
        paths = [place, *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)  # workers of a local Spark look for modules there
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        raise DeclarationError(f"there is no module {error.name!r} in {place} or among what is installed") from error
