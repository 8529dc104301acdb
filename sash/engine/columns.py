"""Columns in: whatever a user holds, as contiguous arrays of numbers and their validity.

Accepted are NumPy arrays (strided and read-only too), masked arrays, Arrow arrays, and sequences
with None for null. What is no number stays an array of Python objects, for aggregates that take
any value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sash.algebra.aggregate import Aggregate
from sash.errors import DataError, UnknownNameError


class Column(NamedTuple):
    """One input: values, and which of them are not null (None: all)."""

    values: Any
    valid: Any

    @property
    def is_number(self) -> bool:
        """Whether it can go into compiled code."""
        return self.values.dtype.kind in "biuf"


def read(given: Any, what: str = "values") -> Column:
    """Read one column."""
    if isinstance(given, Column):
        return given
    if isinstance(given, np.ma.MaskedArray):
        return _checked(given.data, None if given.mask is np.ma.nomask else ~np.ma.getmaskarray(given), what)
    if hasattr(given, "is_valid") and hasattr(given, "to_numpy") and hasattr(given, "null_count"):
        return _from_arrow(given, what)
    array = np.asarray(given)
    if array.dtype == object and array.ndim == 1:
        return _from_objects(array)
    return _checked(array, None, what)


def _checked(array: Any, valid: Any, what: str) -> Column:
    if array.ndim != 1:
        raise DataError(f"{what} must have one dimension, got {array.ndim}; pass one column at a time")
    if array.dtype.kind in "biuf":
        if array.dtype == np.longdouble:
            raise DataError(f"{what} has the type {array.dtype}; convert it to float64")
        native = np.float32 if array.dtype == np.float16 else array.dtype.newbyteorder("=")  # Numba has no halves
        return Column(np.ascontiguousarray(array, native), None if valid is None else np.ascontiguousarray(valid))
    if array.dtype.kind in "OUSV":
        return Column(array.astype(object), valid)
    raise DataError(
        f"{what} has the type {array.dtype}, which cannot be aggregated; "
        "pass numbers (a datetime as .astype('i8')), booleans or Python objects"
    )


def _from_arrow(array: Any, what: str) -> Column:
    if hasattr(array, "combine_chunks"):
        array = array.combine_chunks()
    if array.null_count == 0:
        return _checked(array.to_numpy(zero_copy_only=False), None, what)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    values = array.fill_null(_filler(array)).to_numpy(zero_copy_only=False)
    return _checked(values, valid, what)


def _filler(array: Any) -> Any:
    """Any value of the type of an Arrow array: what stands under a null is never looked at."""
    some = array.drop_null()
    return some[0] if len(some) else np.float64(0.0)


def _from_objects(array: Any) -> Column:
    """Objects that are numbers or None become numbers with a mask; others stay."""
    valid = np.array([value is not None for value in array], np.bool_)
    present = array[valid]
    kinds = {type(value) for value in present}
    if present.size and kinds <= {int, float, bool} and (kinds == {bool} or bool not in kinds):
        try:
            numbers = np.array(list(present))
        except OverflowError:
            numbers = np.empty(0, object)
        if numbers.dtype.kind in "biuf":
            values = np.zeros(len(array), numbers.dtype)
            values[valid] = numbers
            return Column(values, None if valid.all() else valid)
    return Column(array, None if valid.all() else valid)


def choose_columns(given: Any, aggregate: Aggregate) -> list[Column]:
    """The columns an aggregate reads: by name from a mapping, else by position."""
    if isinstance(given, Mapping):
        return [read(_lookup(given, name), name) for name in aggregate.columns]
    columns = [read(each) for each in (given if isinstance(given, tuple) else (given,))]
    if aggregate.position_last and len(columns) == aggregate.n_inputs - 1:
        columns.append(Column(np.arange(len(columns[0].values)), None))
    if len(columns) < aggregate.n_inputs:
        wanted = aggregate.n_inputs
        raise DataError(f"{aggregate.name} reads {wanted} columns, got {len(columns)}; pass a tuple of them")
    return columns[: aggregate.n_inputs]


def condition_of(given: Any, aggregate: Aggregate) -> Column | None:
    """The boolean column of `.where`, if there is one."""
    if aggregate.condition is None:
        return None
    if not isinstance(given, Mapping):
        raise DataError(f"where({aggregate.condition!r}) names a column, so pass values as a dict of columns")
    return read(_lookup(given, aggregate.condition), aggregate.condition)


def _lookup(given: Mapping[str, Any], name: str) -> Any:
    if name not in given:
        raise UnknownNameError.among("column", name, given)
    return given[name]


def length_of(given: Any) -> int:
    """The number of rows; raises if columns disagree."""
    if isinstance(given, Mapping):
        columns: Sequence[Any] = list(given.values())
    else:
        columns = given if isinstance(given, tuple) else (given,)
    if not columns:
        raise DataError("no columns given")
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise DataError(f"columns differ in length: {sorted(lengths)}")
    return int(lengths.pop())


def joint_validity(columns: Sequence[Column], condition: Column | None) -> Any:
    """Where every input is present and the condition holds; None: everywhere."""
    masks = [column.valid for column in columns if column.valid is not None]
    if condition is not None:
        masks.append(condition.values.astype(np.bool_))
        if condition.valid is not None:
            masks.append(condition.valid)
    return None if not masks else np.ascontiguousarray(np.logical_and.reduce(masks))
