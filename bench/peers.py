"""What a user would otherwise do: the same windows by bottleneck, pandas, Polars and DuckDB.

One table: aggregate -> peer -> a function of (values, rows). A peer that is not installed, or cannot
express an aggregate, is absent from the table and shown as such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Peer = Callable[[Any, int], Any]
AGGREGATES = ("max", "min", "sum", "mean", "std", "argmax")


def peers() -> dict[str, dict[str, Peer]]:
    """The table of those that are installed."""
    table: dict[str, dict[str, Peer]] = {name: {} for name in AGGREGATES}
    for add in (_bottleneck, _pandas, _polars, _duckdb):
        try:
            add(table)
        except ImportError:
            continue
    return table


def _bottleneck(table: dict[str, dict[str, Peer]]) -> None:
    import bottleneck

    for name in AGGREGATES:
        move = getattr(bottleneck, f"move_{name}")
        options = {"ddof": 1} if name == "std" else {}
        table[name]["bottleneck"] = lambda x, rows, move=move, options=options: move(x, rows, min_count=1, **options)


def _pandas(table: dict[str, dict[str, Peer]]) -> None:
    import pandas as pd

    for name in ("max", "min", "sum", "mean", "std"):
        table[name]["pandas"] = lambda x, rows, name=name: getattr(
            pd.Series(x).rolling(rows, min_periods=1), name
        )().to_numpy()


def _polars(table: dict[str, dict[str, Peer]]) -> None:
    import polars as pl

    for name in ("max", "min", "sum", "mean", "std"):
        table[name]["polars"] = lambda x, rows, name=name: getattr(pl.Series(x), f"rolling_{name}")(
            rows, min_samples=1
        ).to_numpy()


def _duckdb(table: dict[str, dict[str, Peer]]) -> None:
    import duckdb

    functions = {name: f"{name}(x)" for name in ("max", "min", "sum")}
    functions |= {"mean": "avg(x)", "std": "stddev_samp(x)", "argmax": "arg_max(i, x)"}

    def over(x: Any, rows: int, function: str) -> Any:
        frame = {"i": np.arange(len(x)), "x": x}
        connection = duckdb.connect()
        connection.register("rows", frame)
        window = f"(ORDER BY i ROWS BETWEEN {rows - 1} PRECEDING AND CURRENT ROW)"
        return connection.execute(f"SELECT {function} OVER {window} AS y FROM rows").fetchnumpy()["y"]

    for name, function in functions.items():
        table[name]["duckdb"] = lambda x, rows, function=function: over(x, rows, function)
