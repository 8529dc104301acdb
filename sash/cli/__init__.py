"""The command `sash`. Every command is thin over the library; Typer and rich come with the extra `cli`."""

from __future__ import annotations

import importlib
import sys

from sash.cli.exits import MISSING

CLIENTS = ("rich", "typer")


def main() -> None:
    """Run the command line; what is missing to do so is said in one line."""
    try:
        app = importlib.import_module("sash.cli.app")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in CLIENTS:
            raise
        sys.stderr.write(f"sash: the command line needs {error.name}. Install it with: pip install 'sash[cli]'\n")
        sys.exit(MISSING)
    app.run()
