"""What the built-in aggregates take: how a column type is checked, and how its values become numbers.

An aggregate is bound to NumPy types of numbers, or to None: Python values, one at a time. Functions
given out here run interpreted and compiled alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sash.algebra.aggregate import Dtype
from sash.algebra.monoid import Function
from sash.errors import DataError, DeclarationError

BOOLEAN, INTEGER, NUMBER = "b", "iu", "biuf"
WANTED = {
    BOOLEAN: "booleans. Compare the column with something first, or cast it",
    INTEGER: "integers. Cast the column; for booleans use any and all",
    NUMBER: "booleans, integers or floats of at most 64 bits. Cast the column, for example to float64",
}
UNADDABLE = (str, bytes, list, tuple)


def require_kind(aggregate: str, dtype: Dtype, kinds: str = NUMBER) -> Dtype:
    """Check the type of an input; gives it back in the byte order of this machine."""
    if dtype is None:
        return None
    if dtype.kind not in kinds or dtype.itemsize > 8:
        raise DataError(f"{aggregate} got values of type {dtype}, but takes {WANTED[kinds]}")
    return dtype.newbyteorder("=")


def require_count(aggregate: str, name: str, count: object, column: object) -> None:
    """Check an option that counts rows, and that it was not given in the place of the column."""
    if isinstance(column, int):
        raise DeclarationError(f"{aggregate}({column!r}) names no column; write {aggregate}({name}={column!r})")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise DeclarationError(f"{aggregate} needs a positive integer {name}, got {name}={count!r}")


def stored(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type a value is kept in: its own, where compiled code can compute with it."""
    if dtype.kind == "b":
        return np.dtype("u1")
    return np.dtype("f4") if dtype == np.dtype("f2") else dtype


def to_stored(dtype: Dtype) -> Function:
    """From a value to what is kept of it."""
    return _bit_of if dtype is not None and dtype.kind == "b" else _same


def from_stored(dtype: Dtype) -> Function | None:
    """From what is kept of a value to the value; None if it is the value."""
    return _is_set if dtype is not None and dtype.kind == "b" else None


def to_float(x: Any) -> float:
    """From a value to a 64-bit float; compiled, float() alone would leave 32 bits as they are."""
    return float(np.float64(x))


def to_python(aggregate: str) -> Function:
    """From a Python value to one that can be added up: NumPy's fixed widths would wrap around."""

    def convert(x: Any) -> Any:
        if isinstance(x, UNADDABLE):
            raise DataError(f"{aggregate} got {x!r}, but takes numbers. To join sequences use concat")
        value = x.item() if isinstance(x, np.generic) else x
        return int(value) if isinstance(value, bool) else value

    return convert


def _same(x: Any) -> Any:
    return x


def _bit_of(x: Any) -> Any:
    return 1 if x else 0


def _is_set(bit: Any) -> Any:
    return bit != 0
