"""One spec over the rows of one key, some of them as rows and some as partials: the engine's side of a large key."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sash.engine.batches import Batch
from sash.engine.bridging import Bridged, Folds, Middle, partial_bytes
from sash.frames import carriers
from sash.frames.answering import Arranged, Coded, Columns, Decoder, Reader, answer, arrange, bound_for
from sash.frames.arrow_tables import Source
from sash.frames.casting import as_type
from sash.frames.measuring import Bound, in_units, measure
from sash.streams.plans import KEY, Plan
from sash.streams.timing import DAY

if TYPE_CHECKING:
    from sash.frames.spec import Spec

WIDEST = 1_024  # bytes of a partial: one is kept for each chunk
BRIDGED = ("rows", "range", "everything")


class Bridge:
    """A spec of a plan over one key."""

    def __init__(self, plan: Plan, k: int) -> None:
        self.spec: Spec = plan.specs[k]
        self._numbered: Spec = plan.numbered[k]
        self._plan = plan
        self._time_type = plan.schema.field(plan.time).type

    def answers(self, rows: Any) -> dict[str, Any]:
        """Over rows that are all there."""
        table = rows.select(self._plan.read).append_column(KEY, pa.array(np.zeros(rows.num_rows, np.int64)))
        answered = answer((self._numbered,), Source(table))
        return {name: self._typed(name, answered.column(name).combine_chunks()) for name, _ in self.spec.aggregates}

    def bridged(self, front: Any, middle: tuple[int, int, Sequence[Any]], back: Any) -> dict[str, Any]:
        """For back rows; of those in the middle there are their number, the first time, and partials."""
        given, bound, coded = self._read(back)
        n_front = 0 if front is None else front.num_rows
        n_rows, first, partials = middle
        between = Middle(n_rows, self._in_units(first, bound), partials)
        run = Bridged(bound.bounds, {name: each.aggregate for name, each in coded.items()}, n_front, between)
        if n_front:
            run.push(self._read(front, begins=True)[0])
        parts = [run.push(given), run.finish()]
        answers = {}
        for place, (name, aggregate) in enumerate(self.spec.aggregates):
            decoder = Decoder(name, aggregate, coded[name].rule, coded[name].inputs, is_nullable=True)
            columns = [part.answers[place] for part in parts if len(part.rows)]
            arrays = [self._typed(name, decoder.answer(column).array) for column in columns]
            answers[name] = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
        return answers

    def fold(self, rows: Any) -> Any:
        """The partial of some rows, as plain data."""
        given, bound, coded = self._read(rows)
        folds = Folds(bound.bounds, {name: each.aggregate for name, each in coded.items()}, 1)
        folds.take(given, [(0, rows.num_rows)])
        return folds.dump(0)

    def joined(self, older: Any, newer: Any) -> Any:
        """Two partials as one."""
        given, bound, aggregates = self._without_rows
        folds = Folds(bound.bounds, aggregates, 1)
        folds.join(given, 0, older, 1)
        folds.join(given, 0, newer, 1)
        return folds.dump(0)

    @cached_property
    def _without_rows(self) -> tuple[Batch, Bound, dict[str, Any]]:
        given, bound, coded = self._read(self._plan.kept_schema.empty_table())
        return given, bound, {name: each.aggregate for name, each in coded.items()}

    def _read(self, rows: Any, *, begins: bool = False) -> tuple[Batch, Bound, dict[str, Coded]]:
        reader, n = Reader(Source(rows)), rows.num_rows
        first = np.zeros(n, np.bool_)
        first[:1] = begins
        arranged = Arranged(None, first, measure(self._plan.time, reader.array(self._plan.time)), n)
        columns = Columns(reader, arranged)
        coded = {name: columns.code(aggregate) for name, aggregate in self.spec.aggregates}
        bound = bound_for(self.spec, reader, arranged, columns)
        return Batch(first, in_units(arranged.order, bound.order_factor), columns.columns), bound, coded

    def _in_units(self, time: int, bound: Bound) -> int:
        return (time // DAY if pa.types.is_date32(self._time_type) else time) * bound.order_factor

    def _typed(self, name: str, array: Any) -> Any:
        return as_type(name, array, self._plan.types)


def is_bridgeable(plan: Plan) -> bool:
    """Whether partials can stand for rows, in all specs of a plan."""
    if plan.window.grid is not None or plan.streaming.changes is not None or plan.streaming.idle is not None:
        return False
    if any(each.kind not in BRIDGED or (each.rows is not None and each.lag != 0) for each in plan.extents):
        return False
    reader = Reader(Source(plan.schema.empty_table()))
    arranged = arrange(plan.window, reader)
    return all(_is_portable(spec, Columns(reader, arranged, _only_numbers)) for spec in plan.specs)


def _is_portable(spec: Spec, columns: Columns) -> bool:
    """Whether its partials have a fixed width, and mean the same in the next micro-batch."""
    try:
        coded = [columns.code(aggregate).aggregate for _, aggregate in spec.aggregates]
    except NotNumbers:
        return False
    sizes = [partial_bytes(each, columns.columns) for each in coded]
    return all(size is not None and size <= WIDEST for size in sizes)


class NotNumbers(Exception):
    """A column that is carried by what holds for one table only."""


class OnlyNumbers:
    """Ways to carry a column, of which only numbers are the same in every table."""

    def carry_number(self, array: Any, arrow_type: Any) -> Any:
        """Carry what is a number, and no decimal whose width depends on the others."""
        if pa.types.is_decimal(array.type) and array.type.precision > 18:
            raise NotNumbers
        return carriers.carry_number(array, arrow_type)

    def _refuse(self, array: Any, arrow_type: Any, what: str = "") -> Any:
        raise NotNumbers

    carry_ranked = carry_row = carry_code = carry_python = _refuse


def _only_numbers(carried: str) -> OnlyNumbers:
    return OnlyNumbers()
