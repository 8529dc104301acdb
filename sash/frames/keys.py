"""Keys as codes, and rows sorted by key and order.

Rows of one key must lie together, in order; which key comes first does not matter. So a key becomes
a small integer, the same for the same key: null is a key like any other, all NaN are one key, -0.0
is 0.0, as in Spark. Integers in a narrow range are their own codes; others are looked up by Arrow.

Sorting is stable and skips what is sorted already: a table by key and time is not touched, and of a
table by time only the keys are sorted, by counting them (engine/placing).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.engine import placing
from sash.frames import buffers

NARROW = 4  # codes may leave so many places for each row
LARGEST_CODE = 2**62


class Codes(NamedTuple):
    """A number for each row, equal for equal keys, below `n_codes`."""

    codes: Any
    n_codes: int


def codes_of(array: Any) -> Codes:
    """Code one column."""
    found = _narrow(array)
    if found is not None:
        return found
    if pa.types.is_dictionary(array.type):
        return _of_categories(array)
    if pa.types.is_nested(array.type):
        return _of_python(array)
    if pa.types.is_floating(array.type):
        array = _canonical(array)
    try:
        coded = array.dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError:  # calendar intervals, and whatever types are still to come
        return _of_python(array)
    return Codes(_wide(coded.indices.to_numpy()), len(coded.dictionary))


def _wide(integers: Any) -> Any:
    """Integers of 64 bits; the same array if it has them already."""
    if integers.dtype == np.int64:
        return integers
    wide = buffers.room(len(integers), np.int64)
    wide[:] = integers
    return wide


def _narrow(array: Any) -> Codes | None:
    """Integers, booleans, dates in a narrow range: themselves, less the least one if it is large; null is one more."""
    n, valid = len(array), buffers.valid_of(array)
    if pa.types.is_null(array.type) or n == array.null_count:
        return Codes(np.zeros(n, np.int64), 1)
    if pa.types.is_boolean(array.type):
        values = buffers.booleans(array)
    elif pa.types.is_integer(array.type):
        values = buffers.fixed_values(array, array.type.to_pandas_dtype())
    elif pa.types.is_date(array.type) or pa.types.is_timestamp(array.type):
        values = buffers.fixed_values(array, buffers.tick_dtype(array.type))
    else:
        return None
    present = values if valid is None else values[valid]
    low, high = int(present.min()), int(present.max())
    if high - low > _most(n):
        return None
    low = 0 if 0 <= low <= high - low else low
    codes = _less(values, low)
    return Codes(codes if valid is None else np.where(valid, codes, high - low + 1), high - low + 2)


def _most(n: int) -> int:
    """How large the codes of n rows may be, so that they can be counted."""
    return max(NARROW * n, 1 << 16)


def _less(values: Any, low: int) -> Any:
    """Integers of any type, less the least one, as those of 64 bits."""
    if low == 0:
        return _wide(values)
    if values.dtype == np.uint64:
        return (values - np.uint64(low)).astype(np.int64)
    return np.subtract(values, low, out=buffers.room(len(values), np.int64), dtype=np.int64)


def _of_categories(array: Any) -> Codes:
    """Code the categories, which may hold a value twice, and look the rows up."""
    null = len(array.dictionary)
    known = codes_of(pa.concat_arrays([array.dictionary, pa.nulls(1, array.dictionary.type)]))
    indices = array.indices
    if indices.null_count:
        indices = pc.fill_null(indices.cast(pa.int64()), null)
    places = _wide(indices.to_numpy(zero_copy_only=False))
    are_different = np.array_equal(known.codes, np.arange(null + 1))
    return Codes(places if are_different else known.codes[places], known.n_codes)


def _canonical(array: Any) -> Any:
    values = buffers.fixed_values(array, array.type.to_pandas_dtype()).astype(np.float64) + 0.0  # -0.0 becomes 0.0
    values[np.isnan(values)] = np.nan
    return buffers.to_fixed(pa.float64(), values, buffers.valid_of(array))


def _of_python(array: Any) -> Codes:
    known: dict[Any, int] = {}
    codes = [known.setdefault(frozen(value), len(known)) for value in array.to_pylist()]
    return Codes(np.array(codes, np.int64), len(known))


def frozen(value: Any) -> Any:
    """A nested value as something that can be looked up."""
    if isinstance(value, dict):
        return tuple((name, frozen(each)) for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(frozen(each) for each in value)
    return ("NaN",) if value != value else value  # noqa: PLR0124 - only NaN differs from itself


def joint_codes(columns: list[Any], n: int) -> Codes:
    """Code several columns together."""
    if not columns:
        return Codes(np.zeros(n, np.int64), 1)
    joint = codes_of(columns[0])
    for column in columns[1:]:
        further = codes_of(column)
        if joint.n_codes * further.n_codes > LARGEST_CODE:
            joint = _dense(joint.codes)
        joint = Codes(joint.codes * further.n_codes + further.codes, joint.n_codes * further.n_codes)
        if joint.n_codes > _most(n):
            joint = _dense(joint.codes)
    return joint


def _dense(codes: Any) -> Codes:
    coded = pa.array(codes).dictionary_encode()
    return Codes(_wide(coded.indices.to_numpy()), len(coded.dictionary))


# --- rows by code and order ------------------------------------------------------------------------


class ByNumbers:
    """Rows that were sorted: the number in the table of each."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    def sorted(self, values: Any) -> Any:
        """Something for each row of the table, in order."""
        return values[self.numbers]

    def put_back(self, values: Any) -> Any:
        """Something for each sorted row, in the order of the table."""
        found = np.empty_like(values)
        found[self.numbers] = values
        return found


