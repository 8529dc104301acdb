"""Plain arrays in and out: NumPy and Arrow arrays or lists by name, NumPy arrays back.

Nulls come as in `sash.slide`: NaN among floats unless the input has a mask, NaT among times, None among
objects, a masked array otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sash.errors import DataError
from sash.frames import buffers
from sash.frames.sources import Answer, Table

UNKNOWN_UNITS, DAYS = ("Y", "M", "W", "h", "m"), np.dtype("m8[D]")


class Source(Table):
    """A dict of arrays."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        super().__init__(dict(table))
        lengths = {name: len(column) for name, column in table.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"columns differ in length: {', '.join(f'{name} {n}' for name, n in lengths.items())}")

    @property
    def names(self) -> list[str]:  # noqa: D102
        return list(self.table)

    @property
    def n_rows(self) -> int:  # noqa: D102
        return len(next(iter(self.table.values()))) if self.table else 0

    def array(self, name: str) -> Any:  # noqa: D102
        given = self.table[name]
        if isinstance(given, (pa.Array, pa.ChunkedArray)):
            return given
        if hasattr(given, "__arrow_c_array__") or hasattr(given, "__arrow_c_stream__"):
            return pa.array(given) if hasattr(given, "__arrow_c_array__") else pa.chunked_array(given)
        return _to_arrow(name, given)

    def take(self, rows: Any) -> Source:  # noqa: D102
        return _Picked({name: buffers.single(self.array(name)).take(pa.array(rows)) for name in self.names})

    def with_columns(self, answers: Mapping[str, Answer]) -> Any:
        """Only the answers: the input is the caller's already."""
        return {name: to_numpy(answer.array, self._is_masked(answer)) for name, answer in answers.items()}

    def new(self, names: Sequence[str], rows: Any, answers: Mapping[str, Answer]) -> Any:  # noqa: D102
        keys = {name: to_numpy(buffers.single(self.array(name)).take(pa.array(rows))) for name in names}
        return keys | self.with_columns(answers)

    def _is_masked(self, answer: Answer) -> bool:
        return any(isinstance(self.table.get(name), np.ma.MaskedArray) for name in (answer.like, answer.reads) if name)


class _Picked(Source):
    """Some rows, which the caller does not have: they go out with the answers."""

    def with_columns(self, answers: Mapping[str, Answer]) -> Any:
        return {name: to_numpy(column) for name, column in self.table.items()} | super().with_columns(answers)


def _to_arrow(name: str, given: Any) -> Any:
    try:
        if isinstance(given, np.ma.MaskedArray):
            return pa.array(_in_a_known_form(np.asarray(given.data)), mask=np.ma.getmaskarray(given))
        array = given if isinstance(given, (list, tuple)) else np.asarray(given)
        if isinstance(array, np.ndarray) and array.ndim != 1:
            raise DataError(f"the column {name!r} must have one dimension, got {array.ndim}")
        return pa.array(_in_a_known_form(array), from_pandas=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(f"the column {name!r} cannot be read as one type: {error}. Convert it first") from error


def _in_a_known_form(array: Any) -> Any:
    """Arrow knows the byte order of this machine, days, seconds and their thousandths, and Python's texts."""
    if not isinstance(array, np.ndarray):
        return array
    kind = array.dtype.kind
    if kind in "mM" and (np.datetime_data(array.dtype)[0] in UNKNOWN_UNITS or array.dtype == DAYS):
        return array.astype(f"{kind}8[s]")
    return array.tolist() if kind == "U" else array.astype(array.dtype.newbyteorder("="), copy=False)


def to_numpy(array: Any, is_masked: bool = False) -> Any:
    """An Arrow array as a NumPy array; a struct as a structured array, a list as an array of objects."""
    if pa.types.is_struct(array.type):
        fields = {field.name: to_numpy(array.field(k)) for k, field in enumerate(array.type)}
        answers = np.empty(len(array), [(name, column.dtype) for name, column in fields.items()])
        for name, column in fields.items():
            answers[name] = np.ma.getdata(column)
        valid = buffers.valid_of(array)
        return answers if valid is None else np.ma.MaskedArray(answers, mask=~valid)
    valid = buffers.valid_of(array)
    is_time = pa.types.is_temporal(array.type) and not pa.types.is_time(array.type)
    if valid is None or is_time or not (pa.types.is_primitive(array.type) or pa.types.is_boolean(array.type)):
        values = array.to_numpy(zero_copy_only=False)
        return np.ma.MaskedArray(values) if is_masked else values
    if pa.types.is_floating(array.type) and not is_masked:
        return array.to_numpy(zero_copy_only=False)
    if pa.types.is_boolean(array.type):
        return np.ma.MaskedArray(buffers.booleans(array), mask=~valid)
    return np.ma.MaskedArray(buffers.fixed_values(array, array.type.to_pandas_dtype()), mask=~valid)
