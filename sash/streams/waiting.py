"""Waiting: rows that have come and are not due yet, in pieces sorted by when they will be.

    W1  a piece is never changed: rows of it are taken as the watermark passes them, and the piece goes with its last,
        or when it is joined with others
    W2  rows of the same time are in the order in which they came: by piece, and within a piece

A piece is read when a row of it is due, so small pieces of close times are read about once. Of rows in order, that
is all of them. But each is listed in the head of the shard, which is read and written every time. So very small ones
are joined: whenever the last FEW have no more than JOINED rows together, they become one. A row is written again a few
times at most, a piece that is read for a row that is due stays small, and the list has an entry for many rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sash.streams.blocks import read_rows, write_rows
from sash.streams.contract import Blocks

PIECE = "piece"
ROWS = 8_192  # of a piece, at most
FEW = 16  # pieces that are not joined yet
JOINED = 256  # rows of pieces that are joined, at most


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
            rows, due = self._read(number, first, due_of)
            end = int(np.searchsorted(due, watermark, "right"))
            taken.append(rows.slice(0, end))
            if end == len(due):
                self._blocks.delete(PIECE, number)
            else:
                left.append([number, int(due[end]), last, len(due) - end])
        self.pieces = left
        if len(left) >= FEW and sum(n for *_, n in left[-FEW:]) <= JOINED:
            self._join(due_of)
        return pa.Table.from_batches(taken, self._schema)

    def _read(self, number: int, first: int, due_of: Any) -> tuple[Any, Any]:
        """The rows of a piece that wait, those due from `first` on, and when they are due."""
        data = self._blocks.get(PIECE, number)
        assert data is not None, "a piece is written before it is listed"
        rows = read_rows(data, self._schema)
        due = due_of(rows)
        begin = int(np.searchsorted(due, first, "left"))
        return rows.slice(begin), due[begin:]

    def _join(self, due_of: Any) -> None:
        """Make one piece of the last few; sorted as they came, so that rows of the same time stay in order (W2)."""
        few, self.pieces = self.pieces[-FEW:], self.pieces[:-FEW]
        read = [self._read(number, first, due_of) for number, first, *_ in few]
        for number, *_ in few:
            self._blocks.delete(PIECE, number)
        self.add(pa.Table.from_batches([rows for rows, _ in read]), np.concatenate([due for _, due in read]))
