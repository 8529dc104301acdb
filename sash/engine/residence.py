"""Which nodes of a window in a store are in memory: the ends of each level, and nothing between.

    level   | dead | cache [FROM, TO)  |  in the store only  | tail [links, n) |
                    ^ oldest                                                  ^ end

New nodes come into the tail. When it holds `buffer` of them the oldest whole chunk goes to the store, beside the
work. Nodes about to be asked for lie in the cache; when fewer than half of `cache` are left there, the next
chunk is read, beside the work too. Only a jump, or a search, waits for the store.

Invariants, for each level with n nodes so far
    R1  the tail begins with a chunk, at links[level], and holds all nodes after that
    R2  the cache begins and ends with a chunk, before the tail or where it begins
    R3  a living chunk before the tail is in the store, or on its way
    R4  after `warm`: the first whole node of the level and the two after it are in cache or tail
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

from sash.aggregators.contract import END, OLDEST, State
from sash.aggregators.levels import N_LEVELS, first_whole
from sash.engine.background import Background
from sash.engine.packing import Packing
from sash.errors import FormatError, StoreError
from sash.stores import chunks

N_NEAR = 3  # nodes that the next step of any operation may look at, at either end of a level
UNBOUNDED = 1 << 62


class Sizes(NamedTuple):
    """How much of a level is in memory, in nodes."""

    buffer: int = 512
    cache: int = 512

    def rings(self, n_items: int) -> tuple[int, int]:
        """Sizes of the rings of a level, powers of two, if chunks have so many items."""
        return _power_above(self.cache + 2 * n_items + N_NEAR), _power_above(self.buffer + 2 * n_items + N_NEAR + 1)


class Shape(NamedTuple):
    """What the algorithm says of its levels."""

    n_scratch: int
    n_nodes: Callable[[int, int], int]  # (end, level): how many nodes the level has had
    written_at: Callable[[int, int], int]  # (level, node): END when the node was written


class Residence:
    """The levels of one window, in memory and in a store."""

    def __init__(self, background: Background, prefix: bytes, packing: Packing, sizes: Sizes, shape: Shape) -> None:
        self._background, self._prefix, self._packing = background, prefix, packing
        self._sizes, self._shape = sizes, shape
        self._n_head, self._n_tail = sizes.rings(packing.n_items)
        self._from, self._to = [0] * N_LEVELS, [0] * N_LEVELS
        self._durable = [0] * N_LEVELS  # nodes before this one are in the store as of the last flush
        self._deleted = [0] * N_LEVELS  # chunks before this one are gone from the store
        self._deletion: tuple[Future[None], list[int]] | None = None
        self.epochs: list[tuple[int, int]] = []  # (epoch, END when it began)

    # --- where nodes are ---------------------------------------------------------------------------

    def n_cells(self, n_levels: int) -> int:
        """Cells of a pool for so many levels."""
        return self._shape.n_scratch + n_levels * (self._n_head + self._n_tail)

    def _cell(self, level: int, node: int, *, in_tail: bool) -> int:
        base = self._shape.n_scratch + level * (self._n_head + self._n_tail)
        return base + self._n_head + (node & (self._n_tail - 1)) if in_tail else base + (node & (self._n_head - 1))

    def key(self, level: int, chunk: int) -> bytes:
        """Where a chunk of a level is in the store."""
        return self._prefix + bytes([level]) + chunk.to_bytes(8, "big")

    def _levels(self, s: State) -> range:
        """The levels that have a living node, and one more."""
        return range(min(N_LEVELS, int(s.at[END] - s.at[OLDEST]).bit_length() + 1))

    def _n_nodes(self, s: State, level: int) -> int:
        return max(self._shape.n_nodes(int(s.at[END]), level), 0)

    def _epoch(self, level: int, last: int) -> int:
        """The epoch in which a chunk was last written, given its last node."""
        written = self._shape.written_at(level, last)
        return max(epoch for epoch, began in self.epochs if began < written)

    # --- the tail: to the store --------------------------------------------------------------------

    def n_insertable(self, s: State) -> int:
        """How many elements may come before a tail is full."""
        rooms = (self._n_tail - (self._n_nodes(s, level) - int(s.links[level])) - 1 for level in self._levels(s))
        return min(room << level for level, room in enumerate(rooms))

    def spill(self, s: State) -> None:
        """Send whole chunks of full tails on their way (keeps R1 and R3); raises before anything has changed."""
        self._background.make_room()
        n_items = self._packing.n_items
        packed: dict[bytes, bytes] = {}
        for level in self._levels(s):
            n_nodes = self._n_nodes(s, level)
            while n_nodes - s.links[level] >= self._sizes.buffer + N_NEAR:
                begin = int(s.links[level])
                if begin + n_items > first_whole(int(s.at[OLDEST]), level):
                    packed.update([self._packed(s, level, begin, n_items)])
                    self._keep(s, level, begin)
                s.links[level] = begin + n_items
        self._skip_dead(s)
        if packed:
            self._background.put(packed)

    def _packed(self, s: State, level: int, begin: int, n: int) -> tuple[bytes, bytes]:
        key = self.key(level, begin // self._packing.n_items)
        cell = self._cell(level, begin, in_tail=True)
        return key, self._packing.pack(key, self._epoch(level, begin + n - 1), s.pool, cell, n)

    def _keep(self, s: State, level: int, begin: int) -> None:
        """A chunk that leaves the tail stays in the cache, if it comes next there and there is room."""
        n_items, head = self._packing.n_items, int(s.at[OLDEST] >> level)
        if begin <= head:
            self._from[level] = self._to[level] = begin
        first = max(self._from[level], head // n_items * n_items)
        if self._to[level] == begin and begin + n_items - first <= self._n_head:
            self._from[level], self._to[level] = first, begin + n_items
            _copy(s.pool, self._cell(level, begin, in_tail=False), self._cell(level, begin, in_tail=True), n_items)

    def _skip_dead(self, s: State) -> None:
        """Levels without a living node keep step, so that their tails never fill."""
        for level in range(len(self._levels(s)), N_LEVELS):
            n_items = self._packing.n_items
            s.links[level] = self._n_nodes(s, level) // n_items * n_items
            self._from[level] = self._to[level] = int(s.links[level])

    # --- the cache: from the store -----------------------------------------------------------------

    def n_evictable(self, s: State) -> int:
        """How many elements may leave before a level must be warmed again."""
        near = [
            ((self._to[level] - N_NEAR) << level) - int(s.at[OLDEST])
            for level in self._levels(s)
            if self._to[level] < s.links[level]
        ]
        return min(near, default=UNBOUNDED)

    def warm(self, s: State, oldest: int) -> None:
        """Have the nodes near an element in memory (restores R4), and the next ones on their way."""
        missing = [
            (level, chunk)
            for level in self._levels(s)
            for chunk in self._missing(s, level, first_whole(oldest, level), N_NEAR)
        ]
        self._load(s, missing)
        ahead = [
            self.key(level, chunk)
            for level in self._levels(s)
            if self._to[level] - (oldest >> level) < self._sizes.cache // 2
            for chunk in self._missing(s, level, first_whole(oldest, level), self._sizes.cache // 2)
        ]
        self._background.prefetch(ahead)

    def _missing(self, s: State, level: int, head: int, n: int) -> Iterator[int]:
        """Chunks of a node of a level and of those after it that are not in memory."""
        n_items, tail = self._packing.n_items, int(s.links[level])
        begin, end = head // n_items, -(-min(head + n, tail) // n_items)
        for chunk in range(begin, end):
            if not self._from[level] <= chunk * n_items < self._to[level]:
                yield chunk

    def _load(self, s: State, wanted: list[tuple[int, int]]) -> None:
        """Read chunks into the caches, which then reach to them or begin with them."""
        found = self._background.get([self.key(*each) for each in wanted])
        n_items = self._packing.n_items
        for (level, chunk), data in zip(wanted, found, strict=True):
            begin = chunk * n_items
            self._unpack(s, level, chunk, data, self._cell(level, begin, in_tail=False))
            if self._to[level] != begin:
                self._from[level] = begin
            self._to[level] = begin + n_items
            self._from[level] = max(self._from[level], self._to[level] - self._n_head)

    def _unpack(self, s: State, level: int, chunk: int, data: bytes | None, cell: int) -> None:
        key, last = self.key(level, chunk), (chunk + 1) * self._packing.n_items - 1
        if data is None:
            raise self._missing_from_store(key)
        self._packing.unpack(key, self._epoch(level, last), data, s.pool, cell, self._packing.n_items)

    def _missing_from_store(self, key: bytes) -> FormatError:
        return FormatError(f"the chunk {key!r} is missing from {self._background.store.url}")

    def visit(self, s: State, level: int, node: int, spare: int) -> int:
        """The cell of any living node; one that is nowhere in memory is read into a chunk of spare cells."""
        if node >= s.links[level] or self._from[level] <= node < self._to[level]:
            return self._cell(level, node, in_tail=node >= s.links[level])
        chunk, place = divmod(node, self._packing.n_items)
        self._unpack(s, level, chunk, self._background.get([self.key(level, chunk)])[0], spare)
        return spare + place

    # --- flush and open ----------------------------------------------------------------------------

    def unwritten(self, s: State) -> dict[bytes, bytes]:
        """The tails as chunks, the last of each level perhaps not full: what is not in the store yet."""
        n_items = self._packing.n_items
        packed: dict[bytes, bytes] = {}
        for level in self._levels(s):
            n_nodes, begin = self._n_nodes(s, level), int(s.links[level])
            while begin < n_nodes:
                n = min(n_items, n_nodes - begin)
                if begin + n > max(self._durable[level], first_whole(int(s.at[OLDEST]), level)):
                    packed.update([self._packed(s, level, begin, n)])
                begin += n_items
        return packed

    def flushed(self, s: State) -> None:
        """Everything is in the store; what has left the window may go from it."""
        for level in range(N_LEVELS):
            self._durable[level] = self._n_nodes(s, level)
        self._finish_deletion()
        if self._deletion is None:
            ends = [int(s.at[OLDEST] >> level) // self._packing.n_items for level in range(N_LEVELS)]
            begins = list(self._deleted)
            dead = (self.key(level, chunk) for level in range(N_LEVELS) for chunk in range(begins[level], ends[level]))
            self._deletion = self._background.delete(dead), ends

    def _finish_deletion(self, *, wait: bool = False) -> None:
        if self._deletion is None or not (wait or self._deletion[0].done()):
            return
        future, ends = self._deletion
        self._deletion = None
        if future.exception() is None:
            self._deleted = ends
        elif wait:
            raise StoreError(f"evicted chunks could not be deleted: {future.exception()}") from future.exception()

    def close(self) -> None:
        """Wait for deletions."""
        self._finish_deletion(wait=True)

    def dump(self) -> list[list[Any]]:
        """What must be known to find the nodes again."""
        return [list(self._deleted), [list(pair) for pair in self.epochs]]

    def load(self, s: State, dumped: list[Any]) -> None:
        """Find the nodes of a window that was flushed: tails now, heads by `warm`."""
        self._deleted, self.epochs = list(dumped[0]), [(int(epoch), int(began)) for epoch, began in dumped[1]]
        n_items, wanted = self._packing.n_items, []
        for level in self._levels(s):
            n_nodes = self._n_nodes(s, level)
            begin = max(n_nodes - N_NEAR - 1, 0) // n_items * n_items
            alive = int(s.at[OLDEST] >> level) // n_items * n_items
            s.links[level] = begin = max(begin, min(alive, n_nodes // n_items * n_items))
            self._from[level] = self._to[level] = begin
            wanted += [(level, chunk) for chunk in range(begin // n_items, -(-n_nodes // n_items))]
            self._durable[level] = n_nodes
        found = self._background.get([self.key(*each) for each in wanted])
        for (level, chunk), data in zip(wanted, found, strict=True):
            self._unpack_tail(s, level, chunk, data)
        self._skip_dead(s)

    def _unpack_tail(self, s: State, level: int, chunk: int, data: bytes | None) -> None:
        """A chunk at the end of a level may have been written again, longer, by a process that then died."""
        begin = chunk * self._packing.n_items
        n = min(self._packing.n_items, self._n_nodes(s, level) - begin)
        if begin + n <= first_whole(int(s.at[OLDEST]), level):
            return  # dead, and perhaps never written
        if data is None:
            raise self._missing_from_store(self.key(level, chunk))
        written = self._epoch(level, begin + n - 1)
        later = [epoch for epoch, _ in self.epochs if epoch >= written]
        epoch = min(later, key=lambda each: each != chunks.epoch_of(data))
        self._packing.unpack(self.key(level, chunk), epoch, data, s.pool, self._cell(level, begin, in_tail=True), n)

    def begin_epoch(self, s: State) -> int:
        """Count on: what is written from now on is told from what anyone wrote before."""
        epoch, end = (self.epochs[-1][0] + 1 if self.epochs else 1), int(s.at[END])
        epochs = [*self.epochs, (epoch, end)]
        ends = [began for _, began in epochs[1:]]
        self.epochs = [pair for pair, until in zip(epochs, ends, strict=False) if until > s.at[OLDEST]]
        self.epochs.append((epoch, end))
        return epoch


def _power_above(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _copy(pool: Any, to: int, source: int, n: int) -> None:
    if isinstance(pool, tuple):
        for part in pool:
            _copy(part, to, source, n)
    else:
        pool[to : to + n] = pool[source : source + n]
