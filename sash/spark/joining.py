"""Joining: the last pass over ranges of hot keys. What earlier ranges have sent, then the rows of the range itself.

    fronts, middles, backs of earlier ranges    --> into a lane for each spec, unanswered
    own rows                                    --> through the lanes --> rows with answers

Slices that were not cut (cutting) are sorted here. If a window of the range may hold rows before it that none begins
with, their partials are a bridge (engine/bridging); else the rows before it are enough, and the lane is an ordinary one
that begins a little earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sash.engine.bridging import Bridged, Middle
from sash.engine.running import Run
from sash.engine.snapshot import unseal
from sash.errors import DataError
from sash.frames.answering import Arranged, Reader
from sash.frames.arrow_tables import Source
from sash.frames.measuring import measure
from sash.spark.passing import AtRows, Given, Lane
from sash.spark.reaching import HotKey, Reach
from sash.spark.slicing import BACK, FRONT, MIDDLE, OWN, Split, unpacked, with_constants
from sash.spark.sorting import Sorting

if TYPE_CHECKING:
    from sash.frames.spec import Spec


class Joining:
    """Records sorted by slot, stage and slice in, rows with answers out."""

    def __init__(self, specs: Sequence[Spec], split: Split, types: Mapping[str, Any]) -> None:
        self._specs, self._split, self._types = specs, split, types
        self._slot: int | None = None
        self._range: Range | None = None

    def push(self, batch: Any) -> Iterator[Any]:
        """Take a batch of records; rows with answers that have settled."""
        slots, stages, lanes, sources = (batch.column(k).to_pylist() for k in range(4))
        data = batch.column(5)
        for k, (slot, stage, lane, source) in enumerate(zip(slots, stages, lanes, sources, strict=True)):
            if slot != self._slot:
                yield from self.finish()
                self._slot = slot
                self._range = Range(self._specs, self._split, slot, self._types)
            assert self._range is not None
            yield from self._range.take(stage, lane, source, data[k].as_buffer())

    def finish(self) -> Iterator[Any]:
        """Answer what still waits."""
        if self._range is not None:
            yield from self._range.finish()
        self._range = None


class Range:
    """The rows of one range of one key."""

    def __init__(self, specs: Sequence[Spec], split: Split, slot: int, types: Mapping[str, Any]) -> None:
        self._hot, self._r = split.range_of(slot)
        self._lanes = [
            RangeLane(spec, self._hot, self._r, is_portable=able, is_sorted=split.is_cut)
            for spec, able in zip(specs, split.portable, strict=True)
        ]
        self._sorting = Sorting(specs[0].window.order_by, is_sorted=split.is_cut)
        self._rows = RowsOfRange(self._hot, specs[0].window.order_by)
        self._out = AtRows(types)
        self._n_rows = 0

    def take(self, stage: int, lane: int, source: int, data: Any) -> Iterator[Any]:
        """Take a record."""
        if stage != OWN:
            self._lanes[lane].keep(stage, source, data)
            return
        yield from self._answered(self._sorting.take(source, unpacked(data)))

    def _answered(self, sorted_rows: Iterator[Any]) -> Iterator[Any]:
        for each in sorted_rows:
            rows = with_constants(each, self._hot)
            self._n_rows += rows.num_rows
            self._out.take(rows)
            given = self._rows.take(rows)
            for lane in self._lanes:
                self._out.answer(lane, lane.push(given, self._rows))
            yield from self._out.settled()

    def finish(self) -> Iterator[Any]:
        """Answer what still waits; a range without rows of its own has nothing to answer."""
        yield from self._answered(self._sorting.finish())
        if self._n_rows == 0:
            return
        if self._hot.counts is not None and self._n_rows != self._hot.counts[self._r]:
            raise self._changed(f"it had {self._hot.counts[self._r]} rows and has {self._n_rows}")
        for each in self._lanes:
            self._out.answer(each, each.finish(self._rows))
        yield from self._out.settled()
        if self._r == self._hot.n_ranges - 1 and self._rows.last > self._hot.edges.values[-1]:
            raise self._changed(f"a row is later than {self._hot.last}")

    def _changed(self, what: str) -> DataError:
        return DataError(
            f"the table changed between the look at its keys and this job: in range {self._r} of {self._hot.key} "
            f"{what}. Cache it, or write it to a file first"
        )


class RowsOfRange:
    """Batches of one range as lanes take them, and names for their rows."""

    def __init__(self, hot: HotKey, order_by: Sequence[str]) -> None:
        self._hot, self._order_by = hot, order_by
        self._before: Any = None
        self.first_of_last = 0
        self.last: Any = None  # order value of the last row
        self._is_first = True

    def take(self, batch: Any) -> Given:
        """Read what windows need of a batch of own rows."""
        given = given_rows(batch, self._order_by[0], is_first=self._is_first)
        self._is_first, self._before, self.last = False, batch, given.rows.order.values[-1]
        return given

    def named(self, row: int) -> str:
        """Where an aggregate failed, as near as is known: in the last batch that was taken."""
        if self._before is None:
            return f"rows before a range of {self._hot.key}"
        times = self._before.column(self._order_by[0])
        shown = f"{self._order_by[0]} from {times[0].as_py()!r} to {times[len(times) - 1].as_py()!r}"
        return ", ".join(part for part in (self._hot.key, shown) if part)


def given_rows(batch: Any, order_by: str, *, is_first: bool) -> Given:
    """A batch with its order as numbers; only the first row of all begins the key."""
    reader, n = Reader(Source(batch)), batch.num_rows
    begins = np.zeros(n, np.bool_)
    begins[:1] = is_first
    return Given(reader, Arranged(None, begins, measure(order_by, reader.array(order_by)), n))


class RangeLane(Lane):
    """One spec on its way through a range, with what earlier ranges have sent."""

    def __init__(self, spec: Spec, hot: HotKey, r: int, *, is_portable: bool, is_sorted: bool) -> None:
        super().__init__(spec)
        self._hot, self._r, self._is_portable = hot, r, is_portable
        self._sent: dict[int, list[Any]] | None = {FRONT: [], MIDDLE: [], BACK: []}
        self._sorting = Sorting(spec.window.order_by, is_sorted=is_sorted)  # of fronts
        self._middle = Middle(0, 0, ())
        self._n_front = 0

    def keep(self, stage: int, source: int, data: Any) -> None:
        """Take what an earlier range has sent; sources come in order."""
        assert self._sent is not None
        if stage == FRONT:
            self._sent[FRONT].extend(self._sorting.take(source, unpacked(data)))
        else:
            self._sent[stage].append(unseal(data.to_pybytes(), n_parts=3) if stage == MIDDLE else unpacked(data))

    def push(self, given: Given, names: Any) -> Any:
        """Take a batch of own rows; before the first, what was sent."""
        if self._sent is not None:
            self._begin(names)
        if self.is_begun:  # the key has begun with what was sent, or with an earlier batch
            given = Given(given.reader, replace(given.rows, begins=np.zeros(given.rows.n, np.bool_)))
        return super().push(given, names)

    def _begin(self, names: Any) -> None:
        assert self._sent is not None
        self._sent[FRONT].extend(self._sorting.finish())
        sent = [*self._sent[FRONT], *self._sent[BACK]]
        self._n_front = sum(batch.num_rows for batch in self._sent[FRONT])
        middles = self._sent[MIDDLE]
        if middles:
            self._middle = Middle(sum(each[0] for each in middles), middles[0][1], [each[2] for each in middles])
        self._sent = None
        self.n_unasked = sum(batch.num_rows for batch in sent)
        for k, batch in enumerate(sent):
            self.enter(given_rows(batch, self.spec.window.order_by[0], is_first=k == 0), names)

    def new_run(self, aggregates: Mapping[str, Any]) -> Any:
        """A bridge if rows between front and back were combined; else an ordinary run."""
        if not Reach(self._hot, self.bound, is_portable=self._is_portable).has_middle(self._r):
            return Run(self.bound.bounds, aggregates, self.spec.forced, room=max(1, self.n_unasked))
        self.n_unasked -= self._n_front  # a bridge does not answer them in the first place
        return Bridged(self.bound.bounds, aggregates, self._n_front, self._middle)
