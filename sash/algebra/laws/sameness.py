"""When two values are the same: numbers within a tolerance, containers item by item.

NaN is the same as NaN, and an integer is never "nearly" another. Objects that define no equality of
their own are compared attribute by attribute.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from numbers import Number
from typing import Any

import numpy as np


def same(x: Any, y: Any, tolerance: float = 0.0) -> bool:
    """Whether two values are the same, floats differing by at most `tolerance`."""
    if x is y:
        return True
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return _same_arrays(np.asarray(x), np.asarray(y), tolerance)
    if _is_number(x) and _is_number(y):
        return _same_numbers(x, y, tolerance)
    if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
        alike = isinstance(x, list) == isinstance(y, list) and len(x) == len(y)
        return alike and all(same(a, b, tolerance) for a, b in zip(x, y, strict=True))
    if isinstance(x, Mapping) and isinstance(y, Mapping):
        return x.keys() == y.keys() and all(same(x[key], y[key], tolerance) for key in x)
    if is_opaque(x):
        inside, other = attributes(x), attributes(y)
        return type(x) is type(y) and bool(inside) and same(inside, other, tolerance)
    return bool(np.all(x == y))


def is_opaque(value: Any) -> bool:
    """Whether a value is equal to nothing but itself."""
    equality: Any = type(value).__eq__
    return equality is object.__eq__


def magnitude(*values: Any) -> float:
    """The largest finite number anywhere inside some values; at least the smallest normal float."""
    return max((size for value in values for size in _sizes(value)), default=0.0)


def attributes(value: Any) -> dict[str, Any]:
    """Everything an object says about itself, slots included."""
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return found | getattr(value, "__dict__", {})


def independent(value: Any) -> Any:
    """A copy that shares no memory with a value; the value itself if it cannot be copied."""
    if value is None or isinstance(value, (str, bytes)) or _is_number(value):
        return value
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - whatever a foreign type raises, it cannot be copied
        return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (Number, np.number, np.bool_))


def _same_numbers(x: Any, y: Any, tolerance: float) -> bool:
    if x == y or (x != x and y != y):  # noqa: PLR0124 - only NaN differs from itself
        return True
    if isinstance(x, (int, np.integer)) and isinstance(y, (int, np.integer)):
        return False
    try:
        return math.isfinite(abs(x)) and math.isfinite(abs(y)) and bool(abs(x - y) <= tolerance)
    except (TypeError, OverflowError):  # a Decimal beside a float; an integer beyond all floats
        return False


def _same_arrays(x: Any, y: Any, tolerance: float) -> bool:
    if x.shape != y.shape:
        return False
    if x.dtype.hasobject or y.dtype.hasobject:
        return same(x.tolist(), y.tolist(), tolerance)
    equal = (x == y) | ((x != x) & (y != y))  # noqa: PLR0124 - only NaN differs from itself
    if x.dtype.kind in "fc" or y.dtype.kind in "fc":
        with np.errstate(invalid="ignore", over="ignore"):
            equal |= np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= tolerance)
    return bool(np.all(equal))


def _sizes(value: Any) -> Iterator[float]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if _is_number(value):
        size = _size(value)
        if math.isfinite(size):
            yield size
    elif isinstance(value, Mapping):
        yield from _sizes(list(value.items()))
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _sizes(item)
    elif not isinstance(value, (str, bytes)):
        yield from _sizes(attributes(value))


def _size(number: Any) -> float:
    try:
        return float(abs(number))
    except (TypeError, OverflowError):
        return math.inf
