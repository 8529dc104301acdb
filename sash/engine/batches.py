"""Batches of sorted rows: what a run is given, what it gives back, and what it keeps in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from sash.algebra.aggregate import Aggregate
from sash.engine.columns import Column
from sash.engine.tails import ColumnTail, Tail
from sash.errors import DataError, UnknownNameError
from sash.windows.bounds import Bounds
from sash.windows.framing import Rows


class Batch(NamedTuple):
    """Some rows, sorted by key and, within a key, by order; a key may go on in the next batch."""

    begins: Any  # bool array: the row is the first one of its key
    order: Any  # int64 or float64 array, ascending within a key, without NaN
    columns: Mapping[str, Column]  # by name: what aggregates and their conditions read
    mark: Column | None = None  # for delta: int64 or float64 without nulls; for since: bool, null counts as false


class Answered(NamedTuple):
    """What was settled. Rows are numbered from 0 over all batches of a run.

    Answers at rows: `rows` says which, ascending; unless only every n-th row is answered they follow one another
    without gaps, from one push to the next. Answers on a grid in time: one for each of `instants`; `rows` is then
    the last row of its key at or before the instant, to look the key up. It is in this batch, or the last row
    of the one before.
    """

    rows: Any  # int64 array
    instants: Any  # in units of the order column; None unless the grid is one in time
    answers: list[Column]  # one for each aggregate, in their order: values (objects for objects) and valid


def prepared(batch: Batch, bounds: Bounds, aggregates: Iterable[Aggregate]) -> Batch:
    """Check a batch, and bring it into the one form that kernels are compiled for.

    A delta is a span over another column, so that column takes the place of the order.
    """
    n = len(batch.begins)
    mark = batch.mark
    if bounds.needs_mark and mark is None:
        raise DataError(f"a window by {bounds.kind} needs the column of its marks")
    if bounds.kind == "delta":
        batch, mark = batch._replace(order=_distances(mark)), None
    asked = [] if bounds.policy is None else [aggregate for _, aggregate in bounds.policy.aggregates]
    columns = {name: _column(batch.columns, name, n) for name in _names_read([*aggregates, *asked])}
    truths = _truths(mark) if bounds.kind == "since" else None
    for what, array in (("order", batch.order), ("mark", batch.begins if mark is None else mark.values)):
        if len(array) != n:
            raise DataError(f"there are {n} rows but {len(array)} values of {what}")
    return Batch(in_one_form(np.asarray(batch.begins, np.bool_)), _order(batch.order), columns, truths)


def _names_read(aggregates: Iterable[Aggregate]) -> list[str]:
    """The columns that are read, each once."""
    names = [name for each in aggregates for name in (*each.columns, each.condition) if name is not None]
    return list(dict.fromkeys(names))


def _column(columns: Mapping[str, Column], name: str, n: int) -> Column:
    if name not in columns:
        raise UnknownNameError.among("column", name, columns)
    values, valid = columns[name]
    if len(values) != n:
        raise DataError(f"there are {n} rows but {len(values)} values of {name!r}")
    return Column(in_one_form(values), None if valid is None else in_one_form(valid))


def _order(order: Any) -> Any:
    if order.dtype.kind not in "iuf" or order.dtype == np.uint64:
        raise DataError(f"order must be integers or floats, got {order.dtype}")
    kind = np.float64 if order.dtype.kind == "f" else np.int64
    if kind is np.float64 and np.isnan(order).any():
        raise DataError(f"row {int(np.isnan(order).argmax())} of a batch has no place in the order (NaN)")
    return in_one_form(np.asarray(order, kind))


def _distances(mark: Column | None) -> Any:
    assert mark is not None
    if mark.valid is not None and not mark.valid.all():
        raise DataError(f"row {int((~mark.valid).argmax())} of a batch has no mark; fill it, or leave such rows out")
    return mark.values


def _truths(mark: Column | None) -> Column:
    assert mark is not None
    truths = np.asarray(mark.values, np.bool_)
    return Column(in_one_form(truths if mark.valid is None else truths & mark.valid), None)


class _Writable:
    """Memory of an array that must not be written, shown as if it could be."""

    def __init__(self, array: Any) -> None:
        self.kept = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def in_one_form(array: Any) -> Any:
    """The same numbers, contiguous, aligned and writable, copied only if they must be.

    Numba compiles a kernel anew for arrays that differ in this. Arrow's must not be written, and no kernel
    writes to its input: a view that permits it saves seconds, and a copy.
    """
    array = np.require(array, requirements=["C", "A"])
    if array.flags.writeable or array.dtype.hasobject:
        return array
    return np.asarray(_Writable(array))


class Inputs:
    """The rows that are still needed, and those that have come: order, keys, marks and columns."""

    __slots__ = ("_begins", "_columns", "_marks", "_order", "base", "n_rows")

    def __init__(self, order_dtype: Any, column_dtypes: Mapping[str, Any], *, has_marks: bool) -> None:
        self._order = Tail(order_dtype)
        self._begins = Tail(np.bool_)
        self._marks = Tail(np.bool_) if has_marks else None
        self._columns = {name: ColumnTail(dtype) for name, dtype in column_dtypes.items()}
        self.base = 0  # the number of the first row whose columns are kept
        self.n_rows = 0  # so far

    @classmethod
    def like(cls, batch: Batch) -> Inputs:
        """Room for batches of the types of this one."""
        dtypes = {name: column.values.dtype for name, column in batch.columns.items()}
        return cls(batch.order.dtype, dtypes, has_marks=batch.mark is not None)

    @property
    def order_dtype(self) -> Any:
        """The type of the order column."""
        return self._order.values.dtype

    @property
    def rows(self) -> Rows:
        """What frames are computed of."""
        begins = self._begins.values
        marks = begins if self._marks is None else self._marks.values
        return Rows(self._order.base, self._order.values, begins, marks)

    @property
    def columns(self) -> dict[str, Column]:
        """The columns of the rows from `base` on."""
        return {name: tail.column for name, tail in self._columns.items()}

    def append(self, batch: Batch) -> None:
        """Take a batch that is `prepared`."""
        self._require_types(batch)
        self._order.append(batch.order)
        self._begins.append(batch.begins)
        if self._marks is not None and batch.mark is not None:
            self._marks.append(batch.mark.values)
        for name, tail in self._columns.items():
            tail.append(batch.columns[name])
        self.n_rows += len(batch.order)

    def _require_types(self, batch: Batch) -> None:
        pairs = {"order": (self._order.values, batch.order)}
        pairs |= {name: (tail.column.values, batch.columns[name].values) for name, tail in self._columns.items()}
        for name, (before, now) in pairs.items():
            if before.dtype != now.dtype:
                raise DataError(f"{name} was {before.dtype} in the batches before, and is {now.dtype} in this one")

    def forget(self, *, order_before: int, columns_before: int) -> None:
        """Let go of order values, and of columns, that no window looks at any more."""
        ordered = [self._order, self._begins] + ([] if self._marks is None else [self._marks])
        for tail in ordered:
            tail.forget(order_before)
            tail.settle()
        for column in self._columns.values():
            column.forget(columns_before)
            column.settle()
        self.base = max(self.base, columns_before)

    def dump(self) -> list[Any]:
        """What is kept, as plain data."""
        marks = None if self._marks is None else self._marks.dump()
        columns = [[name, tail.dump()] for name, tail in self._columns.items()]
        return [self.n_rows, self.base, self._order.dump(), self._begins.dump(), marks, columns]

    @classmethod
    def load(cls, dumped: list[Any]) -> Inputs:
        """What `dump` wrote."""
        inputs = cls(np.int64, {}, has_marks=False)
        inputs.n_rows, inputs.base, order, begins, marks, columns = dumped
        inputs._order, inputs._begins = Tail.load(order), Tail.load(begins)
        inputs._marks = None if marks is None else Tail.load(marks)
        inputs._columns = {name: ColumnTail.load(tail) for name, tail in columns}
        return inputs
