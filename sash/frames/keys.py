"""Keys as codes, and rows sorted by key and order.

Rows of one key must lie together, in order; which key comes first does not matter. So a key becomes
a small integer, the same for the same key: null is a key like any other, all NaN are one key, -0.0
is 0.0, as in Spark. Integers in a narrow range are their own codes; others are looked up by Arrow.

Sorting is stable and skips what is sorted already: a table by key and time is not touched, and of a
table by time only the keys are sorted, by counting them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.algebra.monoid import Function
from sash.compiling.jit import entry, is_enabled
from sash.frames import buffers

NARROW = 4  # codes may leave so many places for each row
LARGEST_CODE = 2**62
SMALLEST_COUNTED = 200_000  # rows; below, NumPy's sort takes less than loading the machine code


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
    return Codes(coded.indices.to_numpy().astype(np.int64), len(coded.dictionary))


def _narrow(array: Any) -> Codes | None:
    """Integers, booleans, dates in a narrow range: themselves, less the least one; null is one more."""
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
    if high - low > max(NARROW * n, 1 << 16):
        return None
    codes = values.astype(np.int64) - low if high < 2**63 else (values - np.uint64(low)).astype(np.int64)
    return Codes(codes if valid is None else np.where(valid, codes, high - low + 1), high - low + 2)


def _of_categories(array: Any) -> Codes:
    """Code the categories, which may hold a value twice, and look the rows up."""
    null = len(array.dictionary)
    known = codes_of(pa.concat_arrays([array.dictionary, pa.nulls(1, array.dictionary.type)]))
    places = pc.fill_null(array.indices.cast(pa.int64()), null).to_numpy(zero_copy_only=False)
    return Codes(known.codes[places], known.n_codes)


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
        if joint.n_codes > max(NARROW * n, 1 << 16):
            joint = _dense(joint.codes)
    return joint


def _dense(codes: Any) -> Codes:
    coded = pa.array(codes).dictionary_encode()
    return Codes(coded.indices.to_numpy().astype(np.int64), len(coded.dictionary))


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
    rows = None
    if not is_sorted(columns):
        for column in reversed(columns):
            by_column = column if rows is None else column[rows]
            step = np.argsort(by_column, kind="stable")
            rows = step if rows is None else rows[step]
    if codes.n_codes == 1:
        return rows
    return _by_code(codes, rows)


def _by_code(codes: Codes, rows: Any) -> Any:
    n = len(codes.codes)
    if n < SMALLEST_COUNTED or codes.n_codes > max(NARROW * n, 1 << 16) or not is_enabled():
        within = codes.codes if rows is None else codes.codes[rows]
        step = np.argsort(within, kind="stable")
        return step if rows is None else rows[step]
    starts, out = np.zeros(codes.n_codes, np.int64), np.empty(n, np.int64)
    _counting_sort()(codes.codes, np.arange(n) if rows is None else rows, starts, out)
    return out


@lru_cache(maxsize=1)
def _counting_sort() -> Function:
    """Make sort(codes, rows, starts, out): stable, one pass to count and one to place."""

    def sort(codes: Any, rows: Any, starts: Any, out: Any) -> None:
        for i in range(len(codes)):
            starts[codes[i]] += 1
        total = 0
        for code in range(len(starts)):
            count = starts[code]
            starts[code] = total
            total += count
        for i in range(len(rows)):
            code = codes[rows[i]]
            out[starts[code]] = rows[i]
            starts[code] += 1

    return entry(sort)
