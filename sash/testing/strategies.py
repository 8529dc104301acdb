"""Hypothesis strategies for windows: rows for an aggregate, columns, and nulls among them."""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError(
        "sash.testing needs the hypothesis package, which is missing. Install it with: pip install 'sash[testing]'"
    ) from error

from sash.engine.binding import as_aggregate

FEW = 9  # small numbers: ties are frequent, and a failure is easy to follow


def whole_numbers(largest: int = FEW) -> st.SearchStrategy[int]:
    """Draw small whole numbers, on which float sums and means are exact."""
    return st.integers(-largest, largest)


def rows(aggregate: Any, values: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[tuple[Any, ...]]:
    """Draw tuples of the values an aggregate takes for a row; one at least, for a count of rows too."""
    wanted = whole_numbers() if values is None else values
    return st.tuples(*[wanted] * max(as_aggregate(aggregate).n_inputs, 1))


def rows_or_nulls(aggregate: Any, values: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[tuple[Any, ...]]:
    """Draw rows in which any value may be null."""
    wanted = whole_numbers() if values is None else values
    return st.tuples(*[st.none() | wanted] * max(as_aggregate(aggregate).n_inputs, 1))


def null_rows(aggregate: Any, values: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[tuple[Any, ...]]:
    """Draw rows with at least one null among their values."""
    if as_aggregate(aggregate).n_inputs <= 1:
        return st.just((None,))
    return rows_or_nulls(aggregate, values).filter(lambda row: None in row)


@st.composite
def columns(draw: st.DrawFn, dtype: Any, max_size: int = 64, largest: int = FEW) -> np.ndarray[Any, Any]:
    """Draw an array of small whole numbers of a type, none of them negative if it has no sign."""
    kind = np.dtype(dtype)
    smallest = 0 if kind.kind in "ub" else -largest
    drawn = draw(st.lists(st.integers(smallest, 1 if kind.kind == "b" else largest), max_size=max_size))
    return np.array(drawn, kind)
