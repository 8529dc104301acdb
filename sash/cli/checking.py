"""The laws of an aggregate by name."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from sash.algebra.laws import LawReport, check_laws
from sash.cli.exits import USAGE, CommandError
from sash.cli.naming import find


def checked(name: str, samples: str | None) -> LawReport:
    """Check `module:name`, on samples if they are given."""
    return check_laws(find(name, Path.cwd()), None if samples is None else read_samples(samples))


def read_samples(text: str) -> list[Any]:
    """Values separated by commas; nothing is evaluated but literals."""
    try:
        return list(ast.literal_eval(f"[{text}]"))
    except (ValueError, SyntaxError) as error:
        raise CommandError(
            f"--samples {text!r} cannot be read; wanted values such as 1,2.5,-3 or (1,2),(3,4)", USAGE
        ) from error
