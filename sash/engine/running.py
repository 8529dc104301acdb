"""Runs: one window and its aggregates over sorted rows of any number of keys, batch after batch.

    batch      columns sorted by key and order          tails: the rows that are still needed, and the new ones
      |            `--> framing: which rows             windows/framing at rows, windows/grids at instants
      v                   `--> structure: what over them      one kernel call for all keys of a batch
    answered   the rows, or instants, whose windows are complete

Splitting law: however the sorted rows are cut into batches, the answers are the same bytes. The reasons: frames do
not depend on the cut; the sequence of inserts, evictions and queries follows from the frames alone; and rings
grow when they are full, earlier only where their size decides no answer (structures.PLAIN).

What is carried from one batch to the next is bounded by the longest window (and the lag), not by the largest key: the
partials inside the algorithm, the order values of the rows in the window, and the columns of rows that
no window has taken in yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sash.algebra.aggregate import Aggregate
from sash.compiling.jit import explaining, is_enabled
from sash.engine import snapshot
from sash.engine.batches import Answered, Batch, Inputs, prepared
from sash.engine.binding import as_aggregate
from sash.engine.choosing import Choice
from sash.engine.columns import Column
from sash.engine.groups import Group, framing_of, groups_of, too_short
from sash.engine.structures import Structure
from sash.engine.tasks import tasks_of
from sash.engine.whole import answer_whole
from sash.errors import DeclarationError, FormatError
from sash.windows.bounds import Bounds
from sash.windows.framing import Framed, Rows

LARGE, AT_ONCE = 1 << 14, 8  # rows of a window that is large; how many times as many it is given room for

__all__ = ["Answered", "Batch", "Run", "answer_whole"]


class Run:
    """A window and its aggregates over batches of sorted rows; see the header for what it promises."""

    def __init__(
        self, bounds: Bounds, aggregates: Mapping[str, Any], algorithm: str | None = None, *, room: int = 1
    ) -> None:
        """`room`: rows that windows are known to hold, which saves moving them from ring to ring."""
        if not aggregates:
            raise DeclarationError("no aggregate given")
        self._bounds = bounds
        self._aggregates: dict[str, Aggregate] = {name: as_aggregate(each) for name, each in aggregates.items()}
        self._algorithm, self._room = algorithm, room
        self._n_answered = 0
        self._inputs: Inputs | None = None  # types are known with the first batch; so is all that follows from them
        self._framing: Any = None
        self._groups: list[tuple[Group, Any]] = []

    @property
    def choices(self) -> list[Choice]:
        """The algorithms chosen, and why; known with the first batch."""
        return [group.choice for group, _ in self._groups]

    @property
    def begin(self) -> int:
        """No later window begins before this row."""
        return 0 if self._inputs is None else int(self._framing.begin)

    @property
    def n_inserted(self) -> int:
        """How many rows all aggregates have taken in; if one of them raised, the number of the row at fault."""
        return min((structure.end for _, structure in self._groups), default=0)

    def push(self, batch: Batch) -> Answered:
        """Take more rows; answers for those whose windows are complete."""
        batch = prepared(batch, self._bounds, self._aggregates.values())
        if self._inputs is None:
            self._begin(Inputs.like(batch))
        assert self._inputs is not None
        self._inputs.append(batch)
        return self._answer(self._inputs, is_last=False)

    def finish(self) -> Answered:
        """Answer what still waits: no more rows will come."""
        if self._inputs is not None:
            return self._answer(self._inputs, is_last=True)
        instants = np.empty(0, np.int64) if self._bounds.is_grid else None
        return Answered(np.empty(0, np.int64), instants, [Column(np.empty(0), None) for _ in self._aggregates])

    def snapshot(self) -> bytes:
        """Write everything carried from one batch to the next; between pushes."""
        if self._inputs is None:
            return snapshot.seal([self._signature, None, None, None, 0])
        structures = [structure.dump() for _, structure in self._groups]
        return snapshot.seal([self._signature, self._inputs.dump(), self._framing.dump(), structures, self._n_answered])

    def restore(self, data: bytes) -> None:
        """Go on where a run of the same window and aggregates was when it wrote `data`."""
        signature, inputs, framing, structures, n_answered = snapshot.unseal(data, n_parts=5)
        if signature != self._signature:
            raise FormatError(f"this snapshot is of {signature}, but the run is of {self._signature}")
        self._inputs, self._n_answered = None, n_answered
        if inputs is None:
            return
        self._begin(Inputs.load(inputs))
        self._framing.load(framing)
        for (_, structure), dumped in zip(self._groups, structures, strict=True):
            structure.load(dumped)

    @property
    def _signature(self) -> list[Any]:
        """What must be the same for a snapshot to be understood."""
        aggregates = [[name, repr(each)] for name, each in self._aggregates.items()]
        return [repr(self._bounds), aggregates, self._algorithm, "compiled" if is_enabled() else "interpreted"]

    def _begin(self, inputs: Inputs) -> None:
        """Make what depends on the types of the columns. Any later batch may bring the first null."""
        dtype = inputs.order_dtype
        tasks = tasks_of(inputs.columns, self._aggregates)
        self._inputs, self._framing = inputs, framing_of(self._bounds, dtype, inputs)
        groups = groups_of(
            tasks, self._bounds, has_nulls=True, is_exact=dtype.kind == "i", forced=self._algorithm
        )  # fmt: skip
        with explaining([task.monoid.name for task in tasks]):
            self._groups = [(group, group.structure()) for group in groups]
        self._reserve(self._room)

    def _reserve(self, rows: int) -> None:
        for _, structure in self._groups:
            if isinstance(structure, Structure):
                structure.reserve(rows)

    def _answer(self, inputs: Inputs, *, is_last: bool) -> Answered:
        framed = self._framing.take(inputs.rows, is_last=is_last)
        if len(framed.frames.starts):
            self._reserve(expected(self._bounds, inputs.rows, framed.frames.starts[-1], framed.frames.ends[-1]))
        answers = self._answers(inputs, framed)
        begin = self._framing.begin
        columns_before = begin if self._framing.reads_columns else max(begin, self.n_inserted)
        inputs.forget(order_before=self._framing.needed, columns_before=columns_before)
        first = self._n_answered
        self._n_answered += framed.n
        rows = np.arange(first, self._n_answered) if framed.rows is None else framed.rows
        return Answered(rows, framed.instants, answers)

    def _answers(self, inputs: Inputs, framed: Framed) -> list[Column]:
        tasks, is_short = tasks_of(inputs.columns, self._aggregates), too_short(framed.answered, self._bounds.min_rows)
        answers: dict[int, Column] = {}
        with explaining([task.monoid.name for task in tasks]):
            for group, structure in self._groups:
                results = structure.results(framed.n)
                structure.take(group.columns(tasks, inputs.n_rows - inputs.base), inputs.base, framed, results)
                answers |= dict(group.answers(results, is_short))
        return [answers[place] for place in range(len(tasks))]


def expected(bounds: Bounds, rows: Rows, start: int, end: int) -> int:
    """The rows of a window when it is as long as it gets, guessed from one that may still grow; 1: not large.

    Rings double when they are full, and fresh memory costs more than the rows that go there: so a large ring grows
    by as much as it will need, up to eight times at once.
    """
    size = int(end - start)
    if size < LARGE:
        return 1
    limits = [] if bounds.rows is None else [bounds.rows]
    if bounds.span is not None and rows.base <= start < end:
        passed = rows.order[end - 1 - rows.base] - rows.order[start - rows.base]
        limits += [int(size * (bounds.span / passed))] if passed > 0 else []
    return min(AT_ONCE * size, *limits) if limits else 1
