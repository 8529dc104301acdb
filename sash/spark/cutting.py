"""Cutting: for windows longer than a range, what lies between its front and itself is combined before it is sent.

    slices of range q --> sorted --> own rows, packed           --> range q
                                 --> front and back, packed     --> each later range whose windows begin in q
                                 --> the middle, one partial    --> each later range whose windows hold it

Where no range has a middle, slices go to where they are needed at once (slicing), and nothing is cut. How far back
windows reach is in reaching.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sash.engine.batches import Batch
from sash.engine.bridging import Folds
from sash.engine.snapshot import seal
from sash.frames.answering import Arranged, Columns, Reader, bound_for
from sash.frames.arrow_tables import Source
from sash.frames.measuring import in_units, measure
from sash.spark.carrying import Memory
from sash.spark.reaching import HotKey, Reach
from sash.spark.slicing import BACK, FRONT, MIDDLE, MOST_BYTES, OWN, Records, Split, needed_columns, unpacked
from sash.spark.sorting import Sorting

if TYPE_CHECKING:
    from sash.frames.spec import Spec

SMALLEST = np.iinfo(np.int64).min


class Cutting:
    """Records of packed slices in, sorted by slot and slice; records for joining out."""

    def __init__(self, specs: Sequence[Spec], split: Split) -> None:
        self._specs, self._split = specs, split
        self._slot = -1
        self._done: set[int] = set()
        self._cutters: list[Cutter] = []
        self._sorting = Sorting(specs[0].window.order_by)
        self._records = Records(0)

    def push(self, batch: Any) -> Iterator[Any]:
        """Take a batch of records; batches of records."""
        slots, slices, data = batch.column(0).to_pylist(), batch.column(3).to_pylist(), batch.column(5)
        for k, (slot, slice_) in enumerate(zip(slots, slices, strict=True)):
            if slot != self._slot:
                self._close()
                self._begin(slot)
            self._take(self._sorting.take(slice_, unpacked(data[k].as_buffer())))
            if self._records.n_bytes > MOST_BYTES:
                yield self._sent()

    def finish(self) -> Iterator[Any]:
        """Say what is known of the last range now."""
        self._close()
        yield self._sent()

    def _sent(self) -> Any:
        batch, self._records = self._records.batch(), Records(self._records.number)
        return batch

    def _take(self, sorted_rows: Iterator[Any]) -> None:
        for rows in sorted_rows:
            self._records.add((self._slot, OWN, 0, self._slot), rows)
            for cutter in self._cutters:
                for r, stage, needed in cutter.take(rows):
                    self._records.add((self._slot - cutter.q + r, stage, cutter.lane, self._slot), needed)

    def _begin(self, slot: int) -> None:
        if slot in self._done:
            raise AssertionError(f"rows of slot {slot} are not together")
        self._done.add(slot)
        self._slot, (hot, q) = slot, self._split.range_of(slot)
        each = enumerate(zip(self._specs, self._split.portable, strict=True))
        self._cutters = [Cutter(spec, lane, hot, q, is_portable=able) for lane, (spec, able) in each]

    def _close(self) -> None:
        self._take(self._sorting.finish())
        for cutter in self._cutters:
            for r, partial in cutter.middles():
                self._records.add((self._slot - cutter.q + r, MIDDLE, cutter.lane, self._slot), partial)
        self._cutters = []


class Cutter:
    """One spec over the rows of one range: what later ranges need of them."""

    def __init__(self, spec: Spec, lane: int, hot: HotKey, q: int, *, is_portable: bool) -> None:
        self.lane, self.q = lane, q
        self._spec, self._hot, self._is_portable = spec, hot, is_portable
        self._memory = Memory()
        self._later = range(q + 1, hot.n_ranges)
        self._n_rows = 0
        self._bound: Any = None  # known with the first batch
        self._reach: Any = None
        self._folds: Folds | None = None
        self._orders: dict[int, Any] = {}  # of the first row of each middle

    def take(self, rows: Any) -> Iterator[tuple[int, int, Any]]:
        """Fronts and backs in a batch: later range, stage, rows."""
        if not self._later:
            return
        reader, name = Reader(Source(rows)), self._spec.window.order_by[0]
        order = measure(name, reader.array(name))
        arranged = Arranged(None, np.zeros(rows.num_rows, np.bool_), order, rows.num_rows)
        if self._reach is None:
            self._bound = bound_for(self._spec, reader, arranged, Columns(reader, arranged, self._memory))
            self._reach = Reach(self._hot, self._bound, is_portable=self._is_portable)
        numbers = in_units(order, self._bound.order_factor)
        n_null = 0 if order.valid is None else int((~order.valid).sum())  # they come first
        number = self._reach.number(self.q) + self._n_rows
        self._n_rows += rows.num_rows
        cuts = [self._reach.cut(r, numbers, n_null, number) for r in self._later]
        if any(cut.middle < cut.back for cut in cuts):
            if n_null:
                numbers = np.where(order.valid, numbers, SMALLEST if numbers.dtype.kind == "i" else -np.inf)
            self._fold(Columns(reader, arranged, self._memory), numbers, cuts)
        needed = rows.select(needed_columns(self._spec, self._spec.window.order_by[:1]))
        for r, cut in zip(self._later, cuts, strict=True):
            for stage, first, stop in ((FRONT, cut.front, cut.middle), (BACK, cut.back, cut.end)):
                if first < stop:
                    yield r, stage, needed.slice(first, stop - first)

    def _fold(self, columns: Columns, order: Any, cuts: Sequence[Any]) -> None:
        coded = {name: columns.code(aggregate).aggregate for name, aggregate in self._spec.aggregates}
        if self._folds is None:
            self._folds = Folds(self._bound.bounds, coded, len(cuts))
        for k, cut in enumerate(cuts):
            if cut.middle < cut.back:
                self._orders.setdefault(k, order[cut.middle].item())
        batch = Batch(np.zeros(len(order), np.bool_), order, columns.columns)
        self._folds.take(batch, [(cut.middle, cut.back) for cut in cuts])

    def middles(self) -> Iterator[tuple[int, Any]]:
        """The middles that lie in this range: later range, partial."""
        if self._folds is None:
            return
        for k, n_rows in enumerate(self._folds.n_rows):
            if n_rows:
                yield self.q + 1 + k, seal([n_rows, self._orders[k], self._folds.dump(k)])
