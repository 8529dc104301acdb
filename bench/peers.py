"""What a user would otherwise do: the same windows by bottleneck, pandas, Polars and DuckDB.

One table: aggregate -> peer -> a function of the rows of a window. Each peer gets the column beforehand in the form it
likes best; only its windows are timed. A peer that is not installed, or cannot express an aggregate, is absent from the
table and shown as such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Peer = Callable[[int], Any]
Table = dict[str, dict[str, Peer]]
AGGREGATES = ("max", "min", "sum", "mean", "std", "argmax")


def peers(values: Any) -> Table:
    """The table of those that are installed, over one column."""
    table: Table = {name: {} for name in AGGREGATES}
    for add in (_bottleneck, _pandas, _polars, _duckdb):
        try:
            add(table, values)
        except ImportError:
            continue
    return table


def agrees(peer: str, name: str, found: Any, answers: Any) -> bool:
    """Whether a peer has found our answers, but for rounding."""
    if peer == "bottleneck" and name == "argmax":  # it counts back from the row
        found = np.arange(len(found)) - found
    return np.allclose(found, answers, rtol=1e-6, atol=1e-9, equal_nan=True)


def _bottleneck(table: Table, values: Any) -> None:
    import bottleneck

    for name in AGGREGATES:
        move = getattr(bottleneck, f"move_{name}")
        options = {"ddof": 1} if name == "std" else {}
        table[name]["bottleneck"] = lambda rows, move=move, options=options: move(values, rows, min_count=1, **options)


def _pandas(table: Table, values: Any) -> None:
    import pandas as pd

    series = pd.Series(values)
    for name in ("max", "min", "sum", "mean", "std"):
        table[name]["pandas"] = lambda rows, name=name: getattr(series.rolling(rows, min_periods=1), name)().to_numpy()


def _polars(table: Table, values: Any) -> None:
    import polars as pl

    series = pl.Series(values)
    for name in ("max", "min", "sum", "mean", "std"):
        table[name]["polars"] = lambda rows, name=name: getattr(series, f"rolling_{name}")(
            rows, min_samples=1
        ).to_numpy()


def _duckdb(table: Table, values: Any) -> None:
    """In a table of its own. Without ORDER BY it takes rows as they lie there and need not sort: a fifth faster."""
    import duckdb

    functions = {name: f"{name}(x)" for name in ("max", "min", "sum")}
    functions |= {"mean": "avg(x)", "std": "stddev_samp(x)", "argmax": "arg_max(i, x)"}
    connection = duckdb.connect()
    connection.register("given", {"i": np.arange(len(values)), "x": values})
    connection.execute("CREATE TABLE rows AS SELECT * FROM given")

    def over(rows: int, function: str) -> Any:
        window = f"(ROWS BETWEEN {rows - 1} PRECEDING AND CURRENT ROW)"
        return connection.execute(f"SELECT {function} OVER {window} AS y FROM rows").fetchnumpy()["y"]

    for name, function in functions.items():
        table[name]["duckdb"] = lambda rows, function=function: over(rows, function)
