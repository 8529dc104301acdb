"""Where commands write: answers to standard output, progress and errors to standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

WIDE = 160  # characters, where nobody's screen says how many there are

out = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)
err = Console(stderr=True, highlight=False)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say that something is under way, with a sign of life on a terminal; then how long it took."""
    began = time.perf_counter()
    if err.is_terminal:
        with err.status(what):
            yield
    else:
        err.print(f"{what} ...", markup=False)
        yield
    err.print(f"{what}: {time.perf_counter() - began:.1f} s", markup=False)


@contextmanager
def apart(log: str) -> Iterator[None]:
    """What is started within writes its standard error to a file: Java and its workers, who talk a lot."""
    kept = os.dup(2)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(target)
        os.close(kept)
