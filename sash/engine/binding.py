"""What a window aggregates: declared aggregates, bound to the type of what will be inserted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sash.algebra.aggregate import Aggregate
from sash.algebra.declaring import agg
from sash.algebra.monoid import Monoid
from sash.compiling.jit import is_enabled
from sash.engine.building import nested, unnested
from sash.engine.events import OneRow, answer_of_nothing, take_answer
from sash.errors import DataError, DeclarationError, UnknownNameError, UnsupportedError


class Bound(NamedTuple):
    """The monoids of a window, and how its answers are shown: one, or a dict by name."""

    monoids: tuple[Monoid, ...]
    names: tuple[str, ...] | None
    dtype: Any  # of the values in compiled form, or one for each column
    is_compiled: bool
    columns: tuple[str, ...] = ()  # what the values of an event are called, if the aggregates say so
    places: tuple[tuple[int, ...], ...] = ()  # of each aggregate: which of the values it reads

    @property
    def n_values(self) -> int:
        """How many values an event has."""
        return len(self.columns) or max(monoid.n_inputs for monoid in self.monoids)

    def rows(self) -> list[OneRow]:
        """Room for one event, for each aggregate."""
        return [
            OneRow(reads, [self.dtype_of(place) for place in reads], is_compiled=self.is_compiled)
            for reads in self.reads
        ]

    def many(self, given: Any) -> tuple[int, Any]:
        """Read many events: their number, and the columns of all aggregates.

        `given` is an array, a dict of arrays by column, or events, each a value or a tuple of values.
        """
        values = self._arrays(given) if self.is_compiled else None
        if values is None:
            rows = list(self.events(given))
            self._require_width(rows)
            n, columns = len(rows), [[row[place] for row in rows] for place in range(max(self.n_values, 1))]
            if not self.is_compiled:
                return n, nested([tuple(columns[place] for place in reads) for reads in self.reads])
            values = [_with_validity(column, self.dtype_of(k)) for k, column in enumerate(columns)]
        n = len(values[0][1])
        return n, nested([_joint([values[place] for place in reads], n) for reads in self.reads])

    def events(self, given: Any) -> Iterable[tuple[Any, ...]]:
        """Read many events one by one, in the forms that `many` reads."""
        columns = self._whole_columns(given)
        if columns is None:
            return (value if isinstance(value, tuple) else (value,) for value in given)
        return zip(*map(_python_values, columns), strict=True)

    def _arrays(self, given: Any) -> list[tuple[Any, Any]] | None:
        """Whole columns, if that is what is given, as (valid, values)."""
        columns = self._whole_columns(given)
        if columns is None:
            return None
        return [_with_mask(column, self.dtype_of(place)) for place, column in enumerate(columns)]

    def _whole_columns(self, given: Any) -> list[Any] | None:
        """What a dict or an array holds, a column for each value of an event; None if it is neither."""
        if isinstance(given, Mapping):
            if not self.columns or set(given) != set(self.columns):
                wanted = f"the columns {', '.join(self.columns)}" if self.columns else "no columns with names"
                raise DataError(f"events have {wanted}, got {', '.join(map(str, given)) or 'none'}")
            columns = [given[name] for name in self.columns]
        elif isinstance(given, np.ndarray) and self.n_values <= 1:
            columns = [given]
        else:
            return None
        _require_columns(columns)
        return columns

    def _require_width(self, rows: list[tuple[Any, ...]]) -> None:
        for row in rows:
            if len(row) != max(self.n_values, 1):
                raise DataError(f"a row takes {max(self.n_values, 1)} value(s), got {row!r}")

    @property
    def reads(self) -> tuple[tuple[int, ...], ...]:
        """Of each aggregate: which of the values of an event it reads."""
        return self.places or tuple(tuple(range(monoid.n_inputs)) for monoid in self.monoids)

    def is_aggregate(self, k: int, aggregate: Aggregate) -> bool:
        """Whether the k-th monoid is that of an aggregate, over the same columns."""
        if not set(aggregate.columns) <= set(self.columns):
            return False
        places = _places(aggregate, self.columns)
        return self.reads[k] == places and self.monoids[k] is aggregate.bind(*map(self.dtype_of, places))

    def dtype_of(self, place: int) -> Any:
        """The type of one of the values of an event."""
        return self.dtype[place] if isinstance(self.dtype, tuple) else self.dtype

    def answer(self, results: Any) -> Any:
        """Read the answers of one row."""
        pairs = zip(unnested(results, len(self.monoids)), self.monoids, strict=True)
        return self._shown([take_answer(each, monoid) for each, monoid in pairs])

    @property
    def has_plain_answers(self) -> bool:
        """Whether it has one answer, which nothing is done to."""
        return self.names is None and len(self.monoids) == 1 and self.monoids[0].finish is None

    def answer_of_nothing(self) -> Any:
        """What a window without rows answers."""
        return self._shown([answer_of_nothing(monoid) for monoid in self.monoids])

    def _shown(self, answers: list[Any]) -> Any:
        return answers[0] if self.names is None else dict(zip(self.names, answers, strict=False))


def bind(aggregate: Any, dtype: Any, *, compiled: bool, hidden: Sequence[Aggregate] = ()) -> Bound:
    """Bind one aggregate, or a dict of them, to values of a type; None: Python values, interpreted.

    If the aggregates name columns, an event has those, in the order in which they are first named;
    `dtype` may then be a dict. Hidden aggregates come after the others and are not answered.
    """
    aggregates = _named(aggregate)
    _require_unconditional([*aggregates.values(), *hidden])
    names = tuple(aggregates) if isinstance(aggregate, Mapping) else None
    every = [*aggregates.values(), *hidden]
    columns = tuple(dict.fromkeys(name for each in every for name in each.columns))
    places = tuple(_places(each, columns) for each in every)
    inputs = _types(dtype, columns, compiled=compiled)
    monoids = tuple(
        each.bind(*(inputs[place] if isinstance(inputs, tuple) else inputs for place in reads))
        for each, reads in zip(every, places, strict=True)
    )
    return Bound(monoids, names, inputs, compiled and is_enabled(), columns, places)


def _require_columns(columns: list[Any]) -> None:
    """Kernels trust that columns are of one length: they read as far as the first one goes."""
    lengths = sorted({len(column) for column in columns})
    if len(lengths) > 1:
        raise DataError(f"columns must be of one length, got {' and '.join(map(str, lengths))} rows")
    for column in columns:
        if np.ndim(column) != 1:
            raise DataError(f"a column is an array of one dimension, got one of {np.ndim(column)}")


def _with_validity(column: Sequence[Any], dtype: Any) -> tuple[Any, Any]:
    valid = np.array([value is not None for value in column], np.bool_)
    return valid, _of_type(np.array([0 if value is None else value for value in column]), dtype)


def _with_mask(column: Any, dtype: Any) -> tuple[Any, Any]:
    if not isinstance(column, np.ndarray):
        return _with_validity(column, dtype)
    if not isinstance(column, np.ma.MaskedArray):
        return np.ones(len(column), np.bool_), _of_type(column, dtype)
    valid = ~np.ma.getmaskarray(column)
    return valid, _of_type(np.where(valid, column.data, np.zeros(1, column.dtype)), dtype)


def _of_type(values: Any, dtype: Any) -> Any:
    """The same values in another type; numbers that are not whole, or too large, are no integers."""
    if dtype is None:
        return values
    with np.errstate(invalid="ignore"):
        converted = np.ascontiguousarray(values, dtype)
    if converted.dtype.kind in "iub" and not np.can_cast(values.dtype, converted.dtype):
        differing = np.flatnonzero(converted != values)
        if len(differing):
            found = values[differing[0]]
            raise DataError(f"{found.item()!r} is no {converted.dtype}; give dtype= the type of the values")
    return converted


def _python_values(column: Any) -> Any:
    """A column as Python values, None for null."""
    return column.tolist() if isinstance(column, np.ndarray) else column


def _joint(inputs: list[tuple[Any, Any]], n: int) -> Any:
    """The columns of one aggregate: a row counts if all its values are there."""
    valid = np.ones(n, np.bool_)
    for present, _ in inputs:
        valid &= present
    return valid, tuple(values for _, values in inputs)


def _require_unconditional(aggregates: Iterable[Aggregate]) -> None:
    for each in aggregates:
        if each.condition is not None:
            raise UnsupportedError(
                f"a window over single events takes no condition, got {each.name}.where({each.condition!r}); insert "
                "None for what does not count, or use sash.slide, which takes conditions"
            )


def _places(aggregate: Aggregate, columns: tuple[str, ...]) -> tuple[int, ...]:
    """Which values of an event an aggregate reads."""
    if aggregate.columns:
        return tuple(columns.index(name) for name in aggregate.columns)
    if columns and aggregate.n_inputs:
        raise DeclarationError(
            f"{aggregate.name} names no column where others name {', '.join(columns)}; name the columns of all of them"
        )
    return tuple(range(aggregate.n_inputs))


def _types(dtype: Any, columns: tuple[str, ...], *, compiled: bool) -> Any:
    if isinstance(dtype, Mapping):
        for name in dtype:
            if name not in columns:
                raise UnknownNameError.among("column", name, columns)
        return tuple(np.dtype(dtype.get(name, "f8")) for name in columns)
    return None if dtype is None and not compiled else np.dtype(dtype or "f8")


def as_aggregate(given: Any) -> Aggregate:
    """Read an aggregate, or a class that declares one."""
    return given if isinstance(given, Aggregate) else agg(given)


def _named(aggregate: Any) -> dict[str, Aggregate]:
    if not isinstance(aggregate, Mapping):
        single = as_aggregate(aggregate)
        return {single.name: single}
    if not aggregate:
        raise DeclarationError("no aggregate given; pass one, or a dict of names to aggregates")
    return {str(name): as_aggregate(each) for name, each in aggregate.items()}
