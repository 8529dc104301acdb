"""pandas data frames in and out.

A NumPy-backed float column has no null but NaN, so NaN there is null, as it is when Spark reads a pandas
table; `Float64` and `double[pyarrow]` columns have both and are taken at their word. Answers that are values of a
column get its type; others follow the family of the column they were computed from: NumPy, nullable or Arrow. In
NumPy's, a null is NaN or NaT; integers and booleans with nulls become `Int64` and `boolean`, which lose nothing.

Names of index levels can be used like names of columns. The index of the answer is that of the input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from sash.errors import DataError
from sash.frames.sources import Answer, Table

NULLABLE = {
    pa.bool_(): pd.BooleanDtype(),
    pa.int8(): pd.Int8Dtype(), pa.int16(): pd.Int16Dtype(), pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(),
    pa.uint8(): pd.UInt8Dtype(), pa.uint16(): pd.UInt16Dtype(), pa.uint32(): pd.UInt32Dtype(),
    pa.uint64(): pd.UInt64Dtype(), pa.float32(): pd.Float32Dtype(), pa.float64(): pd.Float64Dtype(),
}  # fmt: skip


class Source(Table):
    """A pandas DataFrame."""

    @property
    def names(self) -> list[str]:  # noqa: D102
        columns = [name for name in self.table.columns if isinstance(name, str)]
        return columns + [name for name in self.table.index.names if isinstance(name, str) and name not in columns]

    @property
    def n_rows(self) -> int:  # noqa: D102
        return len(self.table)

    def array(self, name: str) -> Any:  # noqa: D102
        series = self._series(name)
        if isinstance(series.dtype, pd.SparseDtype):
            series = series.sparse.to_dense()
        try:
            return pa.Array.from_pandas(series)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise DataError(
                f"the column {name!r} holds objects of several types, or of one that Arrow does not know: {error}. "
                "Cast it with astype(...) first"
            ) from error

    def _series(self, name: str) -> Any:
        if name not in self.table.columns:
            return self.table.index.get_level_values(name).to_series()
        column = self.table[name]
        if isinstance(column, pd.DataFrame):
            raise DataError(f"the table has {column.shape[1]} columns of the name {name!r}; rename them first")
        return column

    def take(self, rows: Any) -> Source:  # noqa: D102
        return Source(self.table.iloc[rows])

    def new(self, names: Sequence[str], rows: Any, answers: Mapping[str, Answer]) -> Any:  # noqa: D102
        keys = {name: self._series(name).array.take(rows) for name in names}
        return pd.DataFrame(keys | {name: self._native(answer) for name, answer in answers.items()})

    def with_columns(self, answers: Mapping[str, Answer]) -> Any:  # noqa: D102
        added = {name: self._native(answer) for name, answer in answers.items()}
        columns = pd.DataFrame(added, index=self.table.index, copy=False)
        found = pd.concat([self.table, columns], axis=1) if len(self.table.columns) else columns
        found.attrs.update(self.table.attrs)
        return found

    def _native(self, answer: Answer) -> Any:
        """A column of answers in the family of types that the input has."""
        array = answer.array
        if answer.like in self.names:
            kept = _kept(array, self._series(answer.like).dtype)
            if kept is not None:
                return kept
        reads = self._series(answer.reads).dtype if answer.reads in self.names else None
        if isinstance(reads, pd.ArrowDtype) or pa.types.is_nested(array.type):
            return pd.array(array, dtype=pd.ArrowDtype(array.type))
        is_nullable = reads is not None and type(reads) in {type(each) for each in NULLABLE.values()}
        if array.type in NULLABLE and (is_nullable or (array.null_count and not pa.types.is_floating(array.type))):
            return NULLABLE[array.type].__from_arrow__(array)
        return array.to_pandas().array


def _kept(array: Any, dtype: Any) -> Any:
    """Values of a column in its own type; None if that has no place for null."""
    if isinstance(dtype, pd.ArrowDtype):
        return pd.array(array.cast(dtype.pyarrow_dtype), dtype=dtype)
    if hasattr(dtype, "__from_arrow__") and not isinstance(dtype, pd.CategoricalDtype):
        return dtype.__from_arrow__(array)
    if isinstance(dtype, pd.CategoricalDtype):
        return pd.Categorical(array.to_pandas(), dtype=dtype)
    if isinstance(dtype, np.dtype) and dtype.kind in "biu" and array.null_count:
        return None
    values = array.to_pandas()
    return values.astype(dtype).array if isinstance(dtype, np.dtype) and dtype.kind != "O" else values.array
