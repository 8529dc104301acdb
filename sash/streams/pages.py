"""Pages: the rows of many small keys together in a block, found by the hash of the key.

One block for each key would cost a call for each, and one block for all would be read and written whole for
every row. So keys share pages, by linear hashing: there are n pages, a row belongs to the page `hash mod m`, m the
power of two at or above n, or, if there is no such page yet, to the one m / 2 below. When pages grow beyond their
size on average, the oldest one that has not been is divided in two. Nothing is ever rewritten at once.

A call of Spark's state takes a tenth of a millisecond beside what its bytes take, so the first pages are large
(pages_for): a shard of few of them is read in few calls. One of many has small pages, because a row reads a whole one.

A page has many rows for each that comes. So new rows wait in one block for all pages, as hot ones, and a page is
written anew when there are enough of its own; until then it is read, and of its rows those of the keys in question are
taken. Rows that no window can reach any more stay in it for so long.

    I1  all rows of a key are in one page, next to each other, in order, or hot, in the order in which they came
    I2  a page without rows has no block
    I3  the rows of a key in its page came before those of it that are hot

A block has each key once, with how many rows it has; then the other columns of all rows.

Costs: a page read for each key touched, at most, and a page written for every few rows that come to it; all hot rows,
at most MOST_HOT and those of a micro-batch, read and written. Amortised O(1) divisions for each row added.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sash.errors import FormatError
from sash.frames.buffers import single
from sash.frames.changes import changes_within
from sash.streams.blocks import one_batch, read_rows, write_rows
from sash.streams.contract import HASH, Blocks

PAGE = "page"
SIZE = 16 * 1024  # bytes of a page on average, above which pages are divided
LARGE = 64  # times as large are the pages of a shard,
FEW = 4  # as long as these are enough: to read all of it takes little then, and fewer calls take less
HOT = "hot"  # the kind of the one block of hot rows
FEW_HOT = 8  # rows for a page of SIZE, below which it is not worth to write it anew
MOST_HOT = 4_096  # rows: with more, pages that are read are written too
COUNT = "__sash_count"  # of the rows of a key
LENGTH = struct.Struct("<q")  # of the keys of a page, before them


class Pages:
    """The window data of a shard."""

    def __init__(self, blocks: Blocks, schema: Any, by: Sequence[str], n_pages: int = 1, n_bytes: int = 0) -> None:
        self._blocks, self._schema = blocks, schema
        keys = [*by, HASH]
        self._keys = pa.schema([*(schema.field(name) for name in keys), pa.field(COUNT, pa.int32())])
        self._rest = pa.schema([field for field in schema if field.name not in keys])
        self.n_pages, self.n_bytes = n_pages, n_bytes

    def of(self, hashes: Any) -> Any:
        """The page of each row."""
        places = (hashes.view(np.uint64) >> np.uint64(20)).astype(np.int64)
        n_slots = 1 << (self.n_pages - 1).bit_length()
        found = places & (n_slots - 1)
        return np.where(found >= self.n_pages, found - (n_slots >> 1), found)

    # --- reading ------------------------------------------------------------------------------------

    def fetch(self, hashes: Any, turn: int, *, is_whole: bool) -> tuple[Any, Any]:
        """The pages to write anew for new rows with these hashes, and the rows that matter.

        These are all rows of pages to write, and of others those of the same keys. The page whose turn it is is written
        in any case; if `is_whole`, so are all pages with new rows, and there are no hot ones.
        """
        self._hot = self._schema.empty_table() if is_whole else self._read_hot()
        places, hot = self.of(hashes), self._hot
        own_hot = self.of(hot.column(HASH).to_numpy())
        n_new, n_hot = (np.bincount(each, minlength=self.n_pages) for each in (places, own_hot))
        is_read = n_new > 0
        is_full = is_whole or hot.num_rows > MOST_HOT
        self._is_written = is_read & (is_full | (n_new + n_hot >= self._worthwhile))
        self._is_written[turn] = True
        numbers = np.flatnonzero(self._is_written)
        others = np.flatnonzero(is_read & ~self._is_written)
        stored = [self.load(numbers.tolist())]
        if len(others) or hot.num_rows:
            wanted = np.unique(hashes)
            stored.append(self._load(others.tolist(), wanted))
            is_own = self._is_written[own_hot] | np.isin(hot.column(HASH).to_numpy(), wanted)
            stored.append(hot.filter(pa.array(is_own)))
        return numbers, pa.concat_tables(stored)

    def is_written(self, rows: Any) -> Any:
        """Which rows are in pages that are written anew."""
        if self._is_written.all():
            return np.ones(rows.num_rows, np.bool_)
        return self._is_written[self.of(rows.column(HASH).to_numpy())]

    def load(self, numbers: Sequence[int]) -> Any:
        """The rows of some pages, which will be written anew, as a table."""
        return self._load(numbers, None)

    def _load(self, numbers: Sequence[int], wanted: Any) -> Any:
        """The rows of some pages, of all keys or of those with some hashes."""
        keys, rest = [], []
        for data in self._blocks.get_many(PAGE, numbers):
            if data is not None:
                self.n_bytes -= len(data) if wanted is None else 0  # until it is written again
                keys.append(read_rows(data, self._keys, LENGTH.size))
                rest.append(read_rows(data, self._rest, LENGTH.size + _length(data)))
        parts = pa.Table.from_batches(keys, self._keys), pa.Table.from_batches(rest, self._rest)
        return self._joined(*(parts if wanted is None else _of_keys(*parts, wanted)))

    def _read_hot(self) -> Any:
        data = self._blocks.get(HOT, 0)
        batches = [] if data is None else [read_rows(data, self._schema)]
        return pa.Table.from_batches(batches, self._schema)

    @property
    def _worthwhile(self) -> Any:
        """How many rows each page should have got before it is written anew: the more, the larger pages are.

        Not the same for all: keys with a row in each micro-batch would have all their pages written in the same.
        """
        few = FEW_HOT * max(1, self.n_bytes // (self.n_pages * SIZE))
        return few + np.arange(self.n_pages) % few

    def _joined(self, keys: Any, rest: Any) -> Any:
        """Rows with their keys."""
        keys = keys.combine_chunks()
        numbers = pa.array(np.repeat(np.arange(keys.num_rows), keys.column(COUNT).to_numpy()))
        columns = {name: keys.column(name).take(numbers) for name in self._keys.names if name != COUNT}
        columns |= dict(zip(self._rest.names, rest.columns, strict=True))
        return pa.table([columns[name] for name in self._schema.names], schema=self._schema)

    # --- writing ------------------------------------------------------------------------------------

    def save_hot(self, new: Any) -> None:
        """Let new rows wait whose pages are not written anew, and those that waited for such pages."""
        left = [each.filter(pa.array(~self.is_written(each))) for each in (self._hot, new)]
        hot = pa.concat_tables(left).combine_chunks()
        if hot.num_rows:
            self._blocks.put(HOT, 0, write_rows(hot))
        elif self._hot.num_rows:
            self._blocks.delete(HOT, 0)

    def save(self, numbers: Any, rows: Any) -> None:
        """Write some pages anew: these are all their rows, those of a key next to each other (I1)."""
        numbers, rows = self._grown(numbers, rows)
        places = self.of(rows.column(HASH).to_numpy()).astype(np.min_scalar_type(self.n_pages))  # few bits sort faster
        order = np.argsort(places, kind="stable")
        rows, places = rows.take(pa.array(order)).combine_chunks(), places[order]
        starts = self._starts(rows)
        keys, rest = self._parted(rows, starts)
        edges = zip(*(np.searchsorted(places, numbers, side).tolist() for side in ("left", "right")), strict=True)
        for number, (begin, end) in zip(numbers.tolist(), edges, strict=True):
            if begin == end:
                self._blocks.delete(PAGE, number)  # I2
                continue
            first, last = np.searchsorted(starts, (begin, end)).tolist()
            data = _together(keys.slice(first, last - first), rest.slice(begin, end - begin))
            self.n_bytes += len(data)
            self._blocks.put(PAGE, number, data)

    def _grown(self, numbers: Any, rows: Any) -> tuple[Any, Any]:
        """Divide pages that are too large on average; the pages to write then, and all their rows.

        If only some are written, then no more are divided than that: the others follow.
        """
        wanted = pages_for(self.n_bytes + rows.nbytes)
        there = set(numbers.tolist())
        if len(there) < self.n_pages:
            wanted = min(wanted, self.n_pages + len(there))
        while self.n_pages < wanted:
            old = self.n_pages - (1 << (self.n_pages.bit_length() - 1))
            if old not in there:
                rows = pa.concat_tables([rows, self.load([old])])
            there |= {old, self.n_pages}
            self.n_pages += 1
        return np.array(sorted(there), np.int64), rows

    def _parted(self, rows: Any, starts: Any) -> tuple[Any, Any]:
        """Each key once, with how many rows it has; and the other columns of all rows."""
        counts = np.diff(np.append(starts, rows.num_rows)).astype(np.int32)
        keys = rows.select(self._keys.names[:-1]).take(pa.array(starts))
        keys = keys.append_column(self._keys.field(COUNT), pa.array(counts))
        return one_batch(keys), one_batch(rows.select(self._rest.names))

    def _starts(self, rows: Any) -> Any:
        """Where keys begin: another hash, or, among the very few that share one, another key."""
        hashes = rows.column(HASH).to_numpy()
        begins = np.ones(len(hashes), np.bool_)
        np.not_equal(hashes[1:], hashes[:-1], out=begins[1:])
        for name in self._keys.names[:-2]:
            begins[1:] |= changes_within(single(rows.column(name)))
        return np.flatnonzero(begins)


def pages_for(n_bytes: int) -> int:
    """How many pages a shard should have: few large ones at first, and from twice as many bytes on small ones."""
    beyond = n_bytes - FEW * LARGE * SIZE
    return min(n_bytes // SIZE, max(n_bytes // (LARGE * SIZE), 2 * beyond // SIZE)) + 1


def _of_keys(keys: Any, rest: Any, wanted: Any) -> tuple[Any, Any]:
    """The keys with some hashes, and the other columns of their rows."""
    found = np.isin(keys.column(HASH).to_numpy(), wanted)
    rows = np.repeat(found, keys.column(COUNT).to_numpy())
    # Arrow asks every piece of every column about the rows to leave out; of one piece it just takes what is left
    parts = ((keys, found), (rest, rows))
    return tuple(part.combine_chunks().take(pa.array(np.flatnonzero(each))) for part, each in parts)


def _length(data: bytes) -> int:
    if len(data) < LENGTH.size:
        raise FormatError(f"a page of the state of a stream is damaged: it has {len(data)} bytes")
    length: int = LENGTH.unpack_from(data)[0]
    return length


def _together(keys: Any, rest: Any) -> bytes:
    first = keys.serialize()
    return b"".join((LENGTH.pack(first.size), first, rest.serialize()))
