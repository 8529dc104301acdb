"""A window in a key-value store: a few megabytes of memory, whatever its size.

log_mta and amta look at the ends of their levels and nowhere else, so the ends are in memory and the
rest is in a store (engine/residence). The algorithms are those of windows in memory; only where a node
lies is different. Between two visits to the store an operation runs as it would in memory.

`flush()` makes the window durable: one atomic write of what is not in the store yet and of a record
that names everything. A process that dies loses what came after the last flush, and nothing else.

    record  "SASH" header | algorithm and aggregates | registers | scratch cells | levels and epochs

Each opening of a window begins an epoch, kept in the record and in every chunk: a second process that
opens a window takes it over, and the first is told so when it flushes.
"""

from __future__ import annotations

from functools import lru_cache
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from sash.aggregators import amta, find, log_mta
from sash.aggregators.contract import END, OLDEST, Algorithm, State, View
from sash.aggregators.levels import N_LEVELS, Levels, Place, in_two_rings
from sash.aggregators.policy_search import N_ROWS, N_SCRATCH, Search
from sash.algebra.monoid import Monoid, ungraded
from sash.compiling.cells import Cells
from sash.compiling.jit import entry, interpreted
from sash.engine.background import Background
from sash.engine.binding import Bound
from sash.engine.building import Built, build, nested, unnested
from sash.engine.events import Folder, reader
from sash.engine.in_order import event_of, inserter
from sash.engine.packing import Packing
from sash.engine.policing import N_SAMPLED, asking, not_monotone, searcher, visible_to
from sash.engine.residence import Residence, Shape, Sizes
from sash.engine.snapshot import arrays_of, dump_pool, load_pool, seal, unseal
from sash.errors import DeclarationError, EmptyWindowError, FormatError, StoreAccessError, UnsupportedError
from sash.stores.contract import Store
from sash.windows.policies import Policy, as_policy

KINDS = {"amta": (amta.n_definite, amta.written_at), "log_mta": (log_mta.n_whole, log_mta.written_at)}
FEW = 32  # evictions that are cheaper one by one


class Asked(NamedTuple):
    """A policy that was asked, and all it takes to ask it again."""

    policy: Policy
    visible: tuple[str | None, ...]
    search: Search
    scratch: Any
    answers: Any


