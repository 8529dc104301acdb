"""Chunks: the rows of a key that has very many, in blocks of their own, with a partial for each.

    chunk 0   chunk 1   chunk 2  ...  chunk n-2   chunk n-1          one key, in order
    |- front: rows -|   |- middle: partials -|   |- back: rows -|

Of a window that begins in a front chunk and ends in a back one, only these are read; of those in between their
partials are enough. Fronts are where the windows of the rows at hand begin; backs are where those rows are, nearly
always the last chunk, or, for a late row, the one it lands in. So a row costs a constant number of chunks, however
long the window is. The list of all chunks with their partials is the spine, a block too.

    C1  chunks are in order, and no time is in two of them
    C2  a chunk that has not been changed since it was written has the partials of its rows, but for the last
    C3  rows before the first chunk are out of reach, or in `base`: partials for windows of everything
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sash.algebra import codec
from sash.engine import snapshot
from sash.frames.answering import Reader, arrange
from sash.frames.arrow_tables import Source
from sash.streams.blocks import read_rows, read_table, write_rows, write_table
from sash.streams.bridges import Bridge
from sash.streams.contract import CHUNK, Blocks
from sash.streams.middles import Middles
from sash.streams.plans import Plan, microseconds
from sash.streams.timing import times_of

if TYPE_CHECKING:
    from sash.frames.extents import Extent

SPINE = "spine"
NEW = "__sash_new"  # the number of a row among those that have just come; -1 for others
ROWS = 2_048  # of a chunk, unless more have the same time
MOST = 1 << 32  # chunks of a key, over its life


@dataclass(frozen=True)
class Chunk:
    """Some rows that follow one another."""

    number: int
    n: int
    first: int  # time
    last: int
    partials: tuple[bytes, ...] | None = None  # for each spec
    rows: Any = field(default=None, compare=False)  # if they were read, or are new


class Cut:
    """Which chunks a spec needs as rows, and which as partials: chunks before `front` not at all."""

    def __init__(self, front: int, middle: int, back: int) -> None:
        self.front, self.back = front, back
        self.middle = min(max(middle, front), back)


class Chunks:
    """The chunks of one key."""

    def __init__(self, plan: Plan, blocks: Blocks, number: int, bridges: Sequence[Bridge]) -> None:
        self._plan, self._blocks, self.number, self._bridges = plan, blocks, number, bridges
        self.key: Any = None  # the columns of `by`, in one row
        self.chunks: list[Chunk] = []
        self._base: list[Any] = [None] * len(bridges)  # for each spec of everything: rows, first time, partial
        self._middles = [Middles() for _ in bridges]
        self._next = 0
        self._written: set[int] = set()
        self._loaded: Any = None

    # --- bytes --------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read the spine."""
        data = self._blocks.get(SPINE, self.number)
        assert data is not None, "a spine is written before it is listed"
        key, self._next, base, chunks, middles = snapshot.unseal(data, n_parts=5)
        self._middles = [Middles(each) for each in middles]
        self.key = read_table(key)
        self._base = [None if each is None else tuple(each) for each in base]
        self.chunks = [
            Chunk(number, n, first, last, None if partials is None else tuple(partials))
            for number, n, first, last, partials in chunks
        ]
        self._written = {each.number for each in self.chunks}
        self._loaded = (list(self.chunks), list(self._base))

    def save(self) -> None:
        """Write what has changed."""
        if self._loaded == (self.chunks, self._base):
            return
        for place, each in enumerate(self.chunks):
            if each.partials is None and place < len(self.chunks) - 1:  # C2
                each = self.chunks[place] = self._with_partials(each)
            if each.number not in self._written:
                rows = each.rows.select(self._plan.kept_schema.names)
                self._blocks.put(CHUNK, self._block(each.number), write_rows(rows))
        there = {each.number for each in self.chunks}
        for number in self._written - there:
            self._blocks.delete(CHUNK, self._block(number))
        if self.is_empty:
            self._blocks.delete(SPINE, self.number)
            return
        chunks = [[each.number, each.n, each.first, each.last, each.partials] for each in self.chunks]
        middles = [each.dump() for each in self._middles]
        self._blocks.put(
            SPINE, self.number, snapshot.seal([write_table(self.key), self._next, self._base, chunks, middles])
        )

    def _with_partials(self, chunk: Chunk) -> Chunk:
        rows = self._rows(chunk)
        return replace(chunk, partials=tuple(codec.encode(bridge.fold(rows)) for bridge in self._bridges), rows=rows)

    def _partial(self, chunk: Chunk, k: int) -> Any:
        partials = chunk.partials or self._with_partials(chunk).partials
        assert partials is not None
        return codec.decode(partials[k])

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left of the key."""
        return not self.chunks and not any(self._base)

    def _block(self, number: int) -> int:
        return self.number * MOST + number

    def _rows(self, chunk: Chunk) -> Any:
        if chunk.rows is not None:
            return chunk.rows
        data = self._blocks.get(CHUNK, self._block(chunk.number))
        assert data is not None, "a chunk is written before it is listed"
        rows = pa.Table.from_batches([read_rows(data, self._plan.kept_schema)])
        return rows.append_column(NEW, pa.array(np.full(rows.num_rows, -1)))

    def _read(self, first: int, stop: int) -> Any:
        """The rows of some chunks, kept at hand."""
        for place in range(first, stop):
            self.chunks[place] = replace(self.chunks[place], rows=self._rows(self.chunks[place]))
        return pa.concat_tables([each.rows for each in self.chunks[first:stop]]).combine_chunks()

    # --- rows in ------------------------------------------------------------------------------------

    def insert(self, new: Any) -> None:
        """Put rows where they belong; they come in order, and after rows they cannot be told from."""
        firsts = np.array([each.first for each in self.chunks[1:]], np.int64)
        places = np.searchsorted(firsts, times_of(new.column(self._plan.time)), "right")
        for place in np.unique(places).tolist()[::-1]:
            here = np.flatnonzero(places == place)
            rows = new.slice(int(here[0]), len(here))
            before = [self._read(place, place + 1)] if self.chunks else []
            self.replace(place, place + 1, pa.concat_tables([*before, rows]))

    def replace(self, first: int, stop: int, rows: Any) -> None:
        """Put other rows in the place of some chunks, cut anew."""
        rows = in_order(self._plan, rows)
        times = times_of(rows.column(self._plan.time))
        cuts, begin = [], 0
        while begin < len(times):
            end = begin + ROWS if len(times) - begin >= 2 * ROWS else len(times)
            end = int(np.searchsorted(times, times[end - 1], "right"))  # C1
            cuts.append((begin, end))
            begin = end
        made = [
            Chunk(self._next + k, end - begin, int(times[begin]), int(times[end - 1]), None,
                  rows.slice(begin, end - begin).combine_chunks())
            for k, (begin, end) in enumerate(cuts)
        ]  # fmt: skip
        self._next += len(made)
        for each in self._middles:
            each.change(chunk.number for chunk in self.chunks[first:stop])
        self.chunks[first:stop] = made

    # --- answers out --------------------------------------------------------------------------------

    def answers(self, since: int) -> tuple[Any, dict[str, Any]]:
        """All rows from a time on, with their answers by name; if there are none, no answers."""
        first = self._first_at(since)
        if first == len(self.chunks):
            return self._plan.kept_schema.empty_table(), {}
        rows = self._read(first, len(self.chunks))
        n_before = int(np.searchsorted(times_of(rows.column(self._plan.time)), since, "left"))
        n = rows.num_rows - n_before
        found: dict[str, Any] = {}
        for k, bridge in enumerate(self._bridges):
            answers = self._answers_of(k, bridge, since)
            found |= {name: each.slice(len(each) - n) for name, each in answers.items()}
        return rows.slice(n_before), found

    def _answers_of(self, k: int, bridge: Bridge, since: int) -> dict[str, Any]:
        extent = bridge.spec.window.extent
        assert extent is not None
        cut, base = self.cut(extent, since), self._base[k]
        if cut.middle == cut.back and base is None:
            return bridge.answers(self._read(cut.front, len(self.chunks)))
        middle = self.chunks[cut.middle : cut.back]
        partials = self._middles[k].of(bridge, middle, lambda each: self._partial(each, k)) if middle else []
        n, first = sum(each.n for each in middle), middle[0].first if middle else 0
        if base is not None:
            n, first, partials = n + base[0], base[1], [codec.decode(base[2]), *partials]
        front = self._read(cut.front, cut.middle) if cut.front < cut.middle else None
        return bridge.bridged(front, (n, first, partials), self._read(cut.back, len(self.chunks)))

    def _first_at(self, since: int) -> int:
        """The first chunk with rows at or after a time."""
        return int(np.searchsorted([each.last for each in self.chunks], since, "left"))

    def cut(self, extent: Extent, since: int) -> Cut:
        """Which chunks are needed for the windows of all rows from a time on."""
        back = self._first_at(since - microseconds(extent.lag))
        if extent.kind == "everything":
            return Cut(0, 0, back)
        ends = np.cumsum([each.n for each in self.chunks])
        fronts, middles = [], []
        if extent.length is not None:
            far = microseconds(extent.length) + microseconds(extent.lag)
            fronts.append(self._first_at(since - far))
            firsts = [each.first for each in self.chunks]
            middles.append(int(np.searchsorted(firsts, self.chunks[-1].last - far, "right")))
        if extent.rows is not None:
            n_before = int(ends[back - 1]) if back else 0
            fronts.append(int(np.searchsorted(ends, n_before - _n_before_row(extent), "right")))
            middles.append(int(np.searchsorted(ends, int(ends[-1]) - extent.rows, "right")) + 1)
        return Cut(min(max(fronts), back), max(middles), back)

    def put_back(self, since: int, rows: Any) -> None:
        """Put rows with other revision numbers in the place of all from a time on."""
        first = self._first_at(since)
        before = self._read(first, len(self.chunks))
        n_before = before.num_rows - rows.num_rows
        self.replace(first, len(self.chunks), pa.concat_tables([before.slice(0, n_before), rows]))

    # --- rows away ----------------------------------------------------------------------------------

    def forget(self, watermark: int) -> None:
        """Let go of chunks that no window to come begins in."""
        n_gone = min((self._n_out_of_reach(each, watermark) for each in self._plan.extents), default=0)
        for each in self.chunks[:n_gone]:
            self._base = [self._with_chunk(k, each) for k in range(len(self._bridges))]
            for middles in self._middles:
                middles.forget(each.number)
        self.chunks = self.chunks[n_gone:]

    def _n_out_of_reach(self, extent: Extent, watermark: int) -> int:
        """How many chunks, from the first on; those of windows of everything only have to be settled."""
        far = 0
        if extent.length is not None:
            far = microseconds(extent.length) + microseconds(extent.lag)
        n = self._first_at(watermark - far)
        if extent.rows is None:
            return n
        settled = self.chunks[: self._first_at(watermark)]
        ends = np.cumsum([each.n for each in settled])
        by_rows = int(np.searchsorted(ends, int(ends[-1]) - _n_before_row(extent), "right")) if settled else 0
        return max(n, by_rows) if extent.length is not None else by_rows

    def _with_chunk(self, k: int, chunk: Chunk) -> Any:
        """The base of a spec with one more chunk."""
        bridge, base = self._bridges[k], self._base[k]
        extent = bridge.spec.window.extent
        if extent is None or extent.kind != "everything":
            return None
        partial = self._partial(chunk, k)
        if base is None:
            return (chunk.n, chunk.first, codec.encode(partial))
        return (base[0] + chunk.n, base[1], codec.encode(bridge.joined(codec.decode(base[2]), partial)))


def _n_before_row(extent: Extent) -> int:
    """How many rows before a row are in its window at most: one less than `rows` if the row itself is in it."""
    assert extent.rows is not None
    return extent.rows - (extent.closed in ("both", "right"))


def in_order(plan: Plan, rows: Any) -> Any:
    """The rows of one key, sorted."""
    numbers = arrange(replace(plan.window, by=(), grid=None), Reader(Source(rows))).numbers
    return (rows if numbers is None else rows.take(pa.array(numbers))).combine_chunks()