class ByPlaces:
    """The same by the place of each row of the table, which is kinder to the cache."""

    def __init__(self, places: Any) -> None:
        self._places = places

    @cached_property
    def numbers(self) -> Any:
        """The number in the table of each sorted row."""
        return self.sorted(np.arange(len(self._places)))

    def sorted(self, values: Any) -> Any:
        """Something for each row of the table, in order."""
        return placing.brought(values, self._places, buffers.room)

    def put_back(self, values: Any) -> Any:
        """Something for each sorted row, in the order of the table."""
        return placing.put_back(values, self._places, buffers.room)


class Sorted(NamedTuple):
    """How rows were sorted (None: they were already), and which of them are the first of their key."""

    moves: ByNumbers | ByPlaces | None
    begins: Any


def sort(codes: Codes, columns: list[Any]) -> Sorted:
    """Sort rows by their codes, then by the columns, then as they came."""
    if not placing.is_placeable(len(codes.codes), codes.n_codes):
        numbers = sorting(codes, columns)
        in_order = codes.codes if numbers is None else codes.codes[numbers]
        return Sorted(None if numbers is None else ByNumbers(numbers), _begins(in_order))
    found = _falls(codes.codes, columns)
    if not found & placing.ROWS_FALL:
        return Sorted(None, _begins(codes.codes))
    if not found & placing.ORDER_FALLS:
        places, begins = placing.place(codes.codes, codes.n_codes, buffers.room)
        return Sorted(ByPlaces(places), begins)
    rows = _by_columns(columns)
    places, begins = placing.place(codes.codes[rows], codes.n_codes, buffers.room)
    return Sorted(ByNumbers(placing.brought(rows, places)), begins)


def _begins(codes: Any) -> Any:
    begins = np.ones(len(codes), np.bool_)
    np.not_equal(codes[1:], codes[:-1], out=begins[1:])
    return begins


def _falls(codes: Any, columns: list[Any]) -> int:
    """See engine/placing."""
    if len(columns) == 1:
        return placing.falls(codes, columns[0])
    by_order = 0 if is_sorted(columns) else placing.ORDER_FALLS
    return by_order + (0 if is_sorted([codes, *columns]) else placing.ROWS_FALL)


def is_sorted(columns: list[Any]) -> bool:
    """Whether rows ascend by the first column, then by the second, and so on."""
    if len(columns[0]) < 2:
        return True
    below = np.zeros(len(columns[0]) - 1, np.bool_)
    equal = ~below
    for column in columns:
        below |= equal & (column[1:] > column[:-1])
        equal &= column[1:] == column[:-1]
    return bool((below | equal).all())


def sorting(codes: Codes, columns: list[Any]) -> Any:
    """The rows in the order of their codes, then of the columns; None if they are in it already."""
    if is_sorted([codes.codes, *columns]):
        return None
    rows = None if is_sorted(columns) else _by_columns(columns)
    if codes.n_codes == 1:
        return rows
    step = np.argsort(codes.codes if rows is None else codes.codes[rows], kind="stable")
    return step if rows is None else rows[step]


def _by_columns(columns: list[Any]) -> Any:
    """The rows in the order of the columns alone."""
    rows = np.argsort(columns[-1], kind="stable")
    for column in reversed(columns[:-1]):
        rows = rows[np.argsort(column[rows], kind="stable")]
    return rows
