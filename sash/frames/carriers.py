"""Carriers: how a column of any type travels through the engine as numbers, and comes back.

    carrier    columns                            travels as                       knows
    Plain      booleans, integers, floats         itself                           order, sums
    Ticks      timestamps, dates, times,          integers since 1970, or of       order, differences;
               durations                          the unit of the type             durations: sums
    Scaled     decimals                           integers, scaled                 order, sums, differences
    Ranked     text, binary, categories           the rank of its value            order
    Numbered   anything: lists, structs           the number of its row            nothing
    Pythonic   anything                           Python objects, interpreted      whatever Python knows

An answer that is a value of the column (min, first, a payload) has the type of the column; ranks and
row numbers are looked up all at once. Ranks are in the order of UTF-8 bytes, as Spark's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.engine.columns import Column
from sash.errors import DataError
from sash.frames import buffers
from sash.frames.keys import codes_of

MOST_DIGITS = 38  # of a decimal of 128 bits


@dataclass(frozen=True)
class Carrier:
    """A column on its way through the engine; `value` brings answers back."""

    column: Column
    arrow_type: Any

    def value(self, values: Any, valid: Any) -> Any:
        """Answers that are values of the column, in its own type."""
        raise NotImplementedError

    def difference(self, values: Any, valid: Any) -> Any:
        """Answers that are differences of two values of the column."""
        raise NotImplementedError

    def total(self, values: Any, valid: Any) -> Any:
        """Answers that are sums of values of the column."""
        raise NotImplementedError


@dataclass(frozen=True)
class Plain(Carrier):
    """Numbers and booleans as they are."""

    def value(self, values: Any, valid: Any) -> Any:  # noqa: D102
        found = numbers(values, valid)
        return found if found.type == self.arrow_type else found.cast(self.arrow_type)

    def difference(self, values: Any, valid: Any) -> Any:  # noqa: D102
        kind = np.float64 if self.column.values.dtype.kind == "f" else np.int64
        return numbers(values.astype(kind, copy=False), valid)

    total = difference


@dataclass(frozen=True)
class Ticks(Carrier):
    """Times and durations as integers of their unit."""

    def value(self, values: Any, valid: Any) -> Any:  # noqa: D102
        return buffers.to_fixed(self.arrow_type, values.astype(buffers.tick_dtype(self.arrow_type)), valid)

    def difference(self, values: Any, valid: Any) -> Any:  # noqa: D102
        ticks = values.astype(np.int64)
        if pa.types.is_date32(self.arrow_type):
            return buffers.to_fixed(pa.duration("s"), ticks * 86_400, valid)
        unit = "ms" if pa.types.is_date64(self.arrow_type) else self.arrow_type.unit
        return buffers.to_fixed(pa.duration(unit), ticks, valid)

    def total(self, values: Any, valid: Any) -> Any:  # noqa: D102
        return buffers.to_fixed(self.arrow_type, np.rint(values).astype(np.int64), valid)


@dataclass(frozen=True)
class Scaled(Carrier):
    """Decimals as integers of their last digit."""

    def value(self, values: Any, valid: Any) -> Any:  # noqa: D102
        return buffers.decimals(pa.decimal128(MOST_DIGITS, self.arrow_type.scale), values, valid).cast(self.arrow_type)

    def difference(self, values: Any, valid: Any) -> Any:  # noqa: D102
        return self._wider(1, values, valid)

    def total(self, values: Any, valid: Any) -> Any:  # noqa: D102
        return self._wider(10, values, valid)

    def _wider(self, digits: int, values: Any, valid: Any) -> Any:
        precision = min(MOST_DIGITS, self.arrow_type.precision + digits)
        return buffers.decimals(pa.decimal128(precision, self.arrow_type.scale), values, valid)


@dataclass(frozen=True)
class Ranked(Carrier):
    """Values as their places in a sorted dictionary."""

    dictionary: Any

    def value(self, values: Any, valid: Any) -> Any:  # noqa: D102
        return self.dictionary.take(_places(values, valid)).cast(self.arrow_type)


@dataclass(frozen=True)
class Numbered(Carrier):
    """Values as the numbers of their rows."""

    array: Any

    def value(self, values: Any, valid: Any) -> Any:  # noqa: D102
        return self.array.take(_places(values, valid)).cast(self.arrow_type)


@dataclass(frozen=True)
class Pythonic(Carrier):
    """Values as Python objects."""

    def value(self, values: Any, valid: Any) -> Any:  # noqa: D102
        present = [each if ok else None for each, ok in zip(values.tolist(), presence(values, valid), strict=True)]
        return pa.array(present, self.arrow_type)


def numbers(values: Any, valid: Any) -> Any:
    """Numbers of NumPy as an Arrow array."""
    if values.dtype.kind == "b":
        return pa.array(values, mask=None if valid is None else ~valid)
    return buffers.to_fixed(pa.from_numpy_dtype(values.dtype), values, valid)


def presence(values: Any, valid: Any) -> Any:
    """Which answers are not null; objects may say so by None."""
    there = np.ones(len(values), np.bool_) if valid is None else valid
    if values.dtype == object:
        there = there & np.array([each is not None for each in values], np.bool_)
    return there


def _places(values: Any, valid: Any) -> Any:
    return pa.array(values.astype(np.int64), mask=None if valid is None else ~valid)


def ranks_of(array: Any, what: str) -> tuple[Any, Any]:
    """The rank of each value among the different ones, and those in order."""
    if pa.types.is_boolean(array.type):
        return buffers.booleans(array).astype(np.int64), pa.array([False, True])
    try:
        coded = array.dictionary_encode()
        order = pc.sort_indices(coded.dictionary)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"{what} has the type {array.type}, whose values have no order") from error
    ranks = np.empty(len(order), np.int64)
    ranks[order.to_numpy()] = np.arange(len(order))
    places = pc.fill_null(coded.indices, 0).to_numpy(zero_copy_only=False)
    return (ranks[places] if len(order) else np.zeros(len(array), np.int64)), coded.dictionary.take(order)


def is_ticks(arrow_type: Any) -> bool:
    """Whether values are times, dates or durations."""
    types = pa.types
    kinds = (types.is_timestamp, types.is_date, types.is_time, types.is_duration)
    return any(is_kind(arrow_type) for is_kind in kinds)


def is_plain(arrow_type: Any) -> bool:
    """Whether values are booleans or numbers of at most 64 bits."""
    types = pa.types
    return bool(types.is_boolean(arrow_type) or types.is_integer(arrow_type) or types.is_floating(arrow_type))


def is_text(arrow_type: Any) -> bool:
    """Whether values are ranked: text, bytes, categories."""
    types = pa.types
    kinds = (
        types.is_string, types.is_large_string, types.is_binary, types.is_large_binary,
        types.is_fixed_size_binary, types.is_dictionary,
    )  # fmt: skip
    return any(is_kind(arrow_type) for is_kind in kinds)


def carry_number(array: Any, arrow_type: Any) -> Carrier:
    """Carry booleans, numbers, times or decimals as numbers."""
    valid = buffers.valid_of(array)
    if pa.types.is_boolean(array.type):
        return Plain(Column(buffers.booleans(array), valid), arrow_type)
    if is_plain(array.type):
        values = buffers.fixed_values(array, array.type.to_pandas_dtype())
        is_half = values.dtype == np.float16
        return Plain(Column(values.astype(np.float32) if is_half else values, valid), arrow_type)
    if is_ticks(array.type):
        ticks = buffers.fixed_values(array, buffers.tick_dtype(array.type))
        return Ticks(Column(ticks.astype(np.int64, copy=False), valid), arrow_type)
    return Scaled(Column(_scaled_integers(array, valid), valid), arrow_type)


def _scaled_integers(array: Any, valid: Any) -> Any:
    """Decimals as 64-bit integers if all of them fit, else as Python's."""
    words = buffers.decimal_words(array)
    fits = words[:, 1] == words[:, 0] >> 63
    if (fits if valid is None else fits | ~valid).all():
        return np.ascontiguousarray(words[:, 0])
    whole = np.empty(len(words), object)
    whole[:] = [
        (high << 64) + low for low, high in zip(words[:, 0].view("u8").tolist(), words[:, 1].tolist(), strict=True)
    ]
    return whole


def carry_ranked(array: Any, arrow_type: Any, what: str) -> Carrier:
    """Carry anything with an order by its rank."""
    values = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    ranks, dictionary = ranks_of(values, what)
    back = arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type
    return Ranked(Column(ranks, buffers.valid_of(array)), back, dictionary)


def carry_row(array: Any, arrow_type: Any) -> Carrier:
    """Carry anything by the number of its row."""
    return Numbered(Column(np.arange(len(array)), buffers.valid_of(array)), arrow_type, array)


def carry_code(array: Any, arrow_type: Any) -> Carrier:
    """Carry anything by a number that equal values have in common."""
    return Plain(Column(codes_of(array).codes, buffers.valid_of(array)), arrow_type)


def carry_python(array: Any, arrow_type: Any) -> Carrier:
    """Carry Python objects."""
    objects = np.empty(len(array), object)
    objects[:] = array.to_pylist()
    return Pythonic(Column(objects, buffers.valid_of(array)), arrow_type)
