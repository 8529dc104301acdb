"""Pages: the rows of many small keys, or some of a large one, together in a block; found by the hash of the key.

One block for each key would cost a call for each, and one block for all would be read and written whole for
every row. So keys share pages, by linear hashing: there are n pages, a row belongs to the page `hash mod m`, m the
power of two at or above n, or, if there is no such page yet, to the one m / 2 below. When pages grow beyond their
size on average, the oldest one that has not been is divided in two. Nothing is ever rewritten at once.

    I1  all rows of a key are in one page, in the order in which they came or were sorted
    I2  a page without rows has no block

Costs: a page read and a page written for each key touched, at most; amortised O(1) divisions for each row added.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from sash.streams.contract import HASH, Blocks

PAGE = "page"
SIZE = 32 * 1024  # bytes of a page on average, above which pages are divided


class Pages:
    """The window data of a shard."""

    def __init__(self, blocks: Blocks, schema: Any, n_pages: int = 1, n_bytes: int = 0) -> None:
        self._blocks, self._schema = blocks, schema
        self.n_pages, self.n_bytes = n_pages, n_bytes

    def of(self, hashes: Any) -> Any:
        """The page of each row."""
        places = (hashes.view(np.uint64) >> np.uint64(20)).astype(np.int64)
        n_slots = 1 << (self.n_pages - 1).bit_length()
        found = places & (n_slots - 1)
        return np.where(found >= self.n_pages, found - (n_slots >> 1), found)

    def load(self, numbers: Iterable[int]) -> Any:
        """The rows of some pages, as a table."""
        batches = [self._load(number) for number in numbers]
        return pa.Table.from_batches([batch for batch in batches if batch is not None], self._schema)

    def _load(self, number: int) -> Any:
        data = self._blocks.get(PAGE, number)
        if data is None:
            return None
        self.n_bytes -= len(data)  # until it is written again
        return pa.ipc.read_record_batch(pa.py_buffer(data), self._schema)

    def save(self, numbers: Any, rows: Any) -> None:
        """Write some pages anew: these are all their rows."""
        hashes = rows.column(HASH).to_numpy()
        self._write(numbers, self.of(hashes), rows)
        while self.n_bytes > SIZE * self.n_pages:
            self._divide()

    def _write(self, numbers: Any, places: Any, rows: Any) -> None:
        order = np.argsort(places, kind="stable")
        rows, places = rows.take(pa.array(order)).combine_chunks(), places[order]
        first = np.searchsorted(places, numbers, "left")
        last = np.searchsorted(places, numbers, "right")
        whole: Any = rows.to_batches()[0] if rows.num_rows else None
        for number, begin, end in zip(numbers.tolist(), first.tolist(), last.tolist(), strict=True):
            if begin == end:
                self._blocks.delete(PAGE, number)
            else:
                data = whole.slice(begin, end - begin).serialize().to_pybytes()
                self.n_bytes += len(data)
                self._blocks.put(PAGE, number, data)

    def _divide(self) -> None:
        """Divide the oldest page that is not divided yet; the new one is the last."""
        half = 1 << (self.n_pages.bit_length() - 1)
        old, new = self.n_pages - half, self.n_pages
        rows = self.load([old])
        self.n_pages += 1
        if rows.num_rows:
            self._write(np.array([old, new]), self.of(rows.column(HASH).to_numpy()), rows)
