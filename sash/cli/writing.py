"""Files that are there as a whole or not at all, whatever breaks off on the way: Ctrl-C, a full disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let something be written beside a path, and put it there at once; what was there stays until then."""
    part = path.with_name(path.name + ".part")
    try:
        write(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