class StoredAggregator:
    """A window over events in order of arrival, in a store."""

    def __init__(
        self, algorithm: str, bound: Bound, store: Store, name: str, *, sizes: Sizes, owns_store: bool = False
    ) -> None:
        _require_name(name)
        self._bound, self._name, self._owns_store = bound, name, owns_store
        self._background = Background(store)
        self._rows = bound.rows()
        self._columns = nested([row.columns for row in self._rows])
        self._lay_out(find(algorithm), sizes)
        self._policy: Policy | None = None
        self._visible: tuple[str | None, ...] = ()
        self._asked: Asked | None = None
        self._n_insertable = self._n_evictable = 0
        self._epoch = self._open()

    def _lay_out(self, algorithm: Algorithm, sizes: Sizes) -> None:
        """Make the operations and the state of an empty window."""
        if min(sizes) < 1:
            raise DeclarationError(f"buffer and cache need room for an element at least, got {sizes}")
        bound = self._bound
        probe = build(algorithm, bound.monoids, bound.is_compiled, ())
        packing = Packing(bound.monoids, probe.cells.allocate(1), is_compiled=bound.is_compiled, largest=min(sizes))
        rings = sizes.rings(packing.n_items)
        self._built = build(algorithm, bound.monoids, bound.is_compiled, (("where", _two_rings(*rings)),))
        shape = Shape(algorithm.shape.n_scratch, *KINDS[algorithm.card.name])
        self._residence = Residence(self._background, _prefix(self._name), packing, sizes, shape)
        self._packing, self._n_levels = packing, 4
        at: Any = [0] * algorithm.shape.n_registers
        links: Any = [0] * N_LEVELS
        if bound.is_compiled:
            at, links = np.array(at, np.int64), np.array(links, np.int64)
        self._state = State(self._new_pool(), links, at)
        self._results = self._built.cells.results(1)

    # --- one window --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self._state.at[END] - self._state.at[OLDEST])

    def __repr__(self) -> str:
        aggregates = ", ".join(monoid.name for monoid in self._bound.monoids)
        card = self._built.algorithm.card
        return f"<{card.name} over {aggregates}: {len(self)} elements, {self._name!r} in {self._background.store.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def slide_by(self, policy: Policy, visible: tuple[str | None, ...]) -> None:
        """Have a policy enforced after each event from now on; which aggregates it sees, and by which names."""
        self._policy, self._visible = policy, visible

    def insert(self, *values: Any, **named: Any) -> None:
        """Append one event, None for null; several values if the aggregates take several."""
        event = event_of(self._bound, values, named)
        self._make_room(1)
        for row in self._rows:
            row.put(event)
        self._built.fifo.insert(self._state, self._columns, 0)
        self._n_insertable -= 1
        if not self._packing.item_size:
            self._require_codec()
        if self._policy is not None:
            self.bulk_evict_while(self._policy)

    def evict(self) -> None:
        """Remove the oldest event."""
        if len(self) == 0:
            raise EmptyWindowError("evict() on an empty window")
        if self._n_evictable <= 0:
            self._warm(int(self._state.at[OLDEST]) + 1)
        self._built.fifo.evict(self._state)
        self._n_evictable -= 1

    def query(self) -> Any:
        """Aggregate everything in the window; null (None) if it holds nothing to aggregate."""
        if len(self) == 0:
            return self._bound.answer_of_nothing()
        self._built.cells.lower(self._results, 0, self._state.pool, self._built.fifo.query(self._state))
        return self._bound.answer(self._results)

    def bulk_insert(self, values: Any) -> None:
        """Append many events: values, tuples of values, an array, or a dict of arrays by column."""
        if self._policy is not None or not self._bound.is_compiled:
            for event in self._bound.events(values):
                self.insert(*event)
            return
        n, columns = self._bound.many(values)
        begin = 0
        while begin < n:
            self._make_room(n - begin)
            end = min(n, begin + self._n_insertable)
            inserter(self._built)(self._state, columns, begin, end)
            self._n_insertable -= end - begin
            begin = end

    def bulk_evict(self, count: int) -> None:
        """Remove the oldest `count` events."""
        if not 0 <= count <= len(self):
            raise EmptyWindowError(f"cannot evict {count} of {len(self)} events")
        self._evict_to(int(self._state.at[OLDEST]) + count)

    def _evict_to(self, element: int) -> None:
        count = element - int(self._state.at[OLDEST])
        if count <= min(FEW, self._n_evictable):
            for _ in range(count):
                self.evict()
            return
        if element < self._state.at[END]:
            self._residence.warm(self._state, element)
        assert self._built.fifo.evict_to is not None
        self._built.fifo.evict_to(self._state, element)
        self._n_evictable = self._residence.n_evictable(self._state)
        self._n_insertable = 0  # levels without living nodes must keep step: see to it before the next insertion

    def bulk_evict_while(self, policy: Any) -> None:
        """Remove at once what a policy over the aggregates of the window gives up."""
        if len(self) == 0:
            return
        wanted = as_policy(policy)
        visible = self._visible if wanted is self._policy else visible_to(wanted, self._bound)
        total = self._built.fifo.query(self._state)
        with asking(wanted, visible):
            asked = self._asked = self._ask(wanted, visible)
            given = self._state, self._state.pool, total, asked.scratch, asked.answers
            stays = int(asked.search.find(*given))
            is_sample = self._state.at[END] <= N_SAMPLED
            if is_sample and asked.search.census(*given) < 0:
                raise not_monotone(wanted, len(self))
        self._evict_to(stays)

    def _ask(self, policy: Policy, visible: tuple[str | None, ...]) -> Asked:
        """The search of windows in memory, run step by step: a node may have to be read first.

        That of the policy that was asked last is kept: to make one takes longer than to search.
        """
        if self._asked is not None and self._asked[:2] == (policy, visible):
            return self._asked
        levels = self._built.algorithm.levels
        assert levels is not None
        _, top, n_nodes = levels(interpreted)

        def place(s: State, level: int, node: int) -> int:
            return self._residence.visit(s, int(level), int(node), self._residence.n_cells(self._n_levels))

        named = list(zip(visible, self._bound.monoids, strict=True))
        search = searcher(Levels(place, top, n_nodes), _callable(self._built), named, policy, interpreted)
        return Asked(policy, visible, search, self._built.cells.allocate(N_SCRATCH), self._built.cells.results(N_ROWS))

    # --- memory ------------------------------------------------------------------------------------

    def _make_room(self, n: int) -> None:
        """See to room for some of n elements: in the tails, and for the levels they may make."""
        if self._n_insertable <= 0:
            self._residence.spill(self._state)
            self._n_insertable = self._residence.n_insertable(self._state)
            self._warm(int(self._state.at[OLDEST]))
        wanted = (len(self) + min(n, self._n_insertable)).bit_length() + 2
        if wanted > self._n_levels:
            self._n_levels = wanted
            pool = self._new_pool()
            for new, old in zip(arrays_of(pool), arrays_of(self._state.pool), strict=True):
                new[: len(old)] = old
            self._state = self._state._replace(pool=pool)

    def _warm(self, element: int) -> None:
        if element < self._state.at[END]:
            self._residence.warm(self._state, element)
        self._n_evictable = self._residence.n_evictable(self._state)

    def _new_pool(self) -> Any:
        return self._built.cells.allocate(self._residence.n_cells(self._n_levels) + self._packing.n_items)

    def _require_codec(self) -> None:
        """Find out at the first element, not at the first flush, that it cannot be written to bytes."""
        if self._state.at[END] == 1:
            self._packing.encode(self._state.pool, self._residence.visit(self._state, 0, 0, 0))

    # --- durability --------------------------------------------------------------------------------

    def flush(self) -> None:
        """Make the window durable as it is now, all or nothing."""
        self._require_ours()
        waiting = self._background.waiting()
        chunks = {**waiting, **self._residence.unwritten(self._state)}
        self._background.store.write({**chunks, self._record_key: self._record()})
        self._background.arrived(waiting)
        self._residence.flushed(self._state)

    def close(self) -> None:
        """Flush, delete what has left the window, and let the store go."""
        self.flush()
        self._residence.close()
        self._background.store.put_many({self._record_key: self._record()})
        self._background.close()
        if self._owns_store:
            self._background.store.close()

    @property
    def _record_key(self) -> bytes:
        return _prefix(self._name) + b"record"

    def _record(self) -> bytes:
        n_scratch = self._built.algorithm.shape.n_scratch
        pools = unnested(_cut(self._state.pool, n_scratch), len(self._bound.monoids))
        cells = [dump_pool(pool, monoid) for pool, monoid in zip(pools, self._bound.monoids, strict=True)]
        return seal([self._signature(), [int(x) for x in self._state.at], cells, self._residence.dump()])

    def _signature(self) -> list[Any]:
        form = "compiled" if self._bound.is_compiled else "interpreted"
        aggregates = [[monoid.name, str(ungraded(monoid).state)] for monoid in self._bound.monoids]
        return [self._built.algorithm.card.name, form, self._packing.n_items, *aggregates]

    def _open(self) -> int:
        """Find the window in the store, or begin one; take it over from whoever had it."""
        found = self._background.store.get_many([self._record_key])[0]
        if found is not None:
            self._read_record(found)
        epoch = self._residence.begin_epoch(self._state)
        self._background.store.put_many({self._record_key: self._record()})
        self._n_insertable = 0
        return epoch

    def _read_record(self, data: bytes) -> None:
        signature, registers, cells, levels = unseal(data, n_parts=4)
        if signature != self._signature():
            raise FormatError(f"the window {self._name!r} is of {signature}, wanted {self._signature()}")
        for register, value in enumerate(registers):
            self._state.at[register] = value
        self._n_insertable = 1
        self._make_room(1)
        _fill(self._state.pool, cells, self._bound.monoids, self._built.algorithm.shape.n_scratch)
        self._residence.load(self._state, levels)
        self._warm(int(self._state.at[OLDEST]))

    def _require_ours(self) -> None:
        """Refuse to write into a window that someone else has opened since."""
        data = self._background.store.get_many([self._record_key])[0]
        epochs = unseal(data, n_parts=4)[3][1] if data is not None else []
        if not epochs or epochs[-1][0] != self._epoch:
            raise StoreAccessError.refused(
                self._background.store.url,
                f"flush the window {self._name!r}",
                found="another process has opened it since",
                remedy="Have one process write to a window; open it again to take it over.",
            )

    # --- checks ------------------------------------------------------------------------------------

    def check_invariants(self, lifted: list[Any]) -> None:
        """Check the invariants of the algorithm, given the partial of every element so far inserted."""
        spare = self._residence.n_cells(self._n_levels)
        first = unnested(self._state.pool, len(self._bound.monoids))[0]
        read = reader(first, is_compiled=self._built.is_compiled)
        view = View(self._state, read, Folder(self._bound.monoids[0], lifted))
        view.place = lambda level, node: self._residence.visit(self._state, level, node, spare)
        self._built.algorithm.check(view)

    def snapshot(self) -> bytes:
        """Not for windows in a store, whose data are there already."""
        raise UnsupportedError("a window in a store has no snapshot: flush() makes it durable under its name")


