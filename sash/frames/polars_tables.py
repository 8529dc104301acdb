"""Polars data frames in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from sash.errors import DataError
from sash.frames.sources import Answer, Table

WIDE = [getattr(pl, name) for name in ("Int128", "UInt128") if hasattr(pl, name)]  # integers that Arrow does not have


class Source(Table):
    """A Polars DataFrame."""

    @property
    def names(self) -> list[str]:  # noqa: D102
        return list(self.table.columns)

    @property
    def n_rows(self) -> int:  # noqa: D102
        return int(self.table.height)

    def array(self, name: str) -> Any:  # noqa: D102
        series = self.table.get_column(name)
        if series.dtype == pl.Object:
            raise DataError(
                f"the column {name!r} has the type Object, which Arrow cannot hold. Cast it to another type"
            )
        if series.dtype in WIDE:
            series = series.cast(pl.Decimal(38, 0))
        return series.to_arrow()

    def take(self, rows: Any) -> Source:  # noqa: D102
        return Source(self.table[rows])

    def new(self, names: Sequence[str], rows: Any, answers: Mapping[str, Answer]) -> Any:  # noqa: D102
        keys = [self.table.get_column(name)[rows] for name in names]
        return pl.DataFrame([*keys, *(self._series(name, answer) for name, answer in answers.items())])

    def with_columns(self, answers: Mapping[str, Answer]) -> Any:  # noqa: D102
        return self.table.with_columns(self._series(name, answer) for name, answer in answers.items())

    def _series(self, name: str, answer: Answer) -> Any:
        series = pl.Series(name, answer.array)
        if answer.like is None or answer.like not in self.table.columns:
            return series
        dtype = self.table.get_column(answer.like).dtype
        return series if series.dtype == dtype else series.cast(dtype)
