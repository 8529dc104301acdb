"""Waiting: rows that have come and are not due yet, in pieces sorted by when they will be.

    W1  a piece is never changed: rows of it are taken as the watermark passes them, and the piece goes with its last
    W2  rows of the same time are in the order in which they came: by piece, and within a piece

A piece is read when a row of it is due, so small pieces of close times are read about once. Of rows in order, that
is all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sash.streams.blocks import read_rows, write_rows
from sash.streams.contract import Blocks

PIECE = "piece"
ROWS = 8_192  # of a piece, at most


class Waiting:
    """The rows of a shard that wait for the watermark."""

    def __init__(self, blocks: Blocks, schema: Any, pieces: list[list[int]], next_number: int) -> None:
        """`pieces`: number, watermark at which the first row is due, and the last, and how many rows wait in it."""
        self._blocks, self._schema = blocks, schema
        self.pieces, self.next_number = pieces, next_number

    @property
    def n_rows(self) -> int:
        """How many rows wait."""
        return sum(n for *_, n in self.pieces)

    @property
    def next_due(self) -> int | None:
        """The watermark at which the next row is due; no row before it is."""
        return min((first for _, first, _, _ in self.pieces), default=None)

    def add(self, rows: Any, due: Any) -> None:
        """Let rows wait until the watermark is where they are due."""
        order = np.argsort(due, kind="stable")
        rows, due = rows.take(pa.array(order)).combine_chunks(), due[order]
        for begin in range(0, len(due), ROWS):
            end = min(begin + ROWS, len(due))
            self._blocks.put(PIECE, self.next_number, write_rows(rows.slice(begin, end - begin)))
            self.pieces.append([self.next_number, int(due[begin]), int(due[end - 1]), end - begin])
            self.next_number += 1

    def release(self, watermark: int, due_of: Any) -> Any:
        """Take out the rows that are due, in the order in which they came, as far as times are the same."""
        taken, left = [], []
        for number, first, last, n in self.pieces:
            if first > watermark:
                left.append([number, first, last, n])
                continue
            data = self._blocks.get(PIECE, number)
            assert data is not None, "a piece is written before it is listed"
            rows = read_rows(data, self._schema)
            due = due_of(rows)
            begin, end = np.searchsorted(due, first, "left"), np.searchsorted(due, watermark, "right")
            taken.append(rows.slice(begin, end - begin))
            if end == len(due):
                self._blocks.delete(PIECE, number)
            else:
                left.append([number, int(due[end]), last, len(due) - int(end)])
        self.pieces = left
        return pa.Table.from_batches(taken, self._schema)