@lru_cache(maxsize=64)
def _two_rings(n_head: int, n_tail: int) -> Place:
    return in_two_rings(n_head, n_tail)


@lru_cache(maxsize=256)
def _callable(built: Built) -> Cells:
    """The cells of a window as Python can call them."""
    if not built.is_compiled:
        return built.cells
    cells = built.cells
    return cells._replace(combine=entry(cells.combine), transfer=entry(cells.transfer))


def _prefix(name: str) -> bytes:
    return b"sash/" + name.encode() + b"/"


def _require_name(name: Any) -> None:
    if not isinstance(name, str) or not name or len(name.encode()) > 255:
        raise DeclarationError(f"a window in a store needs a name of 1 to 255 bytes, got {name!r}")


def _cut(pool: Any, n: int) -> Any:
    return tuple(_cut(part, n) for part in pool) if isinstance(pool, tuple) else pool[:n]


def _fill(pool: Any, dumped: list[Any], monoids: tuple[Monoid, ...], n: int) -> None:
    """Put the scratch cells of a record into a pool."""
    cut = _cut(pool, n)
    for part, values, monoid in zip(unnested(cut, len(monoids)), dumped, monoids, strict=True):
        load_pool(part, values, monoid)
    for target, source in zip(arrays_of(pool), arrays_of(cut), strict=True):
        target[:n] = source
