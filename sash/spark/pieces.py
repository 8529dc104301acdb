"""Packed rows travel in small pieces, because of how Java keeps its memory.

An array of half a region of Java's heap or more, a region being 1 MB at least, is kept apart, and such arrays make its
collector go over the whole heap again and again: a tenth of the processor time of a job that moves packed rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

PIECE_BYTES = 1 << 18


def pieces_of(rows: Any, n_bytes: int = PIECE_BYTES) -> Iterator[Any]:
    """Rows in pieces of few bytes; one piece if there are none."""
    most = 1 + n_bytes * rows.num_rows // (1 + rows.nbytes)
    return (rows.slice(begin, most) for begin in range(0, max(1, rows.num_rows), most))
